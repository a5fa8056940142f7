"""The contract between the embedded TRex server and what carries its frames: a forwarding model or real interfaces.

The server owns the protocol, the ports' owners, the streams and the clock's events; a backend owns frames and counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from lineproof.simulation import InjectedFault


SPLITMIX_STEP = 0x9E3779B97F4A7C15
"""SplitMix64's increment of its state: the golden ratio's fraction times 2^64."""

_64_BITS = (1 << 64) - 1


def splitmix(state: int) -> int:
    """Return the output of SplitMix64 (Steele, Lea, Flood 2014) for *state*."""
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
    state = (state ^ state >> 27) * 0x94D049BB133111EB & _64_BITS
    return state ^ state >> 31


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
    ``size`` bytes at ``offset`` of the frame. ``operation``: ``inc``, ``dec`` or ``random``.
    """

    offset: int
    size: int
    minimum: int
    maximum: int
    initial: int
    step: int = 1
    operation: str = "inc"

    def period(self, random: int) -> int:
        """Return after how many frames it repeats; a random one after *random*."""
        span = self.maximum - self.minimum + 1
        if self.operation == "random":
            return random if span > 1 else 1
        return span // math.gcd(span, self.step)

    def value(self, number: int) -> int:
        """Return its value in frame *number* of the stream."""
        span = self.maximum - self.minimum + 1
        if self.operation == "random":
            return self.minimum + splitmix((number + (self.offset << 40) + SPLITMIX_STEP) & _64_BITS) % span
        step = -self.step if self.operation == "dec" else self.step
        return self.minimum + (self.initial - self.minimum + number * step) % span

    def written(self, number: int) -> int:
        """Return the bytes that it has in frame *number*, as a number."""
        return self.value(number) & (1 << 8 * self.size) - 1


class StreamGroup(NamedTuple):
    """The packet group that a stream is counted in. ``rule``: ``stats`` (counted alone) or ``latency``."""

    number: int
    rule: str


@dataclass(frozen=True, slots=True)
class StreamTraffic:
    """One stream being sent: ``frame`` is the first frame's bytes without FCS, ``pps`` its final rate in frames/s.

    ``count`` is None for a continuous stream, else how many frames it sends in all. ``fix_ipv4_checksum``: offset of
    the IPv4 header whose checksum is fixed after the variables were written, or None. ``isg_usec``: how long
    after the start it begins, in µs, which real frames have no regard to. ``group``: the packet group that it is
    counted in.
    """

    stream_id: int
    frame: bytes
    pps: float
    variables: tuple[FieldVariable, ...] = ()
    count: int | None = None
    fix_ipv4_checksum: int | None = None
    group: StreamGroup | None = None
    isg_usec: float = 0.0

    @property
    def is_latency(self) -> bool:
        """Return whether its frames are latency frames."""
        return self.group is not None and self.group.rule == "latency"


class PortCounters(NamedTuple):
    """Frames and L2 bytes (with FCS) since the server started, never reset, never derived from a rate.

    ``ierrors``: frames that the card missed. ``multicasts``: received frames to a group.
    ``pauses_received``, ``pauses_sent``: pause frames (IEEE 802.3 31B).
    """

    opackets: int = 0
    ipackets: int = 0
    obytes: int = 0
    ibytes: int = 0
    oerrors: int = 0
    ierrors: int = 0
    queue_full: int = 0
    multicasts: int = 0
    pauses_received: int = 0
    pauses_sent: int = 0


class CapturedFrame(NamedTuple):
    """A frame that a port received: ``data`` without FCS, ``timestamp`` in s of the bench's clock."""

    port: int
    data: bytes
    timestamp: float


@dataclass(frozen=True, slots=True)
class FlowCounters:
    """Frames and L2 bytes (with FCS) of a packet group since the backend began, by port: {port: (frames, bytes)}."""

    sent: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    received: Mapping[int, tuple[int, int]] = field(default_factory=dict)


WINDOW = 0.5
"""Seconds of the bench's clock that ``last_max`` of latencies covers, about."""


