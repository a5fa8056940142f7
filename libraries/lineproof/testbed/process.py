"""Processes of a testbed: their start, what they report, their log, their end. They live as long as their testbed.

Beside them the facts of an open testbed: the addresses of its generator and router, and the cables.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..core.telemetry import Side
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words, system_words
from ..files import not_written
from ..generators.site import GeneratorEndpoint
from ..system import children
from ..system.folders import ELSEWHERE, runtime_folder
from ..system.login import Login
from ..system.ssh import RemoteChild
from ..system.ssh_shell import plain_text

POLL = 0.02
"""Seconds between two looks."""

ANSWER_LIMIT = 2.0
"""Seconds for the answer to a request."""

LOG_LENGTH = 1 << 20
"""Bytes from the end of a log that are kept."""

NO_ROUTER = Login.model_construct(address="", user="")
"""In place of the router's login while it is bypassed."""


@dataclass(frozen=True, slots=True)
class TestbedFacts:
    """An open testbed.

    ``sides``: one for each of the generator's ports, in their order; a ``peer_mac`` of "" is filled in from the
    generator's port once that is known.
    ``clock_speed``: seconds of the testbed's clock per second of real time.
    ``simulated``: no real frames; every result must be marked so. ``label``: for reports, one line.
    """

    generator: GeneratorEndpoint
    router: Login
    sides: tuple[Side, ...]
    label: str
    clock_speed: float = 1.0
    simulated: bool = False
    namespaces: tuple[str, ...] = ()
    """Network namespaces of this machine, as paths below /proc: the generator's first, the router's last."""
    sender: int | None = None
    """The process whose descendants send on this machine's interfaces to a router that is this machine's kernel."""


class TestbedProcess:
    """A process that is ready once it is made; if it is not, it is ended, and TestbedError raised.

    *argv* runs here, or at *login* in a terminal, as a command of the shell there. *name*: for messages.

    *specification*: a JSON object, its first line on standard input, which then stays open: its end asks the process to
    end, so a killed owner leaves none. ``ends_with_parent`` in it: the process may ask for a signal then, too.
    *answers*: it is ready when this raises neither OSError nor TestbedError; None: when it says so, by
    ``{"ready": true, …}`` or ``{"error": "sentence"}``. Its log is its standard error, and its output where it says
    nothing. *limit*: s until it is ready; *grace*: s for its end.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        specification: Mapping[str, Any] | None = None,
        *,
        login: Login | None = None,
        answers: Callable[[], object] | None = None,
        limit: float = 15.0,
        grace: float = 4.0,
    ) -> None:
        self.name, self._grace, self._closed = name, grace, False
        # in memory: nothing of it stays where this process is killed
        self._log = log = os.memfd_create(name)
        try:
            self._child = (
                RemoteChild(login, f"the host of '{name}'", " ".join(argv), log)
                if login
                else children.Child(argv, stdout=children.PIPE if answers is None else log, stderr=log)
            )
        except (OSError, TestbedError) as error:
            os.close(log)
            why = system_words(error, argv[0]) if isinstance(error, OSError) else error
            raise TestbedError(f"'{name}' cannot be started: {why}") from None
        self.pid: int = getattr(self._child, "pid", 0)
        try:
            if specification is not None:
                # Linux takes the end of the thread for that of the parent: only the main thread lasts
                lasting = threading.current_thread() is threading.main_thread()
                self._child.send(json.dumps({**specification, "ends_with_parent": lasting}))
            self.facts = self._await(partial(self._answering, answers) if answers else self.hear, limit)
            if "error" in self.facts:
                raise TestbedError(self.facts["error"])
        except BaseException:
            self.close()
            raise

    def _await(self, ready: Callable[[], Mapping[str, Any] | None], limit: float) -> Mapping[str, Any]:
        """Return what *ready* gives: None, OSError and TestbedError say that it is not, for *limit* s at most."""
        until, problem = time.monotonic() + limit, ""
        while True:
            status = self.status()
            try:
                if (answer := ready()) is not None:
                    return answer
            except (OSError, TestbedError) as error:
                problem = f" ({error})"
            if status is not None or time.monotonic() > until:
                late = f"was not ready within {limit:g} s{problem}"
                reason = late if status is None else f"ended with status {status} before it was ready"
                raise TestbedError(f"'{self.name}' {reason}; {self._log_end()}")

    def _answering(self, answers: Callable[[], object]) -> Mapping[str, Any] | None:
        """Return a mapping once *answers* raises no error while this runs: else another program answers."""
        time.sleep(POLL)
        answers()
        return {} if self.status() is None else None

    def status(self) -> int | None:
        """Return its exit status, below 0 after a signal; None while it runs."""
        return self._child.poll()

    def problems(self) -> tuple[str, ...]:
        """Return a sentence if it ended by itself."""
        status = self.status()
        if self._closed or status is None:
            return ()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return (f"the testbed's process '{self.name}' ended with {how}; {self._log_end()}",)

    def log(self) -> str:
        """Return the last MB of what it wrote; "" once it is closed."""
        with contextlib.suppress(OSError):
            return os.pread(self._log, LOG_LENGTH, max(0, os.fstat(self._log).st_size - LOG_LENGTH)).decode(
                errors="replace"
            )
        return ""

    def _log_end(self) -> str:
        end = log_end(self.log())
        return f"its log ends: {end}" if end else "its log is empty"

    def hear(self, wait: float = POLL) -> dict[str, Any] | None:
        """Return what it says next; None if it says nothing within *wait* s."""
        try:
            said: dict[str, Any] = json.loads(self._child.line(wait))
        except (TimeoutError, EOFError):
            return None
        return said

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send *request* and wait for its answer. Raises TestbedError if that is an error, or does not come."""
        while self.hear() is not None:
            pass
        self._child.send(json.dumps(request))
        answer = self.hear(ANSWER_LIMIT) or {"error": "it gave no answer"}
        if "error" in answer:
            raise TestbedError(f"the testbed's process '{self.name}' refused: {answer['error']}")

    def request_end(self) -> None:
        """Ask it to end."""
        self._closed = True
        self._child.ask_end()

    def close(self) -> str:
        """End it, by force after its grace; return "", or a sentence if it had to be killed. Harmless when repeated."""
        self._closed = True
        ended = self._child.end(self._grace)
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        return "" if ended else f"'{self.name}' had to be killed"


