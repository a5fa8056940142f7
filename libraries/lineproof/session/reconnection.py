"""A generator that was lost in one sentence is connected again, once, at the beginning of the next.

Not within the sentence: its trials would come from two connections. Not by force, unless the testbed file says so:
ports that another user holds stay that user's, and the sentence is INCONCLUSIVE and names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import TestbedError
from ..testbed.opening import OpenTestbed

RESTART_LIMIT = 100.0
"""Seconds that a restart of a testbed's process may take: a TRex server on cards is slow."""


class Reconnection:
    """Notes that the generator was lost, and connects it again.

    ``note``: what was done before the present sentence, in words; "": nothing.
    """

    def __init__(self) -> None:
        self.note = ""
        self._cause = ""
        self._busy = False

    @contextmanager
    def noting_failures(self) -> Iterator[None]:
        """Around each call of the generator: if the call fails, the generator is connected again later."""
        try:
            yield
        except TestbedError as error:
            self._cause = self._cause or str(error)
            raise

    def reconnect_if_lost(self, testbed: OpenTestbed, reconnect: Callable[[], None]) -> None:
        """*reconnect* and check if a call failed. Raises TestbedError if that fails: the next sentence tries again."""
        if self._busy:
            return  # called by its own check of reachability
        self.note = ""
        if not self._cause:
            return
        self._busy = True
        ended = [words for words in testbed.problems() if words.partition("; ")[0] not in self._cause]
        self._cause = "; ".join([*ended, self._cause])
        try:
            testbed.forget_restarted(RESTART_LIMIT)
            if problems := testbed.problems():
                raise TestbedError("; ".join(problems))
            reconnect()
        except TestbedError as error:
            raise TestbedError(
                f"the generator was lost in an earlier sentence and could not be connected again: {error}"
                f" (it was lost because {self._cause})"
            ) from error
        finally:
            self._busy = False
        self.note = f"the generator was connected again before this sentence: {self._cause}"
        self._cause = ""