@dataclass(frozen=True, slots=True)
class LatencyCounters:
    """Latency of a packet group since the backend began, in µs. ``histogram``: {whole µs: frames}.

    ``lost``: frames missing in the sequence, less those that came late after all; ``out_of_order``: these late ones;
    ``duplicates``: frames with the number of the one before.
    """

    average: float = 0.0
    jitter: float = 0.0
    total_min: float = 0.0
    total_max: float = 0.0
    last_max: float = 0.0
    histogram: Mapping[int, int] = field(default_factory=dict)
    lost: int = 0
    out_of_order: int = 0
    duplicates: int = 0


TICK = 0.004
"""Wall seconds between two looks at ports that send real frames."""

THIEF = "somebody"
"""The user that takes the ports in the fault ``ports stolen``."""


@dataclass(frozen=True, slots=True)
class ServerAction:
    """Publish a ``link`` event, ``steal`` or ``free`` a port, ``end``, or end and be started again (``restart``).

    ``after``: s of the bench's clock until the restart, with the ``faults`` that have not begun yet.
    """

    what: Literal["link", "steal", "free", "end", "restart"]
    port: int = 0
    up: bool = True
    after: float = 0.0
    faults: tuple[InjectedFault, ...] = ()


class Backend(Protocol):
    """The carrier of frames. Calls come from one thread; none may block longer than 100 ms.

    What only a backend without real frames does has a body, for all others: its clock may run fast, its cards be
    choosy, and faults happen on request.
    """

    is_simulated: bool = False
    """True: no real device answers ARP and neighbour discovery; :meth:`answers` says who would."""

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        """The ports, index 0 first."""

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin sending on each port of *traffic* at the same moment.

        *duration* in s of the bench's clock; None: until stopped.
        """

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        """New rates for a port that is sending."""

    def stop(self, port: int) -> None:
        """Stop sending at once. Harmless on an idle port."""

    def sending(self, port: int) -> bool:
        """Return whether the port still sends; False once its duration or its bursts are over."""

    def counters(self, port: int) -> PortCounters:
        """Return the counts up to this moment."""

    def flow_counters(self, group: int) -> FlowCounters:
        """Return the counts of a packet group up to this moment; all zero for one that was never sent."""

    def latency_counters(self, group: int) -> LatencyCounters:
        """Return the latencies of a packet group up to this moment."""

    def forget(self, group: int) -> None:
        """Set the counts of this group to zero."""

    def link_up(self, port: int) -> bool:
        """Return whether the port has carrier."""

    def capture(self, port: int, limit: int) -> None:
        """Keep the last *limit* frames that the port receives; 0 ends capturing and forgets them."""

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """Return the frames kept since :meth:`capture` or the last call, in the order in which they came."""

    def utilisation(self) -> float:
        """Return the generator's CPU in per cent since it was last asked for."""

    def close(self) -> None:
        """Stop everything and release all resources."""

    def answers(self, port: int, address: str) -> bool | None:
        """Return whether the device cabled to *port* has this address, IPv4 or IPv6; None: it has no address yet."""
        return None

    def frozen(self) -> AbstractContextManager[None]:
        """Stop the bench's clock while the context is open: else the counts of two ports would be ms apart."""
        return nullcontext()

    def until_change(self) -> float:
        """Return the wall seconds until :meth:`sending` or :meth:`server_actions` may change, TICK / 4 at least."""
        return TICK

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        """Let *port* take every frame from now on, or only its own."""
        return

    def reported_groups(self, groups: list[int]) -> list[int]:
        """Return those of *groups* that an answer reports."""
        return groups

    def server_actions(self) -> tuple[ServerAction, ...]:
        """Return what the server has to do since the last call."""
        return ()

    def reply_delay(self) -> float:
        """Return by how many seconds of wall time to delay the present reply; infinite: it is not sent at all."""
        return 0.0


class Clock:
    """A clock from 0, *speed* times as fast as the system's monotonic one."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed, self._begin = speed, time.monotonic()

    def now(self) -> float:
        """Return the seconds of the bench's time since the clock was made."""
        return (time.monotonic() - self._begin) * self.speed
