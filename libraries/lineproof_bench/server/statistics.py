"""The counters of a backend under the names that TRex gives them, of ports and of packet groups.

A packet group (``flow_stats`` of streams) exists from the first stream that is added with it to the removal of the
last. Then its counts begin at zero with a new ``ver_id``, which makes clients forget their former baseline.

As in TRex v3.08 (``src/time_histogram.cpp``), a latency histogram leaves out frames later than 1 s. Its bucket 0 has
the highest count that a group in the same place had there since the server began, if the group has any such frame.
With ``--hdrh`` there is a fine one too.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from hdrh.histogram import HdrHistogram

from lineproof.units import FCS

from ..backend import Backend, FlowCounters, LatencyCounters, PortCounters
from .ports import ANSWERS, ServerCard
from .rpc import refused
from .streams import ServerStream

CPU_INTERVAL = 1.0
"""Seconds of the bench's clock over which the CPU's load is taken."""
CPU_HISTORY = 20
"""Loads that are reported."""

PORT_COUNTS = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors")


class Statistics:
    """Counts of *backend* as TRex reports them of *nic*; *now* is the bench's clock in s."""

    def __init__(self, backend: Backend, now: Callable[[], float], nic: ServerCard) -> None:
        self._backend, self._now, self._nic = backend, now, nic
        self._read: dict[int, PortCounters] = {}
        """The card's counts when TRex read it last."""
        self._taken: dict[int, PortCounters] = {}
        """The counts that were read as extended counters instead."""
        self._sampled = now()
        self._used = 0.0
        self._smooth = 0.0
        self._history: deque[float] = deque([0.0] * CPU_HISTORY, CPU_HISTORY)

    def sample_cpu(self) -> None:
        """Take the CPU's load if a second is over. To be called often; it is cheap."""
        if (now := self._now()) - self._sampled < CPU_INTERVAL:
            return
        self._sampled, self._used = now, self._backend.utilisation()
        self._history.appendleft(self._used)
        self._smooth = 0.75 * self._smooth + 0.25 * self._used  # TRex's own filter

    def port(self, port: int) -> dict[str, Any]:
        """Return the answer to ``get_port_stats``."""
        return self._port(self._counters(port))

    def _counters(self, port: int) -> PortCounters:
        """Return TRex's counters of *port*, which differ from what was really sent and received as the card's do."""
        counted, taken, nic = self._backend.counters(port), self._taken.get(port, PortCounters()), self._nic
        self._read[port] = counted
        missed = counted.ierrors if nic.missed_received else 0
        more = missed * counted.ibytes // counted.ipackets if counted.ipackets else 0
        fcs = 0 if nic.received_fcs else FCS * (counted.ipackets + missed)
        return counted._replace(
            opackets=counted.opackets - taken.opackets,
            obytes=counted.obytes - taken.obytes,
            ipackets=counted.ipackets + missed,
            ibytes=counted.ibytes - taken.ibytes + more - fcs,
            ierrors=counted.ierrors * nic.missed_errors,
        )

    def _port(self, counted: PortCounters) -> dict[str, Any]:
        counts = {name: getattr(counted, name) for name in PORT_COUNTS}
        return {**counts, **ANSWERS["port_counts"], "m_cpu_util": self._smooth}

    def published(self) -> dict[str, Any]:
        """Return the data of ``trex-global``: all of it, the ports' with ``-N`` after the name."""
        data, counters = self.overall()
        data["ts"] = {"value": int(self._now() * 1e9), "freq": 1_000_000_000}
        # flows by template: none in this mode
        data |= {"template": [0] * 32, "unknown": 0}
        for index, counted in counters.items():
            data |= {f"{name}-{index}": value for name, value in self._port(counted).items()}
        return data

    def overall(self) -> tuple[dict[str, Any], dict[int, PortCounters]]:
        """Return the answer to ``get_global_stats``, which is of all ports together, and the counts of each."""
        with self._backend.frozen():
            counters = {port.index: self._counters(port.index) for port in self._backend.ports}
        data: dict[str, Any] = {**ANSWERS["counts"], "m_cpu_util": self._smooth, "m_cpu_util_raw": self._used}
        for direction, letter in (("tx", "o"), ("rx", "i")):
            for unit, name in (("pkts", "packets"), ("bytes", "bytes")):
                counts = (getattr(counted, f"{letter}{name}") for counted in counters.values())
                data[f"m_total_{direction}_{unit}"] = sum(counts)
        data["m_total_queue_full"] = sum(counted.queue_full for counted in counters.values())
        return data, counters

    def xstats(self, port: int) -> list[int]:
        """Return the card's extended counters, in the order of its names."""
        counted = self._backend.counters(port)
        sent = self._take(port, counted) if self._nic.xstats_take else counted
        values = counted._replace(
            opackets=sent.opackets,
            ibytes=counted.ibytes - FCS * counted.ipackets,
            obytes=sent.obytes - FCS * sent.opackets,
        )
        return [getattr(values, name) for name in self._nic.xstats.values()]

    def _take(self, port: int, counted: PortCounters) -> PortCounters:
        """Read registers that TRex reads too, and that begin at zero then; returns all that was read so."""
        read, taken = self._read.get(port, PortCounters()), self._taken.get(port, PortCounters())
        new = {
            name: getattr(taken, name) + getattr(counted, name) - getattr(read, name)
            for name in ("opackets", "obytes", "ibytes")
        }
        self._read[port], self._taken[port] = counted, PortCounters(**new)
        return self._taken[port]

    def utilisation(self) -> dict[str, Any]:
        """Return the answer to ``get_utilization``: one core, its ports, whole per cents."""
        ports = [port.index for port in self._backend.ports]
        history = [round(load) for load in self._history]
        return {"cpu": [{"history": history, "ports": [*ports, -1, -1][:2]}], "mbuf_stats": {}}


