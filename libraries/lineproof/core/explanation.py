"""Why a router lost frames, beyond where: a cause with its figures, how sure it is, and what would help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .json_types import NamedEnum
from .under_load import UnderLoad

NAMED_EXPLANATIONS = 2
"""Explanations in a message; the record has all."""


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
    """One cause. ``rule``: its name in docs/methodology/why.md; ``figures``: what it rests on."""

    rule: str
    words: str
    figures: Mapping[str, float] = field(default_factory=dict)
    confidence: Confidence = Confidence.LIKELY
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.words} ({self.confidence.value}){remedy}"


@dataclass(frozen=True, slots=True)
class Why:
    """All ``explanations`` of a failure, the best first; ``load``: the router's, which they rest on too."""

    explanations: tuple[Explanation, ...] = ()
    load: UnderLoad | None = None

    @property
    def lines(self) -> list[str]:
        """The first explanations as a message has them: why, then what helps, a line each."""
        lines = []
        for found in self.explanations[:NAMED_EXPLANATIONS]:
            lines.append(f"why: {found.words} ({found.confidence.value})")
            lines += [f"what helps: {found.remedy}"] if found.remedy else []
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines)
