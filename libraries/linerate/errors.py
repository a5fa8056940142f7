"""The exceptions that reach a person, and whose fault each one is.

A router that fails a sentence raises :class:`SlaFailure`, an ``AssertionError``. All others are the testbed's or the
user's fault, never the router's (the verdict rule of ``docs/methodology.md``).
"""

from __future__ import annotations

from pathlib import Path

from .visible import shortened as shortened
from .visible import visible_data


class LinerateError(Exception):
    """Base of every error that is not the router's fault. Its text is one paragraph that ends with the fix."""

    ROBOT_SUPPRESS_NAME = True

    def __init__(self, *words: object) -> None:
        super().__init__(*map(visible_data, words))


class ConfigError(LinerateError):
    """A file or an argument is wrong: names file, line and key, and what is expected."""

    def __init__(self, message: str, path: Path | str | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(where + message)


class SentenceError(LinerateError):
    """An SLA sentence that cannot be parsed, or cannot be true on these ports."""


class TestbedError(LinerateError):
    """The testbed does not work: no server, port in use, wrong key, unknown host key, a process that died."""


class Inconclusive(LinerateError):
    """The third verdict: the testbed could prove neither that the router passes nor that it fails."""


class SlaFailure(AssertionError):
    """The router failed the sentence."""

    ROBOT_SUPPRESS_NAME = True

    def __init__(self, *words: object) -> None:
        super().__init__(*map(visible_data, words))
