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
from collections.abc import Collection, Iterator, Mapping

from ...core.causes import Cause, Role, Stage
from ...core.telemetry import InterfaceCounters
from ...json_text import parse_json
from ...visible import visible
from ..base import CARD_QUEUE_FULL
from ..shell_output import counter_value, parser

_LINK = (
    ("rx", "missed_errors", Stage.ARRIVING, CARD_QUEUE_FULL),
    ("rx", "errors", Stage.ARRIVING, "its card took them for damaged: look at cable and transceivers"),
    ("rx", "dropped", Stage.PASSING, "dropped by driver or kernel: no memory, a full backlog, or no protocol"),
    ("tx", "dropped", Stage.LEAVING, "its sending queue was full"),
    ("tx", "errors", Stage.LEAVING, "its card could not send them"),
)
"""Where ``ip -j`` has each counter of lost frames, and what it means."""
_IP = {
    "InHdrErrors": "bad headers, or their TTL expired",
    "InAddrErrors": "no address or host for them",
    "InDiscards": "no memory",
    "InNoRoutes": "no route",
    "OutNoRoutes": "no route",
}
_SUSPECT = re.compile(r"miss|drop|discard|no_?buf|out_of_buf|fifo|no_dma|full|alloc|err|over", re.IGNORECASE)

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


@parser("'ip -j -s -s link show'")
def parse_links(text: str) -> tuple[dict[str, InterfaceCounters], list[Cause]]:
    """Return the counters of each interface, whose drops are also missed frames, and its causes (iproute2 4.14)."""
    interfaces, causes = {}, list[Cause]()
    for link in parse_json(text, strict=False):
        name, stats = visible(link["ifname"]), link["stats64"]
        rx, tx = ({key: counter_value(str(value)) for key, value in stats[way].items()} for way in ("rx", "tx"))
        interfaces[name] = InterfaceCounters(
            *(rx["packets"], rx["bytes"], tx["packets"], tx["bytes"]),
            *(rx["dropped"] + rx["missed_errors"], tx["dropped"], rx["errors"], tx["errors"]),
        )
        for way, key, stage, meaning in _LINK:
            count = {"rx": rx, "tx": tx}[way][key]
            causes.append(Cause(stage, f"{way}_{key.removesuffix('_errors')}", name, count, Role.LOSS, meaning))
    return interfaces, causes


@parser("/proc/net/snmp or netstat")
def parse_snmp(text: str, protocol: str = "Ip") -> dict[str, int]:
    """Return the lost datagrams in ``/proc/net/snmp``, as ``ip InDiscards``; empty if the kernel does not show them.

    *protocol* ``IpExt`` is in ``/proc/net/netstat``.
    """
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")]
    values = dict(zip(*rows, strict=True)) if len(rows) == 2 else {}
    return {f"ip {name}": counter_value(values[name]) for name in (*_IP, "OutDiscards") if name in values}


@parser("'tc -s qdisc show'")
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


def parse_ethtool(text: str) -> dict[str, int]:
    """``ethtool -S``: all counters of a card."""
    return {name: int(count) for name, count in re.findall(r"^\s+(\S.*?): ([0-9]{1,20})$", text, re.MULTILINE)}


def suspects(card: Mapping[str, int]) -> dict[str, int]:
    """Return the counters of a *card* whose names suggest loss."""
    return {name: count for name, count in card.items() if _SUSPECT.search(name)}


def linux_causes(drops: Mapping[str, int], cards: Mapping[str, Mapping[str, int]]) -> Iterator[Cause]:
    """Yield the causes among *drops* of the kernel and in *cards*: by interface, all counters of its card."""
    for name, meaning in _IP.items():
        if (label := f"ip {name}") in drops:
            yield Cause(Stage.PASSING, label, "", drops[label], Role.LOSS, meaning)
    if (label := "ip OutDiscards") in drops:
        yield Cause(Stage.LEAVING, label, "", drops[label], Role.OVERLAPPING, "dropped when sending")
    backlog = drops.get(BACKLOG_FULL, 0)
    yield Cause(Stage.PASSING, BACKLOG_FULL, "", backlog, Role.REASON, "see net.core.netdev_max_backlog")
    for interface, card in cards.items():
        for name, count in suspects(card).items():
            stage = Stage.LEAVING if re.match(r"(port\.)?tx", name) else Stage.ARRIVING
            yield Cause(stage, f"ethtool {name}", interface, count, Role.REASON)
