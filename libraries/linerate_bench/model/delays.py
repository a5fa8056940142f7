"""How late the modelled router's frames are, as packet groups want to know it."""

from __future__ import annotations

from collections.abc import Mapping

from ..packet_groups import Delay
from .forwarding import Forwarding, StreamLoad
from .latency import latency_of, least_of
from .rings import Released
from .schema import RouterModel


def delay_of(
    model: RouterModel,
    forwarding: Forwarding,
    loads: list[StreamLoad],
    number: int,
    waiting: Mapping[tuple[int, int], int],
) -> Delay:
    """How late the frames of the stream *number* of *loads* are, in µs; *waiting*: frames in each ring."""
    found = latency_of(model, forwarding, loads, number, waiting)
    return Delay(found.least, found.wait, found.most)


def delay_after(model: RouterModel, released: Released) -> Delay:
    """How late frames are that had to wait in a ring, in µs."""
    least = least_of(model, released.sending.size)
    return Delay(least + released.usec / 2, released.usec / 2, least + 2 * released.usec)
