"""A router's journal: each change is on this machine's disk before it is made, and until it is undone.

One file for each router, named after its SSH host key whatever its address, in :func:`.state_folder`. Whoever changes
the router holds a lock on it, which ends with the process, however that ends. It is removed when all is undone; one
that is there and not locked is what a killed run has left.

First line: :class:`Occasion`. Each further line is a change, or the undo of one that is undone. A last line that a
power cut tore is left out: its command was never run.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ..command_values import compiled, value_at
from ..errors import TestbedError, system_words
from ..files import append_to, not_written, sync_folder
from ..system.file_lock import is_at, is_locked, lock_within
from ..system.identity import STATE_ELSEWHERE, boot_id, machine_uptime, state_folder
from ..visible import shortened
from .shell_output import check_length, json_in, plain_mac

NONE = "none"
"""In place of a value: there is nothing."""

Lines = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Look:
    """A command that shows a value: the group ``value`` of *pattern*, or what *path* leads to in its JSON.

    *ours*: how the value may begin where a run has set it; *former*: the value that was there before.
    """

    command: str
    pattern: str
    path: str = ""
    ours: tuple[str, ...] = (NONE,)
    former: str = NONE

    def values(self, output: str | None) -> tuple[Mapping[str, str], ...]:
        """Return the groups of each different value in *output*; None: the command was refused.

        Raises TestbedError where it is too long to be searched, or no JSON.
        """
        if output is None:
            return ()
        check_length(output)
        if self.path:
            value = value_at(json_in(output), self.path, "")
            return () if value is None else ({"value": value},)
        matches = [match.groupdict("") for match in compiled(self.pattern).finditer(output)]
        different = {" ".join(groups["value"].split()): groups for groups in matches if groups["value"]}
        return tuple({**groups, "value": value} for value, groups in different.items())

    def read(self, output: str | None) -> str:
        """Return the first value in *output*. Raises TestbedError as :meth:`values`."""
        return next((groups["value"] for groups in self.values(output)), NONE)

    def is_ours(self, value: str) -> bool:
        """Return whether *value* is what a run has set; a MAC address may be written in any form."""
        # a kernel puts 'metric 1024 pref medium' behind the route that it was given
        return any(plain_mac(value) == plain_mac(ours) or value.startswith(f"{ours} ") for ours in self.ours)


@dataclass(frozen=True, slots=True)
class Change:
    """Commands, each a line, and their opposites. *look*: before they are undone; None: they can undo nothing else.

    *whole*: the opposite restores a saved configuration, so that no refusal means that the change is gone already.
    *moves_link*: a link may be negotiated anew. *stdin*: text for the standard input of ``do``.
    """

    do: Lines
    undo: Lines
    whole: bool = False
    moves_link: bool = False
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


BOOT_TOLERANCE = 5.0
"""Seconds by which a router's computed boot time may move: it may report its uptime in whole seconds, and late."""

DRIFT = 5e-4
"""Seconds per second by which the clocks of two machines may differ."""

ChangesEnd = Literal["never", "program", "machine"]
"""With the restart of what a router's changes are gone."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and by whom a router is changed. ``uptime`` of the router in s, None if it reports none.

    ``host_key``: the fingerprint of its SSH key; ``since``: s since the epoch; ``here``: s since this machine's boot,
    whose name is ``here_boot``; ``pid``: of the process; ``boot``: the name that the router's kernel gives to its run,
    "" if it gives none; ``changes_end``: see :class:`.RouterDescription`.
    """

    router: str
    kind: str
    host_key: str
    uptime: float | None
    since: float
    here: float
    here_boot: str
    pid: int
    boot: str
    changes_end: ChangesEnd

    @classmethod
    def now(
        cls, router: str, kind: str, host_key: str, uptime: float | None, boot: str, changes_end: ChangesEnd
    ) -> Occasion:
        """This process, now."""
        here = machine_uptime(), boot_id(), os.getpid()
        return cls(router, kind, host_key, uptime, time.time(), *here, boot, changes_end)

    def restarted_since(self, now: Occasion) -> bool | None:
        """Return whether the router has restarted between this occasion and *now*, and with that lost its changes.

        None: it cannot be told.
        """
        if self.changes_end == "never":
            return False
        if self.boot and now.boot and (self.boot != now.boot or self.changes_end == "machine"):
            return self.boot != now.boot
        if self.uptime is None or now.uptime is None or self.kind != now.kind:
            return False
        if now.uptime + BOOT_TOLERANCE < self.uptime:
            return True
        same_boot = self.here_boot == now.here_boot
        # the clock of this machine may be set; its uptime may not, and is good until it restarts
        elapsed = now.here - self.here if same_boot else now.since - self.since
        lacking = self.uptime + elapsed - now.uptime
        within = BOOT_TOLERANCE + DRIFT * abs(elapsed)
        if not same_boot:
            return False if abs(lacking) <= within else None
        if now.uptime > elapsed + within:
            return False  # it ran before
        return True if lacking > within else None

    def __str__(self) -> str:
        return f"process {self.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


LOOK_LIMIT = 1.0
"""Seconds for which :func:`look` of another process may be in the way; a run holds a journal for longer."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A journal's content: ``changes`` that are not undone, oldest first."""

    path: Path
    occasion: Occasion | None
    changes: tuple[Change, ...]
    in_use: bool = False


