"""Loads for the model's pure functions: a profile's frames at any share of line rate."""

from __future__ import annotations

from collections.abc import Callable

from lineproof.core.traffic.profiles import Profile
from lineproof.generators.base import Direction
from lineproof.generators.streams import profile_streams
from lineproof.units import FCS
from lineproof_bench.backend import FieldVariable, StreamTraffic
from lineproof_bench.model.flows import Flow
from lineproof_bench.model.forwarding import Forwarding, StreamLoad, forward, parts_of
from lineproof_bench.model.schema import RouterModel

LOSSLESS = 1e-9
"""A share of frames lost below this is rounding."""


def loads_at(model: RouterModel, profile: Profile, bidirectional: bool) -> Callable[[float], list[StreamLoad]]:
    """A function from a load (share of line rate per direction) to the offered load.

    Every frame leaves by the other port.
    """
    line = profile.line_rate_pps(model.speeds[0])
    directions = (Direction(0, 1), Direction(1, 0, swapped=True))[: 2 if bidirectional else 1]
    rows = []
    for port, direction in enumerate(directions):

        def other(flow: Flow | None, port: int = port) -> int:
            return 1 - port

        for stream in profile_streams(profile, direction):
            variables = tuple(
                FieldVariable(item.offset, item.size, item.minimum, item.maximum, item.minimum, item.step)
                for item in stream.variables
            )
            traffic = StreamTraffic(0, bytes.fromhex(stream.frame), 0.0, variables)
            rows.append((port, stream.share * line, len(traffic.frame) + FCS, parts_of(model, traffic, other)))
    return lambda load: [StreamLoad(port, load * pps, size, parts) for port, pps, size, parts in rows]


def throughput(model: RouterModel, profile: Profile, bidirectional: bool) -> float:
    """The highest load without loss, per cent of one direction's line rate, both directions added."""
    return 100 * lossless_share(model, loads_at(model, profile, bidirectional)) * (2 if bidirectional else 1)


def lossless_share(model: RouterModel, at: Callable[[float], list[StreamLoad]]) -> float:
    """The highest load without loss, as a share of line rate per direction; *at*: of :func:`loads_at`."""
    low, high = 0.0, model.ceiling
    if forward(model, at(high)).loss <= LOSSLESS:
        low = high
    while high - low > 1e-5:
        middle = (low + high) / 2
        if forward(model, at(middle)).loss <= LOSSLESS:
            low = middle
        else:
            high = middle
    return low


def at_saturation(model: RouterModel, profile: Profile) -> tuple[float, Forwarding]:
    """Frames/s forwarded in one direction at the generator's ceiling, and the details."""
    loads = loads_at(model, profile, False)(model.ceiling)
    found = forward(model, loads)
    return sum(load.pps * fate.forwarded for load, fate in zip(loads, found.fates, strict=True)), found


def forwarding_at(model: RouterModel, profile: Profile, pps: float) -> Forwarding:
    """How the router forwards *pps* frames/s of *profile* in one direction."""
    return forward(model, loads_at(model, profile, False)(pps / profile.line_rate_pps(model.speeds[0])))
