"""The load that a port's streams ask for together, and the arithmetic of multipliers.

Facts from TRex's server (src/stx/stl, TrexStreamsGraph): the load of a port is the highest that its streams ask for at
one moment. Latency streams have fixed rates: they are not multiplied, and taken off before the multiplier is computed.
A per cent multiplier is of the port's L1 speed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from lineproof.units import l1_bits, l2_bits

from .params import Params, refused
from .streams import ServerStream

MULTIPLIERS = ("raw", "bps", "bpsl1", "pps", "percentage")


@dataclass(frozen=True, slots=True)
class LoadRates:
    """Frames/s, L2 and L1 bit/s."""

    pps: float = 0.0
    l2_bps: float = 0.0
    l1_bps: float = 0.0

    def __add__(self, other: LoadRates) -> LoadRates:
        return LoadRates(self.pps + other.pps, self.l2_bps + other.l2_bps, self.l1_bps + other.l1_bps)

    def times(self, factor: float) -> LoadRates:
        """This rate multiplied."""
        return LoadRates(self.pps * factor, self.l2_bps * factor, self.l1_bps * factor)


class RequestedLoad(NamedTuple):
    """The load before the multiplier: ``variable``, the highest sum, and ``fixed``, of latency streams.

    ``duration`` in µs, -1: without end.
    """

    variable: LoadRates
    fixed: LoadRates
    duration: float

    def at(self, factor: float) -> LoadRates:
        """All of it when the variable part is multiplied by *factor*."""
        return self.variable.times(factor) + self.fixed

    @property
    def pps(self) -> float:
        """Frames/s before the multiplier."""
        return self.at(1.0).pps


def rate_of(stream: ServerStream) -> LoadRates:
    """The rate of *stream* while it sends."""
    return LoadRates(stream.pps, stream.pps * l2_bits(stream.mean_size), stream.pps * l1_bits(stream.mean_size))


def load_of(streams: Iterable[ServerStream]) -> RequestedLoad:
    """Return the load of *streams*."""
    changes: list[tuple[float, LoadRates]] = []
    """From when on (µs) how much more is sent, or less."""
    fixed, endless = LoadRates(), False
    for stream in streams:
        rate, lasts = rate_of(stream), stream.lasts_usec
        endless = endless or lasts is None
        if stream.fixed_rate:
            fixed += rate
        else:
            changes.append((stream.isg_usec, rate))
            if lasts is not None:
                changes.append((stream.isg_usec + lasts, rate.times(-1)))
    changes.sort(key=lambda change: change[0])
    sums = list(accumulate((rate for _, rate in changes), initial=LoadRates()))
    highest = LoadRates(max(row.pps for row in sums), max(row.l2_bps for row in sums), max(row.l1_bps for row in sums))
    return RequestedLoad(highest, fixed, -1.0 if endless else max((at for at, _ in changes), default=0.0))


def factor_of(multiplier: Params, load: RequestedLoad, speed_bps: float, force: bool) -> float:
    """Return what the streams' rates are multiplied by.

    Raises RpcError when nothing would be sent, or, unless *force*, when it is more than the port's L1 speed.
    """
    kind = multiplier.choice("type", MULTIPLIERS)
    value = multiplier.number("value", least=0)
    multiplier.choice("op", ("abs",), "abs")
    if load.pps <= 0:
        raise refused("the streams of this port send nothing: their rate is zero")
    if load.variable.pps <= 0:
        # nothing but latency streams, which no multiplier changes
        return 1.0
    factor = _factor(kind, value, load, speed_bps)
    if factor <= 0:
        raise refused(f"Factor must be positive, got: {factor:g}")
    asked = load.at(factor).l1_bps
    if not force and asked > speed_bps * 1.0001:
        line = speed_bps / 1e9
        raise refused(f"Expected L1 B/W: '{asked / 1e9:.4g} Gbps' exceeds port line rate: '{line:.4g} Gbps'")
    return factor if force else min(factor, (speed_bps - load.fixed.l1_bps) / load.variable.l1_bps)


def _factor(kind: str, value: float, load: RequestedLoad, speed_bps: float) -> float:
    if kind == "raw":
        return value
    if kind == "percentage":
        kind, value = "bpsl1", value / 100 * speed_bps
    name, unit = {"pps": ("pps", "pps"), "bps": ("l2_bps", "BPS L2"), "bpsl1": ("l1_bps", "BPS L1")}[kind]
    fixed = getattr(load.fixed, name)
    if value < fixed:
        raise refused(f"current stream configuration enforces a minimum rate of '{fixed:g}' {unit}")
    found: float = (value - fixed) / getattr(load.variable, name)
    return found
