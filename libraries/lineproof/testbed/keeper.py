"""The keeper: one process that owns everything a testbed starts, and takes it down when its owner has ended.

``python -m lineproof.testbed.keeper`` reads one :class:`~lineproof.testbed.keeper_plan.KeeperPlan` as a JSON line on
standard input, sets it up, and answers one JSON line: ``{"ready": true, "processes": {name: facts}}``, or
``{"error": "sentence"}`` once everything is taken down again. Then it reports: ``{"died": name, "status": n,
"tail": …, "again": s}`` for a process that ended; if that process asked for a restart (s is not null), ``{"again":
name}`` follows the restart. ``{"stop": true}`` takes the testbed down and is answered with
``{"stopped": true, "failures": […]}``. The end of standard input (the owner has ended), SIGTERM and SIGQUIT do the
same. SIGINT and SIGHUP are ignored.
"""

from __future__ import annotations

import contextlib
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

from ..errors import TestbedError, in_words
from ..json_text import parse_json
from ..system.descendants import become_subreaper
from ..system.identity import identify
from .keeper_plan import KeeperPlan
from .kept_process import KeptProcess, SetupFailed
from .leases import LEASE_VARIABLE, Lease, end_all, remove_folder, run_command

ORDERLY_LIMIT = 1.5
"""Seconds that all processes together have to end in order."""

KILL_AFTER = 0.7
"""Seconds from SIGTERM to SIGKILL after that."""


class _StopRequested(Exception):
    """The owner asked for the end of the testbed, or has ended itself."""


class _Events:
    """What the keeper waits for: a line or the end of its owner, a signal, output of a process."""

    def __init__(self) -> None:
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        self._text = b""
        self._stopping = False
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # empty handlers: SIG_IGN would be inherited by the processes started here
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGQUIT):
            signal.signal(number, self._end)

    def _end(self, *_: object) -> None:
        self._stopping = True

    def next_line(self) -> bytes:
        """The owner's next whole line. Raises _StopRequested when none will come."""
        while b"\n" not in self._text:
            self.wait((), None)
        line, _, self._text = self._text.partition(b"\n")
        return line

    def stop_requested(self) -> bool:
        """Whether the owner sent ``{"stop": true}``; other lines are ignored."""
        while b"\n" in self._text:
            with contextlib.suppress(ValueError, AttributeError):
                if parse_json(self.next_line(), own=True).get("stop") is True:
                    return True
        return False

    def wait(self, descriptors: Iterable[int], seconds: float | None) -> list[int]:
        """Those of *descriptors* that can be read, after *seconds* at most. Raises _StopRequested."""
        if self._stopping:
            raise _StopRequested
        found, _, _ = select.select([0, self._wake, *descriptors], [], [], seconds)
        if self._wake in found:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if 0 in found:
            received = os.read(0, 65536)
            self._text += received
            if not received:
                self._stopping = True
        if self._stopping:
            raise _StopRequested
        return [descriptor for descriptor in found if descriptor not in (0, self._wake)]


