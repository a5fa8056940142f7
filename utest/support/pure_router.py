"""A router that is a function: a capacity, a buffer, and problems of the testbed."""

from dataclasses import dataclass, field

from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem
from lineproof.errors import TestbedError

LINE = 14_880_952.0


@dataclass
class PureRouter:
    """``capacity``: frames/s of each direction; ``buffer``: frames that wait and come in the end; ``counts_held``:
    whether they are known to have waited: so short trials of a router with a deep queue lose nothing.

    ``ceiling``: the most the generator sends; ``spoils``: numbers of the trials (from 0) that the testbed spoils;
    ``breaks``: the number of the trial at which it breaks down; ``burst``: trials that lose a frame at any load.
    """

    capacity: float = 5e6
    buffer: int = 0
    ceiling: float = LINE
    directions: int = 1
    weaker: float = 1.0
    spoils: frozenset[int] = frozenset()
    breaks: int | None = None
    burst: frozenset[int] = frozenset()
    counts_held: bool = False
    asked: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, load: Load, duration: float) -> Outcome:
        number = len(self.asked)
        self.asked.append((load.pps, duration))
        if number == self.breaks:
            raise TestbedError("the generator went away")
        counts = []
        for direction in range(self.directions):
            capacity = self.capacity * (self.weaker if direction else 1.0)
            intended = int(load.pps * duration)
            offered = int(min(load.pps, self.ceiling) * duration)
            at_once = min(offered, int(capacity * duration))
            held = min(offered - at_once, self.buffer)
            ends = (direction, 1 - direction, intended, offered, at_once + held - (number in self.burst))
            counts.append(DirectionCount(*ends, backlog=held if self.counts_held else None))
        problems = (Problem(Fault.LINK_DOWN, "port 0"),) if number in self.spoils else ()
        return Outcome(load, duration, duration, 1_795_000_000.0 + number, tuple(counts), problems)

    def send_burst(self, frames: int) -> Outcome:
        """*frames* at line rate: what the router forwards meanwhile and what it buffers comes back."""
        seconds = frames / LINE
        self.asked.append((LINE, seconds))
        carried = min(frames, int(self.buffer / (1 - self.capacity / LINE))) if self.capacity < LINE else frames
        count = DirectionCount(0, 1, frames, frames, carried - (len(self.asked) - 1 in self.burst))
        return Outcome(Load(LINE), seconds, seconds, 1_795_000_000.0, (count,))


EVERY_TRIAL = frozenset(range(10_000))
