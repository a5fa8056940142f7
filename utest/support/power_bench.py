"""A router that draws more power while frames flow, and meters of it, on a clock that only waiting moves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lineproof.core.trial import DURING_READING, DirectionCount, During, Load, Outcome
from lineproof.power import PowerSettings
from lineproof.session.power import PoweredTrials
from lineproof.system.ssh_shell import Result

SETTINGS: TypeAdapter[Any] = TypeAdapter(PowerSettings)
BEGAN = 1_800_000_000.0
"""Unix time in s at which it is switched on."""


@dataclass
class PowerBench:
    """``now``: Unix time in s. ``idle``: W without traffic; ``more``: W that traffic adds."""

    idle: float = 5.0
    more: float = 10.0
    now: float = BEGAN
    ahead: float = 0.0
    """Seconds by which the clock of a program that logs is ahead."""
    ticks: list[Callable[[float], None]] = field(default_factory=list)
    """Other work that goes on: each is called with the time after it has passed."""
    _changes: list[tuple[float, float]] = field(default_factory=list)
    """Each change of the power: when, and to how many W."""

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for tick in self.ticks:
            tick(self.now)

    def watts(self, when: float) -> float:
        return next((watts for since, watts in reversed(self._changes) if since <= when), self.idle)

    def joules(self, when: float) -> float:
        """Return the energy from the start until *when*."""
        changes = [(BEGAN, self.idle), *((since, watts) for since, watts in self._changes if since < when), (when, 0.0)]
        return math.fsum(watts * (after - since) for (since, watts), (after, _) in itertools.pairwise(changes))

    def mean(self, seconds: float, when: float) -> float:
        """Return the mean power of the *seconds* before *when*."""
        return (self.joules(when) - self.joules(when - seconds)) / seconds

    def shell(self, command: str, limit: float) -> Result:
        """Return the output of a command on the router: its power."""
        return Result(f"{self.watts(self.now):.6f}\n", "", 0, 0.0)

    def log(self, file: Path, interval: float, phase: float = 0.0, averaging: bool = False, late: float = 0.0) -> None:
        """Let another program add a line to *file* every *interval* s, *phase* s after now for the first time.

        *averaging*: of the mean power since the line before. *late*: s after which it is in the file.
        """
        due = self.now + phase

        def tick(now: float) -> None:
            nonlocal due
            while due + late <= now:
                watts = self.mean(interval, due) if averaging else self.watts(due)
                with file.open("a", encoding="ascii") as lines:
                    lines.write(f"{due + self.ahead:.3f},{watts:.6f}\n")
                due += interval

        self.ticks.append(tick)

    def measure(self, load: Load, duration: float, during: During) -> Outcome:
        """Return a trial that loses nothing."""
        began = self.now
        self._changes.append((began, self.idle + self.more))
        during(self.sleep)
        took = self.now - began
        self.sleep(max(0.0, duration - took))
        self._changes.append((began + duration, self.idle))
        frames = round(load.pps * duration)
        counts = (DirectionCount(0, 1, frames, frames, frames),)
        return Outcome(load, duration, duration, began, counts, (), {DURING_READING: took})

    def powered(self, **data: Any) -> PoweredTrials:
        """Return trials with the meter of these keys of a testbed's file; without ``kind`` a command on the router."""
        usual = {} if "kind" in data else {"kind": "command", "run": "show power", "runs_on": "router"}
        settings = SETTINGS.validate_python({"accuracy": 1, "resolution": 0, **usual, **data})
        return PoweredTrials(
            settings, None, self.measure, lambda: self.shell, False, sleep=self.sleep, now=lambda: self.now
        )
