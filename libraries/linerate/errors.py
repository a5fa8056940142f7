"""The exceptions a person can meet, and whose fault each one is.

A sentence that the router does not keep raises :class:`SlaFailure`, an ``AssertionError``. Everything else is the
testbed's or the user's: it never says that the router is at fault (the verdict rule of ``docs/methodology.md``).
"""

from __future__ import annotations

from pathlib import Path


class LinerateError(Exception):
    """Base of every error that is not the router's. Its text is one paragraph for a person, with the remedy."""

    ROBOT_SUPPRESS_NAME = True


class ConfigError(LinerateError):
    """A file or an argument is wrong: says which file, line and key, and what would be right."""

    def __init__(self, message: str, path: Path | str | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(where + message)


class SentenceError(LinerateError):
    """An SLA sentence that cannot be understood or cannot be true on these ports."""


class TestbedError(LinerateError):
    """The testbed cannot do its work: no server, port taken, wrong key, unknown host key, a process that died."""


class Inconclusive(LinerateError):
    """The third verdict: the testbed could not prove that the router passes, nor that it fails."""


class SlaFailure(AssertionError):
    """The router did not keep the sentence."""

    ROBOT_SUPPRESS_NAME = True
