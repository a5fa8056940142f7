"""Queues, rings, offloads and kernel variables that a platform's file sets for a run: set, read back, and undone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..errors import TestbedError
from ..platforms import Tuning
from .changes import parse_current, parse_freebsd_offloads, parse_linux_offload
from .changing_commands import ChangingCommands
from .shell_output import first_line


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
                    _require(commands, bool(now[offload]) == (wanted == "on"), name, f"{offload} {wanted}")
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
        _require(commands, all(now.get(key) == count for key, count in wanted.items()), name, " ".join(words))
    notes.append(f"{name}: {' '.join(words)} set for the test (before: {' '.join(former)})")


def _current(commands: ChangingCommands, name: str, option: str) -> dict[str, int]:
    return parse_current(commands.run("ethtool", option, name))


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
        _require(commands, now == wanted, name, f"{offload} {wanted}")
    notes.append(f"{name}: {offload} switched {wanted} for the test")


def _freebsd_offloads(commands: ChangingCommands, name: str) -> dict[str, tuple[str, ...]]:
    return parse_freebsd_offloads(commands.run("ifconfig", name))


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
        _require(commands, now == value, "the kernel", f"{key} = {value}")
    notes.append(f"{key} set from {before} to {value} for the test")


def _require(commands: ChangingCommands, holds: bool, where: str, what: str) -> None:
    if not holds:
        # a card may take the next value that it can have, which restoring would take for somebody else's
        commands.take_back()
        raise TestbedError(
            f"the router took '{what}' for {where} and does not show it; look at what its card supports, and fix or"
            " remove it in the platform's 'tuning'"
        )
