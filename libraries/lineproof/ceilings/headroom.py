"""The generator's own ceiling and a verdict: a FAIL near or above the ceiling proves nothing.

The ceiling was measured (:class:`MeasuredLimits`, a calibration) or is published for the generator's card
(:mod:`.published_limits`); a measured one comes first. The rule turns such a FAIL into INCONCLUSIVE, and does nothing
else: it never makes a PASS or a FAIL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from ..core.requirement import RUNTIME_UNITS, Quantity
from ..core.trial import Tolerance, Trial
from ..core.verdict import Evidence, Ruling, Verdict, loss_rule, weigh
from ..traffic.catalogue import Catalogue
from ..traffic.profiles import Profile
from ..units import si
from .calibration import Calibration, CeilingEntry

USABLE_SHARE = 0.98
"""A load above this share of the lossless ceiling is too near to it: the ceiling is known only to about 1 %."""


@dataclass(frozen=True)
class KnownCeiling:
    """The generator's ceiling for one profile and direction, in frames/s of each sending port.

    ``line``: line rate; ``lossless``: carried without loss; ``received``: comes back at line rate. The reason of a
    verdict has ``conclusion``, ``explain`` (of the ceiling used) and ``remedy``; ``evidence``: the source, for records.
    """

    line: float
    lossless: float
    received: float
    conclusion: str
    explain: Callable[[float], str]
    remedy: str
    evidence: Mapping[str, object]

    @property
    def reaches_line_rate(self) -> bool:
        """Whether the generator carries line rate, so that it limits nothing."""
        return self.lossless >= self.line * (1 - Tolerance().under)


class CeilingSource(Protocol):
    """A source of ceilings."""

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> KnownCeiling | None:
        """The ceiling for this profile and direction; None if it is not known."""
        ...


def first_known(
    sources: Iterable[CeilingSource], profile: Profile, bidirectional: bool, pairs: int
) -> KnownCeiling | None:
    """The ceiling of the first of *sources* that knows one; None if it limits nothing, or none is known."""
    known = (source.known_ceiling(profile, bidirectional, pairs) for source in sources)
    found = next((ceiling for ceiling in known if ceiling is not None), None)
    return None if found is None or found.reaches_line_rate else found


def apply_ceilings(verdict: Verdict, *sources: CeilingSource) -> Verdict:
    """*verdict*, or INCONCLUSIVE in place of a FAIL near or above the generator's own ceiling.

    Only the first of *sources* that knows a ceiling counts. A sentence about a load stays a FAIL if its trials below
    the ceiling are enough for one. For ``forwards`` the ceiling is compared with the rate to be forwarded, for
    ``recovers`` with the load after the overload. ``costs`` stays a FAIL: the router counts cycles itself.
    """
    requirement = verdict.requirement
    if verdict.ruling is not Ruling.FAIL or requirement.threshold.unit in RUNTIME_UNITS:
        return verdict
    found = first_known(sources, requirement.profile, requirement.bidirectional, requirement.pairs)
    if found is None:
        return verdict
    if requirement.quantity in _JUDGED_BY_LOSS and _fails_below(verdict, USABLE_SHARE * found.lossless):
        return verdict
    ceiling, load, load_text = found.lossless, _offered_when_failing(verdict), "were offered by each port"
    if requirement.quantity is Quantity.FORWARDING_RATE:
        ceiling = min(ceiling, found.received)
        load, load_text = requirement.threshold_load(verdict.link_bps).pps, "must be received at each port"
    if requirement.quantity is Quantity.RECOVERY:
        # loss in the overload itself does not matter
        load, load_text = verdict.figures["reduced_load_pps"], "were sent into each port after the overload"
    if load <= USABLE_SHARE * ceiling:
        return verdict
    reason = (
        f"{found.conclusion}: {si(load, 'pps')} {load_text}, and {found.explain(ceiling)}; {found.remedy}; what was"
        f" measured: {verdict.reason}"
    )
    evidence = {**found.evidence, "load_pps": load, "share": USABLE_SHARE}
    return replace(verdict, ruling=Ruling.INCONCLUSIVE, reason=reason, ceiling=evidence)


_JUDGED_BY_LOSS = (Quantity.THROUGHPUT, Quantity.LOSS, Quantity.LATENCY, Quantity.DELAY_VARIATION)


def _fails_below(verdict: Verdict, highest_pps: float) -> bool:
    """Return whether the trials in which no port offered more than *highest_pps* frames/s are enough for a FAIL."""
    goal, in_total = verdict.goal, verdict.requirement.in_total
    rule = loss_rule(goal, in_total)

    def evidence_of(trial: Trial) -> tuple[Evidence, ...]:
        too_high = _highest_offered(trial) > highest_pps
        return tuple(Evidence.SCOUT if too_high and item.against_router else item for item in rule(trial))

    return weigh(goal, verdict.trials, evidence_of).ruling is Ruling.FAIL


@dataclass(frozen=True)
class MeasuredLimits:
    """A calibration and whether it applies to the testbed in use.

    ``why_unfit``: why it is not used; ``why_stale``: why it may no longer be true, though it is used; else "".
    """

    calibration: Calibration
    catalogue: Catalogue
    why_unfit: str = ""
    why_stale: str = ""

    @classmethod
    def of(
        cls,
        calibration: Calibration,
        catalogue: Catalogue,
        kind: str,
        link_bps: float,
        server: str | None,
        simulated: bool,
        now: datetime | None = None,
    ) -> MeasuredLimits:
        """*kind* of the testbed, *link_bps* of its ports, version of its *server* (None: not known yet).

        *simulated*: whether its generator is.
        """
        stale = calibration.why_stale(server, now or datetime.now(UTC))
        return cls(calibration, catalogue, calibration.why_unfit(kind, link_bps, simulated), stale)

    def ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> CeilingEntry | None:
        """The ceiling measured for this profile, direction and *pairs*; None if there is none that applies."""
        return None if self.why_unfit else self.calibration.ceiling(profile, bidirectional, self.catalogue, pairs)

    def clock_text(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> str:
        """The generator's own latency, measured without a router, in words; "" if it is not known."""
        found = self.ceiling(profile, bidirectional, pairs)
        if found is None or found.latency is None:
            return ""
        return (
            f"with the router bypassed it measures {found.latency} at {si(found.latency.load_pps, 'pps')}"
            f" ({self._calibrated(found)})"
        )

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> KnownCeiling | None:
        """:meth:`ceiling`, for :func:`apply_ceilings`."""
        found = self.ceiling(profile, bidirectional, pairs)
        if found is None:
            return None
        return KnownCeiling(
            line=found.line_pps,
            lossless=found.lossless_pps,
            received=found.received_pps,
            conclusion="loss this close to the generator's own ceiling does not count against the router",
            explain=lambda ceiling: (
                f"with the router bypassed it carried {si(ceiling, 'pps')} of {found.traffic} {found.direction} without"
                f" loss ({self._calibrated(found)}; beyond {USABLE_SHARE:.0%} of that no FAIL is given)"
            ),
            remedy="use a faster generator",
            evidence={
                **found.model_dump(mode="json", exclude_none=True),
                "file": self.calibration.path.name,
                "sha256": self.calibration.sha256,
                "stale": self.why_stale,
            },
        )

    def record(self) -> dict[str, object]:
        """For the record of the environment: file, date, whether it is used, whether it is stale."""
        content = self.calibration.content
        return {
            "file": self.calibration.path.name,
            "sha256": self.calibration.sha256,
            "measured": sorted({item.measured for item in content.ceilings}),
            "versions": dict(content.versions),
            "used": not self.why_unfit,
            "unfit": self.why_unfit,
            "stale": self.why_stale,
        }

    def __str__(self) -> str:
        if self.why_unfit:
            return f"calibration {self.calibration} is not used: {self.why_unfit}; calibrate anew"
        stale = f", STALE: {self.why_stale}; calibrate anew" if self.why_stale else ""
        return f"calibration {self.calibration}{stale}"

    def _calibrated(self, found: CeilingEntry) -> str:
        stale = f", STALE: {self.why_stale}" if self.why_stale else ""
        return f"calibrated on {found.measured[:10]}{stale}"


def _offered_when_failing(verdict: Verdict) -> float:
    """The highest rate, in frames/s of a port, offered in a trial that is evidence against the router."""
    usable = [trial for trial in verdict.trials if trial.blames_router] or list(verdict.trials)
    against = [trial for trial in usable if trial.lost] or usable
    return max((_highest_offered(trial) for trial in against), default=0.0)


def _highest_offered(trial: Trial) -> float:
    return max((direction.offered for direction in trial.outcome.directions), default=0) / max(trial.seconds, 1e-9)
