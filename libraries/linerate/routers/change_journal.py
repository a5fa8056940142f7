"""The journal of a router: every change and its opposite, on this machine's disk before the change is made.

One file for each router, by its address and port, in :func:`.state_folder`, readable for its user only. Whoever
changes the router holds a lock on it, which ends with the process, however that ends. It is removed when all is undone;
one that is there and not locked is what a killed run has left. First line: :class:`Occasion`. Each further line is a
change, or says that one was undone. A last line that was torn by a power cut is left out: its command was never run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..errors import TestbedError, system_words
from ..files import append_line, not_written, sync_folder
from ..json_text import parse_json
from ..system.identity import STATE_ELSEWHERE, ProcessIdentity, identify, machine_uptime, state_folder
from .command_file import CommandFile
from .set_values import Look
from .undo_commands import is_described_undo, look_before

LONGEST = 1 << 20
"""Bytes of a journal that are read."""

LOOK_LIMIT = 1.0
"""Seconds for which :func:`look` of another process may be in the way; a run holds a journal for longer."""

BOOT_TOLERANCE = 5.0
"""Seconds by which a router's computed boot time may move: it may report its uptime in whole seconds, and late."""


@dataclass(frozen=True, slots=True)
class Change:
    """A command as words, and its opposite. *silent*: any output means that it failed.

    *lines*: each is a list of whole commands instead, for a command line that is no POSIX shell. *whole*: the opposite
    restores a saved configuration, so that no refusal means that the change is gone already.
    """

    do: tuple[str, ...]
    undo: tuple[str, ...]
    silent: bool = False
    lines: bool = False
    whole: bool = False

    @property
    def do_text(self) -> str:
        """What makes it, in one line for a person."""
        return _in_one_line(self.do, self.lines)

    @property
    def undo_text(self) -> str:
        """What undoes it, in one line for a person."""
        return _in_one_line(self.undo, self.lines)

    def __str__(self) -> str:
        return f"{self.do_text}    (undone by: {self.undo_text})"

    def is_undoable(self, file: CommandFile | None) -> bool:
        """Whether a journal may undo it on a router that *file* describes; None: on one of the others."""
        if file is not None:
            return self.lines and is_described_undo(self.undo, file)
        try:
            self.look()
        except ValueError:
            return False
        return not self.lines

    def look(self) -> Look | None:
        """How to see whether it is still there, before it is undone; None: undoing it undoes nothing else.

        Raises ValueError if the undo is none, or that of another change.
        """
        return None if self.lines else look_before(self.undo, self.do)


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and by whom a router is changed. ``uptime`` of the router in s, None if it reports none.

    ``host_key``: the fingerprint of its SSH key; ``since``: s since the epoch; ``here``: s since this machine's boot.
    """

    router: str
    kind: str
    host_key: str
    uptime: float | None
    since: float
    here: float
    holder: ProcessIdentity

    @classmethod
    def now(cls, router: str, kind: str, host_key: str, uptime: float | None) -> Occasion:
        """This process, now."""
        return cls(router, kind, host_key, uptime, time.time(), machine_uptime(), identify(os.getpid()))

    def restarted_since(self, now: Occasion) -> bool:
        """Whether the router has certainly restarted between this occasion and *now*, and with that lost its changes.

        A described one may keep them.
        """
        if self.uptime is None or now.uptime is None or self.kind != now.kind or self.kind == "generic":
            return False
        # the clock of this machine may be set; its uptime may not, and is good until it restarts
        same_boot = self.holder.where.split()[:1] == now.holder.where.split()[:1]
        elapsed = now.here - self.here if same_boot else 0.0
        return now.uptime + BOOT_TOLERANCE < self.uptime + elapsed

    def __str__(self) -> str:
        return f"process {self.holder.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a journal holds: ``changes`` that are not undone, oldest first. ``size``: bytes of it that are whole."""

    path: Path
    occasion: Occasion | None
    changes: tuple[Change, ...]
    size: int = 0
    in_use: bool = False


def _in_one_line(words: tuple[str, ...], lines: bool) -> str:
    return " / ".join(words) if lines else shlex.join(words)


def journal_path(router: str) -> Path:
    """The file for *router* (``host:port``). Raises TestbedError if there is no folder for it."""
    folder = state_folder() / "routers"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error, STATE_ELSEWHERE) from error
    readable = re.sub(r"[^A-Za-z0-9.-]", "_", router)[:80]
    return folder / f"{readable}-{hashlib.sha256(router.encode()).hexdigest()[:8]}.jsonl"


