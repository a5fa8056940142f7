"""Different frames as a list in trafgen's language, in an order in which every size keeps its share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.traffic.ip_header import ipv4_checksum
from ..listing import listing
from ..streams import Stream


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """Return the frames of *streams*, each with all its flows. Raises ValueError where they are too many."""
    own = listing([stream.share for stream in streams], [_flows(stream) for stream in streams])
    weights = own.weights
    sent, frames = [0] * len(streams), list[bytes]()
    for step in range(own.frames):
        due = [weight * (step + 1) / sum(weights) - count for weight, count in zip(weights, sent, strict=True)]
        place = due.index(max(due))
        frames.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return frames


def _flows(stream: Stream) -> int:
    return math.lcm(*((field.maximum - field.minimum) // field.step + 1 for field in stream.variables))


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Return frame *index* of *stream*, with its MAC addresses, without FCS."""
    frame = bytearray(bytes.fromhex(stream.frame))
    frame[0:6], frame[6:12] = (bytes.fromhex(address.replace(":", "")) for address in (router_mac, mac))
    for field in stream.variables:
        count = (field.maximum - field.minimum) // field.step + 1
        value = field.minimum + index % count * field.step
        frame[field.offset : field.offset + field.size] = value.to_bytes(field.size, "big")
    if stream.fix_ipv4 is not None:
        head = stream.fix_ipv4
        frame[head + 10 : head + 12] = b"\0\0"
        frame[head + 10 : head + 12] = ipv4_checksum(bytes(frame[head : head + 20])).to_bytes(2, "big")
    return bytes(frame)


def config_line(frame: bytes) -> str:
    """Return *frame* in trafgen's language; what it ends with is written as a filling."""
    rest = len(frame) - len(frame.rstrip(frame[-1:]))
    head = "".join(f"0x{octet:02x}, " for octet in frame[: len(frame) - rest])
    return f"{{ {head}fill(0x{frame[-1]:02x}, {rest}) }}"
