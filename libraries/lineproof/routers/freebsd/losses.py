"""Where a FreeBSD kernel lost frames, from ``netstat`` and ``sysctl``. Semantics as in FreeBSD's ``sys/``.

* ``Idrop`` (IFCOUNTER_IQDROPS): the card or the input queue was full; ``Ierrs``: bad frames, in some drivers (em,
  igb) also frames missed because no descriptor was free. Neither is in ``Ipkts``, which counts good frames.
* ``Drop`` (IFCOUNTER_OQDROPS) and ``Oerrs`` are not in ``Opkts``.
* ``netstat -s``: lost by IP, without the direction. *not forwardable* includes *no route* for forwarded packets
  (``ip_fastfwd.c`` counts both); *output packets dropped* repeats what the interface's queue refused.
* ``dev.<driver>.<unit>``: each driver has its own names, and most of these counts are also in the interface's
  counters. They are reasons only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...core.causes import Cause, Role, Stage
from ...core.counter_names import Pauses, pauses_of
from ...core.telemetry import InterfaceCounters
from ..base import CARD_QUEUE_FULL
from ..shell_output import counter_value, parser

IP_DROPS = re.compile(
    r"^\s*(\d+) (packets not forwardable|packets received for unknown multicast group"
    r"|output packets dropped due to no bufs, etc\.|output packets discarded due to no route)",
    re.MULTILINE,
)
_IP = {
    "packets not forwardable": (Stage.PASSING, Role.LOSS, "no route for them"),
    "packets received for unknown multicast group": (Stage.PASSING, Role.LOSS, ""),
    "output packets dropped due to no bufs, etc": (Stage.LEAVING, Role.OVERLAPPING, "the sending queue was full"),
    "output packets discarded due to no route": (Stage.PASSING, Role.REASON, ""),
}
_EXPIRED = re.compile(r"^\s*(?:time exceeded: (\d+)|(\d+) time exceeded)", re.MULTILINE)
_SUSPECT = re.compile(r"miss|drop|discard|no_?(?:buf|desc)|no_buff|overrun|fifo|fail|err", re.IGNORECASE)


def sysctl_subtree(interface: str) -> str | None:
    """The ``sysctl`` subtree of *interface* (``ix0``: ``dev.ix.0``); None for a name without a number.

    mlxen's device is the card with all its ports, so its driver names a port's after the interface: ``hw.mlxen0``.
    """
    found = re.fullmatch(r"([a-z][a-z0-9_]*?)(\d+)", interface)
    if not found:
        return None
    return f"hw.{interface}" if found[1] == "mlxen" else f"dev.{found[1]}.{found[2]}"


@parser("'netstat -s -p ip'")
def parse_ip(text: str) -> Mapping[str, int]:
    """``netstat -s -p ip``: lost datagrams, by FreeBSD's name of the counter."""
    return {row[2].rstrip("."): counter_value(row[1]) for row in IP_DROPS.finditer(text)}


@parser("'netstat -s -p icmp'")
def parse_expired(text: str) -> int:
    """``netstat -s -p icmp``: *time exceeded* replies sent, at most one per frame whose TTL expired."""
    output = text.partition("Output histogram")[2].partition("messages with")[0]
    found = _EXPIRED.search(output)
    return counter_value(found[1] or found[2]) if found else 0


@parser("'sysctl dev'")
def parse_device(text: str, interface: str) -> Mapping[str, int]:
    """``sysctl dev.…``: the counters of *interface* whose names suggest loss."""
    return {name: count for name, count in _rows_of_device(text, interface) if _SUSPECT.search(name)}


@parser("'sysctl dev'")
def parse_device_pauses(text: str, interface: str) -> Pauses:
    """``sysctl dev.…``: pause frames of *interface*."""
    return pauses_of(dict(_rows_of_device(text, interface)))


def _rows_of_device(text: str, interface: str) -> Iterator[tuple[str, int]]:
    start = re.escape(sysctl_subtree(interface) or interface)
    for row in re.finditer(rf"^{start}\.(\S+): (\d+)$", text, re.MULTILINE):
        yield row[1], counter_value(row[2])


def freebsd_causes(
    interfaces: Mapping[str, InterfaceCounters],
    ip: Mapping[str, int],
    expired: int,
    devices: Mapping[str, Mapping[str, int]],
) -> tuple[Cause, ...]:
    """*ip*: as :func:`parse_ip`; *expired*: as :func:`parse_expired`; *devices*: of ``sysctl``, by interface."""
    found = []
    for name, counts in interfaces.items():
        damaged = "its card took them for damaged, or had no room"
        found += [
            Cause(Stage.ARRIVING, "Idrop", name, counts.rx_drops or 0, Role.LOSS, CARD_QUEUE_FULL),
            Cause(Stage.ARRIVING, "Ierrs", name, counts.rx_errors or 0, Role.LOSS, damaged),
            Cause(Stage.LEAVING, "Drop", name, counts.tx_drops or 0, Role.LOSS, "its sending queue was full"),
            Cause(Stage.LEAVING, "Oerrs", name, counts.tx_errors or 0, Role.LOSS, "its card could not send them"),
        ]
    for words, count in ip.items():
        stage, role, meaning = _IP[words]
        found.append(Cause(stage, f"ip {words}", "", count, role, meaning))
    found.append(Cause(Stage.PASSING, "icmp time exceeded", "", expired, Role.LOSS, "their TTL expired"))
    for name, rows in devices.items():
        for key, count in rows.items():
            stage = Stage.LEAVING if re.search(r"(^|[._])tx", key) else Stage.ARRIVING
            found.append(Cause(stage, f"sysctl {key}", name, count, Role.REASON))
    return tuple(found)
