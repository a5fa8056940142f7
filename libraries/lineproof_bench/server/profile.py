"""A profile of a port: streams that are started and stopped together, and their state (IDLE, STREAMS, TX, PAUSE)."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ..backend import PortDescription, StreamTraffic
from .params import refused
from .sequences import MOST_SEGMENTS, segments_of, traffic_of
from .streams import ServerStream

STREAM_LIMIT = 20_000
DEFAULT = "_"
"""The profile that every port has."""
ALL = "*"


class ProfilePort(Protocol):
    """The port of a profile. ``session``: its owner's."""

    index: int
    description: PortDescription
    session: int
    source_mac: str
    destination_mac: str
    profiles: dict[str, PortProfile]

    @property
    def has_destination(self) -> bool:
        """Whether ``destination_mac`` is known."""
        ...

    def tidy(self) -> None:
        """Remove profiles without streams."""
        ...


class PortProfile:
    """The profile *name* of *port*. Nothing here sends: see ``transmission``."""

    def __init__(self, port: ProfilePort, name: str) -> None:
        self.port, self.name = port, name
        self.streams: dict[int, ServerStream] = {}
        self.state = "IDLE"
        self.factor: float | None = None
        self.sent: tuple[StreamTraffic, ...] = ()
        self.applied: tuple[StreamTraffic, ...] = ()
        """What the backend sends."""
        self.highest_stream = 0
        self.duration: float | None = None
        self.paused: frozenset[int] = frozenset()

    @property
    def index(self) -> int:
        """The port's number."""
        return self.port.index

    @property
    def description(self) -> PortDescription:
        """The port's."""
        return self.port.description

    # -- states

    @property
    def active(self) -> bool:
        """Whether it sends or is paused."""
        return self.state in ("TX", "PAUSE")

    def require(self, command: str, *states: str) -> None:
        """Raise RpcError unless the port is in one of *states*."""
        if self.state not in states:
            raise refused(
                f"command '{command}' cannot be executed on current state: '{self.state} on profile_id({self.name}).'"
            )

    def idle(self) -> None:
        """Sending has ended."""
        self.state = "STREAMS" if self.streams else "IDLE"
        self.factor = None

    # -- streams

    def admit(self, stream: ServerStream) -> None:
        """Raise RpcError if *stream* cannot be added: the port sends, has this stream already, or has too many."""
        self.require("add_stream", "IDLE", "STREAMS")
        if stream.stream_id in self.streams:
            raise refused(f"stream {stream.stream_id} already exists in profile_id({self.name})")
        if len(self.streams) >= STREAM_LIMIT:
            raise refused(f"Reached limit of {STREAM_LIMIT} streams at the port.")

    def add(self, stream: ServerStream) -> None:
        """Add a stream after :meth:`admit`."""
        self.streams[stream.stream_id] = stream
        self.highest_stream = max(self.highest_stream, stream.stream_id)
        self.state = "STREAMS"

    def remove(self, stream_id: int) -> ServerStream:
        """Remove a stream and return it. Raises RpcError for an unknown id."""
        self.require("remove_stream", "STREAMS", "IDLE")
        found = self.streams.pop(stream_id, None)
        if found is None:
            raise refused(f"stream {stream_id} does not exists in profile_id({self.name})")
        self.idle()
        return found

    def remove_all(self) -> list[ServerStream]:
        """Remove all streams and return them."""
        self.require("remove_all_streams", "IDLE", "STREAMS")
        found = list(self.streams.values())
        self.streams.clear()
        self.highest_stream = 0
        self.idle()
        return found

    def traffic(self, factor: float, duration: float | None = None, force: bool = True) -> tuple[StreamTraffic, ...]:
        """All that is sent within *duration* s, at *factor*. Raises RpcError when streams cannot be sent together.

        Unless *force*, also when a destination MAC is missing.
        """
        sending = [stream for stream in self.streams.values() if stream.sends]
        if (
            not force
            and not self.port.has_destination
            and any(not stream.destination_from_packet for stream in sending)
        ):
            text = f"Port {self.index} dest MAC is invalid and there are streams without explicit dest MAC."
            raise refused(text)
        segments = segments_of(self.streams.values(), factor, duration)
        found = tuple(
            row for segment in segments for row in traffic_of(segment, self.port.source_mac, self.port.destination_mac)
        )
        if len(found) > MOST_SEGMENTS:
            raise refused(
                f"the streams of port {self.index} have {len(found)} bursts and lengths of frames together;"
                f" expected at most {MOST_SEGMENTS}"
            )
        return found

    def multiplied(self, traffic: tuple[StreamTraffic, ...], factor: float) -> tuple[StreamTraffic, ...]:
        """*traffic* of this port with all rates times *factor*, except fixed rates."""
        fixed = {stream.stream_id for stream in self.streams.values() if stream.fixed_rate}
        return tuple(row if row.stream_id in fixed else replace(row, pps=row.pps * factor) for row in traffic)

    @property
    def present(self) -> tuple[StreamTraffic, ...]:
        """``sent`` with rate 0 for paused streams."""
        return tuple(replace(row, pps=0.0) if row.stream_id in self.paused else row for row in self.sent)
