"""Loads for the model's pure functions: a profile's frames at any share of line rate."""

from __future__ import annotations

from collections.abc import Callable

from lineproof.core.traffic.profiles import Profile
from lineproof.units import FCS
from lineproof_bench.model.forwarding import Forwarding, StreamLoad, forward, parts_of
from lineproof_bench.model.schema import RouterModel
from support.model_bench import traffic

LOSSLESS = 1e-9
"""A share of frames lost below this is rounding."""


def loads_at(model: RouterModel, profile: Profile, bidirectional: bool) -> Callable[[float], list[StreamLoad]]:
    """A function from a load (share of line rate per direction) to the offered load.

    Every frame leaves by the other port.
    """
    line = profile.line_rate_pps(model.speeds[0])
    rows = [
        (port, stream, parts_of(model, stream, (lambda _: 1, lambda _: 0)[port]))
        for port in range(2 if bidirectional else 1)
        for stream in traffic(profile, line, swapped=port == 1)
    ]
    return lambda load: [
        StreamLoad(port, load * stream.pps, len(stream.frame) + FCS, parts) for port, stream, parts in rows
    ]


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


def forwarding_at(model: RouterModel, profile: Profile, pps: float) -> Forwarding:
    """How the router forwards *pps* frames/s of *profile* in one direction."""
    return forward(model, loads_at(model, profile, False)(pps / profile.line_rate_pps(model.speeds[0])))
