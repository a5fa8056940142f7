"""The keeper: one process that owns everything a testbed starts, and outlives whoever asked for it by seconds only.

``python -m linerate.testbed.keeper`` reads one :class:`~linerate.testbed.keeper_plan.KeeperPlan` as a JSON line on standard
input, sets it up, and answers one JSON line: ``{"ready": true, "processes": {name: facts}}``, or
``{"error": "sentence"}`` once everything is taken down again. Then it watches: ``{"died": name, "status": n,
"tail": …, "again": s}`` for a process that ended, and where that one had asked for it (s is not null), ``{"again":
name}`` once it was started again. ``{"stop": true}`` takes the testbed down and is answered with
``{"stopped": true, "failures": […]}``. The end of standard input (the owner is gone) and SIGTERM do the same. SIGINT
and SIGHUP are not for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from ..system.identity import identify
from .keeper_child import Child, Failed
from .keeper_plan import KeeperPlan
from .leases import MARK, Lease, end_all, remove_folder, run_command

ORDERLY = 1.5
"""Seconds that all processes together have to end by themselves, before they are made to."""

PROMPT = 0.7
"""Seconds between SIGTERM and SIGKILL after that."""

_SET_CHILD_SUBREAPER = 36


class _Stop(Exception):
    """The owner wants the testbed taken down, or is gone."""


class _Inbox:
    """What can happen to a keeper: the owner speaks or goes, a signal arrives, a process writes."""

    def __init__(self) -> None:
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        self._text = b""
        self._stop = False
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # handlers that do nothing, not SIG_IGN, which the processes started here would inherit
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self._stop = True

    def line(self) -> bytes:
        """The next whole line of the owner. Raises _Stop where there is none to come."""
        while b"\n" not in self._text:
            self.wait((), None)
        line, _, self._text = self._text.partition(b"\n")
        return line

    def told_to_stop(self) -> bool:
        """Whether the owner has said ``{"stop": true}``; other lines are passed over."""
        while b"\n" in self._text:
            with contextlib.suppress(ValueError, AttributeError):
                if json.loads(self.line()).get("stop") is True:
                    return True
        return False

    def wait(self, descriptors: Iterable[int], seconds: float | None) -> list[int]:
        """Those of *descriptors* that can be read, after at most *seconds*. Raises _Stop when the owner is gone."""
        if self._stop:
            raise _Stop
        found, _, _ = select.select([0, self._wake, *descriptors], [], [], seconds)
        if self._wake in found:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if 0 in found:
            said = os.read(0, 65536)
            self._text += said
            if not said:
                self._stop = True
        if self._stop:
            raise _Stop
        return [descriptor for descriptor in found if descriptor not in (0, self._wake)]


class Keeper:
    """Sets a plan up, watches it, takes it down."""

    def __init__(self, plan: KeeperPlan, inbox: _Inbox) -> None:
        self._plan = plan
        self._inbox = inbox
        self._children: list[Child] = []
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._due: list[tuple[float, Child]] = []
        os.environ[MARK] = plan.lease
        self._lease = Lease(
            Path(plan.lease), identify(os.getpid()), teardown=plan.teardown, folders=tuple(plan.folders)
        )

    def set_up(self) -> dict[str, Mapping[str, Any]]:
        """Everything of the plan, in order; what each process said. Raises Failed or _Stop half way."""
        self._lease.write()
        for argv in self._plan.setup:
            self._inbox.wait((), 0)
            failure = run_command(argv)
            if failure:
                raise Failed(failure)
        facts: dict[str, Mapping[str, Any]] = {}
        for plan in self._plan.processes:
            self._inbox.wait((), 0)
            child = Child(plan, facts)
            self._children.append(child)
            facts[plan.name] = self._begin(child)
        self._facts = facts
        return facts

    def _begin(self, child: Child) -> Mapping[str, Any]:
        with contextlib.suppress(ProcessLookupError):
            known = (*self._lease.processes, identify(child.process.pid))
            self._lease = replace(self._lease, processes=known)
            self._lease.write()
        return self._await(child)

    def watch(self) -> None:
        """Report deaths until told to stop; raises _Stop then."""
        while True:
            # first: while it waits, others may end
            self._start_again()
            for child in self._children:
                if child.process.poll() is not None and not child.reported:
                    child.reported = True
                    child.read_all()
                    after = child.again.after if child.again else None
                    status = child.process.returncode
                    say({"died": child.plan.name, "status": status, "tail": child.tail(), "again": after})
                    if child.again is not None:
                        self._due.append((time.monotonic() + child.again.after, child))
            self._reap()
            open_ends = {child.descriptor: child for child in self._children if child.descriptor is not None}
            wait = min((moment for moment, _ in self._due), default=None)
            seconds = None if wait is None else max(0.0, wait - time.monotonic())
            for descriptor in self._inbox.wait([end for end in open_ends if end is not None], seconds):
                open_ends[descriptor].read()
            if self._inbox.told_to_stop():
                raise _Stop

    def _start_again(self) -> None:
        """Start what asked for it and whose moment has come; one that cannot be started stays dead."""
        now = time.monotonic()
        due, self._due = [row for row in self._due if row[0] <= now], [row for row in self._due if row[0] > now]
        for _, child in due:
            with contextlib.suppress(Failed):
                new = Child(child.successor(), self._facts)
                self._children[self._children.index(child)] = new
                self._begin(new)
                say({"again": new.plan.name})

    def take_down(self) -> list[str]:
        """Everything in reverse order, each step tried; a sentence for each that failed."""
        failures = []
        until = time.monotonic() + ORDERLY
        for child in reversed(self._children):
            child.ask_to_end()
            began = time.monotonic()
            child.gone_within(child.plan.grace or min(ORDERLY / 2, until - began))
            until += time.monotonic() - began if child.plan.grace else 0.0
        # the rest: those that would not, and what the processes themselves left behind (this process adopts it)
        names = {child.process.pid: child.plan.name for child in self._children if child.process.poll() is None}
        for process in end_all(psutil.Process().children(recursive=True), PROMPT):
            if process.pid in names:
                failures.append(f"'{names[process.pid]}' had to be killed")
        self._reap()
        failures += [failure for argv in self._plan.teardown if (failure := run_command(argv))]
        runtime = self._lease.path.parent
        for folder in self._plan.folders:
            if not remove_folder(Path(folder), runtime):
                shutil.rmtree(folder, ignore_errors=True)
        self._lease.path.unlink(missing_ok=True)
        return failures

    def _await(self, child: Child) -> Mapping[str, Any]:
        name, limit = child.plan.name, child.plan.limit
        until = time.monotonic() + limit
        while True:
            over = time.monotonic() > until
            status = child.process.poll()
            found = child.ready()
            if found is not None:
                return found
            if status is not None and child.descriptor is None:
                raise Failed(f"'{name}' ended with status {status} before it was ready{_quote(child.tail())}")
            if over:
                raise Failed(f"'{name}' was not ready within {limit:g} s{_quote(child.tail())}")
            ends = [] if child.descriptor is None else [child.descriptor]
            if self._inbox.wait(ends, 0.05):
                child.read()

    def _reap(self) -> None:
        """Take the exit status of adopted processes, and leave that of our own to their Popen objects."""
        mine = {child.process.pid: child for child in self._children}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid in mine:
                mine[found.si_pid].process.poll()
            else:
                os.waitpid(found.si_pid, os.WNOHANG)


def say(data: Mapping[str, Any]) -> None:
    """One JSON line to the owner; nothing where there is none left."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(data).encode() + b"\n")


def _adopt() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes (prctl(2), Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _quote(tail: str) -> str:
    return f"; its log ends: {tail}" if tail else "; its log is empty"


def main() -> int:
    """Keep one testbed; 0 when it was taken down, 1 when it could not be set up."""
    inbox = _Inbox()
    _adopt()
    try:
        keeper = Keeper(KeeperPlan.from_json(inbox.line()), inbox)
    except _Stop:
        return 0
    except (ValueError, KeyError, TypeError) as error:
        say({"error": f"the keeper was given a plan that it cannot read: {error}"})
        return 1
    answer: dict[str, Any] = {}
    try:
        say({"ready": True, "processes": keeper.set_up()})
        keeper.watch()
    except _Stop:
        answer = {"stopped": True}
    except Failed as error:
        answer = {"error": str(error)}
    except Exception as error:
        answer = {"error": f"the keeper of the testbed failed: {type(error).__name__}: {error}"}
    finally:
        failures = keeper.take_down()
    say({**answer, "failures": failures})
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
