"""A generator that was lost in one sentence is connected again, once, at the beginning of the next.

Never within the sentence that was hit: what it had measured would mean two different connections. Never by force, but
where the testbed says so: ports that somebody else holds stay theirs, and the sentence is INCONCLUSIVE naming them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from .errors import BenchError

RETURN_LIMIT = 100.0
"""Seconds that a process of the bench which is being started again has for it: a TRex server on cards is slow."""


class Bench(Protocol):
    """What is asked of a bench."""

    def problems(self) -> tuple[str, ...]:
        """Sentences on its processes that have ended."""
        ...

    def forgive(self, limit: float) -> None:
        """Forget those that were started again, waiting for those that are being."""
        ...


class Recoverable(Protocol):
    """What can be brought back: a session."""

    @property
    def bench(self) -> Bench:
        """Its bench."""
        ...

    def reconnect_generator(self) -> None:
        """A new connection in place of one that failed, with no streams yet. Raises BenchError."""
        ...

    def check_reachability(self) -> None:
        """Slow traffic each way. Raises BenchError."""
        ...


class Recovery:
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
        except BenchError as error:
            self._cause = self._cause or str(error)
            raise

    def before_sentence(self, session: Recoverable) -> None:
        """Connect again where that is needed. Raises BenchError where it fails: the next sentence tries anew."""
        if self._busy:
            return  # its own check of reachability
        self.note = ""
        if not self._cause:
            return
        self._busy = True
        ended = [words for words in session.bench.problems() if words.partition("; ")[0] not in self._cause]
        self._cause = "; ".join([*ended, self._cause])
        try:
            session.bench.forgive(RETURN_LIMIT)
            if dead := session.bench.problems():
                raise BenchError("; ".join(dead))
            session.reconnect_generator()
            session.check_reachability()
        except BenchError as error:
            raise BenchError(
                f"the generator was lost in an earlier sentence and could not be connected again: {error}"
                f" (it was lost because {self._cause})"
            ) from error
        finally:
            self._busy = False
        self.note = f"the generator was connected again before this sentence: {self._cause}"
        self._cause = ""
