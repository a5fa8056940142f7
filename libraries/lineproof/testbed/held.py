"""A testbed that is had: nobody else gets it until it is given back."""

from __future__ import annotations

import contextlib

from ..errors import TestbedError
from .in_use import InUse
from .lab.place import LabPlace
from .settings import HardwareSettings, Testbed
from .waiting_time import Say, silent


class HeldTestbed:
    """labgrid's place that a testbed is, and the locks of hardware. Made by :meth:`take`; :meth:`close` gives it back.

    Each session has its own, or several have one, one after another. ``lab``: None where labgrid does not lend it.
    """

    def __init__(self, lab: LabPlace | None = None, in_use: InUse | None = None) -> None:
        self.lab = lab
        self._in_use = in_use

    @classmethod
    def take(cls, testbed: Testbed, say: Say = silent, lab: LabPlace | None = None) -> HeldTestbed:
        """Wait until *testbed* is free, and have it. *lab*: its place, where a pool has acquired it.

        Raises TestbedError, with everything given back.
        """
        if lab is None and testbed.lab is not None:
            lab = LabPlace.acquire(testbed.lab, testbed.testbed, say)
        try:
            return cls(lab, InUse.mark(testbed, say) if isinstance(testbed, HardwareSettings) else None)
        except BaseException:
            if lab is not None:
                lab.close()
            raise

    def check(self) -> None:
        """Raise TestbedError where it is no longer ours: nothing may be started on it."""
        if self.lab and (problems := self.lab.problems()):
            raise TestbedError("; ".join(problems))

    def story(self) -> str:
        """What happened to labgrid's place, a line for each thing; "" without one."""
        return "".join(f"{line}\n" for line in self.lab.story) if self.lab else ""

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        with contextlib.ExitStack() as stack:
            if self.lab:
                stack.callback(self.lab.close)
            if self._in_use:
                stack.callback(self._in_use.close)
