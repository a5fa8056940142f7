"""The generator's own part: what it carries, loses and delays by itself, as it was measured or published.

The ceiling was measured (:class:`MeasuredLimits`, a calibration) or is published for the generator's card
(:mod:`.cards`); a measured one comes first.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.quantity import TrafficWords
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.profiles import Profile
from ..errors import LineproofError
from ..units import si
from .calibration import FRESH_FOR, Calibration, CeilingEntry
from .cards import PublishedLimits

WATCHED_SHARE = 0.98
"""A generator that was watched at this share of a load was watched at it."""


def own_part(
    measured: MeasuredLimits | None,
    published: PublishedLimits | None,
    traffic: TrafficWords,
    load_pps: float = 0.0,
    trial_seconds: float = 1.0,
) -> OwnPart:
    """Return the generator's own part under *traffic*, measured in trials of so many s at *load_pps* of each port.

    *measured*: its calibration; None: it was not calibrated, so nobody watched it.
    """
    kind = traffic.profile, traffic.bidirectional, traffic.pairs
    entry = measured.entry(*kind) if measured else None
    if measured is None or entry is None:
        return published.ceiling(*kind) if published else OwnPart()
    own = replace(measured.ceiling(entry), delay=0.0 if entry.latency is None else entry.latency.p99_high_us)
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
        """Return why it does not apply to the testbed; "" if it applies."""
        then, now = (
            f"{'simulated' if one.simulated else 'real'} generator, '{one.kind}' testbed, {si(one.link_bps, 'bit/s')}"
            for one in (self.calibration, self)
        )
        return "" if then == now else f"it was measured with: {then}; now: {now}"

    @property
    def why_stale(self) -> str:
        """Return why it may no longer be true, in words, though it is used; "" if it is fresh."""
        age = (self.now or datetime.now(UTC)) - min(entry.measured for entry in self.calibration.ceilings)
        reasons = [f"it is {age.days} days old"] if age > FRESH_FOR else []
        measured = self.calibration.versions.get("server")
        if self.server is not None and measured != self.server:
            reasons.append(f"the generator was {measured or 'of unknown version'}, and is {self.server} now")
        return " and ".join(reasons)

    def entry(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> CeilingEntry | None:
        """Return the ceiling measured for this profile, direction and *pairs*; None if there is none that applies.

        One of fewer pairs is used if there is none of *pairs*: a port carries no more while more ports send. Profiles
        are compared by content: ``64b`` and ``64b var2`` are the same if the catalogue says so.
        """
        entries = () if self.why_unfit else self.calibration.ceilings
        for entry in sorted(entries, key=lambda entry: -entry.pairs):
            other_direction = entry.bidirectional != bidirectional or entry.pairs > pairs
            if other_direction or abs(entry.mean_size - profile.mean_size) > 1e-6:
                continue
            # words that are no longer known, or have changed their meaning, are no profile of today
            with contextlib.suppress(LineproofError):
                if self.catalogue.profile(entry.traffic.split()).has_same_frames(profile):
                    return entry
        return None

    def ceiling(self, entry: CeilingEntry) -> OwnPart:
        """Return *entry* as the generator's own part."""
        most = si(min(entry.lossless_pps, entry.received_pps), "pps")
        words = (
            "loss this close to the generator's own ceiling does not count against the router: with the router bypassed"
            f" it carried {most} of {entry.traffic} {entry.direction} without loss (calibrated on"
            f" {entry.measured:%Y-%m-%d}{self._stale}; beyond {USABLE_SHARE:.0%} of that no FAIL is given)"
        )
        evidence = {**entry.model_dump(mode="json", exclude_none=True), "stale": self.why_stale}
        remedy = "use a faster generator"
        return OwnPart.of_ceiling(entry.line_pps, entry.lossless_pps, entry.received_pps, words, remedy, evidence)

    def record(self) -> dict[str, object]:
        """Return it for the record of the environment; its file is among the run's inputs."""
        return {"unfit": self.why_unfit, "stale": self.why_stale}

    @property
    def _stale(self) -> str:
        return f", STALE: {self.why_stale}" if self.why_stale else ""

    def __str__(self) -> str:
        if self.why_unfit:
            return f"calibration {self.calibration} is not used: {self.why_unfit}; calibrate anew"
        return f"calibration {self.calibration}{self._stale}{'; calibrate anew' if self.why_stale else ''}"
