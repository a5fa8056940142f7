"""The part that all routers share that are reached through a shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ..core.traffic.frame_kinds import FrameKind, NotForwarded
from ..core.traffic.profiles import LABEL_STEP
from ..errors import TestbedError
from ..platforms import CommandPair, Tuning
from .base import Router, Shell, Side
from .change_journal import ChangeJournal
from .changes import Change, Setting, Words
from .changing_commands import ChangingCommands
from .shell_commands import EXCHANGE_LIMIT
from .shell_output import first_line


class ShellRouter(Router):
    """The common part of all routers. *interfaces*: those under test, which must exist; *limit*: s per exchange."""

    def __init__(
        self, shell: Shell, limit: float = EXCHANGE_LIMIT, interfaces: tuple[str, ...] = (), sudo: bool = False
    ) -> None:
        super().__init__(interfaces)
        self._commands = ChangingCommands(shell, limit, sudo)
        self._notes: list[str] = []
        self._not_forwarded: NotForwarded = {}
        self._before_applied: int | None = None

    def apply(self, pairs: Sequence[CommandPair]) -> None:
        """Run the commands of *pairs*, whose opposites :meth:`withdraw` runs, and :meth:`restore` if it was not called.

        Raises TestbedError.
        """
        if self._before_applied is None:
            self._before_applied = len(self._commands.changes)
        for pair in pairs:
            self._commands.make(self._change_of(pair))

    def _change_of(self, pair: CommandPair) -> Change:
        return Change(pair.do_words, pair.undo_words)

    def withdraw(self) -> str:
        """Undo what :meth:`apply` did, last first. Returns and raises as :meth:`restore`."""
        keep, self._before_applied = self._before_applied, None
        return "" if keep is None else self._commands.restore(keep)

    def _tune(self, words: str, setting: Setting, wanted: str, shown: str | None = None, undo: Words = ()) -> None:
        """Have *wanted* set, and read it back; a note says so in *words*. Raises TestbedError."""
        if before := self._commands.put_and_check(setting, wanted, shown, undo):
            self._notes.append(f"{words} for the test (before: {before})")

    def _tune_variables(self, tuning: Tuning, *options: str) -> None:
        for key, value in tuning.sysctls.items():
            self._tune(f"{key} set to {value}", variable(key, *options), value)

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes of forwarding, packet filter and the like, in words: evidence."""
        return tuple(self._notes)

    @property
    def not_forwarded(self) -> NotForwarded:
        """Frames that :meth:`configure_frames` could not configure, and why."""
        return self._not_forwarded

    def _require_interfaces(self, existing: Collection[str], owner: str = "the router", hint: str = "") -> None:
        for name in self.interfaces:
            if name not in existing:
                raise TestbedError(
                    f"{owner} has no interface '{name}'; it has {', '.join(sorted(existing))}; fix 'interfaces' of the"
                    f" platform's file{hint}"
                )

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made."""
        self._commands.keep_journal(journal)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return what :meth:`restore` would undo, oldest first."""
        return self._commands.changes

    def restore(self) -> str:
        """Undo all changes, last first. May be repeated. Raises TestbedError that names failed ones.

        Returns a sentence about what others have changed since, and is left to them.
        """
        kept = self._commands.restore()
        self._notes.clear()
        self._not_forwarded = {}
        return kept

    @contextmanager
    def rehearsal(self) -> Iterator[list[Change]]:
        """Meanwhile each change is only put on the list, and not made."""
        notes, not_forwarded = list(self._notes), self._not_forwarded
        try:
            with self._commands.rehearsal() as found:
                yield found
        finally:
            self._notes[:], self._not_forwarded = notes, not_forwarded

    def forget_changes(self) -> None:
        """The router has restarted and lost its changes: there is nothing to undo."""
        self._notes.clear()
        self._not_forwarded = {}
        self._commands.forget_changes()


NUMBERS = r"\A\s*(?P<value>-?\d+(?:\s+-?\d+)*)\s*\Z"


def variable(key: str, *options: str) -> Setting:
    """Return the setting of a kernel's variable, one number or several; *options*: of ``sysctl`` that sets it."""
    return Setting(
        ("sysctl", "-n", key), NUMBERS, lambda value, now: ("sysctl", *options, f"{key}={value}"), always=True
    )


def take_up(commands: ChangingCommands, shown: str, *command: str) -> None:
    """Take an interface up by *command* and ``up``. *shown*: its flags. Raises TestbedError where there are none."""
    flags = re.search(r"<([^>]*)>", shown)
    if not flags:
        raise TestbedError(f"the flags of '{command[-1]}' were not understood: '{first_line(shown)}'")
    if "UP" not in flags[1].split(","):
        commands.change((*command, "up"), (*command, "down"))


class FrameSetup:
    """*commands*: of a router whose *sides* are configured for IPv4; *notes* receives changes and what is missing."""

    def __init__(self, commands: ChangingCommands, sides: Sequence[Side], notes: list[str]) -> None:
        self._commands, self._sides, self._notes = commands, sides, notes
        self._not_forwarded: dict[frozenset[FrameKind], str] = {}

    def _mark_not_forwarded(self, reason: str, *kinds: FrameKind) -> None:
        self._not_forwarded[frozenset(kinds)] = reason
        self._notes.append(f"not set up for {' with '.join(kinds)}: {reason}")


def labels_by_side(pairs: Sequence[tuple[int, int]], sides: int) -> list[tuple[int, ...]]:
    """The labels that leave by each of so many *sides*; *pairs*: a label of the first and of the second direction.

    Each pair of sides has its own labels: those of the first direction leave by the second side. Raises TestbedError if
    a label would have to leave by two.
    """
    ahead, back = zip(*pairs, strict=True)
    exits = [
        tuple(dict.fromkeys(label + index // 2 * LABEL_STEP for label in (ahead if index % 2 else back)))
        for index in range(sides)
    ]
    used = [label for labels in exits for label in labels]
    both = sorted(label for label in set(used) if used.count(label) > 1)
    if both:
        hint = f" ({LABEL_STEP} more for each further pair of ports)" if sides > 2 else ""
        raise TestbedError(
            f"label {both[0]} is among the words' 'labels' and 'labels_back'{hint}, and a router forwards each label in"
            " one direction only; expected different labels"
        )
    return exits


def one_label_table(system: str) -> str:
    """Why labelled frames with tags are not forwarded."""
    return (
        f"{system} has one label table for all its interfaces, and would forward labelled frames without the tags that"
        " they arrived with"
    )
