"""What a sentence demands: quantity, threshold, scope, load. The grammar is :mod:`.sentence`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..errors import SentenceError
from ..traffic.profiles import Profile
from ..units import si
from .doubts import OwnPart
from .goal import Goal
from .latency import Statistic
from .quantity import Promise, Quantity
from .trial import Load
from .units import RATE_UNITS, Unit, Value

CLOCKS_SHARE = 0.9998
"""The share of line rate that any two ports carry: each clock may be off by 100 ppm (IEEE 802.3), in opposite ways."""

ROUNDED = 5e-4
"""The most by which a rate in frames/s or bits/s that people have rounded may be beyond line rate, as a ratio."""


class Scope(Enum):
    """How several directions count: each for itself, or all together."""

    ONE = ""
    EACH_WAY = "each way"
    IN_TOTAL = "in total"


@dataclass(frozen=True)
class TrafficWords:
    """Traffic without a demand. ``sentence``: its words, for example ``64b 1-flow unidirectional``.

    ``pairs``: how many port pairs of the testbed send, from the first on.
    """

    sentence: str
    profile: Profile
    bidirectional: bool
    pairs: int = 1

    @property
    def directions(self) -> int:
        """Number of directions: one or two of each port pair."""
        return (2 if self.bidirectional else 1) * self.pairs


@dataclass(frozen=True)
class Requirement:
    """A parsed sentence. ``load``: the load that it names (None: the threshold, or the maximum offered load).

    ``statistic``: of a latency or packet delay variation. ``duration_sum``: s that ``for`` asks for, in place of the
    goal's (None: the goal's). ``pairs``: how many port pairs of the testbed send at once, from the first on.
    """

    sentence: str
    profile: Profile
    bidirectional: bool
    quantity: Quantity
    at_least: bool
    threshold: Value
    scope: Scope
    load: Value | None = None
    load_scope: Scope = Scope.ONE
    statistic: Statistic | None = None
    duration_sum: float | None = None
    pairs: int = 1

    @property
    def directions(self) -> int:
        """Number of directions: one or two of each port pair."""
        return (2 if self.bidirectional else 1) * self.pairs

    @property
    def traffic(self) -> str:
        """Profile, direction and port pairs in the words of a sentence."""
        pairs = f" on {self.pairs} pairs" if self.pairs > 1 else ""
        return f"{self.profile.name} {'bi' if self.bidirectional else 'uni'}directional{pairs}"

    @property
    def in_total(self) -> bool:
        """Whether the directions are judged by their sum."""
        return self.scope is Scope.IN_TOTAL

    def on_cores(self, cores: int) -> Requirement:
        """With a threshold per core as one of *cores* together."""
        if self.threshold.unit is not Unit.PPS_PER_CORE:
            return self
        return replace(self, threshold=Value(self.threshold.number * cores, Unit.PPS))

    def threshold_pps(self, link_bps: float) -> float:
        """A rate threshold in frames/s: of one direction, or of all directions together for ``in total``."""
        return self.threshold.pps(self.profile, link_bps)

    def judged_pps(self, link_bps: float) -> float:
        """:meth:`threshold_pps` :meth:`within_clocks`."""
        per_port = self.within_clocks(self.threshold_load(link_bps), link_bps).pps
        return per_port * self.directions if self.in_total else per_port

    def threshold_load(self, link_bps: float) -> Load:
        """The threshold as a load of each sending port."""
        total = self.threshold_pps(link_bps)
        return Load(total / self.directions if self.in_total else total)

    def named_load(self, link_bps: float) -> Load | None:
        """The load that the sentence names with ``at``, of each sending port; None if it names none."""
        if self.load is None:
            return None
        pps = self.load.pps(self.profile, link_bps)
        return Load(pps / self.directions if self.load_scope is Scope.IN_TOTAL else pps)

    def within_clocks(self, load: Load, link_bps: float) -> Load:
        """*load* of each port, at most CLOCKS_SHARE of line rate: beyond that the clocks decide, not the router."""
        most = CLOCKS_SHARE * self.profile.line_rate_pps(link_bps)
        return load if load.pps <= most else Load(most)

    def clocks_text(self, link_bps: float) -> str:
        """That the sentence is judged at a little less than it says, because of the ports' clocks; "": it is not."""
        loads = [self.threshold_load(link_bps)] if self.threshold.unit in RATE_UNITS else []
        named = self.named_load(link_bps)
        if named is not None and "load" in self.quantity.needs:
            loads.append(named)
        if all(self.within_clocks(load, link_bps) is load for load in loads):
            return ""
        return (
            f"judged at {100 * CLOCKS_SHARE:.2f} % of line rate: the clocks of two ports may differ by 200 ppm"
            " (IEEE 802.3: ± 100 ppm each), and beyond that they decide, not the router"
        )

    def promise(self, goal: Goal, load: Load, link_bps: float, own: OwnPart = OwnPart()) -> Promise:  # noqa: B008
        """Return the sentence in numbers, judged at *load* under *goal* on ports of *link_bps* (L1 bit/s)."""
        return Promise(
            quantity=self.quantity,
            limit=self.quantity.limit(self, goal, link_bps),
            goal=goal,
            load_pps=self.within_clocks(load, link_bps).pps,
            unit=self.threshold.unit,
            in_total=self.in_total,
            statistic=self.statistic,
            names_load=self.load is not None,
            soak=0 if self.duration_sum is None else goal.trials_in(self.duration_sum),
            own=own,
            mean_size=self.profile.mean_size,
            link_bps=link_bps,
            pairs=self.pairs,
        )

    def check(self, link_bps: float) -> None:
        """Raise SentenceError if no router can meet the sentence on ports of *link_bps* (L1 bit/s).

        That is a rate above line rate, or a forwarding rate above the load that the sentence names.
        """
        line = self.profile.line_rate_pps(link_bps)
        loads = []
        if self.threshold.unit in RATE_UNITS:
            loads.append((self.threshold_load(link_bps).pps, self.threshold, self.scope))
        named = self.named_load(link_bps)
        if named is not None and self.load is not None:
            loads.append((named.pps, self.load, self.load_scope))
        for pps, value, scope in loads:
            # people write 14.88 Mpps for line rate; a share of it needs no rounding
            if pps > line * (1 + (1e-9 if value.unit is Unit.PERCENT_LINE else ROUNDED)):
                directions = self.directions if scope is Scope.IN_TOTAL else 1
                most = Value(100.0 * directions, Unit.PERCENT_LINE)
                counted = f" {scope.value}" if scope.value else ""
                raise SentenceError(
                    f"'{self.sentence}': {value}{counted} is more than the ports can carry; a {si(link_bps, 'bit/s')}"
                    f" port carries {si(line, 'pps')} of {self.profile.name} in each direction; expected at most"
                    f" {most}{counted} ({si(line * directions, 'pps')})"
                )
        if self.threshold.unit in RATE_UNITS and named is not None and self.load is not None:
            least = self.threshold_load(link_bps).pps
            if named.pps < least * (1 - 1e-9):
                raise SentenceError(
                    f"'{self.sentence}': 'at' names a load of {si(named.pps, 'pps', 5)} into each port, less than the"
                    f" {si(least, 'pps', 5)} to be forwarded; expected at least {self.threshold}"
                    f"{' ' + self.scope.value if self.scope.value else ''}"
                )
