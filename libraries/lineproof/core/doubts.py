"""Doubts: what the testbed may have done to a trial, one small function for each. The rule weighs them, nothing here.

Each yields problems with the most frames of each direction that the testbed may have cost (they move the better end of
a figure) or hidden (they move the worse end). Those that are known only after the trials weigh the same trials again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from .bounds import highest_share
from .json_types import OpenEnd
from .latency import LOST, LatencySpread, Statistic
from .trial import UNDER_WAY, DirectionCount, Fault, Problem, Tolerance, Trial

GENTLE = 0.02
"""Up to that share of the load not offered, at most all of these frames would be lost. Beyond it, anything may."""

RARE = 1e-3
"""The most frames that a generator that was not watched may lose unseen, as a share of those that come back."""

SELDOM = 1e-4
"""How often, at most, a trial's probe frames are said to be lost more often than its frames, and are not."""

SPARED = 2.0
"""Frames under way may take at most so many times as long as the probe frames, on average."""

READING_SECONDS = 1e-3
"""Seconds that two counters may be read apart."""

FEW_FOREIGN = 12.0
"""Foreign frames a second that are no doubt where the goal leaves any unseen: ARP and LLDP of a quiet link.

At small loads fewer: with what a queue hides and what was not offered they stay within the share to which the load is
known, and within a tenth of a promised loss ratio.
"""

