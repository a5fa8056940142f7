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
from collections.abc import Iterator, Mapping

from ...core.causes import Cause, Role, Stage
from ...core.telemetry import InterfaceCounters
from ...errors import TestbedError
from ..base import CARD_QUEUE_FULL
from ..shell_output import counter_value, first_line, parser
from .facts import counters

_PACKETS = {"Ipkts": "rx_packets", "Ibytes": "rx_bytes", "Opkts": "tx_packets", "Obytes": "tx_bytes"}
_LOST = {
    "Idrop": ("rx_drops", Stage.ARRIVING, CARD_QUEUE_FULL),
    "Ierrs": ("rx_errors", Stage.ARRIVING, "its card took them for damaged, or had no room"),
    "Drop": ("tx_drops", Stage.LEAVING, "its sending queue was full"),
    "Oerrs": ("tx_errors", Stage.LEAVING, "its card could not send them"),
}
"""Titles of ``netstat -ibnd``, and the fields of :class:`.InterfaceCounters`."""
_BY_IP = {
    "packets not forwardable": (Stage.PASSING, Role.LOSS, "no route for them"),
    "packets received for unknown multicast group": (Stage.PASSING, Role.LOSS, ""),
    "output packets dropped due to no bufs, etc": (Stage.LEAVING, Role.OVERLAPPING, "the sending queue was full"),
    "output packets discarded due to no route": (Stage.PASSING, Role.REASON, ""),
}
_EXPIRED = re.compile(r"^\s*(?:time exceeded: (\d+)|(\d+) time exceeded)", re.MULTILINE)
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

    They are counted from the right: an address may be missing. Rows of IP addresses have other counts. No JSON: there
    both drops have the name ``dropped-packets`` (usr.bin/netstat/if.c), and a parser keeps one of them.
    """
    titles, *rows = [line.split() for line in text.splitlines()] or [[]]
    columns, fields = titles[4:], {**_PACKETS, **{title: row[0] for title, row in _LOST.items()}}
    if titles[:1] != ["Name"] or not fields.keys() - {"Idrop", "Drop"} <= set(columns):
        raise TestbedError(f"'netstat -ibnd' was not understood: '{first_line(text) or 'no output'}'")
    interfaces = {}
    for row in rows:
        if len(row) > len(columns) and row[2].startswith("<Link#"):
            values = dict(zip(columns, map(counter_value, row[-len(columns) :]), strict=True))
            counts = {field: values.get(title, 0) for title, field in fields.items()}
            interfaces[row[0].rstrip("*")] = InterfaceCounters(**counts)
    return interfaces


def freebsd_causes(
    interfaces: Mapping[str, InterfaceCounters], protocols: str, devices: Mapping[str, Mapping[str, str]]
) -> Iterator[Cause]:
    """Yield what interfaces, IP and devices have lost.

    *protocols*: ``netstat -s -f inet``; *devices*: the subtree of ``sysctl`` of each interface.
    """
    for name, counts in interfaces.items():
        for title, (field, stage, meaning) in _LOST.items():
            yield Cause(stage, title, name, getattr(counts, field), Role.LOSS, meaning)
    yield from ip_causes(protocols)
    for name, device in devices.items():
        for key, count in suspects(device).items():
            stage = Stage.LEAVING if re.search(r"(^|[._])tx", key) else Stage.ARRIVING
            yield Cause(stage, f"sysctl {key}", name, count, Role.REASON)


@parser("'netstat -s -f inet'")
def ip_causes(text: str) -> list[Cause]:
    """Return what IP has lost, and the replies *time exceeded* sent: one at most for each frame whose TTL expired."""
    causes, names = [], "|".join(_BY_IP).replace("packets", "packets?")
    for row in re.finditer(rf"^\s*(\d+) ({names})\.?$", text, re.MULTILINE):
        name = row[2].replace("packet ", "packets ")  # one frame is a packet (usr.bin/netstat/inet.c)
        stage, role, meaning = _BY_IP[name]
        causes.append(Cause(stage, f"ip {name}", "", counter_value(row[1]), role, meaning))
    expired = _EXPIRED.search(text.partition("Output histogram")[2].partition("messages with")[0])
    count = counter_value(expired[1] or expired[2]) if expired else 0
    return [*causes, Cause(Stage.PASSING, "icmp time exceeded", "", count, Role.LOSS, "their TTL expired")]


def suspects(device: Mapping[str, str]) -> dict[str, int]:
    """Return the counters in a device's subtree of ``sysctl`` whose names suggest loss."""
    return {name: count for name, count in counters(device).items() if _SUSPECT.search(name)}
