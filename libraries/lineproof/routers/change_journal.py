"""The journal of a router: every change and its opposite, on this machine's disk before the change is made.

One file for each router, by its address and port, in :func:`.state_folder`, readable for its user only. Whoever
changes the router holds a lock on it, which ends with the process, however that ends. It is removed when all is undone;
one that is there and not locked is what a killed run has left. A router has one host key and may have several
addresses: whoever changes it also holds a lock on a file that is named after its key, and sees the journals that other
addresses have of it.

First line: :class:`Occasion`. Each further line is a change, which ends with whether it was undone: that is written
over in place, where a full disk has room. A last line that was torn by a power cut is left out: its command was never
run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..errors import TestbedError, system_words
from ..files import append_to, not_written, sync_folder
from ..json_text import parse_json
from ..system.file_lock import is_at, lock_within, remove_and_close
from ..system.identity import STATE_ELSEWHERE, ProcessIdentity, identify, machine_uptime, state_folder
from .changes import Change

BOOT_TOLERANCE = 5.0
"""Seconds by which a router's computed boot time may move: it may report its uptime in whole seconds, and late."""

DRIFT = 5e-4
"""Seconds per second by which the clocks of two machines may differ."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """When and by whom a router is changed. ``uptime`` of the router in s, None if it reports none.

    ``host_key``: the fingerprint of its SSH key; ``since``: s since the epoch; ``here``: s since this machine's boot;
    ``boot``: the name that the router's kernel gives to its run, "" if it gives none.
    """

    router: str
    kind: str
    host_key: str
    uptime: float | None
    since: float
    here: float
    holder: ProcessIdentity
    boot: str = ""

    @classmethod
    def now(cls, router: str, kind: str, host_key: str, uptime: float | None, boot: str = "") -> Occasion:
        """This process, now."""
        here = machine_uptime()
        return cls(router, kind, host_key, uptime, time.time(), here, identify(os.getpid()), boot)

    def restarted_since(self, now: Occasion) -> bool | None:
        """Return whether the router has restarted between this occasion and *now*, and with that lost its changes.

        None: it cannot be told. A described router may keep its changes.
        """
        if "generic" in (self.kind, now.kind):
            return False
        if self.boot and now.boot and self.boot != now.boot:
            return True
        if self.uptime is None or now.uptime is None or self.kind != now.kind:
            return False
        if now.uptime + BOOT_TOLERANCE < self.uptime:
            return True
        if self.boot and self.boot == now.boot and self.kind == "linux":
            return False  # VPP may have restarted alone
        same_boot = self.holder.where.split()[:1] == now.holder.where.split()[:1]
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
        return f"process {self.holder.pid}, since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.since))}"


LONGEST = 1 << 20
"""Bytes of a journal that are read."""

LOOK_LIMIT = 1.0
"""Seconds for which :func:`look` of another process may be in the way; a run holds a journal for longer."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A journal's content: ``changes`` that are not undone, oldest first. ``size``: bytes of it that are whole.

    ``marks``: by its undo, where a change says that it is not undone.
    """

    path: Path
    occasion: Occasion | None
    changes: tuple[Change, ...]
    size: int = 0
    in_use: bool = False
    marks: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def journal_path(router: str) -> Path:
    """The file for *router* (``host:port``). Raises TestbedError if there is no folder for it."""
    readable = re.sub(r"[^A-Za-z0-9.-]", "_", router)[:80]
    return state_folder("routers") / f"{readable}-{_digest(router)[:8]}.jsonl"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def look(router: str) -> Leftover | None:
    """Return what the journal of *router* holds, whoever holds it; None if there is none. Raises TestbedError."""
    return _look(journal_path(router))


def _look(path: Path) -> Leftover | None:
    try:
        descriptor = _opened(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            in_use = False
        except BlockingIOError:
            in_use = True
        return _read(path, descriptor, in_use)
    finally:
        os.close(descriptor)


def look_elsewhere(router: str, host_keys: Collection[str]) -> tuple[Leftover, ...]:
    """Return what journals of other addresses than *router* hold of a router with one of *host_keys*.

    One that cannot be read is refused where its own address is used. Raises TestbedError.
    """
    own, found = journal_path(router), list[Leftover]()
    for path in sorted(own.parent.glob("*.jsonl")):
        if path == own or _host_key(path) not in host_keys or (leftover := _look(path)) is None:
            continue
        if leftover.occasion and journal_path(leftover.occasion.router) == path:
            found.append(leftover)
    return tuple(found)


def _host_key(path: Path) -> str | None:
    """The host key in the first line of *path*; None if there is none."""
    with contextlib.suppress(TestbedError, OSError, ValueError, AttributeError):
        descriptor = _opened(path, os.O_RDONLY)
        try:
            key = parse_json(os.pread(descriptor, LONGEST, 0).partition(b"\n")[0], own=True).get("host_key")
        finally:
            os.close(descriptor)
        return str(key) or None
    return None


class ChangeJournal:
    """The journal of a router, held by this process. Made by :meth:`claim`; :meth:`close` it."""

    def __init__(self, leftover: Leftover, descriptor: int, key: tuple[Path, int] | None) -> None:
        self.leftover, self._key = leftover, key
        self.occasion = leftover.occasion
        self._path, self._descriptor = leftover.path, descriptor
        self._pending = {change.undo: change for change in leftover.changes}
        self._marks = dict(leftover.marks)

    @classmethod
    def claim(cls, router: str, host_key: str = "") -> ChangeJournal:
        """Hold the journal of *router*, made if it is missing, and its *host_key*.

        Raises TestbedError if another process holds one of them, or the journal is damaged or could be written by
        others.
        """
        path = journal_path(router)
        descriptor = _hold(path, lambda: _in_use(router, _occasion(path)))
        key = None
        try:
            leftover = _read(path, descriptor, False)
            if host_key:
                key_path = path.with_name(f"key-{_digest(host_key)[:16]}.lock")
                key = key_path, _hold(key_path, lambda: _in_use_elsewhere(router, host_key))
            _cut(path, descriptor, leftover.size)
            sync_folder(path.parent)
            return cls(leftover, descriptor, key)
        except BaseException:
            if not os.fstat(descriptor).st_size:
                path.unlink(missing_ok=True)
            os.close(descriptor)
            if key is not None:
                remove_and_close(*key)
            raise

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return what is not undone, oldest first."""
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
        self._append({**asdict(change), "undone": False})
        self._pending.pop(change.undo, None)
        self._pending[change.undo] = change
        self._marks[change.undo] = os.fstat(self._descriptor).st_size - len(_NOT_UNDONE)

    def drop(self, change: Change) -> None:
        """*change* is undone, or was never made."""
        if self._pending.pop(change.undo, None) is not None:
            mark = self._marks.pop(change.undo, None)
            # a journal that cannot be written must not end the undoing; undoing twice is harmless
            with contextlib.suppress(OSError):
                if mark is not None and self._descriptor >= 0:
                    os.pwrite(self._descriptor, _UNDONE, mark)
                    os.fsync(self._descriptor)

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
            if self._key is not None:
                remove_and_close(*self._key)

    def _append(self, row: dict[str, Any]) -> None:
        try:
            # to what is locked, and only while the next run finds it by its name
            if self._descriptor < 0 or not is_at(self._path, self._descriptor):
                raise TestbedError(
                    f"{self._path} was removed or replaced while a run had it; look at the router's configuration, and"
                    " let no program clean that folder"
                )
            append_to(self._descriptor, self._path, (json.dumps(row) + "\n").encode(), STATE_ELSEWHERE)
        except TestbedError as error:
            raise TestbedError(
                f"the router is not changed, for the journal of its changes comes first: {error}"
            ) from None


