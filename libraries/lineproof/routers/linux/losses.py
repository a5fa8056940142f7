"""Where a Linux kernel lost frames. Semantics of ``rtnl_link_stats64`` as ``linux/if_link.h`` gives them.

* ``rx_missed``: the card was full; not in ``rx_packets``. ``rx_errors``: bad frames; not in ``rx_packets``.
* ``rx_dropped``: in ``rx_packets``, then dropped by the driver or the core.
* The drops of ``softnet_stat`` (backlog full) are also in ``rx_dropped`` of the interface (``net/core/dev.c``).
* ``tx_packets``: handed to the card. ``tx_dropped`` and ``tx_errors`` are not in it; a queueing discipline drops before
  the interface and is in none of them.
* ``ingress`` and ``clsact``: what filters of ``tc`` drop on arrival, after ``rx_packets``; ``clsact`` also on leaving,
  in one count.
* ``/proc/net/snmp`` and ``netstat`` (RFC 4293): lost by IP after the interface received them, without the direction.
  ``InHdrErrors`` includes expired TTLs. ``OutDiscards`` may repeat drops of the interface.
* ``ethtool -S``: each driver has its own names, and most of these counts are also in the interface's counters. They
  are reasons only.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ...core.telemetry import Cause, Stage
from ..shell_output import counter_value

QDISC_DROPS, FILTER_DROPS, BACKLOG_FULL = "qdisc drops", "tc filter drops", "softnet backlog full"
"""Names of causes: dropped by a queueing discipline, by filters of ``tc``, waiting for a processor."""

_DISCIPLINE = "its queueing discipline "
_QDISC = re.compile(
    r"^qdisc (\w{1,32}) \S+ (?:dev (\S+) )?(root|ingress|parent \S+)(?: refcnt \d+)?([^\n]*)"
    r"\n\s*Sent [^\n]*\(dropped (\d+),",
    re.MULTILINE | re.ASCII,
)
_BY_CLASSES = ("htb", "hfsc", "cbq")
"""Their rates are in their classes, not in their own settings."""
_LIMITING = re.compile(r"(?:tbf|htb|hfsc|cbq)\b|.* (?:max)?rate \d|.* bandwidth \d")
"""Disciplines that send no faster than they are set to."""
_OF_THE_SYSTEM = re.compile(r"(?:mq|mqprio|pfifo_fast|fq_codel|fq|noqueue|multiq|cake)\b")
"""Disciplines that a system sets by itself: they are full where the card takes frames too slowly."""
_MOST_SETTINGS = 80


def parse_qdiscs(text: str, interfaces: Collection[str]) -> list[Cause]:
    """``tc -s qdisc show``: of each of *interfaces* the root, which counts all below it, and what holds its filters.

    The discipline that limits is named: the first below the root that has a rate, else the one that dropped most.
    """
    causes = list[Cause]()
    queues: dict[str, list[tuple[str, str, int]]] = {}
    for kind, name, place, settings, dropped in _QDISC.findall(text):
        if name not in interfaces:
            continue
        drops = counter_value(dropped)
        if kind == "ingress":
            causes.append(Cause(Stage.PASSING, FILTER_DROPS, name, drops, meaning="by filters of tc (ingress)"))
        elif kind == "clsact":  # of frames that arrive or leave there
            label = f"{FILTER_DROPS} at {name}"
            causes.append(Cause(Stage.PASSING, label, "", drops, meaning="by filters of tc (clsact)"))
        else:
            shown = [] if kind in _BY_CLASSES else re.sub(r"[^A-Za-z0-9_.%:/ -]", "", settings).split()
            words = " ".join((kind, *shown))[:_MOST_SETTINGS]
            queues.setdefault(name, []).append((place, words, drops))
    for name, rows in queues.items():
        # of a root and its only child the child is named
        limit = max(rows[::-1], key=lambda row: (is_limiting(row[1]), row[2]))
        meaning = f"{_DISCIPLINE}{limit[1]}"
        roots = (drops for place, _, drops in rows if place == "root")
        causes += [Cause(Stage.LEAVING, QDISC_DROPS, name, drops, meaning=meaning) for drops in roots]
    return causes


def discipline_of(meaning: str) -> str:
    """The discipline that the *meaning* of :data:`QDISC_DROPS` names; "" if none."""
    return meaning.removeprefix(_DISCIPLINE) if meaning.startswith(_DISCIPLINE) else ""


def is_limiting(discipline: str) -> bool:
    """Return whether *discipline*, with its settings, sends no faster than it is set to."""
    return _LIMITING.match(discipline) is not None


def is_of_the_system(discipline: str) -> bool:
    """Return whether *discipline* is one that a system sets by itself, without a rate."""
    return _OF_THE_SYSTEM.match(discipline) is not None and not is_limiting(discipline)
