"""A profile and a direction as stream data: the frames' bytes, their shares of the rate and their variable fields.

Plain data, which goes to a generator's own process as JSON. Ethernet II, tags (IEEE 802.1Q, 802.1ad), labels
(RFC 3032), IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768) and TCP (RFC 9293).
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.traffic.ip_header import ipv4_checksum, with_swapped_addresses
from ..core.traffic.profiles import IP, Flows, FrameClass, Headers, Profile
from ..units import FCS
from .base import Direction, Probe

VARYING_BYTES = {4: (12, 16), 6: (20, 36)}
"""Offsets in the IP header of the four variable bytes of source and destination address."""

PROBE_PAYLOAD = 16
"""Payload bytes into which TRex writes number and time of a probe frame (its flow_stat_payload_header)."""

MOST_PROBE_GROUPS = 128
"""Packet groups of probe frames that TRex counts at a time, on all ports (MAX_FLOW_STATS_PAYLOAD of v3.08)."""

STREAM_GAP = 0.1
"""Microseconds between the starts of the sizes of a mix, as in TRex's own mixes: no burst at the start."""

_ETHERTYPES, _MPLS, _PROTOCOLS, _TTL = {4: 0x0800, 6: 0x86DD}, 0x8847, {"udp": 17, "tcp": 6}, 64
_TCP_ACK, _TCP_WINDOW = 0x10, 0xFFFF


@dataclass(frozen=True, slots=True)
class Variable:
    """A field that counts: ``minimum`` … ``maximum`` by ``step``, big-endian in ``size`` bytes at ``offset``."""

    name: str
    offset: int
    minimum: int
    maximum: int
    size: int = 4
    step: int = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """A continuous stream, or a burst. ``frame`` without FCS in hexadecimal digits; zero MAC addresses: the port's.

    ``share`` of the port's frames, 0..1; the sum of a port's streams is 1: a multiplier of N frames/s offers N in all.
    ``gap`` in µs before the first frame. ``fix_ipv4``: offset of the IPv4 header whose checksum follows the variables.
    """

    frame: str
    share: float
    gap: float = 0.0
    variables: tuple[Variable, ...] = ()
    fix_ipv4: int | None = None
    group: int | None = None
    """Packet group for latency; such a stream has the rate ``pps`` with every multiplier."""
    pps: float = 0.0
    burst: int | None = None
    """Total number of frames; None: continuous."""
    program: str = ""
    """A stream of a user's own file, as JSON for TRex's ``add_stream``."""
    destination: str = ""
    """The destination MAC address that its frames carry; "": the port's, or as ``program`` says."""

    def to_json(self) -> dict[str, Any]:
        """Return the stream as plain data."""
        return asdict(self)


def profile_streams(profile: Profile, direction: Direction, probe: Probe | None = None) -> tuple[Stream, ...]:
    """Return the streams of *profile* for the sending port of *direction*: one per size, captured frame or probe.

    All carry the destination MAC address of *direction*, if it has one.

    Raises ValueError for a profile whose frames cannot be probes, that has no second direction, or that fits the first
    port pair only.
    """
    if direction.pair and profile.has_own_addresses:
        raise ValueError("these frames have their own addresses, which fit the first pair of ports only")
    if profile.program is not None:
        if probe is not None:
            probe_shares(profile)
        if direction.swapped and profile.one_direction_reason:
            raise ValueError(profile.one_direction_reason)
        parsed, to = profile.program.directions[direction.swapped], direction.destination
        return tuple(Stream(stream.frame.hex(), stream.share, program=stream.text, destination=to) for stream in parsed)
    flows, headers = profile.flows.of_pair(direction.pair), profile.headers.of_pair(direction.pair)
    if direction.swapped:
        flows, headers = flows.reversed(), headers.reversed()
    variables = _variables(flows, headers)

    def stream(frame: FrameClass, share: float, gap: float) -> Stream:
        to = direction.destination
        if frame.data:
            data = with_swapped_addresses(frame.data) if direction.swapped else frame.data
            return Stream(data.hex(), share, gap, destination=to)
        fixed = headers.ip if variables and headers.version == 4 else None
        return Stream(frame_bytes(frame.size, flows, headers).hex(), share, gap, variables, fixed, destination=to)

    streams = [
        stream(frame, share, round(STREAM_GAP * index, 6)) for index, (frame, share) in enumerate(profile.shares())
    ]
    if probe is not None:
        # of each size and in the same flows, so that they wait in the same queues; not all sizes at the same moment
        sizes, groups = probe_shares(profile), probe_groups(profile, direction)
        for place, (size, share) in enumerate(sizes.items()):
            gap = round(1e6 / probe.pps / share * place / len(sizes), 1)
            streams.append(replace(stream(FrameClass(size), 0.0, gap), group=groups[place], pps=probe.pps * share))
    return tuple(streams)


def burst_streams(profile: Profile, direction: Direction, frames: int) -> tuple[Stream, ...]:
    """Return the streams of *profile* for the sending port of *direction*, limited to *frames* frames in all.

    Each size has its share, to a whole frame.
    """
    steady, due = profile_streams(profile, direction), 0.0
    counts: list[int] = []
    for stream in steady:
        due += stream.share * frames
        counts.append(round(due) - sum(counts))
    counts[-1] += frames - sum(counts)
    return tuple(replace(stream, burst=count) for stream, count in zip(steady, counts, strict=True) if count)


