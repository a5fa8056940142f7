"""Queues, rings, offloads and kernel variables that a platform's file sets for a run: set, read back, and undone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import TestbedError
from ..platforms import Tuning
from .changing_commands import ChangingCommands
from .shell_output import counter_value, first_line, parser

_LINUX_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


def tune_linux(commands: ChangingCommands, interfaces: Iterable[str], tuning: Tuning, notes: list[str]) -> None:
    """Set *tuning* with ``ethtool`` and ``sysctl``; *notes* receives each change. Raises TestbedError."""
    for name in interfaces:
        if tuning.queues is not None:
            # some cards have separate queues for each direction
            key = "combined" if "combined" in _current(commands, name, "-l") else "rx"
            _set_numbers(commands, name, "-l", {key: tuning.queues}, notes)
        if rings := {key: count for key, count in (("rx", tuning.rx_ring), ("tx", tuning.tx_ring)) if count}:
            _set_numbers(commands, name, "-g", rings, notes)
        for offload, wanted in tuning.offloads.items():
            _set_linux_offload(commands, name, offload, wanted, notes)
    for key, value in tuning.sysctls.items():
        _set_variable(commands, key, value, ("sysctl", "-w"), notes)


def tune_freebsd(commands: ChangingCommands, interfaces: Iterable[str], tuning: Tuning, notes: list[str]) -> None:
    """Set *tuning* with ``ifconfig`` and ``sysctl``; *notes* receives each change. Raises TestbedError."""
    for name in interfaces:
        for offload, wanted in tuning.offloads.items():
            before = _freebsd_offloads(commands, name)
            if bool(before[offload]) != (wanted == "on"):
                new, former = ((offload,), (f"-{offload}",)) if wanted == "on" else ((f"-{offload}",), before[offload])
                commands.change(("ifconfig", name, *new), ("ifconfig", name, *former))
                if not commands.rehearsing:
                    now = _freebsd_offloads(commands, name)
                    _require(bool(now[offload]) == (wanted == "on"), name, f"{offload} {wanted}")
                notes.append(f"{name}: {offload} switched {wanted} for the test")
    for key, value in tuning.sysctls.items():
        _set_variable(commands, key, value, ("sysctl",), notes)


def _set_numbers(
    commands: ChangingCommands, name: str, option: str, wanted: Mapping[str, int], notes: list[str]
) -> None:
    """``ethtool -L`` (queues) or ``-G`` (rings)."""
    before = _current(commands, name, option)
    lacking = [key for key in wanted if key not in before]
    if lacking:
        raise TestbedError(
            f"the card of {name} reports no {' and '.join(lacking)} in 'ethtool {option} {name}', so the platform's"
            " 'tuning' cannot set it; fix or remove that key"
        )
    if all(before[key] == count for key, count in wanted.items()):
        return
    words = [word for key, count in wanted.items() for word in (key, str(count))]
    former = [word for key in wanted for word in (key, str(before[key]))]
    setter = ("ethtool", option.upper(), name)
    commands.change((*setter, *words), (*setter, *former))
    if not commands.rehearsing:
        now = _current(commands, name, option)
        _require(all(now.get(key) == count for key, count in wanted.items()), name, " ".join(words))
    notes.append(f"{name}: {' '.join(words)} set for the test (before: {' '.join(former)})")


def _current(commands: ChangingCommands, name: str, option: str) -> dict[str, int]:
    return parse_current(commands.run("ethtool", option, name))


@parser("'ethtool -l' or '-g'")
def parse_current(text: str) -> dict[str, int]:
    """The second half of it: queues or frames by their name in lower case."""
    _, found, current = text.partition("Current hardware settings:")
    if not found:
        raise ValueError("without current settings")
    rows = re.findall(r"^(\w+):\s+([0-9]+)\s*$", current, re.MULTILINE)
    return {key.lower(): counter_value(count) for key, count in rows}


def _set_linux_offload(commands: ChangingCommands, name: str, offload: str, wanted: str, notes: list[str]) -> None:
    before = commands.run("ethtool", "-k", name)
    state = parse_linux_offload(before, offload)
    if state == wanted:
        return
    former = [offload, state]
    if offload == "tso":
        # a card may have some of its parts on and others off
        parts = re.findall(r"^\s+(tx-tcp[\w-]*): (on|off)(?! \[fixed\])", before, re.MULTILINE)
        former = [word for part in parts for word in part] or former
    commands.change(("ethtool", "-K", name, offload, wanted), ("ethtool", "-K", name, *former))
    if not commands.rehearsing:
        now = parse_linux_offload(commands.run("ethtool", "-k", name), offload)
        _require(now == wanted, name, f"{offload} {wanted}")
    notes.append(f"{name}: {offload} switched {wanted} for the test")


@parser("'ethtool -k'")
def parse_linux_offload(text: str, offload: str) -> str:
    """Whether *offload* is ``on`` or ``off``."""
    found = re.search(rf"^{_LINUX_OFFLOADS[offload]}: (on|off)\b", text, re.MULTILINE)
    if not found:
        raise ValueError(f"without {_LINUX_OFFLOADS[offload]}")
    return found[1]


def _freebsd_offloads(commands: ChangingCommands, name: str) -> dict[str, tuple[str, ...]]:
    return parse_freebsd_offloads(commands.run("ifconfig", name))


@parser("'ifconfig'")
def parse_freebsd_offloads(text: str) -> dict[str, tuple[str, ...]]:
    """The words of ``ifconfig`` for those that are on: ``options=…<…,LRO,TSO4>``; it prints none where none is."""
    if not re.match(r"\S+: flags=", text):
        raise ValueError("without flags")
    found = re.search(r"^\s+options=[0-9a-f]+<([^>]*)>", text, re.MULTILINE)
    on = set(found[1].split(",")) if found else set()
    words = {"lro": ("lro",), "tso": ("tso4", "tso6")}
    return {offload: tuple(word for word in parts if word.upper() in on) for offload, parts in words.items()}


def _set_variable(commands: ChangingCommands, key: str, value: str, setter: tuple[str, ...], notes: list[str]) -> None:
    before = " ".join(commands.run("sysctl", "-n", key).split())
    if not re.fullmatch(r"-?\d+( -?\d+)*", before):
        raise TestbedError(
            f"'sysctl -n {key}' is no number or numbers: '{first_line(before)}'; remove it from 'tuning'"
        )
    if before == value:
        return
    commands.change((*setter, f"{key}={value}"), (*setter, f"{key}={before}"))
    if not commands.rehearsing:
        now = " ".join(commands.run("sysctl", "-n", key).split())
        _require(now == value, "the kernel", f"{key} = {value}")
    notes.append(f"{key} set from {before} to {value} for the test")


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise TestbedError(
            f"the router took '{what}' for {where} and does not show it; look at what its card supports, and fix or"
            " remove it in the platform's 'tuning'"
        )
