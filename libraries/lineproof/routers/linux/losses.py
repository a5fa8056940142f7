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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...core.causes import Cause, Role, Stage
from ...core.counter_names import Pauses, pauses_of
from ...core.telemetry import InterfaceCounters
from ...json_text import parse_json
from ...visible import visible
from ..base import CARD_QUEUE_FULL
from ..shell_output import counter_value, parser

_COUNTERS = {
    f"{way}_{key.removesuffix('_errors')}": (way, key)
    for way, keys in (
        ("rx", ("packets", "bytes", "errors", "dropped", "missed_errors")),
        ("tx", ("packets", "bytes", "errors", "dropped")),
    )
    for key in keys
}
"""Where ``ip -j`` has each counter."""

_LINK = {
    "rx_missed": (Stage.ARRIVING, Role.LOSS, CARD_QUEUE_FULL),
    "rx_errors": (Stage.ARRIVING, Role.LOSS, "its card took them for damaged: look at cable and transceivers"),
    "rx_dropped": (Stage.PASSING, Role.LOSS, "dropped by driver or kernel: no memory, a full backlog, or no protocol"),
    "tx_dropped": (Stage.LEAVING, Role.LOSS, "its sending queue was full"),
    "tx_errors": (Stage.LEAVING, Role.LOSS, "its card could not send them"),
}
_IP = {
    "InHdrErrors": "bad headers, or their TTL expired",
    "InAddrErrors": "no address or host for them",
    "InDiscards": "no memory",
    "InNoRoutes": "no route",
    "OutNoRoutes": "no route",
}
IP_DROPS = (*_IP, "OutDiscards")
"""Counters of IP for lost datagrams."""

_SUSPECT = re.compile(r"miss|drop|discard|no_?buf|out_of_buf|fifo|no_dma|full|alloc|err|over", re.IGNORECASE)

QDISC_DROPS, FILTER_DROPS, BACKLOG_FULL = "qdisc drops", "tc filter drops", "softnet backlog full"
"""Names of causes: dropped by a queueing discipline, by filters of ``tc``, waiting for a processor."""

_DISCIPLINE = "its queueing discipline "
_QDISC = re.compile(
    r"^qdisc (\w{1,32}) \S+ (?:dev (\S+) )?(root|ingress|parent \S+)(?: refcnt \d+)?([^\n]*)"
    r"\n\s*Sent [^\n]*\(dropped (\d+),",
    re.MULTILINE | re.ASCII,
)
_FILTERING = ("ingress", "clsact")
_BY_CLASSES = ("htb", "hfsc", "cbq")
"""Their rates are in their classes, not in their own settings."""
_LIMITING = re.compile(r"(?:tbf|htb|hfsc|cbq)\b|.* (?:max)?rate \d|.* bandwidth \d")
"""Disciplines that send no faster than they are set to."""
_OF_THE_SYSTEM = re.compile(r"(?:mq|mqprio|pfifo_fast|fq_codel|fq|noqueue|multiq|cake)\b")
"""Disciplines that a system sets by itself: they are full where the card takes frames too slowly."""
_MOST_SETTINGS = 80


@parser("'ip -j -s -s link show'")
def parse_links(text: str) -> Mapping[str, Mapping[str, int]]:
    """Return the counters of each interface, as ``rx_missed``, from ``ip -j -s -s link show`` (iproute2 4.14)."""
    return {
        visible(link["ifname"]): {
            name: counter_value(str(link["stats64"][way][key])) for name, (way, key) in _COUNTERS.items()
        }
        for link in parse_json(text, strict=False)
    }


def interface_counters(link: Mapping[str, int]) -> InterfaceCounters:
    """Return the counters *link* of :func:`parse_links` as those of an interface: missed frames are drops, too."""
    return InterfaceCounters(
        rx_packets=link["rx_packets"],
        rx_bytes=link["rx_bytes"],
        tx_packets=link["tx_packets"],
        tx_bytes=link["tx_bytes"],
        rx_drops=link["rx_dropped"] + link["rx_missed"],
        tx_drops=link["tx_dropped"],
        rx_errors=link["rx_errors"],
        tx_errors=link["tx_errors"],
    )


@dataclass(frozen=True, slots=True)
class Discipline:
    """Drops of a queueing discipline since it was set. ``words``: its kind and settings, as ``tbf rate 4Mbit``."""

    interface: str
    drops: int
    words: str

    @property
    def filters(self) -> bool:
        """Return whether the drops are those of filters, not of a queue."""
        return self.words in _FILTERING


