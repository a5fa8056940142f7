"""Makes changes of a router, each in its journal first, and undoes them."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from ..command_values import compiled
from ..errors import TestbedError
from ..system.command_line import CommandRefused, ShellCommands
from ..system.ssh_shell import RouterUnreachable
from ..visible import shortened
from .journal import NONE, NOTHING, Change, Look, MadeChanges

log = logging.getLogger("lineproof.router")

RESTORE_LIMIT = 30.0
"""Seconds in all that undoing every change on a router may take, logins included."""

_ALREADY_GONE = re.compile(
    # not that the program itself, the command or its device is missing
    r"status (?!12[67]\b)(?!.*(?:sudo:|/dev/|command not found)).*?"
    r"(not (been )?found|no such (process|file or directory|device|route|item)|cannot find device"
    r"|can(not|'t) assign requested address|not in table|pf already enabled|no entry|cannot locate"
    r"|does(n't| not) exist|invalid fib|unknown interface)",
    re.IGNORECASE,
)


def already_gone(why: str) -> bool:
    """Return whether an undo was refused because its change is gone already, or was never made.

    *why*: ``status 2: RTNETLINK answers: No such process``.
    """
    return _ALREADY_GONE.match(why) is not None


_REMOVES = re.compile(
    r"(?<![\w-])(no|undo|delete|del|remove|unset|clear|flush|purge|erase|rollback)(?![\w-])", re.IGNORECASE
)
"""The words of a line that takes something away, of any maker."""


class Changes:
    """Makes and undoes changes of the router behind *commands*. *rehearsing*: they are only noted."""

    def __init__(self, commands: ShellCommands, rehearsing: bool = False) -> None:
        self._commands, self.rehearsing = commands, rehearsing
        self.made = MadeChanges()
        """Changes that are not undone yet, which :meth:`restore` undoes; a journal has each before it is made."""
        self._others: list[str] = []

    def make(self, change: Change, advice: str = "") -> None:
        """Make *change*, which :meth:`restore` will undo, and note what the router shows. Raises TestbedError.

        One of which a later line is refused is undone too. Where the router shows another value than it was given, that
        is a warning, or with *advice* an error: a card may take the next one that it can have.
        """
        # noted first: it may run although the link fails or a user interrupts
        self.made.add(change)
        if self.rehearsing:
            return
        with self._in_one_login(change.do):
            for at, line in enumerate(change.do):
                try:
                    self._commands.change(line, stdin=change.stdin)
                except CommandRefused:
                    if at == 0:
                        self.made.drop(change)
                    raise
        if (look := change.look) is None:
            return
        if look.is_ours(now := self._now(look)):
            self.made.add(replace(change, look=replace(look, made=tuple(now.values()))))
            return
        if not advice:
            log.warning("the router took '%s', and does not show just that (now: %s)", change.do_text, _in_words(now))
            return
        # restoring would take the other value for somebody else's; what is not there at all it may try to undo
        with contextlib.suppress(CommandRefused):
            for line in change.undo:
                self._commands.change(line)
            self.made.drop(change)
        raise TestbedError(f"the router took '{change.do_text}' and does not show it; {advice}")

    def restore(self, keep: int = 0, over: bool = False) -> str:
        """Undo every change, last first, within RESTORE_LIMIT, even if some fail, but not if a login fails.

        *keep*: so many of the oldest are left. *over*: a configuration that was saved before the run may be loaded over
        what others have changed since.

        Returns a sentence about values that somebody has set since, which stay; "" if there are none. Raises
        TestbedError with the commands that undo what stays on the router: the next call tries them again.
        """
        failed: dict[str, list[str]] = {}
        until = time.monotonic() + RESTORE_LIMIT
        left = self.made.pending[keep:][::-1]
        for at, change in enumerate(left):
            try:
                self._undo_change(change, until, over)
                self.made.drop(change)
            except RouterUnreachable as error:
                failed.setdefault(str(error), []).extend(map(self._listed, left[at:]))
                break
            except TestbedError as error:
                why = error.why if isinstance(error, CommandRefused) else str(error)
                failed.setdefault(why, []).append(self._listed(change))
        others, self._others = self._others, []
        kept = f"not undone, because somebody has set something else since: {'; '.join(others)}" if others else ""
        if failed:
            listed = "; ".join(f"{', '.join(commands)} ({why})" for why, commands in failed.items())
            raise TestbedError(
                "the router's former configuration could not be restored in full; what is left there is undone by these"
                f" commands on the router, in this order: {listed}{f'; {kept}' if kept else ''}"
            )
        return kept

    def taken_back(self) -> dict[str, str]:
        """Return by its commands each change that the router shows no more, and the value now."""
        looks = [(change.do_text, look, self._now(look)) for change in self.made.pending if (look := change.look)]
        return {text: f"'{text}' (now: {_in_words(now)})" for text, look, now in looks if not look.is_ours(now)}

    def _now(self, look: Look, limit: float | None = None) -> Mapping[str, str]:
        """Return what *look* finds now, within *limit* s; of several values all in one. Raises TestbedError.

        What undoes ours may remove one that somebody has set beside it, too.
        """
        first, *others = looked_up(self._commands, look, functools.partial(self._commands.show, limit=limit))
        return {"value": "; ".join(groups["value"] for groups in (first, *others))} if others else first

    def _listed(self, change: Change) -> str:
        return f"'{' / '.join(self._commands.as_given(line, changes=True) for line in change.undo)}'"

    @contextmanager
    def _in_one_login(self, lines: Collection[str]) -> Iterator[None]:
        """Log out where *lines* end early or in another mode: what they opened ends with the login."""
        try:
            yield
        except BaseException:
            if len(lines) > 1:
                self._commands.reset()
            raise
        self._commands.leave_mode()

    def _undo_change(self, change: Change, until: float, over: bool) -> None:
        """Undo *change* before *until*, unless what it set is there no more; *over*: see :meth:`restore`.

        Raises TestbedError.
        """
        if not self._is_there(change, until, over):
            return
        removes = [bool(_REMOVES.search(line)) for line in change.undo]
        with self._in_one_login(change.undo):
            for at, line in enumerate(change.undo):
                try:
                    self._commands.change(line, self._limit(until))
                except CommandRefused as error:
                    if change.whole or not self._is_gone(error, removes[at], any(removes[at:])):
                        if len(change.undo) > 1:
                            error.why = f"'{line}': {error.why}"
                        raise

    def _limit(self, until: float) -> float:
        left = until - time.monotonic()
        if left <= 0:
            raise RouterUnreachable(f"not within the {RESTORE_LIMIT:g} s for all of them")
        return min(self._commands.limit, left)

    def _is_gone(self, refused: CommandRefused, removes: bool, removes_later: bool) -> bool:
        """Return whether a refused line of an undo has nothing to undo, so that the next one is run.

        Of a change that was refused half-way, or undone in part, the others are still needed. On a command line of its
        own a line that removes nothing may enter what the next ones are meant for: it is passed over after the last of
        those only, with words of the file (a commit that finds nothing to commit).
        """
        says_gone = any(compiled(text).search(refused.output) for text in self._commands.line.gone)
        if self._commands.line.is_posix or removes:
            return says_gone or already_gone(refused.why)
        return not removes_later and says_gone

    def _is_there(self, change: Change, until: float, over: bool) -> bool:
        """Return whether the router still has what *change* has set. Another value stays, and is noted.

        Raises TestbedError where only all or nothing can be undone, unless it may go *over* what others have set.
        """
        look, limit = change.look, self._limit(until)
        if look is None or (change.whole and over):
            return True
        now = self._now(look, limit)
        if look.is_ours(now):
            return True
        if now["value"] == look.former == NONE:
            return False
        if change.whole:
            raise TestbedError(
                f"it would go over what somebody else has configured since: {_in_words(now)}; look at it, then"
                " 'lineproof restore' runs these commands in any case, or undo the run's changes by hand"
            )
        if now["value"] != look.former:
            former = f"; before the run: {shortened(look.former)}" if look.former != NONE else ""
            self._others.append(f"'{change.do_text}' (now: {_in_words(now)}{former})")
        return False


def _in_words(groups: Mapping[str, str]) -> str:
    """Return the value among *groups*, and what else belongs to it."""
    others = ", ".join(f"{name} {text}" for name, text in groups.items() if text and name != "value")
    return shortened(groups["value"] + (f" ({others})" if others else ""))


def looked_up(commands: ShellCommands, look: Look, show: Callable[[str], str]) -> tuple[Mapping[str, str], ...]:
    """Return the values that *look* finds by *show*; a refusal may say that there are none."""
    try:
        output = show(look.command)
    except CommandRefused as error:
        if not look.shows_none(error.output) and not (commands.line.is_posix and already_gone(error.why)):
            raise
        return NOTHING
    return look.values(output)
