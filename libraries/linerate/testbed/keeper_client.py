"""The owner's end of a keeper: start it, hear of deaths, stop it. The owner is Robot's process, or ``serve``."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import TestbedError
from .keeper_plan import Facts, KeeperPlan
from .leases import COMMAND_LIMIT, release

CLOSE_LIMIT = 5.0
"""Seconds that a keeper has to take its testbed down, before what its teardown commands may need."""


@dataclass(frozen=True, slots=True)
class Death:
    """A process of the testbed that ended by itself. ``status`` as of subprocess (negative: by that signal).

    ``again``: it was started again since; ``returning``: it is about to be.
    """

    name: str
    status: int
    tail: str = ""
    again: bool = False
    returning: bool = False

    def __str__(self) -> str:
        how = f"signal {-self.status}" if self.status < 0 else f"status {self.status}"
        return (
            f"the testbed's process '{self.name}' ended with {how}"
            + (f"; its log ends: {self.tail}" if self.tail else "")
            + ("; it was started again" if self.again else "")
        )


class KeeperClient:
    """A running keeper. Make one with :meth:`start`; :meth:`close` it, or be killed: both end the testbed."""

    def __init__(self, plan: KeeperPlan) -> None:
        self._plan = plan
        self._deaths: list[Death] = []
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self.facts: Facts = {}
        self.failures: tuple[str, ...] = ()
        """After :meth:`close`: what of the teardown failed."""
        self._log = Path(plan.lease).with_suffix("") / "keeper.log"
        with self._log.open("ab") as log:
            # a session of its own: Ctrl-C in the terminal goes to the owner, who then stops the keeper in order
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "linerate.testbed.keeper"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True, name="keeper-reader")
        self._reader.start()

    @classmethod
    def start(cls, plan: KeeperPlan) -> KeeperClient:
        """Set *plan* up. Raises TestbedError, with everything taken down again, where that fails."""
        limit = 10.0 + sum(process.limit for process in plan.processes) + COMMAND_LIMIT * len(plan.setup)
        client = cls(plan)
        try:
            client._send(plan.to_json())
            answer = client._answer(limit)
            if answer is None:
                raise TestbedError(f"the keeper of the testbed did not answer{client._said()}")
            if "error" in answer:
                raise TestbedError(str(answer["error"]))
            client.facts = answer["processes"]
        except BaseException:
            client.close()
            raise
        return client

    @property
    def pid(self) -> int:
        """The keeper's process id."""
        return self._process.pid

    def deaths(self) -> tuple[Death, ...]:
        """The processes that ended by themselves since the start, first one first."""
        with self._lock:
            found = list(self._deaths)
        if not self._closed and self._process.poll() is not None:
            found.append(Death("keeper", self._process.returncode))
        return tuple(found)

    def forgive(self, limit: float = 0.0) -> None:
        """Tell no more of those that were started again since they ended, once none is about to be, in *limit* s."""
        until = time.monotonic() + limit
        while any(death.returning for death in self.deaths()) and time.monotonic() < until:
            time.sleep(0.02)
        with self._lock:
            self._deaths = [death for death in self._deaths if not death.again]

    def close(self) -> None:
        """Take the testbed down and wait for it; harmless when repeated."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        limit = CLOSE_LIMIT + COMMAND_LIMIT * len(self._plan.teardown)
        limit += sum(process.grace for process in self._plan.processes)
        try:
            self._send('{"stop": true}')
            with contextlib.suppress(OSError):
                if self._process.stdin:
                    self._process.stdin.close()
            until = time.monotonic() + limit
            while (answer := self._answer(until - time.monotonic())) is not None:
                if "failures" in answer:
                    self.failures = tuple(answer["failures"])
                    break
            self._process.wait(max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.failures = (*self.failures, f"the keeper did not end within {limit:g} s and was killed")
            self._process.kill()
            self._process.wait(5)
        # an interrupt passes through here unhandled: the keeper goes on by itself, for its input has ended
        self._reader.join(1)
        if self._process.stdout and not self._reader.is_alive():
            self._process.stdout.close()
        # if the keeper was killed, or never began, its lease says what is left
        self.failures = (*self.failures, *release(Path(self._plan.lease)))

    def _send(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        with contextlib.suppress(queue.Empty):
            answer = self._answers.get(timeout=max(0.0, seconds))
            if answer is None:
                # nothing comes after the end, however often it is asked for
                self._answers.put(None)
            return answer
        return None

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                data = json.loads(line)
                if "died" in data:
                    with self._lock:
                        self._settle(data["died"], again=False)
                        returning = data.get("again") is not None
                        death = Death(data["died"], data["status"], data.get("tail", ""), returning=returning)
                        self._deaths.append(death)
                elif "again" in data:
                    with self._lock:
                        self._settle(data["again"], again=True)
                else:
                    self._answers.put(data)
        self._answers.put(None)

    def _settle(self, name: str, again: bool) -> None:
        """Those called *name* that were about to be started again were, or were not."""
        self._deaths = [
            replace(row, again=again, returning=False) if row.name == name and row.returning else row
            for row in self._deaths
        ]

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            text = self._log.read_text(encoding="utf-8", errors="replace").strip()
            return f"; it said: {text[-600:]}" if text else ""
        return ""


def environment() -> dict[str, str]:
    """This process's environment, in which a child of the same interpreter finds this package, installed or not."""
    found = dict(os.environ)
    home = str(Path(__file__).resolve().parents[2])
    # an installed package is found anyway, and site-packages must not come before the standard library
    if home not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        rest = found.get("PYTHONPATH")
        found["PYTHONPATH"] = home if not rest else os.pathsep.join((home, rest))
    return found
