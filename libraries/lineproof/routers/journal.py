"""Changes of a router: each is on this machine's disk before it is made, and is undone, last first.

A journal is one file for each router, by its address and port, in :func:`.state_folder`, readable for its user only.
Whoever changes the router holds a lock on it, which ends with the process, however that ends. It is removed when all is
undone; one that is there and not locked is what a killed run has left. A router has one host key and may have several
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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from ..command_values import compiled, value_at
from ..errors import TestbedError, system_words
from ..files import append_to, not_written, sync_folder
from ..json_text import parse_json
from ..system.file_lock import is_at, lock_within, remove_and_close
from ..system.identity import STATE_ELSEWHERE, ProcessIdentity, identify, machine_uptime, state_folder
from ..visible import shortened
from .shell_commands import CommandRefused, RouterUnreachable, ShellCommands
from .shell_output import MOST_OUTPUT, already_gone, plain_mac

RESTORE_LIMIT = 30.0
"""Seconds in all that undoing every change on a router may take, logins included."""

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
        if len(output) > MOST_OUTPUT:
            raise TestbedError(f"its output has {len(output)} characters; expected at most {MOST_OUTPUT}")
        if self.path:
            try:
                value = value_at(parse_json(output, strict=False), self.path, "")
            except ValueError as error:
                raise TestbedError(f"'{self.command}' shows no JSON: {error}") from None
            return () if value is None else ({"value": value},)
        matches = [match.groupdict("") for match in compiled(self.pattern).finditer(output)]
        different = {" ".join(groups["value"].split()): groups for groups in matches if groups["value"]}
        return tuple({**groups, "value": value} for value, groups in different.items())

    def read(self, output: str | None) -> str:
        """Return the first value in *output*. Raises TestbedError as :meth:`values`."""
        return next((groups["value"] for groups in self.values(output)), NONE)

    def is_ours(self, value: str) -> bool:
        """Return whether *value* is what a run has set; a MAC address may be written in any form."""
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


_REMOVES = re.compile(
    r"(?<![\w-])(no|undo|delete|del|remove|unset|clear|flush|purge|erase|rollback)(?![\w-])", re.IGNORECASE
)
"""The words of a line that takes something away, of any maker."""


class Changes:
    """Changes of the router behind *commands*, and their undoing. *rehearsed*: where they are put and not made."""

    def __init__(
        self, commands: ShellCommands, journal: ChangeJournal | None = None, rehearsed: list[Change] | None = None
    ) -> None:
        self._commands, self._journal, self._rehearsed = commands, journal, rehearsed
        self._undo: list[Change] = [*journal.pending] if journal else []
        self._others: list[str] = []

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made. What it has pending is undone by :meth:`restore`, too."""
        self._journal = journal
        self._undo = [*journal.pending, *self._undo]

    @property
    def rehearsing(self) -> bool:
        """Return whether nothing may be changed now."""
        return self._rehearsed is not None

    @property
    def pending(self) -> tuple[Change, ...]:
        """Return what is not undone yet, oldest first."""
        return tuple(self._undo)

    def make(self, change: Change) -> None:
        """Make *change*; :meth:`restore` will undo it. Raises TestbedError.

        One of which a later line is refused is undone too.
        """
        if self._rehearsed is not None:
            self._rehearsed.append(change)
            return
        if self._journal:
            self._journal.add(change)
        # noted first: it may run although the link fails or a user interrupts; repeated after a link was down: once
        self._undo = [*(other for other in self._undo if other.undo != change.undo), change]
        with self._in_one_login(change.do):
            for at, line in enumerate(change.do):
                try:
                    self._commands.change(line, stdin=change.stdin)
                except CommandRefused:
                    if at == 0:
                        self._undone(change)
                    raise

    def check(self, change: Change, advice: str) -> None:
        """Read *change* back: a card may take the next value that it can have. Raises TestbedError with *advice*."""
        look = change.look
        if look is None or self.rehearsing or look.is_ours(look.read(self._commands.show(look.command))):
            return
        # restoring would take the other value for somebody else's; what is not there at all it may try to undo
        with contextlib.suppress(CommandRefused):
            for line in change.undo:
                self._commands.change(line)
            self._undone(change)
        raise TestbedError(f"the router took '{change.do_text}' and does not show it; {advice}")

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
        shown = self._shown(self._undo[keep:])
        while len(self._undo) > keep:
            change = self._undo[-1]
            try:
                self._undo_change(change, until, over, shown)
            except RouterUnreachable as error:
                failed.setdefault(str(error), []).extend(map(self._listed, reversed(self._undo)))
                self._undo.clear()
                break
            except TestbedError as error:
                why = error.why if isinstance(error, CommandRefused) else str(error)
                failed.setdefault(why, []).append(self._listed(change))
                self._undo.pop()  # it stays in the journal, for the next run
                continue
            self._undone(change)
        others, self._others = self._others, []
        kept = f"not undone, because somebody has set something else since: {'; '.join(others)}" if others else ""
        if failed:
            listed = "; ".join(f"{', '.join(commands)} ({why})" for why, commands in failed.items())
            raise TestbedError(
                "the router's former configuration could not be restored in full; what is left there is undone by these"
                f" commands on the router, in this order: {listed}{f'; {kept}' if kept else ''}"
            )
        return kept

    def forget(self) -> None:
        """Drop all changes: there is nothing to undo."""
        self._undo.clear()
        if self._journal:
            self._journal.forget()

    def _listed(self, change: Change) -> str:
        return f"'{' / '.join(self._commands.as_given(line, changes=True) for line in change.undo)}'"

    def _undone(self, change: Change) -> None:
        self._undo.remove(change)
        if self._journal:
            self._journal.drop(change)

    @contextmanager
    def _in_one_login(self, lines: Collection[str]) -> Iterator[None]:
        """Log out where *lines* end early: what one of several has opened, as a configuration, ends with the login."""
        try:
            yield
        except BaseException:
            if len(lines) > 1:
                self._commands.reset()
            raise

    def _shown(self, changes: Collection[Change]) -> Mapping[str, str | None]:
        """Return what the looks of *changes* show; nothing where each is to be run by itself."""
        looks = [change.look.command for change in changes if change.look]
        with contextlib.suppress(TestbedError):
            return self._commands.show_all(looks) if self._commands.habits.is_posix else {}
        return {}

    def _undo_change(self, change: Change, until: float, over: bool, shown: Mapping[str, str | None]) -> None:
        """Undo *change* before *until*, unless what it set is there no more; *over*: see :meth:`restore`.

        *shown*: what looks have shown; one that was refused is run again, for its reason.

        Raises TestbedError.
        """
        try:
            if not self._is_there(change, until, over, shown):
                return
        except CommandRefused as error:
            if not self._commands.habits.is_posix or not already_gone(error.why):
                raise
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
        says_gone = any(compiled(text).search(refused.output) for text in self._commands.habits.gone)
        if self._commands.habits.is_posix or removes:
            return says_gone or already_gone(refused.why)
        return not removes_later and says_gone

    def _is_there(self, change: Change, until: float, over: bool, shown: Mapping[str, str | None]) -> bool:
        """Return whether the router still has what *change* has set. Another value stays, and is noted.

        Raises TestbedError where only all or nothing can be undone, unless it may go *over* what others have set.
        """
        look, limit = change.look, self._limit(until)
        if look is None or (change.whole and over):
            return True
        output = shown.get(look.command)
        now = look.read(self._commands.show(look.command, limit) if output is None else output)
        if look.is_ours(now):
            return True
        if now == look.former == NONE:
            # a look of another command line may be made up: its undo finds what it names, or nothing
            return not self._commands.habits.is_posix
        if change.whole:
            raise TestbedError(
                f"it would go over what somebody else has configured since: {shortened(now)}; look at it, then"
                " 'lineproof restore' runs these commands in any case, or undo the run's changes by hand"
            )
        if now != look.former:
            former = f"; before the run: {shortened(look.former)}" if look.former != NONE else ""
            self._others.append(f"'{change.do_text}' (now: {shortened(now)}{former})")
        return False


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