USABLE_SHARE = 0.98
"""A load above this share of the generator's ceiling is too near to it: the ceiling is known only to about 1 %."""


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The generator's own loss and delay, as a calibration with the router bypassed saw it.

    ``lossy`` of ``trials`` of the goal's length lost frames, ``most_lost`` in the worst. ``delay``: µs of its slowest
    frames. ``lossless_pps``: frames/s into each port that it carries; ``received_pps``: that it receives while line
    rate is asked for. ``words``: for a message, what that ceiling is, and what to do.
    """

    trials: OpenEnd = 0.0
    lossy: int = 0
    most_lost: int = 0
    delay: float = 0.0
    lossless_pps: OpenEnd = math.inf
    received_pps: OpenEnd = math.inf
    words: str = ""

    @classmethod
    def of_ceiling(cls, line: float, lossless: float, received: float, words: str) -> OwnPart:
        """Return the part of a generator that carries *lossless* frames/s from each port; none at line rate."""
        if lossless >= line * (1 - Tolerance().under):
            return cls()
        return cls(lossless_pps=lossless, received_pps=received, words=words)

    def is_long(self, risk: float) -> bool:
        """Return whether what was never seen will come in the next trial with less than *risk* (Laplace's rule)."""
        return 1 / (self.trials + 2) <= risk

    def is_clean(self, risk: float) -> bool:
        """Return whether the generator is known not to lose frames of its own."""
        return self.lossy == 0 and self.is_long(risk)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The *load* of each port in frames/s, and a goal's figures (:class:`.goal.Goal`), that a trial is held against.

    ``seconds``: of a trial of the goal. ``own``: the generator's own part. ``unnoticed``: the share of the load that is
    small beside what is promised, where that is less than ``resolution``.
    """

    load_pps: float
    resolution: float
    unseen: float
    risk: float
    seconds: float = 1.0
    own: OwnPart = field(default_factory=OwnPart)
    unnoticed: float = math.inf

    @property
    def finest(self) -> float:
        """The share of the load below which queues and a few foreign frames may hide a shortage."""
        return min(self.resolution, self.unnoticed)


Doubt = Callable[[Trial, Conditions], Iterator[Problem]]


def sent_more(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that lost frames may be those sent beyond the load. The router lost what is missing besides."""
    for row in trial.outcome.directions:
        # one frame is rounding
        if (beyond := row.offered - 1 - conditions.load_pps * trial.seconds.low) > 0:
            detail = f"{name(row)}: up to {beyond:,.0f} of {row.offered:,} frames"
            yield Problem(Fault.OVER_OFFERED, detail, beyond, ports(row))


def sent_less(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that frames which may not have been offered could have been lost. Those offered and lost stay lost."""
    least, needed = (conditions.load_pps * time for time in (trial.seconds.low, trial.seconds.high))
    for row in trial.outcome.directions:
        short = needed - row.offered - 1
        if short > conditions.resolution * needed:
            is_slow = least - row.offered - 1 > conditions.resolution * least
            fault = Fault.UNDER_OFFERED if is_slow else Fault.UNTIMED
            detail = f"{name(row)}: {row.offered:,} frames in up to {trial.seconds.high:.3f} s, expected {needed:,.0f}"
            yield Problem(fault, detail, short if short <= GENTLE * needed else None, ports(row))


def foreign_frames(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that frames of other origin may have come in the place of lost ones, more than the goal leaves unseen."""
    for row in trial.outcome.directions:
        # where more came than were sent, the surplus stands for no lost frame
        foreign = row.foreign - max(0, row.forwarded - row.offered)
        short = max(0.0, conditions.load_pps * trial.seconds.high - row.offered) + (row.backlog or 0)
        room = min(conditions.resolution * row.offered - short, conditions.unnoticed * row.offered)
        few = min(FEW_FOREIGN * trial.seconds.high, room) if conditions.unseen else 0.0
        if foreign > max(few, conditions.unseen * row.offered):
            yield Problem(
                Fault.FOREIGN, f"{name(row)}: up to {foreign:,} of {row.forwarded:,} frames", foreign, ports(row)
            )
        if row.surplus:
            detail = f"{name(row)}: {row.forwarded:,} received, {row.offered:,} sent"
            yield Problem(Fault.SURPLUS, detail, row.surplus, ports(row))


def copies(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that copies may have come in the place of lost frames, as many as copied probe frames show."""
    for row in trial.outcome.directions:
        probes = trial.probes(row)
        if probes is not None and probes.copies > 0 and probes.sent > 0:
            share = highest_share(min(probes.copies, probes.sent), probes.sent)
            detail = f"{name(row)}: {probes.copies:,} of {probes.sent:,} probe frames"
            yield Problem(Fault.COPIES, detail, min(row.came_back, share * row.offered), ports(row))


def lost_probes(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that more probe frames are missing than frames in all: others came in the place of lost ones."""
    for row in trial.outcome.directions:
        probes = trial.probes(row)
        if probes is None or probes.sent <= 0:
            continue
        lost = min(probes.lost, probes.sent)
        # more of them than of all frames, beyond what a sample may show
        if probes.lost > row.lost or 1 - highest_share(probes.sent - lost, probes.sent, SELDOM) > row.loss_ratio:
            detail = f"{name(row)}: {probes.lost:,} of {probes.sent:,} probe frames, {row.lost:,} frames in all"
            # those that are missing anyway hide nothing
            hidden = max(0.0, highest_share(lost, probes.sent) * row.offered - row.lost)
            yield Problem(Fault.LOST_PROBES, detail, hidden, ports(row))


def spared_probes(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that probe frames were faster than the rest: by Little's law those under way are the rate x their mean."""
    for row in trial.outcome.directions:
        probes = trial.probes(row)
        spread = None if probes is None else probes.spread(trial.seconds.high, 0.0)
        came = {key: frames for key, frames in spread.worst.items() if key != LOST} if spread else {}
        probed, slowest = (LatencySpread(came, came).bounds(Statistic(word)).high for word in ("mean", "max"))
        always = trial.outcome.readings.get(f"{UNDER_WAY}{row.tx_port}", 0)
        # at the end alone a queue may be long, and only some probe frames as late as it makes them
        for held, most in ((always, SPARED * probed), (row.backlog or 0, slowest)):
            waited = 1e6 * (held / max(1, row.offered) * trial.seconds.low - READING_SECONDS)
            if math.isfinite(most) and waited > most:
                detail = f"{held:,.0f} under way, {waited:.4g} µs each on average; probe frames {probed:.4g} µs"
                yield Problem(Fault.SPARED_PROBES, f"{name(row)}: {detail}", directions=ports(row))
                break


def queues(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that frames by which queues grew may be lost in a longer trial."""
    for row in trial.outcome.directions:
        if (held := row.backlog or 0) > conditions.finest * row.offered:
            yield Problem(Fault.QUEUES, f"{name(row)}: {held:,} frames", held, ports(row))


def own_loss(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that the generator may have lost twice its worst calibrated trial, or a rare loss if it was not watched."""
    own = conditions.own
    if own.is_clean(conditions.risk):
        return
    is_long = own.is_long(conditions.risk)
    longer = max(1.0, trial.outcome.duration / conditions.seconds)
    for row in trial.outcome.directions:
        probes = trial.probes(row)
        # no generator changes frames; a probe frame may be missing where the others' count is full
        gone = max(row.lost - row.changed, probes.lost if probes else 0)
        if gone <= 0:
            continue
        # a share of what came: frames that the router lost, the generator cannot lose again
        rare = 0.0 if is_long else RARE * row.received
        frames = max(2.0 * own.most_lost * longer, rare)
        frames = min(frames, gone) if row.changed else frames
        if own.lossy:
            detail = f"{name(row)}: in {own.lossy} of {own.trials:g} trials without the router, up to {own.most_lost:,}"
            yield Problem(Fault.OWN_LOSS, detail, frames, ports(row))
        else:
            detail = f"{own.trials:g} trials of its calibration, expected at least {1 / conditions.risk - 2:.0f}"
            yield Problem(Fault.UNWATCHED, detail, frames, ports(row))


def own_ceiling(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that any loss near or beyond the generator's own ceiling may be its own."""
    own = conditions.own
    for row in trial.outcome.directions:
        rate = row.offered / trial.seconds.high
        if rate > USABLE_SHARE * own.lossless_pps:
            yield Problem(Fault.CEILING, f"{name(row)}: {own.words}", None, ports(row))


def own_delay(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that frames may be so much faster than they were measured as the generator alone delays them."""
    if conditions.own.delay:
        yield Problem(Fault.OWN_DELAY, f"by up to {conditions.own.delay:g} µs", delay=conditions.own.delay)


def overloaded(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
    """Yield that a load beyond the promised one may have delayed every frame: it fills queues that were empty."""
    for row in trial.outcome.directions:
        most = conditions.load_pps * trial.seconds.low * (1 + conditions.resolution) + 1
        if row.offered > most:
            detail = f"{name(row)}: {row.offered:,} frames, expected at most {most:,.0f}; any frame may be late by it"
            yield Problem(Fault.OVER_OFFERED, detail, None, ports(row))


OF_FRAMES: tuple[Doubt, ...] = (foreign_frames, copies, lost_probes, own_loss)
"""Doubts of every quantity in which lost or forwarded frames are counted."""

AT_THE_LOAD: tuple[Doubt, ...] = (sent_more, sent_less)
"""Doubts of every quantity that is promised at a load."""

AT_THE_EXACT_LOAD: tuple[Doubt, ...] = (*AT_THE_LOAD, overloaded)
"""Doubts of a quantity of which a little more load may change every frame's figure."""


def with_doubts(trial: Trial, conditions: Conditions, doubts: Sequence[Doubt]) -> Trial:
    """Return *trial* with the problems of every doubt added to its own. Of one that has not ended all is in doubt."""
    concerned = doubts if trial.has_ended else ()
    added = tuple(problem for doubt in concerned for problem in doubt(trial, conditions))
    return replace(trial, problems=trial.problems + added)


def ports(row: DirectionCount) -> tuple[tuple[int, int], ...]:
    """Return the ports of a direction, for a problem of it alone."""
    return ((row.tx_port, row.rx_port),)


def name(row: DirectionCount) -> str:
    """Return a direction in words."""
    return f"port {row.tx_port} to {row.rx_port}"
