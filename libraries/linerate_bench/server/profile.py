"""A profile of a port: streams that are started and stopped together, and their state (IDLE, STREAMS, TX, PAUSE)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from ..backend import PortDescription, StreamTraffic
from .params import refused
from .sequences import MOST, sequences_of, traffic_of
from .streams import ServerStream

STREAM_LIMIT = 20_000
DEFAULT = "_"
"""The profile that every port has."""
ALL = "*"


class Owned(Protocol):
    """What a profile needs of the port that it is of, and what others reach through it."""

    @property
    def index(self) -> int:
        """Its number."""
        ...

    @property
    def description(self) -> PortDescription:
        """The backend's."""
        ...

    @property
    def session(self) -> int:
        """Its owner's."""
        ...

    @property
    def source_mac(self) -> str:
        """Its own."""
        ...

    @property
    def destination_mac(self) -> str:
        """The next hop's."""
        ...

    @property
    def has_destination(self) -> bool:
        """Whether that is known."""
        ...

    @property
    def profiles(self) -> Mapping[str, PortProfile]:
        """All of them, by name."""
        ...

    def tidy(self) -> None:
        """Forget profiles without streams."""
        ...


class PortProfile:
    """The profile *name* of *port*. Nothing here sends: see ``transmission``."""

    def __init__(self, port: Owned, name: str) -> None:
        self.port, self.name = port, name
        self.streams: dict[int, ServerStream] = {}
        self.state = "IDLE"
        self.factor: float | None = None
        self.sent: tuple[StreamTraffic, ...] = ()
        self.applied: tuple[StreamTraffic, ...] = ()
        """What the backend was told last."""
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
        """Whether it sends or pauses."""
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
        """Raise RpcError when *stream* cannot be added: the port sends, or has this stream, or has too many."""
        self.require("add_stream", "IDLE", "STREAMS")
        if stream.stream_id in self.streams:
            raise refused(f"stream {stream.stream_id} already exists in profile_id({self.name})")
        if len(self.streams) >= STREAM_LIMIT:
            raise refused(f"Reached limit of {STREAM_LIMIT} streams at the port.")

    def add(self, stream: ServerStream) -> None:
        """Add a stream that was admitted."""
        self.streams[stream.stream_id] = stream
        self.highest_stream = max(self.highest_stream, stream.stream_id)
        self.state = "STREAMS"

    def remove(self, stream_id: int) -> ServerStream:
        """Remove a stream and return it. Raises RpcError when there is none of that id."""
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
        legs = sequences_of(self.streams.values(), factor, duration)
        found = tuple(row for leg in legs for row in traffic_of(leg, self.port.source_mac, self.port.destination_mac))
        if len(found) > MOST:
            raise refused(
                f"the streams of port {self.index} have {len(found)} bursts and lengths of frames together;"
                f" expected at most {MOST}"
            )
        return found

    def multiplied(self, traffic: tuple[StreamTraffic, ...], factor: float) -> tuple[StreamTraffic, ...]:
        """*traffic* of this port with all rates times *factor*, but for those that no multiplier changes."""
        fixed = {stream.stream_id for stream in self.streams.values() if stream.fixed_rate}
        return tuple(row if row.stream_id in fixed else replace(row, pps=row.pps * factor) for row in traffic)

    @property
    def present(self) -> tuple[StreamTraffic, ...]:
        """``sent`` with nothing of the streams that are paused."""
        return tuple(replace(row, pps=0.0) if row.stream_id in self.paused else row for row in self.sent)
