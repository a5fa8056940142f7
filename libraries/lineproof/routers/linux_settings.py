"""Sets neighbours, routes and kernel settings of a Linux router, each with its undo. What is right already stays."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from ..errors import TestbedError
from .changing_commands import ChangingCommands
from .configured_output import parse_linux_offload, replaced_rows, route_rows
from .refusals import CommandRefused
from .shell_output import first_line


def set_up(commands: ChangingCommands, name: str, before: str) -> None:
    """Take the interface *name* up. *before*: its ``ip link show``. Raises TestbedError."""
    flags = re.search(r"<([^>]*)>", before)
    if not flags:
        raise TestbedError(f"'ip link show dev {name}' was not understood: '{first_line(before)}'")
    if "UP" not in flags[1].split(","):
        commands.change(("ip", "link", "set", "dev", name, "up"), ("ip", "link", "set", "dev", name, "down"))


def set_neighbour(commands: ChangingCommands, peer: str, mac: str, interface: str, before: str) -> None:
    """Make *mac* (lower case) the permanent neighbour *peer*. *before*: its row of ``ip neigh show``."""
    words = before.split()
    permanent = words[-1:] == ["PERMANENT"]
    old = next(iter(words[words.index("lladdr") + 1 :]), None) if "lladdr" in words else None
    if permanent and old == mac:
        return
    new = ("ip", "neigh", "replace", peer, "lladdr", mac, "nud", "permanent", "dev", interface)
    undo: tuple[str, ...] = ("ip", "neigh", "del", peer, "dev", interface)
    if permanent and old:
        undo = ("ip", "neigh", "replace", peer, "lladdr", old, "nud", "permanent", "dev", interface)
    commands.change(new, undo)


def set_route(
    commands: ChangingCommands, family: Sequence[str], wanted: Sequence[str], before: str, options: Sequence[str] = ()
) -> None:
    """Set the route *wanted* (in the words of ``ip route show``); *options*: words that only setting it needs.

    *family*: options of ``ip``. *before*: ``ip route show`` of the destination, in the same table.
    """
    old = route_rows(before)
    if any(row[: len(wanted)] == list(wanted) for row in old):
        return
    undo = ("ip", *family, "route", "del", *wanted, *options)
    # a route with another metric stays beside the new one
    if replaced := replaced_rows(old, "-6" in family):
        table = options[options.index("table") :] if "table" in options else ()
        undo = ("ip", *family, "route", "replace", *replaced[0], *table)
    commands.change(("ip", *family, "route", "replace", *wanted, *options), undo)


def set_sysctl(
    commands: ChangingCommands, key: str, value: str, notes: list[str], also_reset: re.Pattern[str] | None = None
) -> None:
    """Set *key* (separated by ``/``: names of interfaces have dots) to *value*; *notes* receives the change.

    *also_reset*: assignments, as ``net/ipv4/conf/eth1/forwarding=1``, that the kernel undoes when *key* is put back.
    """
    before = _value_of(commands, key)
    if before != value:
        others = _assignments(commands.run("sysctl", "/".join(key.split("/")[:2]) + "/conf")) if also_reset else ()
        again = (other for other in others if also_reset and also_reset.fullmatch(other))
        commands.change(("sysctl", "-w", f"{key}={value}"), ("sysctl", "-w", f"{key}={before}", *again))
        notes.append(f"{key} set from {before} to {value} for the test")


def link_names(commands: ChangingCommands) -> tuple[str, ...]:
    """Return the names of all interfaces."""
    return tuple(re.findall(r"^\d+: ([^:@\s]+)", commands.run("ip", "-o", "link", "show"), re.MULTILINE))


def set_forwarding(commands: ChangingCommands, key: str, notes: list[str]) -> None:
    """Let the router forward: *key* is the switch of all its interfaces, of IPv4 or IPv6.

    Switched off again it would leave no interface that forwards, and redirects taken, whatever was there before
    (Linux, Documentation/networking/ip-sysctl.rst: ``ip_forward``).
    """
    if _value_of(commands, key) == "0":
        _switch_lro_off(commands, notes)
    set_sysctl(
        commands, key, "1", notes, re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")
    )


def _switch_lro_off(commands: ChangingCommands, notes: list[str]) -> None:
    """As the kernel does on all interfaces when it begins to forward, but so that it is undone.

    It leaves them so when it forwards no longer (Linux, net/ipv4/devinet.c: ``inet_forward_change``).
    """
    names = link_names(commands)
    # a router may lack ethtool, and an interface what it shows
    shown = commands.run_all({name: ("ethtool", "-k", name) for name in names}, optional=names)
    for name, text in shown.items():
        if text and parse_linux_offload(text, "lro") == "on":
            # a card that keeps it keeps it from the kernel, too
            with contextlib.suppress(CommandRefused):
                commands.change(("ethtool", "-K", name, "lro", "off"), ("ethtool", "-K", name, "lro", "on"))
                notes.append(f"{name}: lro switched off for the test, as the kernel does where it forwards")


def _value_of(commands: ChangingCommands, key: str) -> str:
    value = commands.run("sysctl", "-n", key).strip()
    if not re.fullmatch(r"-?\d+", value):
        raise TestbedError(f"'sysctl -n {key}' was not understood: '{value}'")
    return value


def _assignments(shown: str) -> Iterator[str]:
    """``net.ipv4.conf.eth1/5.forwarding = 1`` as ``net/ipv4/conf/eth1.5/forwarding=1``."""
    for line in shown.splitlines():
        name, _, value = line.partition(" = ")
        yield f"{name.translate(str.maketrans('./', '/.'))}={value.strip()}"
