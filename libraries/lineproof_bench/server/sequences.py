"""From a port's streams to a backend's traffic: chains and bursts laid out in time, frames sorted by length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, islice

from ..backend import StreamTraffic
from .params import refused
from .streams import PADDED_TO, ServerStream

MOST_SEGMENTS = 2000
"""Segments of traffic that one start of a port may have."""


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
    chains = (_bursts(stream, table, factor, duration) for stream in table.values() if stream.self_start)
    found = list(islice(chain.from_iterable(chains), MOST_SEGMENTS + 1))
    if len(found) > MOST_SEGMENTS:
        raise refused(
            f"these streams have more than {MOST_SEGMENTS} bursts in this time, and this server keeps no more apart;"
            " expected a lower rate, a shorter duration or a real TRex"
        )
    return found


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
