"""A router's journal: each change is on this machine's disk before it is made, and until it is undone.

One file for each router, named after an SSH host key of it whatever its address, in :func:`.state_folder`: it is
written whole at each change and each undo, and removed when all is undone. Another key of the same router has a link
to that name. Whoever changes the router holds a lock, which ends with the process, however that ends. A journal that is
there and not locked is what a killed run has left.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from ..command_values import check_length, compiled, json_in, plain_mac, value_at
from ..errors import TestbedError
from ..files import not_written, sync_folder, write_whole
from ..system.folders import STATE_ELSEWHERE, is_locked, lock_within, state_folder
from ..units import counted
from ..visible import shortened

NONE = "none"
"""In place of a value: there is nothing."""
NOTHING: tuple[Mapping[str, str], ...] = ({"value": NONE},)

Lines = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Look:
    """A command that shows a value: the group ``value`` of *pattern*, or what *path* leads to in its JSON.

    *none*: what is in an output without a value, unless that is blank. *former*: the value that was there before;
    *ours*: what a run sets; *made*: all groups of the pattern right after it has.
    """

    command: str
    pattern: str
    path: str = ""
    none: str = ""
    ours: tuple[str, ...] = (NONE,)
    made: tuple[str, ...] = ()
    former: str = NONE

    def values(self, output: str) -> tuple[Mapping[str, str], ...]:
        """Return the groups of each different value in *output*; NOTHING where that shows that there is none.

        Raises TestbedError where it shows neither, is too long to be searched, or no JSON.
        """
        check_length(output)
        if not output.strip():
            return NOTHING
        if self.path:
            matches = [{"value": value_at(json_in(output), self.path, "") or ""}]
        else:
            matches = [match.groupdict("") for match in compiled(self.pattern).finditer(output)]
        in_a_line = [{name: " ".join(text.split()) for name, text in groups.items()} for groups in matches]
        different = {groups["value"]: groups for groups in in_a_line if groups["value"]}
        if not different and not self.shows_none(output):
            expected = "' or '".join(shortened(text, 60) for text in (self.path or self.pattern, self.none) if text)
            raise TestbedError(
                f"'{self.command}' was not understood: '{shortened(output.strip(), 80)}'; expected"
                f" '{expected}' in it, or no output"
            )
        return tuple(different.values()) or NOTHING

    def shows_none(self, output: str) -> bool:
        """Return whether *output*, which is not blank, shows that there is no value."""
        return bool(self.none and compiled(self.none).search(output))

    def is_ours(self, groups: Mapping[str, str]) -> bool:
        """Return whether *groups* are what a run has set; a MAC address may be written in any form."""
        if self.made:
            return self.made == tuple(groups.values())
        return plain_mac(groups["value"]) in map(plain_mac, self.ours)


@dataclass(frozen=True, slots=True)
class Change:
    """Commands and their opposites. *look*: done before they are undone; None: they can undo nothing else.

    *whole*: the opposite restores a saved configuration, so that no refusal means that the change is gone already.
    *stdin*: text for the standard input of ``do``.
    """

    do: Lines
    undo: Lines
    whole: bool = False
    look: Look | None = None
    stdin: str = ""

    @property
    def do_text(self) -> str:
        """Return what makes it, in one line for a person."""
        return " / ".join(self.do) + (f" <<< '{shortened(self.stdin)}'" if self.stdin else "")

    @property
    def undo_text(self) -> str:
        """Return what undoes it, in one line for a person."""
        return " / ".join(self.undo)

    def __str__(self) -> str:
        return f"{self.do_text}    (undone by: {self.undo_text})"


@dataclass(frozen=True, slots=True)
class Occasion:
    """The process that changes a ``router``, ``host:port`` of this ``kind``, ``since`` s after the epoch."""

    router: str
    kind: str
    since: float = field(default_factory=time.time)
    pid: int = field(default_factory=os.getpid)

    def __str__(self) -> str:
        return f"process {self.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A journal's content: ``changes`` that are not undone, oldest first. ``in_use``: their run goes on."""

    occasion: Occasion
    changes: Annotated[tuple[Change, ...], Field(min_length=1)]
    in_use: Annotated[bool, Field(exclude=True)] = False

    @property
    def text(self) -> str:
        """Return what is on the router, and the commands that undo it, in their order."""
        undos = "; ".join(f"'{change.undo_text}'" for change in reversed(self.changes))
        return f"{counted(len(self.changes), 'change')} of {self.occasion} (undone by {undos})"

    def __str__(self) -> str:
        return f"{'in use by a run of this machine' if self.in_use else 'left by an earlier run'}: {self.text}"


_CONTENT = TypeAdapter(Leftover)


