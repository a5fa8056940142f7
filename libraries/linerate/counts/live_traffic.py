"""Traffic whose load changes, and whose counts are read, while it runs: between a generator and a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .trial import Load


@dataclass(frozen=True, slots=True)
class Sample:
    """Frames offered and forwarded since the start, both directions together, at ``time`` s of the testbed's clock.

    Both counts are to be of the same moment, as nearly as the testbed can: what one is read later, it shows as loss.
    """

    time: float
    offered: int
    forwarded: int

    def __post_init__(self) -> None:
        if self.offered < 0 or self.forwarded < 0:
            raise ValueError(f"counts of frames are not negative: {self.offered}, {self.forwarded}")


class LiveTraffic(Protocol):
    """Traffic under way. Each may raise a LinerateError; :meth:`stop` is then called all the same."""

    def start(self, load: Load) -> Sample:
        """Send without end at *load* into each port; the counts at the start."""
        ...

    def change(self, load: Load) -> Sample:
        """Go over to *load* without a pause; the counts at the moment of the change."""
        ...

    def sample(self) -> Sample:
        """The counts now."""
        ...

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass on the testbed's clock."""
        ...

    def stop(self) -> None:
        """Stop sending. Harmless when repeated."""
        ...