_OCCASION, _CHANGE = TypeAdapter(Occasion), TypeAdapter(Change)
_NOT_UNDONE, _UNDONE = b"false}\n", b"true }\n"
"""How the line of a change ends."""


def _opened(path: Path, flags: int) -> int:
    """A descriptor of *path*. Raises FileNotFoundError, else TestbedError."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unfit(path, f"cannot be opened: {system_words(error, path)}") from None


def _hold(path: Path, refusal: Callable[[], TestbedError]) -> int:
    """A locked descriptor of *path*, which is made. Raises *refusal* if another process has it."""
    until = time.monotonic() + LOOK_LIMIT
    while True:
        descriptor = _opened(path, os.O_RDWR | os.O_CREAT)
        try:
            if not lock_within(descriptor, until - time.monotonic()):
                raise refusal()
            if is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _occasion(path: Path) -> Occasion | None:
    with contextlib.suppress(TestbedError):
        found = _look(path)
        return found.occasion if found else None
    return None


def _in_use(router: str, occasion: Occasion | None) -> TestbedError:
    return TestbedError(
        f"the router at {router} is in use by {occasion or 'another process'} of this machine, which has it"
        " configured; wait until that run has ended, or end it"
    )


def _in_use_elsewhere(router: str, host_key: str) -> TestbedError:
    found: tuple[Leftover, ...] = ()
    with contextlib.suppress(TestbedError):
        found = tuple(each for each in look_elsewhere(router, (host_key,)) if each.in_use)
    holder = found[0].occasion if found else None
    name = f" as {holder.router}" if holder else ""
    return TestbedError(
        f"the router at {router} is in use{name} by {holder or 'another process'} of this machine: it shows the same"
        f" host key {host_key}; wait until that run has ended, or end it (if it is another router, give it a host key"
        " of its own)"
    )


def _cut(path: Path, descriptor: int, size: int) -> None:
    """Leave *size* bytes of it: without the line that a power cut tore."""
    try:
        os.ftruncate(descriptor, size)
    except OSError as error:
        raise not_written(path, error, STATE_ELSEWHERE) from error


def _read(path: Path, descriptor: int, in_use: bool) -> Leftover:
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
    marks: dict[tuple[str, ...], int] = {}
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            row = parse_json(line, own=True)
            if number == 1:
                occasion = _OCCASION.validate_python(row)
                str(occasion)  # OverflowError: no system shows such a time
            else:
                is_undone = row.pop("undone", False)
                change = _CHANGE.validate_python(row)
                pending.pop(change.undo, None)
                if not is_undone:
                    pending[change.undo] = change
                if line.endswith(_NOT_UNDONE):
                    marks[change.undo] = size + len(line) - len(_NOT_UNDONE)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            # what was not written before a power cut is missing, or zeros
            if number == len(lines) and (not line.endswith(b"\n") or b"\0" in line):
                break  # torn: what it says was not done
            raise _unfit(path, f"is damaged in line {number}") from None
        size += len(line)
    return Leftover(path, occasion, tuple(pending.values()), size, in_use, marks)


def _unfit(path: Path, what: str) -> TestbedError:
    return TestbedError(
        f"{path}, the journal of what was changed on the router, {what}; look at the router's configuration, undo by"
        " hand what that file lists, then remove the file"
    )
