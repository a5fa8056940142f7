"""The owner's end of a keeper: start it, receive its reports, stop it. The owner is Robot's process, or ``serve``."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import TestbedError, in_words
from ..json_text import parse_json
from ..system import children
from .keeper_plan import Facts, KeeperPlan
from .kept_logs import log_end
from .leases import COMMAND_LIMIT, release

CLOSE_LIMIT = 5.0
"""Seconds that a keeper has to take its testbed down, beside the time of its teardown commands."""


@dataclass(frozen=True, slots=True)
class Death:
    """A process of the testbed that ended by itself. ``status`` as subprocess reports it (negative: by that signal).

    ``restarted``: it was started again since; ``restart_due``: it will be.
    """

    name: str
    status: int
    tail: str = ""
    restarted: bool = False
    restart_due: bool = False

    def __str__(self) -> str:
        how = f"signal {-self.status}" if self.status < 0 else f"status {self.status}"
        return (
            f"the testbed's process '{self.name}' ended with {how}"
            + (f"; its log ends: {self.tail}" if self.tail else "")
            + ("; it was started again" if self.restarted else "")
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
        """After :meth:`close`: each step of the teardown that failed, in words."""
        self._log = Path(plan.lease).with_suffix("") / "keeper.log"
        with self._log.open("ab") as log:
            # a session of its own: Ctrl-C in the terminal reaches the owner only, which then stops the keeper in order
            self._process = children.start(
                children.python("lineproof.testbed.keeper"),
                stdin=children.PIPE,
                stdout=children.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True, name="keeper-reader")
        self._reader.start()

    @classmethod
    def start(cls, plan: KeeperPlan) -> KeeperClient:
        """Set *plan* up. Raises TestbedError, with everything taken down again, if that fails."""
        limit = 10.0 + sum(process.limit for process in plan.processes) + COMMAND_LIMIT * len(plan.setup)
        client = cls(plan)
        try:
            children.send_line(client._process, plan.to_json())
            answer = client._answer(limit)
            if answer is None:
                raise TestbedError(f"the keeper of the testbed did not answer{client._log_end()}")
            if "error" in answer:
                raise TestbedError(str(answer["error"]))
            client.facts = answer["processes"]
        except BaseException:
            client.close()
            raise
        return client

    @property
    def pid(self) -> int:
        """Process id of the keeper."""
        return self._process.pid

    def deaths(self) -> tuple[Death, ...]:
        """The processes that ended by themselves since the start, in order."""
        with self._lock:
            found = list(self._deaths)
        if not self._closed and self._process.poll() is not None:
            found.append(Death("keeper", self._process.returncode))
        return tuple(found)

    def forget_restarted(self, limit: float = 0.0) -> None:
        """Forget the ends of processes that were started again; waits up to *limit* s for restarts that are due."""
        until = time.monotonic() + limit
        while any(death.restart_due for death in self.deaths()) and time.monotonic() < until:
            time.sleep(0.02)
        with self._lock:
            self._deaths = [death for death in self._deaths if not death.restarted]

    def close(self) -> None:
        """Take the testbed down and wait for that; harmless when repeated."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        limit = CLOSE_LIMIT + COMMAND_LIMIT * len(self._plan.teardown)
        limit += sum(process.grace for process in self._plan.processes)
        try:
            children.send_line(self._process, '{"stop": true}')
            with contextlib.suppress(OSError):
                if self._process.stdin:
                    self._process.stdin.close()
            until = time.monotonic() + limit
            while (answer := self._answer(until - time.monotonic())) is not None:
                if "failures" in answer:
                    self.failures = tuple(answer["failures"])
                    break
            self._process.wait(max(1.0, until - time.monotonic()))
        except children.TimeoutExpired:
            self.failures = (*self.failures, f"the keeper did not end within {limit:g} s and was killed")
            self._process.kill()
            self._process.wait(5)
        # an interrupt passes through unhandled: the keeper goes on by itself, because its input has ended
        self._reader.join(1)
        if self._process.stdout and not self._reader.is_alive():
            self._process.stdout.close()
        # if the keeper was killed, or never started, the lease names what is left
        try:
            left = release(Path(self._plan.lease))
        except (TestbedError, OSError) as error:  # a runtime folder that cannot be written ends no run
            left = [in_words(error)]
        self.failures = (*self.failures, *left)

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        with contextlib.suppress(queue.Empty):
            answer = self._answers.get(timeout=max(0.0, seconds))
            if answer is None:
                # the end stays the end for later calls
                self._answers.put(None)
            return answer
        return None

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                data = parse_json(line, own=True)
                if "died" in data:
                    with self._lock:
                        self._note_restart(data["died"], restarted=False)
                        restart_due = data.get("again") is not None
                        death = Death(data["died"], data["status"], data.get("tail", ""), restart_due=restart_due)
                        self._deaths.append(death)
                elif "again" in data:
                    with self._lock:
                        self._note_restart(data["again"], restarted=True)
                else:
                    self._answers.put(data)
        self._answers.put(None)

    def _note_restart(self, name: str, restarted: bool) -> None:
        """The restart that was due for *name* happened, or did not."""
        self._deaths = [
            replace(row, restarted=restarted, restart_due=False) if row.name == name and row.restart_due else row
            for row in self._deaths
        ]

    def _log_end(self) -> str:
        text = log_end(self._log)
        return f"; its log ends: {text}" if text else ""
