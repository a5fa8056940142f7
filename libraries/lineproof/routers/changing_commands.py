"""Commands that change a router: each is noted before it is made, and undone in reverse order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..errors import TestbedError
from ..visible import shortened
from .base import RESTORE_LIMIT, RouterUnreachable, Shell
from .change_journal import ChangeJournal
from .changes import NONE, Change, Look, Setting
from .command_line_shell import CommandLineShell
from .shell_commands import EXCHANGE_LIMIT, CommandRefused, ShellCommands, accepted, in_one_line, whole
from .shell_output import already_gone, first_line


class ChangingCommands(ShellCommands):
    """:class:`.ShellCommands` that may also change the router, and undo it."""

    def __init__(self, shell: Shell, limit: float = EXCHANGE_LIMIT, sudo: bool = False) -> None:
        super().__init__(shell, limit, sudo)
        self._undo: list[Change] = []
        self._journal: ChangeJournal | None = None
        self._rehearsed: list[Change] | None = None
        self._others: list[str] = []

    @contextmanager
    def rehearsal(self) -> Iterator[list[Change]]:
        """Meanwhile each change is only put on the list, and not made."""
        self._rehearsed = []
        try:
            yield self._rehearsed
        finally:
            self._rehearsed = None

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made. What it has pending is undone by :meth:`restore`, too."""
        self._journal = journal
        self._undo = [*journal.pending, *self._undo]

    @property
    def rehearsing(self) -> bool:
        """Return whether nothing may be changed now."""
        return self._rehearsed is not None

    def change(self, argv: tuple[str, ...], undo: tuple[str, ...], silent: bool = False) -> None:
        """Run *argv*; :meth:`restore` will run *undo*. *silent*: any output means that the command failed."""
        self.make(Change(argv, undo, silent))

    def put(
        self,
        setting: Setting,
        wanted: str,
        shown: str | None = None,
        *,
        undo: tuple[str, ...] = (),
        silent: bool = False,
    ) -> str:
        """Set *wanted* unless it is there; :meth:`restore` sets what was. Returns that, "" if nothing was changed.

        *shown*: what the router shows of it, if that was read; *undo*: the command that undoes it, if it is another
        than to set what was. Raises TestbedError where nothing is shown of a value that is *always* there.
        """
        text = self.run(*setting.show) if shown is None else shown
        look = Look(setting.show, setting.pattern, wanted)
        if look.is_ours(now := look.read(text)):
            return ""
        if setting.always and now == NONE:
            said = first_line(text) or "no output"
            raise TestbedError(f"'{' '.join(setting.show)}' does not show what is to be set: '{said}'")
        undo = undo or setting.command(now, wanted)
        self.make(Change(setting.command(wanted, now), undo, silent, look=replace(look, former=now)))
        return now

    def put_and_check(self, setting: Setting, wanted: str, shown: str | None = None, undo: tuple[str, ...] = ()) -> str:
        """Set *wanted* as :meth:`put` does, and read it back: a card may take the next value that it can have."""
        before = self.put(setting, wanted, shown, undo=undo)
        look = Look(setting.show, setting.pattern, wanted)
        if before and not self.rehearsing and not look.is_ours(look.read(self.run(*setting.show))):
            step = self._undo[-1]
            # restoring would take the other value for somebody else's
            self._running(step)(self._text(step, step.undo), self._limit)
            self._undone(step)
            raise TestbedError(
                f"the router took '{step.do_text}' and does not show it; look at what its card supports, and fix or"
                " remove it in the platform's 'tuning'"
            )
        return before

    def make(self, step: Change) -> None:
        """Make the change *step*; :meth:`restore` will undo it.

        Of a refused one of several lines the first ones may have run, so that it is undone too.
        """
        if self._rehearsed is not None:
            self._rehearsed.append(step)
            return
        if self._journal:
            self._journal.add(step)
        # noted first: it may run although the link fails or a user interrupts; repeated after a link was down: once
        self._undo = [*(other for other in self._undo if other.undo != step.undo), step]
        try:
            self._running(step)(self._text(step, step.do))
        except CommandRefused:
            if not step.lines or len(step.do) == 1:
                self._undone(step)
            raise

    def _text(self, step: Change, words: tuple[str, ...]) -> str:
        """Return what the router is given to make or undo *step*."""
        return "\n".join(words) if step.lines else self.quoted(words, changes=True)

    def _running(self, step: Change) -> Callable[..., str]:
        return self.run_silent if step.silent else self.run_quoted

    def _undone(self, step: Change) -> None:
        self._undo.remove(step)
        if self._journal:
            self._journal.drop(step)

    def _undo_lines(self, command: str, left: float) -> None:
        """Undo what may be there in part, in *left* s: lines of *command* that have nothing to undo are no failure."""
        if not isinstance(self._shell, CommandLineShell):
            raise TypeError(f"'{in_one_line(command)}' is for a command line that a file describes")
        whole(in_one_line(command), accepted(command, self._shell.undo(command, self._limit, left)))

    def _undo_step(self, step: Change, left: float, over: bool) -> None:
        """Undo *step* in *left* s, unless what it set is there no more; *over*: see :meth:`restore`.

        Raises TestbedError.
        """
        until = time.monotonic() + left
        if left <= 0:
            raise RouterUnreachable(f"not within the {RESTORE_LIMIT:g} s for all of them")
        if not self._is_there(step, min(self._limit, left), over):
            return
        command, left = self._text(step, step.undo), until - time.monotonic()
        if step.lines and not step.whole:
            self._undo_lines(command, left)
        else:
            self._running(step)(command, max(0.0, min(self._limit, left)))

    def _is_there(self, step: Change, limit: float, over: bool) -> bool:
        """Return whether the router still has what *step* has set. Another value stays, and is noted.

        Raises TestbedError where only all or nothing can be undone, unless it may go *over* what others have set.
        """
        look = step.look
        if look is None or (step.whole and over):
            return True
        command = "\n".join(look.argv) if step.lines else self.quoted(look.argv)
        if look.is_ours(now := look.read(self.run_quoted(command, limit))):
            return True
        if step.whole:
            raise TestbedError(
                f"it would go over what somebody else has configured since: {shortened(now)}; look at it, then"
                " 'lineproof restore' runs these commands in any case, or undo the run's changes by hand"
            )
        if now != look.former:
            former = f"; before the run: {shortened(look.former)}" if look.former != NONE else ""
            self._others.append(f"'{step.do_text}' (now: {shortened(now)}{former})")
        return False

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return what is not undone yet, oldest first."""
        return tuple(self._undo)

    def restore(self, keep: int = 0, over: bool = False) -> str:
        """Undo every change, last first, even if some fail, within RESTORE_LIMIT; no further one if a login fails.

        *keep*: so many of the oldest are left. *over*: a configuration that was saved before the run may be loaded over
        what others have changed since.

        Returns a sentence about values that somebody has set since, which stay; "" if there are none. Raises
        TestbedError with the commands that undo what stays on the router. An interrupt keeps what is not undone for
        the next call.
        """
        failed: dict[str, list[str]] = {}
        until = time.monotonic() + RESTORE_LIMIT
        while len(self._undo) > keep:
            step = self._undo[-1]
            try:
                self._undo_step(step, until - time.monotonic(), over)
            except RouterUnreachable as error:
                failed.setdefault(str(error), []).extend(
                    f"'{in_one_line(self._text(other, other.undo))}'" for other in reversed(self._undo)
                )
                self._undo.clear()
                break
            except TestbedError as error:
                why = error.why if isinstance(error, CommandRefused) else str(error)
                if step.lines or not already_gone(why):
                    failed.setdefault(why, []).append(f"'{in_one_line(self._text(step, step.undo))}'")
                    self._undo.pop()  # it stays in the journal, for the next run
                    continue
            self._undone(step)
        others, self._others = self._others, []
        kept = f"not undone, because somebody has set something else since: {'; '.join(others)}" if others else ""
        if failed:
            listed = "; ".join(f"{', '.join(commands)} ({why})" for why, commands in failed.items())
            raise TestbedError(
                "the router's former configuration could not be restored in full; what is left there is undone by these"
                f" commands on the router, in this order: {listed}{f'; {kept}' if kept else ''}"
            )
        return kept

    def forget_changes(self) -> None:
        """Drop the list of changes: there is nothing to undo."""
        self._undo.clear()
        if self._journal:
            self._journal.forget()
