"""When frames are due, and how many may be sent now: exact counts on a monotonic clock, with bounded bursts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .frames import RatioPhase, WireStream, phases
from .protocol import SenderLoad

BURST = 512
"""The most frames sent at once: below the kernel's usual receive backlog of 1000 (net.core.netdev_max_backlog)."""

CATCH_UP = 2.0
"""A late sender catches up at no more than this multiple of its rate."""


class SendSchedule:
    """How many frames are due after *t* s, over all phases: ``round(pps * duration)`` at the end, never more."""

    def __init__(self, plan: Sequence[RatioPhase], duration: float | None) -> None:
        self._plan = tuple(plan)
        self.duration = duration
        last = self._plan[-1] if self._plan else None
        endless = last is not None and last.length is None
        self.frames: int | None = None
        """Frames in all; None when neither a duration nor bursts end it."""
        if duration is not None:
            self.frames = self._due(duration, ending=True)
        elif last is None:
            self.frames = 0
        elif not endless:
            self.frames = last.first + int(last.length or 0)

    def rate(self, elapsed: float) -> float:
        """Frames/s at that moment."""
        rate = 0.0
        for phase in self._plan:
            if phase.begin <= elapsed:
                rate = phase.pps
        return rate

    def due(self, elapsed: float) -> int:
        """Frames that should have been sent *elapsed* s after the start."""
        if self.duration is not None and elapsed >= self.duration:
            return int(self.frames or 0)
        found = self._due(elapsed, ending=False)
        return found if self.frames is None else min(found, self.frames)

    def moment(self, frames: int) -> float:
        """Seconds from the start until so many frames are due, without regard to the duration; infinite: never."""
        for phase in self._plan:
            if phase.length is None or frames <= phase.first + phase.length:
                return phase.begin + max(0, frames - phase.first) / phase.pps
        return math.inf

    def _due(self, elapsed: float, ending: bool) -> int:
        found = 0
        for phase in self._plan:
            if phase.begin > elapsed:
                break
            exact = phase.pps * (elapsed - phase.begin)
            frames = round(exact) if ending else math.floor(exact)
            found = phase.first + (frames if phase.length is None else min(frames, phase.length))
        return found


class Pace:
    """One of *shares* senders of a schedule: says how many frames to send now.

    The sender *share* owns the frames *share*, *share* + *shares*, … Up to one burst that is late is sent at once, more
    at CATCH_UP times the rate; frames still due at the end of the duration, beyond one burst, stay unsent.
    """

    def __init__(self, schedule: SendSchedule, share: int = 0, shares: int = 1) -> None:
        self._schedule, self._share, self._shares = schedule, share, shares
        self._last = 0.0
        self._budget = 0.0
        self.sent = 0

    def _own(self, frames: int) -> int:
        return (frames + self._shares - 1 - self._share) // self._shares

    def allowance(self, elapsed: float) -> int:
        """Frames to send now, *elapsed* s after the start: 0 … :data:`BURST`."""
        behind = self._own(self._schedule.due(elapsed)) - self.sent
        if self._schedule.duration is not None and elapsed >= self._schedule.duration:
            return behind if behind <= BURST else 0
        rate = self._schedule.rate(elapsed) / self._shares
        self._budget = min(BURST, self._budget + 1 + CATCH_UP * rate * max(0.0, elapsed - self._last))
        self._last = elapsed
        return max(0, min(behind, int(self._budget)))

    def took(self, frames: int) -> None:
        """*frames* were really handed over."""
        self.sent += frames
        self._budget = max(0.0, self._budget - frames)

    def finished(self, elapsed: float) -> bool:
        """Return whether the duration is over and nothing may be sent; without a duration, whether all was sent."""
        schedule = self._schedule
        if schedule.duration is not None:
            return elapsed >= schedule.duration and self.allowance(elapsed) == 0
        return schedule.frames is not None and self.sent >= self._own(schedule.frames)

    def rest(self, elapsed: float, tick: float) -> float:
        """Seconds to sleep before the next batch: 0 if the frames of a *tick* are due, else a tick or more."""
        rate = self._schedule.rate(elapsed) / self._shares
        behind = self._own(self._schedule.due(elapsed)) - self.sent
        if rate <= 0:
            return tick
        if behind < rate * tick:
            return max(tick, 1 / rate if behind <= 0 else 0.0)
        # due, but perhaps sent at the highest catch-up rate already: wait until half a burst may go
        budget = self._budget + CATCH_UP * rate * (elapsed - self._last)
        missing = min(behind, BURST // 2) - budget
        return min(tick, max(0.0, missing / (CATCH_UP * rate)))


class PlannedFrames:
    """The frames of *load* that one of *shares* senders sends within *duration* s (None: until stopped)."""

    def __init__(self, load: SenderLoad, duration: float | None, share: int = 0, shares: int = 1) -> None:
        self._plan = phases(load.streams)
        self._streams = [WireStream(stream) for stream in load.streams]
        self._schedule = SendSchedule(self._plan, duration)
        self.pace = Pace(self._schedule, share, shares)
