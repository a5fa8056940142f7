"""From a port's streams to a backend's traffic: chains and bursts laid out in time, frames sorted by length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice

from lineproof.core.traffic.patterns import Burst, PatternPart
from lineproof.units import l1_bits

from ..backend import StreamTraffic
from .params import refused
from .streams import PADDED_TO, ServerStream

MOST_SEGMENTS = 2000
"""Segments of traffic that one start of a port may have. If there would be more, the longest chains are sent at mean
rates, which must be even enough (MOST_UNEVEN) or never end."""
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
    roots = {number: stream for number, stream in table.items() if stream.self_start}
    chains = {
        number: list(islice(_bursts(root, table, factor, duration), MOST_SEGMENTS + 1))
        for number, root in roots.items()
    }
    for number in sorted(chains, key=lambda number: -len(chains[number])):
        if sum(map(len, chains.values())) > MOST_SEGMENTS:
            chains[number] = _mean_segments(roots[number], table, factor, duration)
    return [segment for chain in chains.values() for segment in chain]


def _bursts(
    root: ServerStream, table: Mapping[int, ServerStream], factor: float, duration: float | None
) -> Iterator[StreamSegment]:
    """Yield the bursts of the chain that begins with *root*, one by one."""
    stream: ServerStream | None = root
    now = 0.0
    while stream is not None and (pps := stream.rate(factor)) > 0:
        begin, frames = now + stream.isg_usec / 1e6, stream.burst or 1
        cycle = (frames - 1) / pps + stream.gap_usec / 1e6
        for number in range(stream.bursts) if stream.bursts else count():
            now = begin + number * cycle
            if duration is not None and now >= duration:
                return
            yield StreamSegment(stream, now, pps, stream.burst)
        if stream.burst is None:
            return
        # the next stream's time runs from the last frame, as TRex's does
        now += (frames - 1) / pps
        stream = table.get(stream.next_stream_id)


def _mean_segments(
    root: ServerStream, table: Mapping[int, ServerStream], factor: float, duration: float | None
) -> list[StreamSegment]:
    """A stream's many bursts, or a chain that returns to *root*, at the mean rates.

    Raises RpcError for another chain, and where this would be different traffic.
    """
    alone = root.next_stream_id == -1 or not root.bursts
    chain, now, bursts = [root], 0.0, list[Burst]()
    while True:
        stream = chain[-1]
        pps, frames, times = stream.rate(factor), stream.burst or 1, 1 if alone else stream.bursts
        every = (frames - 1) / pps + stream.gap_usec / 1e6 if pps > 0 else 0.0
        now += 0.0 if alone else stream.isg_usec / 1e6
        bursts.append(Burst(len(bursts), now, frames, pps, times, every))
        now += every if alone else (times - 1) * every + (frames - 1) / pps
        if alone or stream.next_stream_id == root.stream_id:
            break
        if stream.next_stream_id == -1 or not times or len(chain) > MOST_SEGMENTS:
            now = 0.0
            break
        chain.append(table[stream.next_stream_id])
    if now <= 0:
        raise refused(
            f"the chain that begins with stream {root.stream_id} goes on for more than {MOST_SEGMENTS} bursts;"
            " expected a shorter duration or fewer repetitions"
        )
    ends = alone and root.bursts > 0
    if duration is not None or ends:
        bits = [l1_bits(each.mean_size) for each in chain]
        mean = sum(item.frames * item.count * bits[item.stream] for item in bursts) / now
        if PatternPart(tuple(bursts), now).peak(bits) > MOST_UNEVEN * mean:
            raise refused(
                f"what begins with stream {root.stream_id} comes more than {MOST_SEGMENTS} times in this time. This"
                " server keeps no more bursts apart, and sent evenly it would be different traffic; expected a lower"
                " rate, a shorter duration or a real TRex"
            )
    return [
        StreamSegment(
            *(each, each.isg_usec / 1e6 if alone else 0.0, item.frames * item.count / now),
            root.bursts * item.frames if ends else None,
        )
        for each, item in zip(chain, bursts, strict=True)
    ]


def traffic_of(segment: StreamSegment, source: str, destination: str) -> tuple[StreamTraffic, ...]:
    """The backend's traffic for *segment* from a port with these MACs: one stream for each length of its frames."""
    stream, program = segment.stream, segment.stream.program
    frame = stream.addressed(source, destination)
    group = {"stream_id": stream.group.number, "rule_type": stream.group.rule} if stream.group else None
    pieces = len(program.lengths) or 1
    found = []
    for place in range(pieces):
        frames = None if segment.count is None else (segment.count + pieces - 1 - place) // pieces
        if frames == 0:
            continue
        length = max(PADDED_TO, program.lengths[place]) if program.lengths else len(frame)
        variables = program.of_length(place) if program.lengths else program.variables
        found.append(
            StreamTraffic(
                stream_id=stream.stream_id,
                frame=frame[:length],
                pps=segment.pps / pieces,
                variables=tuple(row for row in variables if row.offset + row.size <= length),
                count=frames,
                fix_ipv4_checksum=program.fix_ipv4_checksum,
                flow_stats=group,
                isg_usec=segment.begin * 1e6,
                phase=0.5 - (place + 0.5) / pieces,
            )
        )
    return tuple(found)