LATER = 1_000_000
"""µs: from here on TRex's latency histogram has no bucket."""


@dataclass(slots=True)
class _Group:
    rule: str
    version: int
    users: set[tuple[int, int]] = field(default_factory=set)
    seen: bool = True
    """True: the card leads its frames to the core that counts them."""
    place: int = 0
    """The first free one when it began, among the latency groups (TRex's ``hw_id``)."""


class FlowStats:
    """The groups in use on all ports, as *nic* counts them. *hdrh*: TRex's option."""

    def __init__(self, backend: Backend, nic: ServerCard, hdrh: bool = True) -> None:
        self._nic, self._hdrh = nic, hdrh
        self._ports = [port.index for port in backend.ports]
        self._backend = backend
        self._groups: dict[int, _Group] = {}
        self._versions = 0
        self._most_short: dict[int, int] = {}
        """The highest count of the bucket 0 so far, by a group's place."""

    def add(self, port: int, stream: ServerStream) -> None:
        """Count a stream in its group. Raises RpcError if its group has another rule, or has a latency stream already.

        Or if the card cannot count such frames.
        """
        if stream.group is None:
            return
        if (refusal := self._nic.refusal_of(stream.frame)) is not None:
            raise refused(refusal)
        number, rule = stream.group.number, stream.group.rule
        group = self._groups.get(number)
        if group is not None and (rule == "latency" or group.rule == "latency"):
            raise refused(
                "For payload rules: Can't have two streams with same pg_id, or same stream on more than one port"
            )
        if group is None:
            self._backend.forget(number)
            taken = {other.place for other in self._groups.values() if other.rule == "latency"}
            place = next(place for place in range(len(taken) + 1) if place not in taken)
            seen = self._nic.sees(stream.frame)
            group = self._groups[number] = _Group(rule, self._versions, place=place, seen=seen)
            self._versions += 1
        group.users.add((port, stream.stream_id))

    def remove(self, port: int, stream: ServerStream) -> None:
        """Count a stream no more; forget a group without streams."""
        group = self._groups.get(stream.group.number) if stream.group else None
        if group is not None and stream.group is not None:
            group.users.discard((port, stream.stream_id))
            if not group.users:
                if group.rule == "latency":
                    self._coarse(group, self._backend.latency_counters(stream.group.number))
                del self._groups[stream.group.number]

    def active(self) -> dict[str, Any]:
        """Return the answer to ``get_active_pgids``."""
        numbers: dict[str, list[int]] = {"flow_stats": [], "latency": []}
        for number, group in sorted(self._groups.items()):
            numbers["latency" if group.rule == "latency" else "flow_stats"].append(number)
        return {"ids": numbers}

    def values(self, numbers: list[int]) -> dict[str, Any]:
        """Return the answer to ``get_pgid_stats`` for those of the groups *numbers* that exist and are counted.

        An interface that only measures latency counts no group of the rule ``stats``.
        """
        flows: dict[str, Any] = {}
        latency: dict[str, Any] = {}
        versions: dict[str, int] = {}
        for number in self._backend.reported_groups(numbers):
            group = self._groups.get(number)
            if group is None or (group.rule == "stats" and "flow_stats" not in self._nic.rx_caps):
                continue
            versions[str(number)] = group.version
            counted = self._backend.flow_counters(number)
            flows[str(number)] = self._flow(group, counted if group.seen else FlowCounters(counted.sent))
            if group.rule == "latency":
                delays = self._backend.latency_counters(number) if group.seen else LatencyCounters()
                histograms: dict[str, Any] = {"histogram": coarse} if (coarse := self._coarse(group, delays)) else {}
                if self._hdrh:
                    histograms["hdrh"] = fine(delays.histogram)
                latency[str(number)] = _latency(delays, histograms)
        shared = {"old_flow": 0, "bad_hdr": 0} if latency else None
        return {"ver_id": versions or None, "flow_stats": flows or None, "latency": {"g": shared, **latency}}

    def _coarse(self, group: _Group, delays: LatencyCounters) -> dict[str, int]:
        histogram = Counter[int]()
        for usec, count in delays.histogram.items():
            unit = 10 ** (len(str(usec)) - 1)
            histogram[usec // unit * unit if usec >= 10 else 0] += count
        short = self._most_short[group.place] = max(histogram[0], self._most_short.get(group.place, 0))
        return {str(key): count if key else short for key, count in histogram.items() if count and key < LATER}

    def _flow(self, group: _Group, counted: FlowCounters) -> dict[str, dict[str, float]]:
        row: dict[str, dict[str, float]] = {}
        for direction, counts in (("t", counted.sent), ("r", counted.received)):
            both = {port: counts.get(port, (0, 0)) for port in self._ports}
            row[f"{direction}p"] = {str(port): frames for port, (frames, _) in both.items()}
            without = direction == "r" and group.rule == "stats" and "rx_bytes" not in self._nic.rx_caps
            row[f"{direction}b"] = {str(port): 0 if without else size for port, (_, size) in both.items()}
            # nobody asks for rates
            row[f"{direction}ps"] = row[f"{direction}bs"] = {str(port): 0.0 for port in self._ports}
        return row


_fine_histogram = partial(HdrHistogram, 1, 10_000_000, 3)
"""TRex's (``src/utl_hdrh.h``): µs up to 10 s, three digits."""
_bucket = cache(_fine_histogram()._counts_index_for)
"""The place of a value in such a histogram, of which the library finds each anew."""


def fine(histogram: Mapping[int, int]) -> str:
    """Return {whole µs: frames} as TRex encodes it (``hdrh``)."""
    encoded = _fine_histogram()
    encoded._counts_index_for = _bucket
    for usec, count in histogram.items():
        encoded.record_value(usec, count)
    return str(encoded.encode(), "ascii")


def _latency(delays: LatencyCounters, histograms: Mapping[str, Any]) -> dict[str, Any]:
    # a lost or late frame makes the next one's number too high; a late or repeated one has itself a number too low
    late, twice = delays.out_of_order, delays.duplicates
    counts = {"drp": delays.lost, "ooo": late, "dup": twice, "sth": delays.lost + late, "stl": late + twice}
    errors = {key: count for key, count in counts.items() if count}
    measured = {
        "average": delays.average,
        "jit": round(delays.jitter),
        "last_max": round(delays.last_max),
        "total_max": round(delays.total_max),
        "total_min": round(delays.total_min),
    }
    return {"er": errors, "lat": measured | dict(histograms)}