def probe_groups(profile: Profile, direction: Direction) -> list[int]:
    """Return the packet groups of the probe frames of *direction*, one for each size.

    TRex has one stream in a group.
    """
    return [direction.tx_port + 1 + 256 * place for place in range(len(probe_shares(profile)))]


def probe_shares(profile: Profile) -> dict[int, float]:
    """Return the sizes of probe frames in bytes with FCS, and the share of each.

    They are as in the load, where it has room for probes.

    Raises ValueError for frames that cannot be probes.
    """
    shares: dict[int, float] = {}
    for frame, share in profile.shares():
        size = probe_size(profile, frame)
        shares[size] = shares.get(size, 0.0) + share
    return shares


def probe_size(profile: Profile, frame: FrameClass) -> int:
    """Return the bytes with FCS of probe frames among *frame*: at least headers, probe payload and FCS.

    Raises ValueError for frames that cannot be probes.
    """
    if profile.program is not None:
        raise ValueError(
            f"latency is not measured with the streams of a file ('{profile.name}'); expected a profile of frame sizes"
        )
    if frame.data:
        raise ValueError("the latency of captured frames is not measured; expected a profile of frame sizes")
    if profile.headers.labels:
        raise ValueError(
            "the latency of labelled (MPLS) frames is not measured: TRex finds its probe data after IP only"
        )
    return max(frame.size, profile.headers.size + PROBE_PAYLOAD + FCS)


def sizes_sent(profile: Profile, probes: bool) -> tuple[int, int]:
    """Return the smallest and the largest frames in bytes with FCS, *probes* among them or not."""
    sizes = {frame.size for frame in profile.frames}
    if profile.program is not None:
        sizes |= {size for streams in profile.program.directions for row in streams for size, _ in row.sizes}
    elif probes:
        sizes |= {probe_size(profile, frame) for frame in profile.frames}
    return min(sizes), max(sizes)


def _variables(flows: Flows, headers: Headers) -> tuple[Variable, ...]:
    source, destination = (headers.ip + offset for offset in VARYING_BYTES[headers.version])
    return tuple(
        # field engines need a range of a whole number of steps
        Variable(name, offset, span.at(0), span.at(span.count - 1) + span.step - 1, step=span.step)
        for name, offset, span in (("src", source, flows.source), ("dst", destination, flows.destination))
        if span.count > 1
    )


def frame_bytes(size: int, flows: Flows, headers: Headers | None = None) -> bytes:
    """Return the first frame of *size* bytes with FCS, without the FCS. Raises ValueError for too long headers."""
    headers = headers or Headers()
    payload = size - FCS - headers.size
    if payload < 0:
        raise ValueError(f"a frame of {size} bytes cannot hold the headers of {headers} and the FCS")
    prefix = ipaddress.IPv6Address(headers.prefix).packed[:12] if headers.prefix else b""
    addresses = b"".join(prefix + struct.pack("!I", ends.at(0)) for ends in (flows.source, flows.destination))
    segment = _segment(flows, headers, addresses, b"x" * payload)
    protocol, length = _PROTOCOLS[headers.transport], len(segment)
    if headers.version == 6:
        ip = struct.pack("!IHBB", 6 << 28, length, protocol, _TTL) + addresses
    else:
        ip = struct.pack("!BBHHHBBH", 0x45, 0, IP[4] + length, 1, 0, _TTL, protocol, 0) + addresses
        ip = with_number(ip, 10, ipv4_checksum(ip))
    return bytes(12) + _headers_before_ip(headers) + ip + segment


def _headers_before_ip(headers: Headers) -> bytes:
    """Return tags, EtherType and labels, which are between MAC addresses and IP."""
    tags = b"".join(struct.pack("!HH", ethertype, vlan) for ethertype, vlan in headers.tags)
    if not headers.labels:
        return tags + struct.pack("!H", _ETHERTYPES[headers.version])
    last = len(headers.labels) - 1
    entries = (label << 12 | (index == last) << 8 | _TTL for index, label in enumerate(headers.labels))
    return tags + struct.pack(f"!H{last + 1}I", _MPLS, *entries)


def _segment(flows: Flows, headers: Headers, addresses: bytes, payload: bytes) -> bytes:
    """Return UDP or TCP. A required checksum is the first frame's: routers do not check it (RFC 1812)."""
    ports = struct.pack("!HH", flows.source_port, flows.destination_port)
    length = headers.size - headers.ip - IP[headers.version] + len(payload)
    if headers.transport == "udp":
        checksum_at, segment = 6, ports + struct.pack("!HH", length, 0) + payload
        if headers.version == 4:
            # zero: no checksum (RFC 768), which stays valid while the addresses vary
            return segment
    else:
        checksum_at = 16
        segment = ports + struct.pack("!IIBBHHH", 1, 1, 5 << 4, _TCP_ACK, _TCP_WINDOW, 0, 0) + payload
    summed = addresses + struct.pack("!II", length, _PROTOCOLS[headers.transport]) + segment
    return with_number(segment, checksum_at, ipv4_checksum(summed + bytes(len(summed) % 2)) or 0xFFFF)


def with_number(data: bytes, offset: int, number: int, size: int = 2) -> bytes:
    """Return *data* with *number* in *size* bytes at *offset*."""
    return data[:offset] + number.to_bytes(size, "big") + data[offset + size :]