def _path(part: str, host_key: str) -> Path:
    """Return the file of the router with *host_key*, whichever of its keys has the name."""
    named = (state_folder("routers") / host_key.replace("/", "_")).resolve()
    return state_folder(part) / named.name


def look(host_key: str) -> Leftover | None:
    """Return the journal of the router with *host_key*, ``SHA256:…``, whoever has it; None: there is none.

    Raises TestbedError, also where it is damaged.
    """
    leftover = _read(_path("routers", host_key))
    try:
        with FileIO(_path("locks", host_key)) as lock:
            return leftover and replace(leftover, in_use=is_locked(lock.fileno()))
    except FileNotFoundError:
        return leftover


def has_journals() -> bool:
    """Return whether any router has one. Raises TestbedError."""
    return any(path.is_file() for path in state_folder("routers").glob("[!.]*"))


def _read(path: Path) -> Leftover | None:
    try:
        return _CONTENT.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise TestbedError(
            f"{path}, the journal of what was changed on the router, cannot be read or is damaged; look at the router's"
            " configuration, undo by hand what that file lists, then remove the file"
        ) from None


class MadeChanges:
    """The changes of a run that are not undone, each by its undo: one that is made again is undone once."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._pending = {change.undo: change for change in changes}

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return what is not undone, oldest first."""
        return tuple(self._pending.values())

    def add(self, change: Change) -> None:
        """Note *change*, before it is made."""
        self._pending = {**self._without(change), change.undo: change}

    def drop(self, change: Change) -> None:
        """Forget *change*: it is undone, or was never made."""
        self._pending = self._without(change)

    def _without(self, change: Change) -> dict[tuple[str, ...], Change]:
        return {undo: other for undo, other in self._pending.items() if undo != change.undo}


class ChangeJournal(MadeChanges):
    """The journal of a router, which this process holds between :meth:`claim` and :meth:`close`."""

    def __init__(self, occasion: Occasion, path: Path, lock: FileIO) -> None:
        self.occasion, self.path, self._lock = occasion, path, lock
        self.leftover = _read(path)
        super().__init__(self.leftover.changes if self.leftover else ())

    @classmethod
    def claim(cls, occasion: Occasion, host_key: str, first_key: str = "") -> ChangeJournal:
        """Hold the journal of the router with *host_key*, which from now on is that of its *first_key* too.

        Raises TestbedError if another process holds it, or it is damaged.
        """
        path, leftover = _path("routers", host_key), None
        try:
            if first_key and not path.exists() and (first := _path("routers", first_key)) != path:
                with contextlib.suppress(FileExistsError):  # a run that begins at the same moment
                    path.symlink_to(first.name)
            path = _path("locks", host_key)
            lock = FileIO(path, "a+")
        except OSError as error:
            raise not_written(path, error, STATE_ELSEWHERE) from error
        try:
            # a look of another process may be in the way for a moment; a run holds the lock for longer
            if not lock_within(lock.fileno(), 1.0):
                with contextlib.suppress(TestbedError):
                    leftover = look(host_key)
                holder = leftover.occasion if leftover else None
                name = f" as {holder.router}" if holder and holder.router != occasion.router else ""
                raise TestbedError(
                    f"the router at {occasion.router} is in use{name} by {holder or 'another process'} of this machine,"
                    " which has it configured; wait until that run has ended, or end it (if it is another router with"
                    f" the same host key {host_key}, give it one of its own)"
                )
            return cls(occasion, _path("routers", host_key), lock)
        except BaseException:
            lock.close()
            raise

    def add(self, change: Change) -> None:
        """Have *change* on the disk. Raises TestbedError, and it must not be made then."""
        before = self._pending
        if not before:
            self.leftover, self.occasion = None, replace(self.occasion, since=time.time())
        super().add(change)
        try:
            self._write()
        except TestbedError as error:
            self._pending = before
            raise TestbedError(
                f"the router is not changed any further, for the journal of its changes comes first: {error}"
            ) from None

    def drop(self, change: Change) -> None:
        """Forget *change*: it is undone, or was never made."""
        super().drop(change)
        # a journal that cannot be written must not end the undoing; undoing twice is harmless
        with contextlib.suppress(TestbedError):
            self._write()

    def close(self) -> None:
        """Let go of it. Harmless when repeated."""
        self._lock.close()

    def _write(self) -> None:
        if self._pending:
            content = Leftover(self.leftover.occasion if self.leftover else self.occasion, self.pending)
            # one name, so that of kills while it is written one file stays at most
            fresh = self.path.with_name(f".{self.path.name}.part")
            write_whole(self.path, _CONTENT.dump_json(content), STATE_ELSEWHERE, fresh=fresh)
            return
        try:
            self.path.unlink(missing_ok=True)
            sync_folder(self.path.parent)
        except OSError as error:
            raise not_written(self.path, error, STATE_ELSEWHERE) from error
