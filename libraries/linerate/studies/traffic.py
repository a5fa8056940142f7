"""Loads for the model's pure functions: a profile's frames, plain, labelled, tagged or IPv6, at any load."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from ..embedded.backend import FieldVariable, StreamTraffic
from ..embedded.model.flows import IPV4, Flow
from ..embedded.model.forwarding import Forwarding, Load, forward, parts_of
from ..embedded.model.schema import RouterModel
from ..generators.base import Way
from ..generators.streams import streams
from ..profiles import AddressRange, Flows, FrameClass, Profile
from ..units import FCS, l1_bits

Wrapping = Literal["plain", "mpls", "vlan", "ipv6"]
"""What is done to the frames of a profile: nothing, one MPLS label, one VLAN tag, or IPv6 in place of IPv4."""

LOSSLESS = 1e-9
"""A share of frames lost below this is rounding."""

_LABEL = struct.pack("!HI", 0x8847, 16 << 12 | 1 << 8 | 64)
_TAG = struct.pack("!HH", 0x8100, 2)
_IPV6 = 40


def flows_2000(size: int) -> Profile:
    """2000 flows of frames of *size* bytes (with FCS) between 16 sources and 125 destinations."""
    flows = Flows(AddressRange("198.18.10.1", "198.18.10.16"), AddressRange("198.19.10.1", "198.19.10.125"), 2000, 2000)
    return Profile(f"{size}b 2000-flows", (FrameClass(size),), flows)


def wrapped(stream: StreamTraffic, wrapping: Wrapping) -> StreamTraffic:
    """*stream* with its frames, of the same size, *wrapping* says how."""
    frame = stream.frame
    if wrapping == "plain":
        return stream
    if wrapping == "ipv6":
        return _as_ipv6(stream)
    size = len(frame)
    inserted = _LABEL + frame[IPV4:] if wrapping == "mpls" else _TAG + frame[12:]
    moved = 4
    variables = tuple(replace(item, offset=item.offset + moved) for item in stream.variables)
    return replace(stream, frame=(frame[:12] + inserted)[:size], variables=variables)


def _as_ipv6(stream: StreamTraffic) -> StreamTraffic:
    """The same flows with addresses of 2001:db8::/32 that end as the IPv4 ones."""
    frame, prefix = stream.frame, bytes.fromhex("20010db8") + bytes(8)
    addresses = [prefix + frame[at : at + 4] for at in (IPV4 + 12, IPV4 + 16)]
    rest = frame[IPV4 + 20 : len(frame) - 20] if len(frame) > IPV4 + _IPV6 + 20 else frame[IPV4 + 20 : IPV4 + 28]
    header = struct.pack("!IHBB", 6 << 28, len(rest), 17, 64) + b"".join(addresses)
    # IPv4 addresses stood at 26 and 30; the last four bytes of the IPv6 ones stand at 34 and 50
    places = {IPV4 + 12: IPV4 + 20, IPV4 + 16: IPV4 + 36}
    variables = tuple(replace(item, offset=places[item.offset]) for item in stream.variables)
    return replace(stream, frame=frame[:12] + b"\x86\xdd" + header + rest, variables=variables)


def loads_at(
    model: RouterModel, profile: Profile, bidirectional: bool, wrapping: Wrapping = "plain"
) -> Callable[[float], list[Load]]:
    """A function from a load (share of line rate each way) to what the router is offered.

    Every frame leaves by the other port.
    """
    ways = (Way(0, 1), Way(1, 0, swapped=True))[: 2 if bidirectional else 1]
    rows = []
    for port, way in enumerate(ways):

        def other(flow: Flow | None, port: int = port) -> int:
            return 1 - port

        for stream in streams(profile, way):
            variables = tuple(
                FieldVariable(item.offset, item.size, item.minimum, item.maximum, item.minimum, item.step)
                for item in stream.variables
            )
            traffic = wrapped(StreamTraffic(0, bytes.fromhex(stream.frame), 0.0, variables), wrapping)
            rows.append((port, stream.share, len(traffic.frame) + FCS, parts_of(model, traffic, other)))
    mean = sum(share * l1_bits(size) for _, share, size, _ in rows) / len(ways)
    line = model.link_bps / mean
    return lambda load: [Load(port, load * line * share, size, parts) for port, share, size, parts in rows]


def throughput(model: RouterModel, profile: Profile, bidirectional: bool, wrapping: Wrapping = "plain") -> float:
    """The highest load without loss, per cent of one direction's line rate, both directions added."""
    at = loads_at(model, profile, bidirectional, wrapping)
    low, high = 0.0, model.ceiling
    if forward(model, at(high)).loss <= LOSSLESS:
        low = high
    while high - low > 1e-5:
        middle = (low + high) / 2
        if forward(model, at(middle)).loss <= LOSSLESS:
            low = middle
        else:
            high = middle
    return 100 * low * (2 if bidirectional else 1)


def saturated(model: RouterModel, profile: Profile, wrapping: Wrapping = "plain") -> tuple[float, Forwarding]:
    """Frames/s forwarded one way when the generator sends all it can, and all else of it."""
    loads = loads_at(model, profile, False, wrapping)(model.ceiling)
    found = forward(model, loads)
    return sum(load.pps * fate.forwarded for load, fate in zip(loads, found.fates, strict=True)), found


def forwarding_at(model: RouterModel, profile: Profile, pps: float) -> Forwarding:
    """What the router does with *pps* frames/s of *profile*, one way."""
    return forward(model, loads_at(model, profile, False)(pps / profile.line_rate_pps(model.link_bps)))
