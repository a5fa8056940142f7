"""Reads the router after each bad trial, and opens the ledger of what was sent since the reading before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..core.deciding import KEEPS, Standing
from ..core.duplicates import SLACK_FRAMES, SLACK_RATIO
from ..core.ledger import Ledger, ledger_without_router, make_ledger
from ..core.telemetry import Telemetry
from ..core.trial import Load, Measure, Outcome, Trial
from ..errors import BREAKDOWN_ERRORS, in_words

MAX_LEDGERS = 8
"""Ledgers of one sentence: each costs a reading, and more of them show nothing new."""


@dataclass
class Bookkeeper:
    """The ledgers of one sentence. *read* the router; *last_reading*: the one before the trials.

    *interfaces*: the router's, by generator port. *settle*: wait until counters that lag are up to date; None if none
    do. ``on_telemetry`` gets each reading with its name. If a reading fails, ledgers say why they lack the router's
    counts (*unread*), and no more readings are tried; so from the beginning if *unread* is given.
    """

    read: Callable[[], Telemetry]
    last_reading: Telemetry
    interfaces: Mapping[int, str]
    settle: Callable[[], None] | None = None
    on_telemetry: Callable[[str, Telemetry], None] = lambda name, telemetry: None
    unread: str = ""
    ledgers: list[Ledger] = field(default_factory=list)
    _trials: list[Trial] = field(default_factory=list)
    _due: bool = False

    def add_trial(self, trial: Trial, standing: Standing) -> None:
        """Note that a trial is over, and how all stand. One that may miss the limit is accounted for."""
        self._trials.append(trial)
        self._due = standing.last != KEEPS and trial.lost > 0 and len(self.ledgers) < MAX_LEDGERS

    def reading_after_bad_trials(self, measure: Measure) -> Measure:
        """*measure*, before which the router is read if the trial before was bad."""

        def measured(load: Load, duration: float) -> Outcome:
            self._close(self._read)
            return measure(load, duration)

        return measured

    def close(self, after: Telemetry) -> None:
        """Add the ledger of the last bad trial, with the reading *after* it."""
        self._close(lambda: after)

    def close_without_reading(self, why: str) -> None:
        """Add the ledger of the last bad trial without a reading after it, because of *why*."""
        self.unread = self.unread or why
        self._close(self._read)

    def _read(self) -> Telemetry:
        now = self.read()
        self.on_telemetry(f"trial {self._trials[-1].number}", now)
        return now

    def _close(self, read: Callable[[], Telemetry]) -> None:
        if not self._due:
            return
        self._due, last = False, self._trials[-1:]
        if not self.unread:
            try:
                now, found = self._account(read)
            except BREAKDOWN_ERRORS as error:
                self.unread = f"the router could not be read after trial {last[0].number}: {in_words(error)}"
            else:
                self.ledgers.append(found)
                self.last_reading, self._trials = now, []
                return
        self.ledgers.append(ledger_without_router(last, self.interfaces, self.unread))

    def _account(self, read: Callable[[], Telemetry]) -> tuple[Telemetry, Ledger]:
        now = read()
        found = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        offered = sum(direction.offered for direction in found.directions)
        if self.settle and abs(found.unexplained) > SLACK_FRAMES + SLACK_RATIO * offered:
            self.settle()
            now = self._read()
            found = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        return now, found
