"""What ``lineproof doctor`` prints: a line for each check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from ..errors import TestbedError


class State(Enum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``finding``: what was found, and what to do if something is wrong.

    ``details``: what the line leaves out, as a figure's source; ``--json`` has it.
    """

    name: str
    state: State
    finding: str
    details: str = ""

    def __str__(self) -> str:
        return f"{self.state.value:<8} {self.name}: {self.finding}"


def ok(name: str, finding: str, details: object = "") -> Check:
    """Nothing to do."""
    return Check(name, State.OK, finding, str(details))


def warning(name: str, finding: str, details: object = "") -> Check:
    """A run is possible, and something should be fixed."""
    return Check(name, State.WARNING, finding, str(details))


def wrong(name: str, finding: object) -> Check:
    """A run would fail."""
    return Check(name, State.WRONG, str(finding))


def or_wrong(name: str, checks: Callable[[], list[Check]]) -> Iterator[Check]:
    """*checks*; a TestbedError of theirs is one that is wrong."""
    try:
        found = checks()
    except TestbedError as error:
        found = [wrong(name, error)]
    yield from found
