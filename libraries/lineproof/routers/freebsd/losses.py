"""Counters of a FreeBSD kernel, and where it lost frames. Semantics as in FreeBSD's ``sys/``.

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
from collections.abc import Mapping

from ...core.causes import Cause, Role, Stage
from ...core.telemetry import InterfaceCounters
from ...errors import TestbedError
from ..base import CARD_QUEUE_FULL
from ..shell_output import counter_value, first_line, parser
from .facts import counters

_COLUMNS = {
    "Ipkts": "rx_packets",
    "Ibytes": "rx_bytes",
    "Opkts": "tx_packets",
    "Obytes": "tx_bytes",
    "Idrop": "rx_drops",
    "Ierrs": "rx_errors",
    "Drop": "tx_drops",
    "Oerrs": "tx_errors",
}
_OF_INTERFACE = {
    "Idrop": (Stage.ARRIVING, CARD_QUEUE_FULL),
    "Ierrs": (Stage.ARRIVING, "its card took them for damaged, or had no room"),
    "Drop": (Stage.LEAVING, "its sending queue was full"),
    "Oerrs": (Stage.LEAVING, "its card could not send them"),
}
_OF_IP = {
    "packets not forwardable": (Stage.PASSING, Role.LOSS, "no route for them"),
    "packets received for unknown multicast group": (Stage.PASSING, Role.LOSS, ""),
    "output packets dropped due to no bufs, etc": (Stage.LEAVING, Role.OVERLAPPING, "the sending queue was full"),
    "output packets discarded due to no route": (Stage.PASSING, Role.REASON, ""),
}
_EXPIRED = re.compile(
    r"^\s*Output histogram:(?:\n(?!.*messages with).*)*?\n\s*(?:time exceeded: (\d+)|(\d+) time exceeded)", re.MULTILINE
)
_SUSPECT = re.compile(r"miss|drop|discard|no_?(?:buf|desc)|no_buff|overrun|fifo|fail|err", re.IGNORECASE)


@parser("kern.boottime")
def parse_boottime(boottime: str, now: str) -> float:
    """Return the s since boot, from ``kern.boottime`` and the router's own ``date +%s``."""
    boot = re.search(r"sec = (\d+)", boottime)
    since = counter_value(now) - counter_value(boot[1] if boot else "")
    if since < 0:
        raise ValueError("a boot in the future")
    return float(since)


@parser("'netstat -ibnd'")
def parse_netstat(text: str) -> Mapping[str, InterfaceCounters]:
    """Return the counters of each interface: its row of the link level. Columns are found by their titles.

    They are counted from the right: an address may be missing. Rows of IP addresses have other counts.
    """
    titles, *rows = [line.split() for line in text.splitlines()] or [[]]
    columns = titles[4:]
    if titles[:1] != ["Name"] or not {"Ipkts", "Ierrs", "Ibytes", "Opkts", "Oerrs", "Obytes"} <= set(columns):
        raise TestbedError(f"'netstat -ibnd' was not understood: '{first_line(text) or 'no output'}'")
    interfaces = {}
    for row in rows:
        if len(row) > len(columns) and row[2].startswith("<Link#"):
            values = dict(zip(columns, map(counter_value, row[-len(columns) :]), strict=True))
            interfaces[row[0].rstrip("*")] = InterfaceCounters(
                **{field: values.get(title, 0) for title, field in _COLUMNS.items()}
            )
    return interfaces


@parser("'netstat -s -f inet'")
def ip_causes(text: str) -> list[Cause]:
    """Return what IP has lost, and how many replies *time exceeded* were sent, one at most for each expired frame."""
    causes = []
    for row in re.finditer(rf"^\s*(\d+) ({'|'.join(_OF_IP)})\.?$", text, re.MULTILINE):
        stage, role, meaning = _OF_IP[row[2]]
        causes.append(Cause(stage, f"ip {row[2]}", "", counter_value(row[1]), role, meaning))
    expired = _EXPIRED.search(text)
    count = counter_value(expired[1] or expired[2]) if expired else 0
    return [*causes, Cause(Stage.PASSING, "icmp time exceeded", "", count, Role.LOSS, "their TTL expired")]


def interface_causes(interfaces: Mapping[str, InterfaceCounters]) -> list[Cause]:
    """Return what the interfaces have lost."""
    return [
        Cause(stage, title, name, getattr(counts, _COLUMNS[title]), Role.LOSS, meaning)
        for name, counts in interfaces.items()
        for title, (stage, meaning) in _OF_INTERFACE.items()
    ]


def suspects(device: Mapping[str, str]) -> dict[str, int]:
    """Return the counters of a device, of its subtree of ``sysctl``, whose names suggest loss."""
    return {name: count for name, count in counters(device).items() if _SUSPECT.search(name)}


def device_causes(interface: str, device: Mapping[str, str]) -> list[Cause]:
    """Return the :func:`suspects` of *interface* as reasons."""
    return [
        Cause(
            Stage.LEAVING if re.search(r"(^|[._])tx", name) else Stage.ARRIVING,
            f"sysctl {name}",
            interface,
            count,
            Role.REASON,
        )
        for name, count in suspects(device).items()
    ]
