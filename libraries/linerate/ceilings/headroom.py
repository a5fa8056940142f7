"""What the generator's own ceiling makes of a verdict: near or above it a FAIL proves nothing.

The ceiling was measured (:class:`Headroom`, a calibration), or is published of the generator's card
(:mod:`.known_limits`); what was measured comes first. The rule is one: it takes the word FAIL away and puts
INCONCLUSIVE in its place. Nothing else: no PASS and no FAIL comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from ..counts.trial import Tolerance, Trial
from ..sla.requirement import Quantity
from ..sla.verdict import Evidence, Ruling, Verdict, decide, weigh_loss
from ..traffic.catalogue import Catalogue
from ..traffic.profiles import Profile
from ..units import si
from .calibration import Calibration, CeilingEntry

SHARE = 0.98
"""Of the lossless ceiling: what is nearer to it is too near, for the ceiling is known to a per cent only."""


@dataclass(frozen=True)
class Bound:
    """The generator's ceiling for one profile and direction, in frames/s of each sending port.

    ``line`` fills the link; ``lossless`` is carried; ``received`` comes back while all that fits is sent. ``lead``,
    ``words`` (of the ceiling that was used) and ``remedy`` say it; ``evidence``: where it comes from.
    """

    line: float
    lossless: float
    received: float
    lead: str
    words: Callable[[float], str]
    remedy: str
    evidence: Mapping[str, object]

    @property
    def is_whole(self) -> bool:
        """The generator carries all that fits on the link: there is no ceiling below it, and nothing is near it."""
        return self.lossless >= self.line * (1 - Tolerance().under)


class Ceilings(Protocol):
    """A source of ceilings."""

    def bound(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> Bound | None:
        """What it knows of this profile and direction; None where it knows nothing."""
        ...


def applied(verdict: Verdict, *sources: Ceilings) -> Verdict:
    """*verdict*, or INCONCLUSIVE in place of a FAIL that was found near or above the generator's own ceiling.

    The first of *sources* that knows a ceiling is heard alone. A sentence about a load fails all the same where the
    trials below that ceiling fail it by themselves; ``forwards`` is held against the rate that must come back;
    ``recovers``, against the load after the overload. Cycles are counted by the router itself.
    """
    requirement = verdict.requirement
    if verdict.outcome is not Ruling.FAIL or requirement.quantity is Quantity.COST:
        return verdict
    known = (source.bound(requirement.profile, requirement.bidirectional, requirement.pairs) for source in sources)
    found = next((bound for bound in known if bound is not None), None)
    if found is None or found.is_whole:
        return verdict
    if requirement.quantity in _BY_LOSS and _fails_below(verdict, SHARE * found.lossless):
        return verdict
    ceiling, load, what = found.lossless, _offered(verdict), "were offered by each port"
    if requirement.quantity is Quantity.FORWARDING_RATE:
        ceiling = min(ceiling, found.received)
        load, what = requirement.threshold_load(verdict.link_bps).pps, "are to come back at each port"
    if requirement.quantity is Quantity.RECOVERY:
        # in the overload it may lose what it likes
        load, what = verdict.figures["reduced_load_pps"], "were sent into each port after the overload"
    if load <= SHARE * ceiling:
        return verdict
    reason = (
        f"{found.lead}: {si(load, 'pps')} {what}, and {found.words(ceiling)}; {found.remedy}; what was measured:"
        f" {verdict.reason}"
    )
    evidence = {**found.evidence, "load_pps": load, "share": SHARE}
    return replace(verdict, outcome=Ruling.INCONCLUSIVE, reason=reason, ceiling=evidence)


_BY_LOSS = (Quantity.THROUGHPUT, Quantity.LOSS, Quantity.LATENCY, Quantity.JITTER)


def _fails_below(verdict: Verdict, near: float) -> bool:
    """Whether the trials in which no port offered more than *near* frames/s fail it by themselves."""
    goal, in_total = verdict.goal, verdict.requirement.in_total
    as_before = weigh_loss(goal, in_total)

    def weigh(trial: Trial) -> Evidence:
        found = as_before(trial)
        return found if found.against and _most(trial) <= near else Evidence.SCOUT

    return decide(goal, verdict.trials, weigh) is Ruling.FAIL


@dataclass(frozen=True)
class Headroom:
    """A calibration beside the testbed that is used now.

    ``unfit``: why it is not used; ``stale``: why it may no longer be true, though it is. "" where nothing is wrong.
    """

    calibration: Calibration
    catalogue: Catalogue
    unfit: str = ""
    stale: str = ""

    @classmethod
    def of(
        cls,
        calibration: Calibration,
        catalogue: Catalogue,
        kind: str,
        link_bps: float,
        server: str | None,
        now: datetime | None = None,
    ) -> Headroom:
        """*kind* of the testbed, *link_bps* of its ports, version of its *server* (None: not known yet)."""
        stale = calibration.stale(server, now or datetime.now(UTC))
        return cls(calibration, catalogue, calibration.unfit(kind, link_bps), stale)

    def ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> CeilingEntry | None:
        """What was measured for this profile, direction and *pairs*; None where nothing was that holds here."""
        return None if self.unfit else self.calibration.ceiling(profile, bidirectional, self.catalogue, pairs)

    def clock(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> str:
        """What the generator's clock was found to tell without a router, in words; "" where nothing is known."""
        found = self.ceiling(profile, bidirectional, pairs)
        if found is None or found.latency is None:
            return ""
        return (
            f"with the router bypassed it tells {found.latency} at {si(found.latency.load_pps, 'pps')}"
            f" ({self._calibrated(found)})"
        )

    def bound(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> Bound | None:
        """:meth:`ceiling` for the rule."""
        found = self.ceiling(profile, bidirectional, pairs)
        if found is None:
            return None
        return Bound(
            line=found.line_pps,
            lossless=found.lossless_pps,
            received=found.received_pps,
            lead="so near the generator's own ceiling no loss is held against the router",
            words=lambda ceiling: (
                f"with the router bypassed it carried {si(ceiling, 'pps')} of {found.traffic} {found.direction} without loss"
                f" ({self._calibrated(found)}; beyond {SHARE:.0%} of that no FAIL is given)"
            ),
            remedy="use a faster generator",
            evidence={
                **found.model_dump(mode="json", exclude_none=True),
                "file": self.calibration.path.name,
                "sha256": self.calibration.sha256,
                "stale": self.stale,
            },
        )

    def record(self) -> dict[str, object]:
        """For the environment's record: which file, from when, whether it was used and whether it was stale."""
        content = self.calibration.content
        return {
            "file": self.calibration.path.name,
            "sha256": self.calibration.sha256,
            "measured": sorted({item.measured for item in content.ceilings}),
            "versions": dict(content.versions),
            "used": not self.unfit,
            "unfit": self.unfit,
            "stale": self.stale,
        }

    def __str__(self) -> str:
        if self.unfit:
            return f"calibration {self.calibration} is not used: {self.unfit}; calibrate anew"
        stale = f", STALE: {self.stale}; calibrate anew" if self.stale else ""
        return f"calibration {self.calibration}{stale}"

    def _calibrated(self, found: CeilingEntry) -> str:
        stale = f", STALE: {self.stale}" if self.stale else ""
        return f"calibrated on {found.measured[:10]}{stale}"


def _offered(verdict: Verdict) -> float:
    """The highest rate, in frames/s of a port, that was offered in the trials which speak against the router."""
    telling = [trial for trial in verdict.trials if trial.blames_router] or list(verdict.trials)
    against = [trial for trial in telling if trial.lost] or telling
    return max((_most(trial) for trial in against), default=0.0)


def _most(trial: Trial) -> float:
    return max((direction.offered for direction in trial.outcome.directions), default=0) / max(trial.seconds, 1e-9)