class Belongings:
    """Everything that was started for a testbed, and what it needs. Made empty; :meth:`close` it.

    Where the owner is killed instead, the processes end with it, and one of them removes the folder.
    """

    def __init__(self) -> None:
        self.programs: list[TestbedProcess] = []
        self._ends: list[Callable[[], str | None]] = []

    @cached_property
    def folder(self) -> Path:
        """Return the folder of its keys and logs, made at the first call, and removed after all kept then.

        Raises TestbedError where the runtime folder is not ours, or cannot be written.
        """
        runtime = runtime_folder()
        try:
            made = Path(tempfile.mkdtemp(prefix="", dir=runtime))
        except OSError as error:
            raise not_written(runtime, error, ELSEWHERE) from error
        self.later(partial(shutil.rmtree, made, ignore_errors=True))
        return made

    def keep(self, program: TestbedProcess) -> TestbedProcess:
        """Keep a process that was started."""
        self.programs.append(program)
        self._ends.append(program.close)
        return program

    def later(self, close: Callable[[], None]) -> None:
        """Call *close* after the programs that are kept from now on have ended."""
        self._ends.append(close)

    def logs(self) -> dict[str, str]:
        """Return the last MB of each log that has any text, by the name of its program."""
        return {program.name: text for program in self.programs if (text := program.log())}

    def close(self) -> tuple[str, ...]:
        """End all in reverse order, every step even if one fails; a sentence for each failure."""
        failures = list[str | None]()
        for program in self.programs:
            program.request_end()
        while self._ends:
            try:
                failures.append(self._ends[-1]())
            except BREAKDOWN_ERRORS as error:
                failures.append(in_words(error))
            # only now: after an interrupt the next call goes on here
            self._ends.pop()
        return tuple(filter(None, failures))


LOG_TAIL = 600
"""Characters of a log that an error quotes."""


def log_end(log: str) -> str:
    """Return the end of *log* in one line; "" where it has no words."""
    lines = (" ".join(line.split()) for line in plain_text(log).splitlines())
    # without lines of dashes and the like
    text = "; ".join(line for line in lines if re.search("[A-Za-z]{3}", line))
    return text if len(text) <= LOG_TAIL else "…" + text[-LOG_TAIL:]
