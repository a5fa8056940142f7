"""Reads the router after each bad trial, and opens the ledger of what was sent since the reading before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..counts.duplicates import FEW, TOLERANCE
from ..counts.ledger import Ledger, account, without_router
from ..counts.telemetry import Telemetry
from ..counts.trial import Load, Measure, Outcome, Trial
from ..methods.trials import BREAKDOWNS
from ..sla.verdict import Tally

MOST = 8
"""Ledgers of one sentence: each costs a reading, and what the ninth would say is known by then."""


@dataclass
class Bookkeeper:
    """The ledgers of one sentence. *read* the router; *last*: its reading before the trials.

    *interfaces*: the router's, by generator port. *settle*: wait until counters that lag behind are up to date; None on
    a testbed where none do. ``tell`` sees each reading with its name. A reading that fails is nobody's concern but the
    ledger's, which says then why it has nothing of the router; no more are tried.
    """

    read: Callable[[], Telemetry]
    last: Telemetry
    interfaces: Mapping[int, str]
    settle: Callable[[], None] | None = None
    tell: Callable[[str, Telemetry], None] = lambda name, telemetry: None
    ledgers: list[Ledger] = field(default_factory=list)
    _open: list[Trial] = field(default_factory=list)
    _tally: Tally = field(default_factory=lambda: Tally(0.0, 0.0, 0))
    _due: bool = False
    _failed: str = ""

    def saw(self, trial: Trial, so_far: Tally) -> None:
        """A trial is over; *so_far* is what it and those before it prove."""
        self._open.append(trial)
        bad = so_far.bad > self._tally.bad
        self._tally = so_far
        self._due = bad and trial.lost > 0 and len(self.ledgers) < MOST

    def measuring(self, measure: Measure) -> Measure:
        """*measure*, before which the router is read if the trial before was bad."""

        def measured(load: Load, duration: float) -> Outcome:
            self._close(self._read)
            return measure(load, duration)

        return measured

    def close(self, after: Telemetry) -> None:
        """The reading *after* the last trial is there."""
        self._close(lambda: after)

    def give_up(self, why: str) -> None:
        """There is no reading after the last trial."""
        self._failed = self._failed or why
        self._close(self._read)

    def _read(self) -> Telemetry:
        now = self.read()
        self.tell(f"trial {self._open[-1].number}", now)
        return now

    def _close(self, read: Callable[[], Telemetry]) -> None:
        if not self._due:
            return
        self._due, last = False, self._open[-1:]
        if not self._failed:
            try:
                now, found = self._account(read)
            except BREAKDOWNS as error:
                self._failed = f"the router could not be read after trial {last[0].number}: {error}"
            else:
                self.ledgers.append(found)
                self.last, self._open = now, []
                return
        self.ledgers.append(without_router(last, self.interfaces, self._failed))

    def _account(self, read: Callable[[], Telemetry]) -> tuple[Telemetry, Ledger]:
        now = read()
        found = account(self._open, self.last, now, self.interfaces)
        offered = sum(direction.offered for direction in found.directions)
        if self.settle and abs(found.unexplained) > FEW + TOLERANCE * offered:
            self.settle()
            now = self._read()
            found = account(self._open, self.last, now, self.interfaces)
        return now, found