def look(router: str, file: CommandFile | None = None) -> Leftover | None:
    """What the journal of *router* holds, whoever holds it; None if there is none. Raises TestbedError.

    *file*: that describes the router.
    """
    path = journal_path(router)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unfit(path, f"cannot be opened: {system_words(error, path)}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            in_use = False
        except BlockingIOError:
            in_use = True
        return _read(path, descriptor, in_use, file)
    finally:
        os.close(descriptor)


class ChangeJournal:
    """The journal of a router, held by this process. Made by :meth:`claim`; :meth:`close` it."""

    def __init__(self, leftover: Leftover, descriptor: int, file: CommandFile | None = None) -> None:
        self.leftover, self._file = leftover, file
        self.occasion = leftover.occasion
        self._path, self._descriptor = leftover.path, descriptor
        self._pending = {change.undo: change for change in leftover.changes}

    @classmethod
    def claim(cls, router: str, file: CommandFile | None = None) -> ChangeJournal:
        """Hold the journal of *router*, made if it is missing. *file*: that describes the router.

        Raises TestbedError if another process holds it, or it is damaged or could be written by others.
        """
        path = journal_path(router)
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            except OSError as error:
                raise _unfit(path, f"cannot be opened: {system_words(error, path)}") from None
            try:
                _lock(path, router, descriptor, file)
                if _is_at(path, descriptor):
                    leftover = _read(path, descriptor, False, file)
                    _cut(path, descriptor, leftover.size)
                    sync_folder(path.parent)
                    return cls(leftover, descriptor, file)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    @property
    def pending(self) -> tuple[Change, ...]:
        """What is not undone, oldest first."""
        return tuple(self._pending.values())

    def begin(self, occasion: Occasion) -> None:
        """Note who changes the router from now on. Nothing of an earlier run may be pending."""
        if self._pending:
            raise RuntimeError("changes of an earlier run are pending")
        _cut(self._path, self._descriptor, 0)
        self.occasion = occasion
        self._append(asdict(occasion))

    def add(self, change: Change) -> None:
        """Have *change* on the disk. Raises TestbedError, and it must not be made then."""
        if not change.is_undoable(self._file):
            raise TestbedError(
                f"'{change.do_text}' is not run on the router: '{change.undo_text}', which would undo it,"
                " is none of the commands that are run from a journal; set this up by hand and use 'prepare: none'"
            )
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
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            if not self._pending:
                with contextlib.suppress(OSError):
                    self._path.unlink(missing_ok=True)
                    sync_folder(self._path.parent)
        finally:
            os.close(descriptor)

    def _append(self, row: dict[str, Any]) -> None:
        if self._descriptor < 0:
            return
        try:
            append_line(self._path, (json.dumps(row) + "\n").encode(), STATE_ELSEWHERE)
        except TestbedError as error:
            raise TestbedError(
                f"the router is not changed, for the journal of its changes comes first: {error}"
            ) from None


def _cut(path: Path, descriptor: int, size: int) -> None:
    """Leave *size* bytes of it: without the line that a power cut tore."""
    try:
        os.ftruncate(descriptor, size)
    except OSError as error:
        raise not_written(path, error, STATE_ELSEWHERE) from error


def _lock(path: Path, router: str, descriptor: int, file: CommandFile | None) -> None:
    until = time.monotonic() + LOOK_LIMIT
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.02)
    occasion = None
    with contextlib.suppress(TestbedError):
        occasion = _read(path, descriptor, True, file).occasion
    raise TestbedError(
        f"the router at {router} is in use by {occasion or 'another process'} of this machine, which has it"
        " configured; wait until that run has ended, or end it"
    )


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file still is *path*: whoever held it may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _read(path: Path, descriptor: int, in_use: bool, file: CommandFile | None) -> Leftover:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise _unfit(path, "is no file")
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise _unfit(path, "is not this user's alone (mode 0600), so others may have written commands into it")
    data = os.pread(descriptor, LONGEST + 1, 0)
    if len(data) > LONGEST:
        raise _unfit(path, f"has more than {LONGEST >> 20} MiB")
    occasion, size = None, 0
    pending: dict[tuple[str, ...], Change] = {}
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            row = parse_json(line, own=True)
            if number == 1:
                occasion = TypeAdapter(Occasion).validate_python(row)
                str(occasion)  # OverflowError: no system shows such a time
            elif "undone" in row:
                pending.pop(_words(row["undone"]), None)
            else:
                kind = {name: bool(row.get(name)) for name in ("silent", "lines", "whole")}
                change = Change(_words(row["do"]), _words(row["undo"]), **kind)
                pending.pop(change.undo, None)
                pending[change.undo] = change
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            # what was not written before a power cut is missing, or zeros
            if number == len(lines) and (not line.endswith(b"\n") or b"\0" in line):
                break  # torn: what it says was not done
            raise _unfit(path, f"is damaged in line {number}") from None
        size += len(line)
    for change in pending.values():
        if not change.is_undoable(file):
            where = f", as variables/shells/{file.shell}.yaml describes it" if file else ""
            raise _unfit(path, f"has '{change.undo_text}', which is no command that undoes a change of a run{where}")
    return Leftover(path, occasion, tuple(pending.values()), size, in_use)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise ValueError
    return tuple(value)


def _unfit(path: Path, what: str) -> TestbedError:
    return TestbedError(
        f"{path}, the journal of what was changed on the router, {what}; look at the router's configuration, undo by"
        " hand what that file lists, then remove the file"
    )
