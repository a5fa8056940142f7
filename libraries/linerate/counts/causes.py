"""Why a router lost frames, as its own counters tell it: where on their way, and whether a count adds to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """Where on their way the frames were lost."""

    ARRIVING = "on arrival"
    """Before they were in the interface's count of received frames."""
    PASSING = "in passing"
    """Counted as received, never handed to the interface that was to send them."""
    LEAVING = "on leaving"
    """Handed to the interface, but not in its count of sent frames."""


class Role(Enum):
    """What a count is beside the others of the same stage: many counters count the same frame."""

    LOSS = "frames that no other LOSS counts"
    BEYOND = "frames that the LOSS of this stage may count too: only what is beyond it adds to it"
    REASON = "names or repeats what others count, or counts events, not frames: never added"


@dataclass(frozen=True, slots=True)
class Cause:
    """A counter of lost frames since the router started. ``interface``: "" for one of the router as a whole.

    ``name``: the router's own word for it. ``meaning``: for a person, in a phrase.
    """

    stage: Stage
    name: str
    interface: str
    count: int
    role: Role = Role.LOSS
    meaning: str = ""

    @property
    def place(self) -> str:
        """``rx-miss at TenGigabitEthernet3/0/0``."""
        return f"{self.name} at {self.interface}" if self.interface else self.name


def failed_to_leave(causes: Iterable[Cause], interface: str) -> int:
    """Frames handed to *interface* and never sent: its LOSS on leaving, or the count BEYOND where that is more."""
    mine = [cause for cause in causes if cause.stage is Stage.LEAVING and cause.interface == interface]
    sums = (sum(cause.count for cause in mine if cause.role is role) for role in (Role.LOSS, Role.BEYOND))
    return max(sums)
