"""Traffic whose load changes, and whose counts are read, while it runs: what a generator offers a method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .trial import Load


@dataclass(frozen=True, slots=True)
class Sample:
    """Frames offered and forwarded since the start, both directions together, at ``time`` s of the testbed's clock.

    The testbed reads both counts as close together as it can: a gap between the two readings looks like loss.
    """

    time: float
    offered: int
    forwarded: int

    def __post_init__(self) -> None:
        if self.offered < 0 or self.forwarded < 0:
            raise ValueError(f"counts of frames are not negative: {self.offered}, {self.forwarded}")


class LiveTraffic(Protocol):
    """Running traffic. Each method may raise a LineproofError; :meth:`stop` is called even then."""

    def start(self, load: Load) -> Sample:
        """Send without end at *load* into each port; the counts at the start."""
        ...

    def change(self, load: Load) -> Sample:
        """Change to *load* without a pause; the counts at the change."""
        ...

    def sample(self) -> Sample:
        """The counts now."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait *seconds* of the testbed's clock."""
        ...

    def stop(self) -> None:
        """Stop sending. Harmless when repeated."""
        ...
