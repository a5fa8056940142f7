"""Why a router lost frames, beyond where: a cause with its figures, how sure it is, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from .json_types import NamedEnum
from .under_load import UnderLoad


class Confidence(NamedEnum):
    """How sure an explanation is."""

    CERTAIN = "certain"
    """The counts leave no other cause."""
    LIKELY = "likely"
    """The figures fit, and what else would fit is rare."""
    POSSIBLE = "possible"
    """It is there and can cost this; how much is not known."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One cause. ``rule``: its name in docs/methodology/why.md; it rests on the ``grounds``."""

    rule: str
    words: str
    confidence: Confidence
    remedy: str
    grounds: str

    @property
    def lines(self) -> list[str]:
        """The cause and what helps, as a message has them, a line each."""
        return [f"why: {self.words} ({self.confidence.value}, by {self.grounds})", f"what helps: {self.remedy}"]


@dataclass(frozen=True, slots=True)
class Why:
    """The ``explanation`` of a failure, None where the figures support none; ``load``: the router's, below it."""

    explanation: Explanation | None = None
    load: UnderLoad | None = None
