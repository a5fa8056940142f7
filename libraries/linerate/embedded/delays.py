"""How late the modelled router's frames are, as packet groups want to know it."""

from __future__ import annotations

from .groups import Delay
from .model.forwarding import Forwarding, Load
from .model.latency import latency_of
from .model.schema import RouterModel


def delay_of(model: RouterModel, forwarding: Forwarding, loads: list[Load], number: int) -> Delay:
    """How late the frames of the stream *number* of *loads* are, in µs."""
    found = latency_of(model, forwarding, loads, number)
    return Delay(found.least, found.wait, found.most)
