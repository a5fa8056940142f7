"""A router that is not logged in to: it is judged from outside, by the generator's counts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds, NotForwarded
from ..core.under_load import RouterLoad, SampledStacks
from ..errors import TestbedError
from ..platforms import CommandPair, Tuning
from .base import Result, Side
from .change_journal import ChangeJournal
from .changes import Change

WHY_UNREAD = "the router is a black box (shell: none), whose own counts are not read"


class BlackBox:
    """A :class:`~lineproof.routers.base.Router` of which nothing is known but what comes back from it."""

    notes: tuple[str, ...] = ()

    @property
    def not_forwarded(self) -> NotForwarded:
        """Nothing is known: frames of each new kind are sent slowly first, as to any router."""
        return {}

    def identify(self) -> Mapping[str, str]:
        """Return that it was not asked."""
        return {"software": "not asked: a black box (shell: none)"}

    def facts(self) -> RouterFacts:
        """Nothing."""
        return RouterFacts()

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Refused: raises TestbedError."""
        raise TestbedError(
            "a black box (shell: none) is not configured; expected 'prepare: none' in its testbed's file"
        )

    def tune(self, tuning: Tuning) -> None:
        """Before :meth:`configure`: set what the platform's file has under ``tuning``. :meth:`restore` undoes it."""

    def apply(self, pairs: Sequence[CommandPair]) -> None:
        """Refused, as :meth:`configure`."""
        raise TestbedError("a black box (shell: none) runs no commands; expected a study's variant without any")

    def withdraw(self) -> str:
        """Nothing was changed."""
        return ""

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Refused, as :meth:`configure`."""
        self.configure(sides)

    def boot_id(self) -> str:
        """Unknown."""
        return ""

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Nothing is ever changed."""

    def rehearsal(self) -> AbstractContextManager[list[Change]]:
        """Nothing is ever changed."""
        return nullcontext([])

    @property
    def changes(self) -> tuple[Change, ...]:
        """None."""
        return ()

    def restore(self) -> str:
        """Nothing was changed."""
        return ""

    def forget_changes(self) -> None:
        """Nothing was changed."""

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """None is read."""
        return ()

    def clear(self) -> None:
        """It has no counters."""

    def read(self) -> Telemetry:
        """A reading without anything."""
        return Telemetry(None, {})

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        """Nothing is read."""
        wait()
        return RouterLoad()

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """Nothing is read."""
        return SampledStacks(seconds, why=WHY_UNREAD)


def no_shell(command: str, limit: float) -> Result:
    """In place of its shell. Raises TestbedError."""
    raise TestbedError(
        f"'{command[:80]}' cannot be run: {WHY_UNREAD}; expected a platform whose software has a 'shell'"
    )