@parser("'tc -s qdisc show'")
def parse_qdiscs(text: str) -> tuple[Discipline, ...]:
    """``tc -s qdisc show``: of each interface the root, which counts all below it, and what holds its filters.

    The words are those of the discipline that limits: the first below the root that has a rate, else the one that
    dropped most.
    """
    found: list[Discipline] = []
    queues: dict[str, list[tuple[str, str, int]]] = {}
    for kind, name, place, settings, dropped in _QDISC.findall(text):
        if kind in _FILTERING:
            found.append(Discipline(name, counter_value(dropped), kind))
        else:
            shown = [] if kind in _BY_CLASSES else re.sub(r"[^A-Za-z0-9_.%:/ -]", "", settings).split()
            words = " ".join((kind, *shown))[:_MOST_SETTINGS]
            queues.setdefault(name, []).append((place, words, counter_value(dropped)))
    for name, rows in queues.items():
        for place, _, drops in rows:
            if place == "root":
                # of a root and its only child the child is named
                limit = max(rows[::-1], key=lambda row: (is_limiting(row[1]), row[2]))
                found.append(Discipline(name, drops, limit[1]))
    return tuple(row for row in found if row.interface)


def discipline_of(meaning: str) -> str:
    """The discipline that the *meaning* of :data:`QDISC_DROPS` names; "" if none."""
    return meaning.removeprefix(_DISCIPLINE) if meaning.startswith(_DISCIPLINE) else ""


def is_limiting(discipline: str) -> bool:
    """Return whether *discipline*, with its settings, sends no faster than it is set to."""
    return _LIMITING.match(discipline) is not None


def is_of_the_system(discipline: str) -> bool:
    """Return whether *discipline* is one that a system sets by itself, without a rate."""
    return _OF_THE_SYSTEM.match(discipline) is not None and not is_limiting(discipline)


@parser("'ethtool -S'")
def parse_ethtool(text: str) -> Mapping[str, int]:
    """``ethtool -S``: the counters whose names suggest loss."""
    return {name: count for name, count in _rows_of_ethtool(text) if _SUSPECT.search(name)}


@parser("'ethtool -S'")
def parse_ethtool_pauses(text: str) -> Pauses:
    """``ethtool -S``: pause frames."""
    return pauses_of(dict(_rows_of_ethtool(text)))


def _rows_of_ethtool(text: str) -> Iterable[tuple[str, int]]:
    rows = (re.fullmatch(r"\s+(\S[^:]*(?::[^:\s]+)*): (\d+)", line) for line in text.splitlines())
    return ((row[1].strip(), counter_value(row[2])) for row in rows if row)


def linux_causes(
    links: Mapping[str, Mapping[str, int]],
    ip: Mapping[str, int],
    backlog: int,
    qdiscs: Iterable[Discipline],
    cards: Mapping[str, Mapping[str, int]],
) -> tuple[Cause, ...]:
    """*links*, *qdiscs* and *cards* by interface; *ip*: :data:`IP_DROPS`; *backlog*: dropped by ``softnet_stat``."""
    found = []
    for interface, rows in links.items():
        for name, (stage, role, meaning) in _LINK.items():
            found.append(Cause(stage, name, interface, rows.get(name, 0), role, meaning))
    for one in qdiscs:
        if one.words == "clsact":  # of frames that arrive or leave there
            label = f"{FILTER_DROPS} at {one.interface}"
            found.append(Cause(Stage.PASSING, label, "", one.drops, Role.LOSS, "by filters of tc (clsact)"))
        elif one.filters:
            meaning = f"by filters of tc ({one.words})"
            found.append(Cause(Stage.PASSING, FILTER_DROPS, one.interface, one.drops, Role.LOSS, meaning))
        else:
            meaning = f"{_DISCIPLINE}{one.words}"
            found.append(Cause(Stage.LEAVING, QDISC_DROPS, one.interface, one.drops, Role.LOSS, meaning))
    for name, meaning in _IP.items():
        if name in ip:
            found.append(Cause(Stage.PASSING, f"ip {name}", "", ip[name], Role.LOSS, meaning))
    if "OutDiscards" in ip:
        found.append(
            Cause(Stage.LEAVING, "ip OutDiscards", "", ip["OutDiscards"], Role.OVERLAPPING, "dropped when sending")
        )
    full = Cause(Stage.PASSING, BACKLOG_FULL, "", backlog, Role.REASON, "see net.core.netdev_max_backlog")
    return (*found, full, *_card_causes(cards))


def _card_causes(cards: Mapping[str, Mapping[str, int]]) -> Iterable[Cause]:
    for interface, rows in cards.items():
        for name, count in rows.items():
            stage = Stage.LEAVING if re.match(r"(port\.)?tx", name) else Stage.ARRIVING
            yield Cause(stage, f"ethtool {name}", interface, count, Role.REASON)
