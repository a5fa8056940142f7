"""From a port's streams to a backend's traffic: chains and bursts laid out in time, frames sorted by length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lineproof.core.traffic.patterns import Burst, PatternPart
from lineproof.units import l1_bits

from ..backend import StreamTraffic
from .params import refused
from .streams import PADDED_TO, ServerStream

MOST_SEGMENTS = 2000
"""Segments of traffic that one start of a port may have."""
MOST_SEPARATE = 1000
"""Bursts of one stream, or repetitions of a chain, that are sent one by one. More are sent at their mean rate if they
never end or are even enough (MOST_UNEVEN)."""
MOST_UNEVEN = 1.05
"""The highest rate of traffic, in multiples of its mean rate, that may be sent evenly instead."""


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """A stream begins ``begin`` s after the start and sends ``count`` frames (None: no end) at ``pps`` frames/s."""

    stream: ServerStream
    begin: float
    pps: float
    count: int | None


def segments_of(streams: Iterable[ServerStream], factor: float, duration: float | None) -> list[StreamSegment]:
    """All that *streams* send at *factor* within *duration* s. Raises RpcError for too many segments."""
    table = {stream.stream_id: stream for stream in streams}
    for stream in table.values():
        if (following := stream.next_stream_id) not in (-1, *table):
            raise refused(f"error: stream {stream.stream_id} is pointing to a non-existent stream {following}")
    found: list[StreamSegment] = []
    for root in table.values():
        if not root.self_start:
            continue
        for segment in _chain_segments(root, table, factor, duration):
            if segment.pps > 0:
                found.append(segment)
            if len(found) > MOST_SEGMENTS:
                raise refused(
                    f"the chain that begins with stream {root.stream_id} repeats so often that it has more"
                    f" than {MOST_SEGMENTS} bursts; expected a shorter duration or fewer repetitions"
                )
    return found


def _chain_segments(
    root: ServerStream, table: Mapping[int, ServerStream], factor: float, duration: float | None
) -> Iterator[StreamSegment]:
    if (repeated := _repeated_chain(root, table, factor, duration)) is not None:
        yield from repeated
        return
    stream, now, steps = root, 0.0, 0
    while True:
        begin, pps = now + stream.isg_usec / 1e6, stream.rate(factor)
        if (duration is not None and begin >= duration) or pps <= 0:
            return
        if stream.burst is None:
            yield StreamSegment(stream, begin, pps, None)
            return
        for number, segment in enumerate(_burst_segments(stream, begin, pps, duration)):
            yield segment
            if segment.count is None:
                return
            # the next stream's time runs from the last frame, as TRex's does
            now = segment.begin + (segment.count - 1) / segment.pps
            if number > MOST_SEGMENTS:
                return
        if stream.next_stream_id == -1:
            return
        stream = table[stream.next_stream_id]
        steps += 1
        if steps > MOST_SEGMENTS:
            raise refused(
                f"the chain that begins with stream {root.stream_id} goes on for more than {MOST_SEGMENTS} bursts;"
                " expected a shorter duration or fewer repetitions"
            )


def _repeated_chain(
    root: ServerStream, table: Mapping[int, ServerStream], factor: float, duration: float | None
) -> tuple[StreamSegment, ...] | None:
    """A chain that returns to *root* too often to be sent burst by burst: each stream at its mean rate. Else None.

    Raises RpcError if the mean rate would be different traffic.
    """
    chain, stream, now, bursts = [root], root, 0.0, list[Burst]()
    while True:
        pps = stream.rate(factor)
        if stream.burst is None or stream.bursts == 0 or pps <= 0:
            return None
        every = (stream.burst - 1) / pps + stream.gap_usec / 1e6
        now += stream.isg_usec / 1e6
        bursts.append(Burst(len(bursts), now, stream.burst, pps, stream.bursts, every))
        now += (stream.bursts - 1) * every + (stream.burst - 1) / pps
        if stream.next_stream_id == root.stream_id:
            break
        if stream.next_stream_id == -1 or len(chain) > MOST_SEGMENTS:
            return None
        stream = table[stream.next_stream_id]
        chain.append(stream)
    repetitions = math.inf if duration is None else duration / now if now > 0 else 0.0
    pieces = sum(each.bursts for each in chain)
    if now <= 0 or (repetitions <= MOST_SEPARATE and repetitions * pieces <= MOST_SEGMENTS):
        return None
    if duration is not None:
        bits = [l1_bits(each.mean_size) for each in chain]
        part = PatternPart(tuple(bursts), now)
        mean = sum(item.frames * item.count * bits[item.stream] for item in bursts) / now
        _check_even(root, part.peak(bits) / mean, repetitions, repetitions * pieces)
    return tuple(StreamSegment(each, 0.0, (each.burst or 1) * each.bursts / now, None) for each in chain)


def _check_even(stream: ServerStream, crest: float, repetitions: float, bursts: float) -> None:
    """Raise RpcError if the peak rate of so many bursts is more than MOST_UNEVEN times (*crest*) their mean rate."""
    if crest > MOST_UNEVEN:
        raise refused(
            f"what begins with stream {stream.stream_id} comes {repetitions:.0f} times in this time, in {bursts:.0f}"
            f" bursts. This server keeps {MOST_SEPARATE} times and {MOST_SEGMENTS} bursts apart, and sent evenly it"
            " would be different traffic; expected a lower rate, a shorter duration or a real TRex"
        )


def _burst_segments(stream: ServerStream, begin: float, pps: float, duration: float | None) -> Iterator[StreamSegment]:
    burst = stream.burst or 1
    cycle = (burst - 1) / pps + stream.gap_usec / 1e6
    within = stream.bursts or None
    if duration is not None and cycle > 0:
        fitting = int((duration - begin) / cycle) + 1
        within = fitting if within is None else min(within, fitting)
    if within is None or within > MOST_SEPARATE or cycle <= 0:
        mean = burst / cycle if cycle > 0 and stream.bursts != 1 else pps
        if within is not None and burst > 1:
            _check_even(stream, pps / mean, within, within)
        yield StreamSegment(stream, begin, mean, burst * stream.bursts if stream.bursts else None)
        return
    for number in range(within):
        yield StreamSegment(stream, begin + number * cycle, pps, burst)


def traffic_of(segment: StreamSegment, source: str, destination: str) -> tuple[StreamTraffic, ...]:
    """The backend's traffic for *segment* from a port with these MACs: one stream for each length of its frames."""
    stream, program = segment.stream, segment.stream.program
    frame = stream.addressed(source, destination)
    group = {"stream_id": stream.group.number, "rule_type": stream.group.rule} if stream.group else None
    pieces = len(program.lengths) or 1
    found = []
    for place in range(pieces):
        count = None if segment.count is None else (segment.count + pieces - 1 - place) // pieces
        if count == 0:
            continue
        length = max(PADDED_TO, program.lengths[place]) if program.lengths else len(frame)
        variables = program.of_length(place) if program.lengths else program.variables
        found.append(
            StreamTraffic(
                stream_id=stream.stream_id,
                frame=frame[:length],
                pps=segment.pps / pieces,
                variables=tuple(row for row in variables if row.offset + row.size <= length),
                count=count,
                fix_ipv4_checksum=program.fix_ipv4_checksum,
                flow_stats=group,
                isg_usec=segment.begin * 1e6,
                phase=0.5 - (place + 0.5) / pieces,
            )
        )
    return tuple(found)
