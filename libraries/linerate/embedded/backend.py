"""What the embedded TRex server asks of the thing that carries its frames: a forwarding model or real interfaces.

The server owns the protocol, the ports' owners, the streams and the clock's events; a backend owns frames and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class PortDescription:
    """A port as ``get_system_info`` and ``get_port_status`` describe it. ``speed_bps`` in bit/s."""

    index: int
    mac: str
    peer_mac: str
    speed_bps: float
    driver: str
    ipv4: str = "0.0.0.0"
    peer_ipv4: str = "0.0.0.0"
    interface: str = ""


@dataclass(frozen=True, slots=True)
class FieldVariable:
    """One variable of a stream's field engine and where it is written: plain data, already resolved.

    Frame *n* of the stream holds ``initial + n * step`` (wrapping within ``minimum``…``maximum``), big-endian in
    ``size`` bytes at ``offset`` of the frame.
    """

    offset: int
    size: int
    minimum: int
    maximum: int
    initial: int
    step: int = 1
    operation: str = "inc"
    """``inc``, ``dec`` or ``random``."""


@dataclass(frozen=True, slots=True)
class StreamTraffic:
    """One stream being sent: ``frame`` is the first frame's bytes without FCS, ``pps`` its final rate in frames/s.

    ``count`` is None for a continuous stream, else how many frames it sends in all. ``fix_ipv4_checksum``: offset of
    the IPv4 header whose checksum is to be right after the variables were written, or None.
    """

    stream_id: int
    frame: bytes
    pps: float
    variables: tuple[FieldVariable, ...] = ()
    count: int | None = None
    fix_ipv4_checksum: int | None = None
    flow_stats: Mapping[str, Any] | None = None
    isg_usec: float = 0.0


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Frames and L2 bytes (with FCS) since the server started, never reset, never derived from a rate."""

    opackets: int = 0
    ipackets: int = 0
    obytes: int = 0
    ibytes: int = 0
    oerrors: int = 0
    ierrors: int = 0
    queue_full: int = 0


@dataclass(frozen=True, slots=True)
class CapturedFrame:
    """A frame seen at a port: ``data`` without FCS, ``timestamp`` in s of the bench's clock, ``received`` or sent."""

    port: int
    data: bytes
    timestamp: float
    received: bool = True


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Generator CPU in per cent, for ``get_utilization`` and ``m_cpu_util``."""

    tx_percent: float = 0.0
    rx_percent: float = 0.0
    extra: Mapping[str, float] = field(default_factory=dict)


class Backend(Protocol):
    """The carrier of frames. Calls come from one thread; none may block longer than 100 ms."""

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        """The ports, index 0 first."""
        ...

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin sending on each port of *traffic* at the same moment.

        *duration* in s of the bench's clock; None: until stopped.
        """
        ...

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        """New rates for a port that is sending."""
        ...

    def pause(self, port: int) -> None:
        """Stop sending, keeping what is left of the duration."""
        ...

    def resume(self, port: int) -> None:
        """Go on after :meth:`pause`."""
        ...

    def stop(self, port: int) -> None:
        """Stop sending at once. Harmless on an idle port."""
        ...

    def sending(self, port: int) -> bool:
        """Whether the port still sends; False once its duration or its bursts are over."""
        ...

    def counters(self, port: int) -> PortCounters:
        """Counts up to this moment."""
        ...

    def link_up(self, port: int) -> bool:
        """Whether the port has carrier."""
        ...

    def capture(self, port: int, limit: int) -> None:
        """Keep the next *limit* frames that the port receives (0 ends capturing and forgets them)."""
        ...

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """Frames kept since :meth:`capture`."""
        ...

    def utilisation(self) -> Utilisation:
        """How busy the generator is."""
        ...

    def close(self) -> None:
        """Stop everything and give back what is held."""
        ...
