"""An open testbed's own: a folder for keys and logs, processes, namespaces. All of it goes when it closes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..errors import BREAKDOWN_ERRORS, in_words
from ..files import not_written
from ..system.identity import ELSEWHERE, runtime_folder
from .process import TestbedProcess


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
        self._others: list[Callable[[], None]] = []

    def keep(self, process: TestbedProcess) -> TestbedProcess:
        """Keep a process that was started."""
        self.processes.append(process)
        return process

    def later(self, close: Callable[[], None]) -> None:
        """Call *close* after the processes have ended, the latest first."""
        self._others.append(close)

    def close(self) -> tuple[str, ...]:
        """End all in reverse order, every step even if one fails; a sentence for each failure."""
        failures = []
        for process in self.processes:
            process.request_end()
        while self.processes:
            if failure := self.processes[-1].close():
                failures.append(failure)
            # only now: after an interrupt the next call goes on here
            self.processes.pop()
        while self._others:
            try:
                self._others[-1]()
            except BREAKDOWN_ERRORS as error:
                failures.append(in_words(error))
            self._others.pop()
        shutil.rmtree(self.folder, ignore_errors=True)
        return tuple(failures)
