"""A generator that was lost in one sentence is connected again, once, at the beginning of the next.

Never within the sentence that was hit: what it had measured would mean two different connections. Never by force, but
where the testbed says so: ports that somebody else holds stay theirs, and the sentence is INCONCLUSIVE naming them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ..errors import TestbedError

RETURN_LIMIT = 100.0
"""Seconds that a process of the testbed which is being started again has for it: a TRex server on cards is slow."""


class TestbedProcesses(Protocol):
    """What is asked of a testbed."""

    def problems(self) -> tuple[str, ...]:
        """Sentences on its processes that have ended."""
        ...

    def forgive(self, limit: float) -> None:
        """Forget those that were started again, waiting for those that are being."""
        ...


class Recoverable(Protocol):
    """What can be brought back: a session."""

    @property
    def testbed(self) -> TestbedProcesses:
        """Its testbed."""
        ...

    def reconnect_generator(self) -> None:
        """A new connection in place of one that failed, with no streams yet. Raises TestbedError."""
        ...

    def check_reachability(self) -> None:
        """Slow traffic each way. Raises TestbedError."""
        ...


class Reconnection:
    """What has befallen the generator, and what was done about it.

    ``note``: what was done before the present sentence, in words, "" for nothing.
    """

    def __init__(self) -> None:
        self.note = ""
        self._cause = ""
        self._busy = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Calls of the generator belong in here: one that fails is the cause to connect again."""
        try:
            yield
        except TestbedError as error:
            self._cause = self._cause or str(error)
            raise

    def before_sentence(self, session: Recoverable) -> None:
        """Connect again where that is needed. Raises TestbedError where it fails: the next sentence tries anew."""
        if self._busy:
            return  # its own check of reachability
        self.note = ""
        if not self._cause:
            return
        self._busy = True
        ended = [words for words in session.testbed.problems() if words.partition("; ")[0] not in self._cause]
        self._cause = "; ".join([*ended, self._cause])
        try:
            session.testbed.forgive(RETURN_LIMIT)
            if dead := session.testbed.problems():
                raise TestbedError("; ".join(dead))
            session.reconnect_generator()
            session.check_reachability()
        except TestbedError as error:
            raise TestbedError(
                f"the generator was lost in an earlier sentence and could not be connected again: {error}"
                f" (it was lost because {self._cause})"
            ) from error
        finally:
            self._busy = False
        self.note = f"the generator was connected again before this sentence: {self._cause}"
        self._cause = ""
