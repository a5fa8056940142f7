"""Why a router lost frames, by its own counters: at which stage, and which counts may be added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .json_types import NamedEnum


class Stage(NamedEnum):
    """Where in the router the frames were lost."""

    ARRIVING = "on arrival"
    """Before the interface counted them as received."""
    PASSING = "in passing"
    """Counted as received, not handed to the sending interface."""
    LEAVING = "on leaving"
    """Handed to the sending interface, not counted as sent."""


class Role(NamedEnum):
    """How a count relates to others of the same stage; several counters may count the same frame."""

    LOSS = "frames that no other LOSS counts"
    OVERLAPPING = "frames that the LOSS of this stage may count too: only the excess is added"
    REASON = "repeats or explains other counts, or counts events, not frames: never added"


@dataclass(frozen=True, slots=True)
class Cause:
    """A counter of lost frames since the router started. ``interface``: "" for the router as a whole.

    ``name``: the router's own word for it. ``meaning``: a phrase that explains it.
    """

    stage: Stage
    name: str
    interface: str
    count: int
    role: Role = Role.LOSS
    meaning: str = ""

    @property
    def label(self) -> str:
        """``rx-miss at TenGigabitEthernet3/0/0``."""
        return f"{self.name} at {self.interface}" if self.interface else self.name


def risen(before: int, after: int, most: int) -> int | None:
    """Return by how much a counter rose between two readings; None: it began anew, so that nobody knows.

    One of 32 bits goes on at 0 after 2^32 - 1 (``Counter32`` of SNMP, systems of 32 bits): that is taken for the reason
    where it is no more than *most*, which may have been counted.
    """
    rise = after - before
    return rise if rise >= 0 else rise + 2**32 if before < 2**32 and rise + 2**32 <= most else None


def unsent_by_interface(causes: Iterable[Cause], interface: str) -> int:
    """Frames handed to *interface* and not sent: its LOSS on leaving, or the OVERLAPPING count where that is more."""
    leaving = [cause for cause in causes if cause.stage is Stage.LEAVING and cause.interface == interface]
    sums = (sum(cause.count for cause in leaving if cause.role is role) for role in (Role.LOSS, Role.OVERLAPPING))
    return max(sums)
