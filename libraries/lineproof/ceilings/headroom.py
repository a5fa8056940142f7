"""The generator's own part: what it carries, loses and delays by itself, as it was measured or published.

The ceiling was measured (:class:`MeasuredLimits`, a calibration) or is published for the generator's card
(:mod:`.published_limits`); a measured one comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.quantity import Requirement, TrafficWords
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.profiles import Profile
from ..core.trial import Tolerance
from ..units import si
from .calibration import Calibration, CeilingEntry

WATCHED_SHARE = 0.98
"""A generator that was watched at this share of a load was watched at it."""


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
        """Return whether the generator carries line rate, so that it limits nothing."""
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


def own_part(
    sources: Iterable[CeilingSource],
    measured: MeasuredLimits | None,
    traffic: Requirement | TrafficWords,
    load_pps: float,
    trial_seconds: float,
) -> OwnPart:
    """Return the generator's own part under *traffic*, measured in trials of so many s at *load_pps* of each port.

    *measured*: its calibration; None: it was not calibrated, so nobody watched it.
    """
    kind = traffic.profile, traffic.bidirectional, traffic.pairs
    own = OwnPart()
    if (ceiling := first_known(sources, *kind)) is not None:
        most = min(ceiling.lossless, ceiling.received)
        own = OwnPart(
            lossless_pps=ceiling.lossless,
            received_pps=ceiling.received,
            words=f"{ceiling.conclusion}: {ceiling.explain(most)}",
            remedy=ceiling.remedy,
            evidence=ceiling.evidence,
        )
    found = None if measured is None else measured.ceiling(*kind)
    if found is None:
        return own
    delay = 0.0 if found.latency is None else found.latency.p99_high_us
    watched = found.watched
    if watched is None or watched.load_pps < WATCHED_SHARE * load_pps:
        return replace(own, delay=delay)
    trials = watched.seconds / trial_seconds
    return replace(own, delay=delay, trials=trials, lossy=watched.lossy, most_lost=watched.most_lost)


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

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> KnownCeiling | None:
        """:meth:`ceiling`, as a :class:`KnownCeiling`."""
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
