"""The interface of a router, and of the shell through which it is reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds, NotForwarded
from ..core.under_load import RouterLoad, SampledStacks
from ..errors import TestbedError
from ..platforms import CommandPair, Tuning
from .change_journal import ChangeJournal
from .changes import Change


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a shell command. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


CARD_QUEUE_FULL = "its card's receive queue was full"

RESTORE_LIMIT = 30.0
"""Seconds in all that undoing every change on a router may take, logins included."""


class RouterUnreachable(TestbedError):
    """No login to the router succeeds: the next command would not get there either."""


Shell = Callable[[str, float], Result]
"""``shell(command, limit in s) -> Result``. Raises TestbedError when the link drops or the limit passes; of these
RouterUnreachable when it drops and a new login fails."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the router: the interface cabled to a generator port, and what is reached through it.

    ``address`` as ``100.65.1.1/24``; ``peer`` is the generator port's address, ``peer_mac`` its MAC;
    ``network`` the prefix routed towards it, as ``16.0.0.0/8``.
    """

    interface: str
    address: str
    peer: str
    peer_mac: str
    network: str


class Router(Protocol):
    """A router behind a shell. Every method raises TestbedError when it does not understand the shell's output."""

    def identify(self) -> Mapping[str, str]:
        """Operating system, kernel and software version, as evidence."""
        ...

    def facts(self) -> RouterFacts:
        """Return what machine, system and cards it is. Reads only; what fails is not read, so that it never raises."""
        ...

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Set addresses, static neighbours and routes of the sides. :meth:`restore` undoes it."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Other changes of :meth:`configure` than addresses, neighbours and routes, in words: evidence."""
        ...

    def tune(self, tuning: Tuning) -> None:
        """Before :meth:`configure`: set what the platform's file has under ``tuning``. :meth:`restore` undoes it."""
        ...

    def apply(self, pairs: Sequence[CommandPair]) -> None:
        """Run the commands of a study. :meth:`withdraw` or :meth:`restore` runs their opposites."""
        ...

    def withdraw(self) -> str:
        """Undo what :meth:`apply` did. Returns and raises as :meth:`restore`."""
        ...

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """After :meth:`configure`: let the router forward *frames* as well. :meth:`restore` undoes it."""
        ...

    @property
    def not_forwarded(self) -> NotForwarded:
        """Frames of :meth:`configure_frames` that the router cannot forward, and why."""
        ...

    def boot_id(self) -> str:
        """What its kernel calls the time since it started, another one after each start; "" if it has no name."""
        ...

    def keep_journal(self, journal: ChangeJournal) -> None:
        """From now on have each change in *journal* before it is made."""
        ...

    def rehearsal(self) -> AbstractContextManager[list[Change]]:
        """Meanwhile each change is only put on the list, and not made."""
        ...

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return what :meth:`restore` would undo, oldest first."""
        ...

    def restore(self) -> str:
        """Undo all changes, last first, within RESTORE_LIMIT. May be repeated, also after an interrupt.

        A value that somebody has changed since is not ours any more, and stays: a sentence about that, "" if none.
        """
        ...

    def forget_changes(self) -> None:
        """The router has restarted and lost its changes: :meth:`restore` has nothing to undo."""
        ...

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """Return its entry of each side's peer; none where that is not known. A ``peer_mac`` of "" is any."""
        ...

    def clear(self) -> None:
        """Before a trial: reset the counters that can be reset (VPP ``clear runtime``)."""
        ...

    def read(self) -> Telemetry:
        """Read counters and runtime now."""
        ...

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        """How busy workers, queues and processors are meanwhile: two readings around *wait*.

        What fails is not read, so that it raises only what *wait* raises. VPP: clears the runtime counters.
        """
        ...

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """The stacks of its processors in the next *seconds* of real time. Never raises; costs the router time."""
        ...
