"""The generator's own part: what it carries, loses and delays by itself, as it was measured or published.

The ceiling was measured (:class:`MeasuredLimits`, a calibration) or is published for the generator's card
(:mod:`.cards`); a measured one comes first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from ..core.ceiling import own_ceiling
from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.quantity import Requirement, TrafficWords
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.profiles import Profile
from ..errors import LineproofError
from ..units import si
from .calibration import FRESH_FOR, Calibration, CeilingEntry

WATCHED_SHARE = 0.98
"""A generator that was watched at this share of a load was watched at it."""


class CeilingSource(Protocol):
    """A source of ceilings."""

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> OwnPart | None:
        """The generator's ceiling for this profile and direction; None if it is not known."""
        ...


def first_known(sources: Iterable[CeilingSource], profile: Profile, bidirectional: bool, pairs: int) -> OwnPart:
    """The ceiling of the first of *sources* that knows one."""
    known = (source.known_ceiling(profile, bidirectional, pairs) for source in sources)
    return next((ceiling for ceiling in known if ceiling is not None), OwnPart())


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
    own, entry = first_known(sources, *kind), None if measured is None else measured.ceiling(*kind)
    if entry is None:
        return own
    own = replace(own, delay=0.0 if entry.latency is None else entry.latency.p99_high_us)
    watched = entry.watched
    if watched is None or watched.load_pps < WATCHED_SHARE * load_pps:
        return own
    seconds = watched.trials * watched.trial_duration
    return replace(own, trials=seconds / trial_seconds, lossy=watched.lossy, most_lost=watched.most_lost)


@dataclass(frozen=True)
class MeasuredLimits:
    """A calibration, and the testbed in use: its ``kind``, ``link_bps`` of its ports, the version of its ``server``.

    ``server`` None: not known yet. ``simulated``: whether its generator is. ``now``: when it is asked for; None: now.
    """

    calibration: Calibration
    catalogue: Catalogue
    kind: str
    link_bps: float
    server: str | None
    simulated: bool
    now: datetime | None = None

    @property
    def why_unfit(self) -> str:
        """Why it does not apply to the testbed; "" if it applies."""
        measured = self.calibration.content
        if measured.kind != self.kind:
            return f"it was measured when the testbed was '{measured.kind}', and it is '{self.kind}' now"
        if measured.simulated != self.simulated:
            was, now = ("simulated", "real") if measured.simulated else ("real", "simulated")
            return f"it was measured with a {was} generator, and the generator is {now} now"
        if abs(measured.link_bps - self.link_bps) > 0.01 * self.link_bps:
            speeds = f"at {measured.link_bps / 1e9:g} Gbit/s, and the ports run at {self.link_bps / 1e9:g} now"
            return f"it was measured {speeds}"
        return ""

    @property
    def why_stale(self) -> str:
        """Why it may no longer be true, in words, though it is used; "" if it is fresh."""
        content, reasons = self.calibration.content, []
        age = (self.now or datetime.now(UTC)) - min(datetime.fromisoformat(row.measured) for row in content.ceilings)
        if age > FRESH_FOR:
            reasons.append(f"it is {age.days} days old")
        measured = content.versions.get("server")
        if self.server is not None and measured != self.server:
            reasons.append(f"the generator was {measured or 'of unknown version'}, and is {self.server} now")
        return " and ".join(reasons)

    def ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> CeilingEntry | None:
        """The ceiling measured for this profile, direction and *pairs*; None if there is none that applies.

        One of fewer pairs is used if there is none of *pairs*: a port carries no more while more ports send. Profiles
        are compared by content: ``64b`` and ``64b var2`` are the same if the catalogue says so.
        """
        entries = () if self.why_unfit else self.calibration.content.ceilings
        for entry in sorted(entries, key=lambda entry: -entry.pairs):
            other_direction = entry.bidirectional != bidirectional or entry.pairs > pairs
            if other_direction or abs(entry.mean_size - profile.mean_size) > 1e-6:
                continue
            # words that are no longer known, or have changed their meaning, are no profile of today
            with contextlib.suppress(LineproofError):
                if self.catalogue.profile(entry.traffic.split()).has_same_frames(profile):
                    return entry
        return None

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> OwnPart | None:
        """:meth:`ceiling`, as the generator's own part."""
        entry = self.ceiling(profile, bidirectional, pairs)
        if entry is None:
            return None
        most, stale = si(min(entry.lossless_pps, entry.received_pps), "pps"), self._stale
        words = (
            "loss this close to the generator's own ceiling does not count against the router: with the router bypassed"
            f" it carried {most} of {entry.traffic} {entry.direction} without loss (calibrated on"
            f" {entry.measured[:10]}{stale}; beyond {USABLE_SHARE:.0%} of that no FAIL is given)"
        )
        evidence = {**entry.model_dump(mode="json", exclude_none=True), **self._file, "stale": self.why_stale}
        remedy = "use a faster generator"
        return own_ceiling(entry.line_pps, entry.lossless_pps, entry.received_pps, words, remedy, evidence)

    def record(self) -> dict[str, object]:
        """For the record of the environment: file, date, whether it is used, whether it is stale."""
        content = self.calibration.content
        return {
            **self._file,
            "measured": sorted({entry.measured for entry in content.ceilings}),
            "versions": dict(content.versions),
            "used": not self.why_unfit,
            "unfit": self.why_unfit,
            "stale": self.why_stale,
        }

    @property
    def _file(self) -> dict[str, object]:
        return {"file": self.calibration.path.name, "sha256": self.calibration.sha256}

    @property
    def _stale(self) -> str:
        return f", STALE: {self.why_stale}" if self.why_stale else ""

    def __str__(self) -> str:
        if self.why_unfit:
            return f"calibration {self.calibration} is not used: {self.why_unfit}; calibrate anew"
        return f"calibration {self.calibration}{self._stale}{'; calibrate anew' if self.why_stale else ''}"
