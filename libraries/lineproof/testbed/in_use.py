"""A testbed that is had: nobody else gets it until it is given back.

A run of hardware has a lock for each of the generator's ports, for others of its user on this machine; a lock ends with
its process, however that ends. Runs elsewhere are seen by the ports that they own (``session``), or by labgrid, which
lends testbeds to a whole lab.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence

from ..errors import TestbedError
from ..files import not_written
from ..system.file_lock import lock_within
from ..system.folders import ELSEWHERE, runtime_folder
from ..units import duration_text
from ..visible import shortened
from .lab.place import LabPlace
from .settings import HardwareSettings, Testbed
from .waiting_time import Say, WaitProgress, silent

IN_USE = ".in-use"
"""Ending of the locks' names in the runtime folder."""

POLL = 0.2
"""Seconds between two tries."""


class HeldTestbed:
    """labgrid's place that a testbed is, and the locks of hardware. Made by :meth:`take`; :meth:`close` gives it back.

    Each session has its own, or several have one, one after another. ``lab``: None where labgrid does not lend it.
    """

    def __init__(self, lab: LabPlace | None = None) -> None:
        self.lab = lab
        self._locks: list[int] = []

    @classmethod
    def take(cls, testbed: Testbed, say: Say = silent, lab: LabPlace | None = None) -> HeldTestbed:
        """Wait until *testbed* is free, and have it. *lab*: its place, where a pool has acquired it.

        Raises TestbedError, with everything given back.
        """
        if lab is None and testbed.lab is not None:
            lab = LabPlace.acquire(testbed.lab, testbed.testbed, say)
        held = cls(lab)
        try:
            if isinstance(testbed, HardwareSettings):
                held._await_locks(testbed, say)
        except BaseException:
            held.close()
            raise
        return held

    def check(self) -> None:
        """Raise TestbedError where it is no longer ours: nothing may be started on it."""
        if self.lab and (problems := self.lab.problems()):
            raise TestbedError("; ".join(problems))

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        self._unlock()
        if self.lab:
            self.lab.close()

    def _await_locks(self, testbed: HardwareSettings, say: Say) -> None:
        """Lock the ports of *testbed*; first wait for other runs as long as it allows. Raises TestbedError.

        A testbed that waits for nobody goes on beside another run, whose ports the generator then refuses.
        """
        limit = testbed.wait_for_testbed
        progress = WaitProgress(f"testbed '{testbed.testbed}'", limit, say)
        while user := self._lock_all(testbed.generator.claimed):
            if progress.is_over:
                if not limit:
                    return
                raise TestbedError(
                    f"testbed '{testbed.testbed}' was in use for {duration_text(limit)}: {user}; run later, or give"
                    " 'wait_for_testbed' in its file more time"
                )
            progress.note(user)
            time.sleep(POLL)

    def _lock_all(self, names: Sequence[str]) -> str:
        """Lock all or nothing; returns who has one of them, "" if nobody."""
        folder = runtime_folder()
        for name in names:
            path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}{IN_USE}"
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                self._locks.append(descriptor)
                if not lock_within(descriptor):
                    user = shortened(os.pread(descriptor, 100, 0).decode(errors="replace")) or "another run"
                    self._unlock()
                    return f"{name} is in use by {user}"
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
            except OSError as error:
                raise not_written(path, error, ELSEWHERE) from error
        return ""

    def _unlock(self) -> None:
        while self._locks:
            os.close(self._locks.pop())
