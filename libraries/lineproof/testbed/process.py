"""A process of the testbed: its start, its ready line, what it reports, its end. It lives as long as its testbed.

It gets one JSON object as a line on standard input, which then stays open: its end asks the process to end, so a
killed owner leaves none. ``ends_with_parent`` in it: the process may ask for a signal then, too. It answers
``{"ready": true, …}`` or ``{"error": "sentence"}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words, system_words
from ..files import not_written
from ..json_text import parse_json
from ..system import children
from ..system.folders import ELSEWHERE, runtime_folder
from ..system.ssh_terminal import terminal_text

POLL = 0.02
"""Seconds between two looks."""

ANSWER_LIMIT = 2.0
"""Seconds for the answer to a request."""


class TestbedProcess:
    """A process that is ready once it is made. Raises TestbedError, with the process ended, where it is not.

    *specification*: its first line, if any. *answers*: it is ready when this raises neither OSError nor TestbedError;
    None: when it says so. *log*: the file for its standard error, and its output where it says nothing. *more*:
    environment variables as they are. *limit*: s until it is ready; *grace*: s for its end.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        specification: Mapping[str, Any] | None = None,
        *,
        answers: Callable[[], object] | None = None,
        more: Mapping[str, str] | None = None,
        limit: float = 15.0,
        grace: float = 4.0,
    ) -> None:
        self.name, self._log, self._grace = name, log, grace
        self._answers: list[dict[str, Any]] = []
        self._text = b""
        self._closed = False
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as errors:
            try:
                # a session of its own: Ctrl-C in the terminal reaches the owner only, which ends its processes in order
                self._child = children.start(
                    argv,
                    stdin=children.PIPE,
                    stdout=children.PIPE if answers is None else errors,
                    stderr=errors,
                    env=children.environment(more),
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                raise TestbedError(f"'{name}' cannot be started: {system_words(error, argv[0])}") from None
        try:
            if specification is not None:
                # Linux takes the end of the thread for that of the parent: only the main thread lasts
                lasting = threading.current_thread() is threading.main_thread()
                children.send_line(self._child, json.dumps({**specification, "ends_with_parent": lasting}))
            self.facts: Mapping[str, Any] = self._await_ready(answers, limit)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Return whether it runs."""
        return self._child.poll() is None

    def _await_ready(self, answers: Callable[[], object] | None, limit: float) -> Mapping[str, Any]:
        until, problem = time.monotonic() + limit, ""
        while True:
            ended = self._child.poll() is not None
            if answers is None:
                self._hear(POLL)
                if self._answers:
                    answer = self._answers.pop(0)
                    if "error" in answer:
                        raise TestbedError(answer["error"])
                    return answer
            else:
                try:
                    answers()
                    if not ended:  # else another process answers
                        return {}
                except (OSError, TestbedError) as error:
                    problem = f" ({error})"
                time.sleep(POLL)
            if ended:
                status = self._child.returncode
                raise TestbedError(f"'{self.name}' ended with status {status} before it was ready{self._quoted_log()}")
            if time.monotonic() > until:
                raise TestbedError(f"'{self.name}' was not ready within {limit:g} s{problem}{self._quoted_log()}")

    def _quoted_log(self) -> str:
        if not (end := log_end(self._log)):
            return "; its log is empty"
        copy = keep_log(self._log)
        return f"; its log ends: {end}" + (f" (all of it is in {copy})" if copy else "")

    def _hear(self, seconds: float) -> None:
        """Read what it has written, for which this waits *seconds* at most."""
        out = self._child.stdout
        while out is not None and not out.closed and select.select([out], [], [], seconds)[0]:
            received = os.read(out.fileno(), 65536)
            if not received:
                out.close()
            *lines, self._text = (self._text + received).split(b"\n")
            self._answers += [parse_json(line, own=True) for line in lines]
            seconds = 0.0

    def ask(self, request: Mapping[str, Any]) -> None:
        """Send *request* and wait for its answer. Raises TestbedError where that is an error, or does not come."""
        self._hear(0.0)
        self._answers.clear()
        children.send_line(self._child, json.dumps(request))
        until = time.monotonic() + ANSWER_LIMIT
        while not self._answers and time.monotonic() < until and self._child.poll() is None:
            self._hear(POLL)
        answer = self._answers.pop(0) if self._answers else {"error": "it gave no answer"}
        if "error" in answer:
            raise TestbedError(f"the testbed's process '{self.name}' refused: {answer['error']}")

    def problems(self) -> tuple[str, ...]:
        """A sentence where it ended by itself."""
        status = self._child.poll()
        if self._closed or status is None:
            return ()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        end = log_end(self._log)
        return (f"the testbed's process '{self.name}' ended with {how}" + (f"; its log ends: {end}" if end else ""),)

    def request_end(self) -> None:
        """Ask it to end, by the end of its input."""
        self._closed = True
        with contextlib.suppress(OSError):
            if self._child.stdin is not None:
                self._child.stdin.close()

    def close(self) -> str:
        """End it and wait for that; returns "", or a sentence where it had to be killed. Harmless when repeated."""
        self.request_end()
        failure = "" if children.end(self._child, self._grace) else f"'{self.name}' had to be killed"
        if self._child.stdout is not None:
            self._child.stdout.close()
        return failure


class Belongings:
    """Made empty; :meth:`close` it. Raises TestbedError where the runtime folder is not ours, or cannot be written.

    Where the owner is killed instead, the processes end with it, and one of them removes the folder.
    """

    def __init__(self) -> None:
        runtime = runtime_folder()
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="", dir=runtime))
        except OSError as error:
            raise not_written(runtime, error, ELSEWHERE) from error
        self.processes: list[TestbedProcess] = []
        self._ends: list[Callable[[], str | None]] = []

    def keep(self, process: TestbedProcess) -> TestbedProcess:
        """Keep a process that was started."""
        self.processes.append(process)
        self._ends.append(process.close)
        return process

    def later(self, close: Callable[[], None]) -> None:
        """Call *close* after the processes that are kept from now on have ended."""
        self._ends.append(close)

    def close(self) -> tuple[str, ...]:
        """End all in reverse order, every step even if one fails; a sentence for each failure."""
        failures = list[str | None]()
        for process in self.processes:
            process.request_end()
        while self._ends:
            try:
                failures.append(self._ends[-1]())
            except BREAKDOWN_ERRORS as error:
                failures.append(in_words(error))
            # only now: after an interrupt the next call goes on here
            self._ends.pop()
        shutil.rmtree(self.folder, ignore_errors=True)
        return tuple(filter(None, failures))


FOLDER = "logs"
"""The folder of the copies, in the runtime folder."""

LENGTH = 1 << 20
"""Bytes from the end of a log that are kept."""

LOG_TAIL = 600
"""Characters of a log that an error quotes."""

LOG_LINES = 6
"""Lines of a log that an error quotes."""

_HAS_WORD = re.compile(r"[A-Za-z]{3}")


def log_end(log: Path) -> str:
    """Return the last lines of *log* in one line; "" without any."""
    # without lines of dashes and the like
    lines = terminal_text(read_log(log)).splitlines()
    shown = [words for line in lines if _HAS_WORD.search(words := " ".join(line.split()))]
    quoted = "; ".join(shown[-LOG_LINES:])
    return quoted if len(quoted) <= LOG_TAIL else "…" + quoted[-LOG_TAIL:]


def read_log(log: Path) -> str:
    """The last MB of *log*; "" where it cannot be read."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LENGTH))
        return file.read(LENGTH).decode(errors="replace")
    return ""


def keep_log(log: Path) -> Path | None:
    """Copy *log* of a testbed that does not begin to where it stays, over the last one: its folder is removed.

    Returns None where that fails, which is no error beside the one to be reported.
    """
    copy = log.parent.parent / FOLDER / log.name
    with contextlib.suppress(OSError):
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        copy.write_text(read_log(log))
        return copy
    return None
