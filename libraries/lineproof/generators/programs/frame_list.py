"""A profile's frames written out one by one, for a program that sends a list of them in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.traffic.ip_header import ipv4_checksum
from ..base import listing
from ..streams import Stream, Variable, with_number


def listed_frames(streams: Sequence[Stream], mac: str, router_mac: str) -> list[bytes]:
    """Return the frames of *streams*, each with all its flows. Raises ValueError where they are too many."""
    flows = [math.lcm(*map(_count, stream.variables)) for stream in streams]
    sent, frames = [0] * len(streams), list[bytes]()
    for place in listing([stream.share for stream in streams], flows):
        frames.append(_frame(streams[place], sent[place], mac, router_mac))
        sent[place] += 1
    return frames


def _count(field: Variable) -> int:
    return (field.maximum - field.minimum) // field.step + 1


def _frame(stream: Stream, index: int, mac: str, router_mac: str) -> bytes:
    """Return frame *index* of *stream*, with its MAC addresses, without FCS."""
    frame = bytes.fromhex((router_mac + mac).replace(":", "") + stream.frame[24:])
    for field in stream.variables:
        value = field.minimum + index % _count(field) * field.step
        frame = with_number(frame, field.offset, value, field.size)
    if (head := stream.fix_ipv4) is not None:
        frame = with_number(frame, head + 10, 0)
        frame = with_number(frame, head + 10, ipv4_checksum(frame[head : head + 20]))
    return frame


def config_line(frame: bytes) -> str:
    """Return *frame* in trafgen's language; what it ends with is written as a filling."""
    rest = len(frame) - len(frame.rstrip(frame[-1:]))
    head = "".join(f"0x{octet:02x}, " for octet in frame[: len(frame) - rest])
    return f"{{ {head}fill(0x{frame[-1]:02x}, {rest}) }}"
