"""Packet groups (``flow_stats`` of streams): their streams, and their counts under TRex's short names.

A group exists from the first stream that is added with it to the removal of the last. Then its counts begin at zero
with a new ``ver_id``, which makes clients forget their former baseline.

As in TRex v3.08 (``src/time_histogram.cpp``), a latency histogram leaves out frames later than 1 s. Its bucket 0 has
the highest count that a group in the same place had there since the server began, if the group has any such frame.
With ``--hdrh`` there is a fine one too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hdrh.histogram import HdrHistogram

from lineproof.generators.trex.outcomes import DIGITS, HIGHEST, LOWEST

from ..backend import Backend, FlowCounters, LatencyCounters
from .nic import ServerCard
from .params import bad_parameter, refused
from .streams import ServerStream

MOST_ASKED = 1024 + 128
"""Groups that one question may name (MAX_ALLOWED_PGID_LIST_LEN)."""
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

    def __init__(self, backend: Backend, nic: ServerCard | None = None, hdrh: bool = True) -> None:
        self._nic, self._hdrh = nic or ServerCard(), hdrh
        self._ports = [port.index for port in backend.ports]
        self._backend = backend
        self._groups: dict[int, _Group] = {}
        self._versions = 0
        self._most_short: dict[int, int] = {}
        """The highest count of the bucket 0 so far, by a group's place."""

    def add(self, port: int, stream: ServerStream) -> None:
        """A stream was added. Raises RpcError if its group has another rule, or has a latency stream already.

        Or if the card cannot count such frames.
        """
        if stream.group is None:
            return
        if (words := self._nic.refusal_of(stream.frame)) is not None:
            raise refused(words)
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
        """A stream was removed."""
        group = self._groups.get(stream.group.number) if stream.group else None
        if group is not None and stream.group is not None:
            group.users.discard((port, stream.stream_id))
            if not group.users:
                if group.rule == "latency":
                    self._coarse(group, self._backend.latency_counters(stream.group.number))
                del self._groups[stream.group.number]

    def active(self) -> dict[str, Any]:
        """The answer to ``get_active_pgids``."""
        found: dict[str, list[int]] = {"flow_stats": [], "latency": []}
        for number, group in sorted(self._groups.items()):
            found["latency" if group.rule == "latency" else "flow_stats"].append(number)
        return {"ids": found}

    def values(self, numbers: list[int]) -> dict[str, Any]:
        """The answer to ``get_pgid_stats`` for those of the groups *numbers* that exist and are counted.

        An interface that only measures latency counts no group of the rule ``stats``.
        """
        if len(numbers) > MOST_ASKED:
            raise bad_parameter(f"Asking information for too many packet group IDs. Max allowed is {MOST_ASKED}")
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

    def _coarse(self, group: _Group, found: LatencyCounters) -> dict[str, int]:
        histogram = Counter[int]()
        for usec, count in found.histogram.items():
            unit = 10 ** (len(str(usec)) - 1)
            histogram[usec // unit * unit if usec >= 10 else 0] += count
        short = self._most_short[group.place] = max(histogram[0], self._most_short.get(group.place, 0))
        return {str(key): count if key else short for key, count in histogram.items() if count and key < LATER}

    def _flow(self, group: _Group, found: FlowCounters) -> dict[str, dict[str, float]]:
        row: dict[str, dict[str, float]] = {}
        for direction, counts in (("t", found.sent), ("r", found.received)):
            both = {port: counts.get(port, (0, 0)) for port in self._ports}
            row[f"{direction}p"] = {str(port): frames for port, (frames, _) in both.items()}
            without = direction == "r" and group.rule == "stats" and "rx_bytes" not in self._nic.rx_caps
            row[f"{direction}b"] = {str(port): 0 if without else size for port, (_, size) in both.items()}
            # nobody asks for rates
            row[f"{direction}ps"] = row[f"{direction}bs"] = {str(port): 0.0 for port in self._ports}
        return row


_bucket = cache(HdrHistogram(LOWEST, HIGHEST, DIGITS)._counts_index_for)
"""The place of a value in such a histogram, of which the library finds each anew."""


def fine(histogram: Mapping[int, int]) -> str:
    """Return {whole µs: frames} as TRex encodes it (``hdrh``)."""
    found = HdrHistogram(LOWEST, HIGHEST, DIGITS)
    found._counts_index_for = _bucket
    for usec, count in histogram.items():
        found.record_value(usec, count)
    return str(found.encode(), "ascii")


def _latency(found: LatencyCounters, histograms: Mapping[str, Any]) -> dict[str, Any]:
    # a lost or late frame makes the next one's number too high; a late or repeated one has itself a number too low
    late, twice = found.out_of_order, found.duplicates
    counts = {"drp": found.lost, "ooo": late, "dup": twice, "sth": found.lost + late, "stl": late + twice}
    errors = {key: count for key, count in counts.items() if count}
    measured = {
        "average": found.average,
        "jit": round(found.jitter),
        "last_max": round(found.last_max),
        "total_max": round(found.total_max),
        "total_min": round(found.total_min),
    }
    return {
        "er": {key: count for key, count in errors.items() if count},
        "lat": measured | dict(histograms),
    }