class Keeper:
    """Sets a plan up, watches it, takes it down."""

    def __init__(self, plan: KeeperPlan, events: _Events) -> None:
        self._plan = plan
        self._events = events
        self._processes: list[KeptProcess] = []
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._restarts: list[tuple[float, KeptProcess]] = []
        os.environ[LEASE_VARIABLE] = plan.lease
        self._lease = Lease(
            Path(plan.lease), identify(os.getpid()), teardown=plan.teardown, folders=tuple(plan.folders)
        )

    def set_up(self) -> dict[str, Mapping[str, Any]]:
        """Run the whole plan in order; returns each process's facts. Raises SetupFailed or _StopRequested half way."""
        self._lease.write()
        for argv in self._plan.setup:
            self._events.wait((), 0)
            if failure := run_command(argv):
                raise SetupFailed(failure)
        for plan in self._plan.processes:
            self._events.wait((), 0)
            process = KeptProcess(plan, self._facts)
            self._processes.append(process)
            self._note(process)
            self._facts[plan.name] = self._await_ready(process)
        return self._facts

    def _note(self, process: KeptProcess) -> None:
        with contextlib.suppress(ProcessLookupError):
            known = (*self._lease.processes, identify(process.popen.pid))
            self._lease = replace(self._lease, processes=known)
            self._lease.write()

    def watch(self) -> None:
        """Report processes that end, until a stop is requested; raises _StopRequested then."""
        while True:
            # first: during a restart other processes may end
            self._restart_due()
            for process in self._processes:
                if process.popen.poll() is not None and not process.reported:
                    process.reported = True
                    process.read_rest()
                    after = process.restart.after if process.restart else None
                    status = process.popen.returncode
                    send({"died": process.plan.name, "status": status, "tail": process.log_end(), "again": after})
                    if process.restart is not None:
                        self._restarts.append((time.monotonic() + process.restart.after, process))
            self._reap()
            open_ends = {process.descriptor: process for process in self._processes if process.descriptor is not None}
            wait = min((moment for moment, _ in self._restarts), default=None)
            seconds = None if wait is None else max(0.0, wait - time.monotonic())
            for descriptor in self._events.wait([end for end in open_ends if end is not None], seconds):
                open_ends[descriptor].read()
            if self._events.stop_requested():
                raise _StopRequested

    def _restart_due(self) -> None:
        """Start the processes whose restart is due; one that cannot be started stays ended."""
        now = time.monotonic()
        due = [row for row in self._restarts if row[0] <= now]
        self._restarts = [row for row in self._restarts if row[0] > now]
        for _, process in due:
            with contextlib.suppress(SetupFailed, OSError):
                new = KeptProcess(process.restart_plan(), self._facts)
                self._processes[self._processes.index(process)] = new
                with contextlib.suppress(TestbedError):  # the runtime folder takes nothing now: the run goes on
                    self._note(new)
                self._await_ready(new)
                send({"again": new.plan.name})

    def take_down(self) -> list[str]:
        """Undo everything in reverse order, every step even if one fails; a sentence for each failure."""
        until = time.monotonic() + ORDERLY_LIMIT
        for process in reversed(self._processes):
            process.request_end()
            began = time.monotonic()
            process.ends_within(process.plan.grace or min(ORDERLY_LIMIT / 2, until - began))
            until += time.monotonic() - began if process.plan.grace else 0.0
        # what is left: processes that did not end, and descendants, which this process has adopted
        names = {process.popen.pid: process.plan.name for process in self._processes if process.popen.poll() is None}
        killed = end_all(psutil.Process().children(recursive=True), KILL_AFTER)
        failures = [f"'{names[process.pid]}' had to be killed" for process in killed if process.pid in names]
        self._reap()
        failures += [failure for argv in self._plan.teardown if (failure := run_command(argv))]
        runtime = self._lease.path.parent
        for folder in self._plan.folders:
            if not remove_folder(Path(folder), runtime):
                shutil.rmtree(folder, ignore_errors=True)
        try:
            self._lease.path.unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"a lease stays: {in_words(error)}")
        return failures

    def _await_ready(self, process: KeptProcess) -> Mapping[str, Any]:
        name, limit = process.plan.name, process.plan.limit
        until = time.monotonic() + limit
        while True:
            too_late = time.monotonic() > until
            status = process.popen.poll()
            found = process.ready()
            if found is not None:
                return found
            if status is not None and process.descriptor is None:
                raise SetupFailed(f"'{name}' ended with status {status} before it was ready{_log_end(process)}")
            if too_late:
                raise SetupFailed(f"'{name}' was not ready within {limit:g} s{_log_end(process)}")
            ends = [] if process.descriptor is None else [process.descriptor]
            if self._events.wait(ends, 0.05):
                process.read()

    def _reap(self) -> None:
        """Collect the exit status of adopted processes; that of its own processes belongs to their Popen objects."""
        own = {process.popen.pid: process for process in self._processes}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid in own:
                own[found.si_pid].popen.poll()
            else:
                os.waitpid(found.si_pid, os.WNOHANG)


def send(data: Mapping[str, Any]) -> None:
    """Write one JSON line to the owner, if it still reads."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(data).encode() + b"\n")


def _log_end(process: KeptProcess) -> str:
    end = process.log_end()
    return f"; its log ends: {end}" if end else "; its log is empty"


def main() -> int:
    """Keep one testbed; returns 0 when it was taken down, 1 when it could not be set up."""
    events = _Events()
    become_subreaper()
    try:
        keeper = Keeper(KeeperPlan.from_json(events.next_line()), events)
    except _StopRequested:
        return 0
    except (ValueError, KeyError, TypeError) as error:
        send({"error": f"the keeper was given a plan that it cannot read: {error}"})
        return 1
    answer: dict[str, Any] = {}
    try:
        send({"ready": True, "processes": keeper.set_up()})
        keeper.watch()
    except _StopRequested:
        answer = {"stopped": True}
    except SetupFailed as error:
        answer = {"error": str(error)}
    except Exception as error:  # whoever waits for the answer gets one, and all is taken down
        answer = {"error": f"the testbed cannot be kept: {in_words(error)}"}
    finally:
        failures = keeper.take_down()
    send({**answer, "failures": failures})
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
