"""Traffic profiles: frames, their ratio, headers and flows.

A profile is independent of the generator. Sentences name it by words, for example ``64b``, ``imix``, ``64b 1-flow``,
``128b qinq tcp``, ``genome:aaaaddg 10k-flows``; ``variables/profiles/*.yaml`` defines them.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ...config import Ipv4Address
from ...units import FCS, Layer, bits, line_rate_pps
from .trex_profile import TrexProfile

ETHERNET, TAG, LABEL, IP, TRANSPORT = 14, 4, 4, {4: 20, 6: 40}, {"udp": 8, "tcp": 20}
"""Bytes of the headers."""

PAIR_STEP = 1 << 24
"""Step between the addresses of port pairs: 16.0.0.0/8 and 48.0.0.0/8, then 17.0.0.0/8 and 49.0.0.0/8, … (as TRex's
``dual_port_mask`` of 1.0.0.0)."""

PAIRS = 16
"""Most port pairs: further sources would come close to the first destinations."""

LABEL_STEP = 1000
"""Step between the MPLS labels of port pairs."""


@dataclass(frozen=True, slots=True)
class FrameClass:
    """Frames of one size. ``size`` bytes with FCS; ``weight``: frames of this size in the mix's ratio.

    ``data``: the frame itself without FCS, where it comes from a capture.
    """

    size: int
    weight: float = 1
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """IPv4 addresses from ``first`` to ``last`` by ``step``, then again from the first."""

    first: Ipv4Address
    last: Ipv4Address
    step: Annotated[int, Field(ge=1)] = 1
    __pydantic_config__ = ConfigDict(extra="forbid")

    def __post_init__(self) -> None:
        if self._span < 0 or self._span % self.step:
            raise ValueError(f"{self.last} is not a whole number of steps of {self.step} after {self.first}")

    @property
    def count(self) -> int:
        """Number of addresses."""
        return self._span // self.step + 1

    @property
    def _span(self) -> int:
        return int(ipaddress.IPv4Address(self.last)) - int(ipaddress.IPv4Address(self.first))

    def shifted(self, pair: int) -> AddressRange:
        """Return the range for another port pair, counted from 0."""
        first, last = (str(ipaddress.IPv4Address(item) + pair * PAIR_STEP) for item in (self.first, self.last))
        return AddressRange(first, last, self.step)

    def at(self, index: int) -> int:
        """Return the address of frame *index*, as a number."""
        return int(ipaddress.IPv4Address(self.first)) + index % self.count * self.step


@dataclass(frozen=True, slots=True)
class Flows:
    """Addresses and ports of the first direction; the second swaps source and destination addresses.

    Where both ranges vary they step together, as in TRex's bench profile.
    """

    source: AddressRange
    destination: AddressRange
    source_port: int = 1025
    destination_port: int = 12

    @property
    def count(self) -> int:
        """Number of distinct flows; 0: not known."""
        if self == OWN_ADDRESSES:
            return 0
        return math.lcm(self.source.count, self.destination.count)

    def of_pair(self, pair: int) -> Flows:
        """Return the flows of another port pair, counted from 0, in its own networks."""
        if not pair:
            return self
        return replace(self, source=self.source.shifted(pair), destination=self.destination.shifted(pair))

    def reversed(self) -> Flows:
        """Return the flows of the second direction: addresses swapped, ports kept (as in TRex's bench profile)."""
        return replace(self, source=self.destination, destination=self.source)


OWN_ADDRESSES = Flows(AddressRange("0.0.0.0", "0.0.0.0"), AddressRange("0.0.0.0", "0.0.0.0"))
"""The flows of frames with addresses of their own, captures and users' streams: nobody knows their number."""


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers of a frame. ``tags``: (EtherType, VLAN), ``labels``: MPLS; both outermost first.

    ``labels_back``: those of the second direction, which has its own route. ``prefix``: the 96 bits before the IPv4
    address in IPv6 addresses; empty: IPv4.
    """

    tags: tuple[tuple[int, int], ...] = ()
    labels: tuple[int, ...] = ()
    labels_back: tuple[int, ...] = ()
    prefix: str = ""
    transport: Literal["udp", "tcp"] = "udp"

    @property
    def version(self) -> Literal[4, 6]:
        """IP version."""
        return 6 if self.prefix else 4

    @property
    def ip(self) -> int:
        """Offset of the IP header."""
        return ETHERNET + TAG * len(self.tags) + LABEL * len(self.labels)

    @property
    def size(self) -> int:
        """Bytes of all headers: the smallest frame without FCS."""
        return self.ip + IP[self.version] + TRANSPORT[self.transport]

    def of_pair(self, pair: int) -> Headers:
        """Return the headers of another port pair, counted from 0: with its own labels."""
        ahead, back = (tuple(item + pair * LABEL_STEP for item in row) for row in (self.labels, self.labels_back))
        return replace(self, labels=ahead, labels_back=back)

    def reversed(self) -> Headers:
        """Return the headers of the second direction."""
        return Headers(self.tags, self.labels_back, self.labels, self.prefix, self.transport)

    def __str__(self) -> str:
        tagged = [f"{len(self.tags)} VLAN tag{'s' * (len(self.tags) > 1)}"] if self.tags else []
        labelled = [f"{len(self.labels)} MPLS label{'s' * (len(self.labels) > 1)}"] if self.labels else []
        parts = ["Ethernet", *tagged, *labelled, f"IPv{self.version}", self.transport.upper()]
        return f"{', '.join(parts[:-1])} and {parts[-1]}"


@dataclass(frozen=True)
class Profile:
    """Frames that the generator sends. ``program``: the streams of a user's profile in TRex's format."""

    name: str
    frames: tuple[FrameClass, ...]
    flows: Flows
    headers: Headers = field(default_factory=Headers)
    program: TrexProfile | None = None

    @cached_property
    def mean_size(self) -> float:
        """Mean frame size in bytes with FCS, weighted by frames."""
        total = sum(frame.weight for frame in self.frames)
        return sum(frame.size * frame.weight for frame in self.frames) / total

    def shares(self) -> tuple[tuple[FrameClass, float], ...]:
        """Return each size with its share of the frames (0..1)."""
        total = sum(frame.weight for frame in self.frames)
        return tuple((frame, frame.weight / total) for frame in self.frames)

    def line_rate_pps(self, link_bps: float) -> float:
        """Return frames/s that fill one direction of the link."""
        return line_rate_pps(link_bps, self.mean_size)

    def bits(self, layer: Layer) -> float:
        """Mean bits per frame at *layer*."""
        return bits(self.mean_size, layer)

    @property
    def is_one_flow(self) -> bool:
        """Every frame has the same addresses and ports."""
        return self.flows.count == 1

    @property
    def fragmented_datagram(self) -> int:
        """Bytes of the UDP datagram of which its two sizes are the fragments over IPv4 (RFC 791 3.2); 0: none."""
        if self.headers != Headers() or len(self.frames) != 2 or self.frames[0].weight != self.frames[1].weight:
            return 0
        last, first = sorted(frame.size - FCS - ETHERNET - IP[4] for frame in self.frames)
        # all but the last are filled with eighths; a shorter last one would be padded
        return first + last - TRANSPORT["udp"] if first > last and not first % 8 else 0

    @property
    def has_own_addresses(self) -> bool:
        """Return whether the frames have their own addresses, as captures and users' streams do: for one pair only."""
        return self.flows == OWN_ADDRESSES

    @property
    def one_direction_reason(self) -> str:
        """Why it cannot be sent bidirectionally; "" where it can."""
        return self.program.one_direction_reason if self.program else ""

    def has_same_frames(self, other: Profile) -> bool:
        """Return whether both send the same frames, whatever their names."""
        mine, others = (
            (item.frames, item.flows, item.headers, item.program and item.program.directions) for item in (self, other)
        )
        return mine == others


@dataclass(frozen=True)
class Traffic:
    """A profile, sent in one or both directions of each of the testbed's first ``pairs`` port pairs."""

    profile: Profile
    bidirectional: bool
    pairs: int = field(default=1, kw_only=True)

    @property
    def alone(self) -> Traffic:
        """The traffic without its sentence: equal wherever the same is sent."""
        return Traffic(self.profile, self.bidirectional, pairs=self.pairs)

    @property
    def directions(self) -> int:
        """Number of directions: one or two of each port pair."""
        return (2 if self.bidirectional else 1) * self.pairs

    @property
    def traffic(self) -> str:
        """Profile, direction and port pairs in the words of a sentence."""
        pairs = f" on {self.pairs} pairs" if self.pairs > 1 else ""
        return f"{self.profile.name} {'bi' if self.bidirectional else 'uni'}directional{pairs}"