def journal_path(host_key: str) -> Path:
    """The file for the router with *host_key*, ``SHA256:…``. Raises TestbedError if there is no folder for it."""
    return state_folder("routers") / f"{host_key.replace('/', '_')}.jsonl"


def look(host_key: str) -> Leftover | None:
    """Return what the journal of a router holds, whoever has it; None if there is none. Raises TestbedError."""
    path = journal_path(host_key)
    try:
        with FileIO(path) as file:
            return _read(path, file, is_locked(file.fileno()))[0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unfit(path, f"cannot be read: {system_words(error, path)}") from None


class ChangeJournal:
    """The journal of a router, held by this process. Made by :meth:`claim`; :meth:`close` it."""

    def __init__(self, leftover: Leftover, file: FileIO) -> None:
        self.leftover, self.occasion = leftover, leftover.occasion
        self._path, self._file = leftover.path, file
        self._pending = {change.undo: change for change in leftover.changes}

    @classmethod
    def claim(cls, router: str, host_key: str) -> ChangeJournal:
        """Hold the journal of *router* (``host:port``) with *host_key*, made if it is missing.

        Raises TestbedError if another process holds it, or it is damaged.
        """
        path = journal_path(host_key)
        try:
            file = _held(path)
            if file is None:
                raise _in_use(router, host_key)
            leftover, size = _read(path, file)
            file.truncate(size)
            sync_folder(path.parent)
        except OSError as error:
            raise not_written(path, error, STATE_ELSEWHERE) from error
        return cls(leftover, file)

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return what is not undone, oldest first."""
        return tuple(self._pending.values())

    def begin(self, occasion: Occasion) -> None:
        """Note who changes the router from now on. Nothing of an earlier run may be pending."""
        if self._pending:
            raise RuntimeError("changes of an earlier run are pending")
        self._file.truncate(0)
        self.occasion = occasion
        self._append(asdict(occasion))

    def add(self, change: Change) -> None:
        """Have *change* on the disk. Raises TestbedError, and it must not be made then."""
        self._append(asdict(change))
        self._pending.pop(change.undo, None)
        self._pending[change.undo] = change

    def drop(self, change: Change) -> None:
        """*change* is undone, or was never made."""
        if self._pending.pop(change.undo, None) is not None:
            # a journal that cannot be written must not end the undoing; undoing twice is harmless
            with contextlib.suppress(TestbedError):
                self._append({"undone": change.undo})

    def forget(self) -> None:
        """The router has restarted: nothing is left of any change."""
        for change in self.pending:
            self.drop(change)

    def close(self) -> None:
        """Let go of it; it is removed if nothing is pending. Harmless when repeated."""
        if not self._file.closed and not self._pending:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
                sync_folder(self._path.parent)
        self._file.close()

    def _append(self, row: dict[str, Any]) -> None:
        try:
            append_to(self._file.fileno(), self._path, (json.dumps(row) + "\n").encode(), STATE_ELSEWHERE)
        except TestbedError as error:
            raise TestbedError(
                f"the router is not changed, for the journal of its changes comes first: {error}"
            ) from None


@dataclass(frozen=True, slots=True)
class _Undone:
    undone: tuple[str, ...]


_ROW: TypeAdapter[Occasion | Change | _Undone] = TypeAdapter(Occasion | Change | _Undone)


def _held(path: Path) -> FileIO | None:
    """The locked file at *path*, which is made; None if another process has it. Raises OSError."""
    until = time.monotonic() + LOOK_LIMIT
    while True:
        file = FileIO(path, "a+")
        if not lock_within(file.fileno(), until - time.monotonic()):
            return None
        if is_at(path, file.fileno()):
            return file


def _in_use(router: str, host_key: str) -> TestbedError:
    leftover = None
    with contextlib.suppress(TestbedError):
        leftover = look(host_key)
    holder = leftover.occasion if leftover else None
    name = f" as {holder.router}" if holder and holder.router != router else ""
    return TestbedError(
        f"the router at {router} is in use{name} by {holder or 'another process'} of this machine, which has it"
        f" configured; wait until that run has ended, or end it (if it is another router with the same host key"
        f" {host_key}, give it one of its own)"
    )


def _read(path: Path, file: FileIO, in_use: bool = False) -> tuple[Leftover, int]:
    """Return the content of *file*, and how many bytes of it are whole lines. Raises TestbedError."""
    file.seek(0)
    occasion, size = None, 0
    pending: dict[tuple[str, ...], Change] = {}
    lines = file.readall().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if number == len(lines) and (not line.endswith(b"\n") or b"\0" in line):
            break  # what was not written before a power cut is missing, or zeros: what it says was not done
        try:
            row = _ROW.validate_json(line)
        except ValueError:
            row = None
        if row is None or isinstance(row, Occasion) != (number == 1):
            raise _unfit(path, f"is damaged in line {number}")
        if isinstance(row, Occasion):
            occasion = row
        elif isinstance(row, Change):
            pending.pop(row.undo, None)
            pending[row.undo] = row
        else:
            pending.pop(row.undone, None)
        size += len(line)
    return Leftover(path, occasion, tuple(pending.values()), in_use), size


def _unfit(path: Path, what: str) -> TestbedError:
    return TestbedError(
        f"{path}, the journal of what was changed on the router, {what}; look at the router's configuration, undo by"
        " hand what that file lists, then remove the file"
    )
