"""Traffic profiles: which frames, in which ratio, with which headers, how many flows; and the words that name them.

A profile knows nothing of a generator. It is written the way the sentences name it: ``64b``, ``imix``,
``64b 1-flow``, ``128b qinq tcp``, ``genome:aaaaddg 10k-flows``. The words are data: ``variables/profiles/*.yaml``.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from ..units import Layer, bits, line_rate_pps
from .trex_profile import TrexProfile

ETHERNET, TAG, LABEL, IP, TRANSPORT = 14, 4, 4, {4: 20, 6: 40}, {"udp": 8, "tcp": 20}
"""Bytes of the headers."""

PAIR_STEP = 1 << 24
"""From the addresses of one pair of ports to those of the next: 16.0.0.0/8 and 48.0.0.0/8, then 17.0.0.0/8 and
49.0.0.0/8, … (as TRex's ``dual_port_mask`` of 1.0.0.0 does)."""

PAIRS = 16
"""The most pairs of ports: the next one's sources would be the first one's destinations, nearly."""

LABEL_STEP = 1000
"""From the MPLS labels of one pair of ports to those of the next."""


ETHERTYPES = {"802.1Q": 0x8100, "802.1ad": 0x88A8}


@dataclass(frozen=True, slots=True)
class FrameClass:
    """Frames of one size. ``size`` bytes with FCS; ``weight`` frames per round of the mix.

    ``data``: the frame itself without FCS, where it comes from a capture.
    """

    size: int
    weight: float = 1
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """IPv4 addresses ``first`` … ``last``, a whole number of steps apart, starting anew after the last."""

    first: str
    last: str
    step: int = 1

    @property
    def count(self) -> int:
        """How many addresses."""
        return (int(ipaddress.IPv4Address(self.last)) - int(ipaddress.IPv4Address(self.first))) // self.step + 1

    def shifted(self, pair: int) -> AddressRange:
        """The same range for another pair of ports, counted from 0: PAIR_STEP further for each."""
        first, last = (str(ipaddress.IPv4Address(item) + pair * PAIR_STEP) for item in (self.first, self.last))
        return AddressRange(first, last, self.step)

    def at(self, index: int) -> int:
        """The address of frame *index* as a number."""
        return int(ipaddress.IPv4Address(self.first)) + index % self.count * self.step


@dataclass(frozen=True, slots=True)
class Flows:
    """Addresses and ports of the first direction; the second direction swaps source and destination addresses.

    Where both ranges vary they step together, as the two field-engine variables of TRex's bench profile do.
    ``captured``: the number of flows in frames of a file, which have their own addresses, inside these ranges.
    ``known``: whether the number of flows is.
    """

    source: AddressRange
    destination: AddressRange
    source_port: int = 1025
    destination_port: int = 12
    captured: int = 0
    known: bool = True

    @property
    def count(self) -> int:
        """Number of distinct flows; 0 where it is not known."""
        if self.captured or not self.known:
            return self.captured
        a, b = self.source.count, self.destination.count
        return max(a, b) if min(a, b) == 1 or a == b else math.lcm(a, b)

    def of_pair(self, pair: int) -> Flows:
        """The flows of another pair of ports, counted from 0: in networks of their own."""
        if not pair:
            return self
        return replace(self, source=self.source.shifted(pair), destination=self.destination.shifted(pair))

    def reversed(self) -> Flows:
        """The same flows for the second direction: addresses swapped, ports kept (as the bench profile does)."""
        return Flows(self.destination, self.source, self.source_port, self.destination_port, self.captured, self.known)


@dataclass(frozen=True, slots=True)
class Headers:
    """What stands before the payload. ``tags``: (EtherType, VLAN) outermost first; ``labels`` (MPLS) outermost first.

    ``labels_back``: those of the second direction, whose frames the router sends another way. ``prefix``: the IPv6
    addresses are these 96 bits before the IPv4 ones; empty: IPv4.
    """

    tags: tuple[tuple[int, int], ...] = ()
    labels: tuple[int, ...] = ()
    labels_back: tuple[int, ...] = ()
    prefix: str = ""
    transport: Literal["udp", "tcp"] = "udp"

    @property
    def version(self) -> Literal[4, 6]:
        """Of the IP header."""
        return 6 if self.prefix else 4

    @property
    def ip(self) -> int:
        """Offset of the IP header."""
        return ETHERNET + TAG * len(self.tags) + LABEL * len(self.labels)

    @property
    def size(self) -> int:
        """Bytes of all headers: the least a frame holds, without FCS."""
        return self.ip + IP[self.version] + TRANSPORT[self.transport]

    def of_pair(self, pair: int) -> Headers:
        """The headers of another pair of ports, counted from 0: labels are LABEL_STEP further for each."""
        here, back = (tuple(item + pair * LABEL_STEP for item in row) for row in (self.labels, self.labels_back))
        return replace(self, labels=here, labels_back=back)

    def reversed(self) -> Headers:
        """The headers of the second direction."""
        return Headers(self.tags, self.labels_back, self.labels, self.prefix, self.transport)

    def __str__(self) -> str:
        tagged = [f"{len(self.tags)} VLAN tag{'s' * (len(self.tags) > 1)}"] if self.tags else []
        labelled = [f"{len(self.labels)} MPLS label{'s' * (len(self.labels) > 1)}"] if self.labels else []
        parts = ["Ethernet", *tagged, *labelled, f"IPv{self.version}", self.transport.upper()]
        return f"{', '.join(parts[:-1])} and {parts[-1]}"


@dataclass(frozen=True)
class Profile:
    """What the generator is to send: sizes in their ratio, and flows. ``program``: streams of a user's own file."""

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
        """Each size with its share of the frames (0..1)."""
        total = sum(frame.weight for frame in self.frames)
        return tuple((frame, frame.weight / total) for frame in self.frames)

    def line_rate_pps(self, link_bps: float) -> float:
        """Frames/s of the whole mix that fill one direction of the link."""
        return line_rate_pps(link_bps, self.mean_size)

    def bits(self, layer: Layer) -> float:
        """Mean bits per frame at *layer*."""
        return bits(self.mean_size, layer)

    @property
    def is_one_flow(self) -> bool:
        """Every frame has the same addresses and ports."""
        return self.flows.count == 1

    @property
    def own_addresses(self) -> bool:
        """Whether the frames have addresses of their own, as those of captures and of users' streams do.

        They fit one pair of ports only.
        """
        return self.program is not None or any(frame.data for frame in self.frames)

    @property
    def one_direction(self) -> str:
        """Why it cannot be sent in the second direction; "" where it can."""
        return self.program.one_direction if self.program else ""

    def is_same(self, other: Profile) -> bool:
        """Whether both are the same frames, by whatever words."""
        mine, others = (
            (item.frames, item.flows, item.headers, item.program and item.program.directions) for item in (self, other)
        )
        return mine == others


_SIZE = re.compile(r"^(\d+)b$")
_FLOWS = re.compile(r"^(\d+)([kM]?)-flows$")
_FACTOR = {"": 1, "k": 10**3, "M": 10**6}
_GENOME = "genome:"
