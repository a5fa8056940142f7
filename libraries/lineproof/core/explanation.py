"""Why a router lost frames, beyond where: a cause with its figures, how sure it is, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from .json_types import NamedEnum
from .under_load import UnderLoad

SMALL_LOSS = 0.01
"""Share of the offered frames. A smaller loss comes of moments, and may not come again."""


@dataclass(frozen=True, slots=True)
class TriedLoad:
    """The load of a sentence's worst trial: rates of all directions together.

    ``frame_bytes``: mean, with FCS. ``flows`` of each direction; None: not known. ``link_bps`` of a port.
    ``intended_pps``: what was asked of the generator, ``offered_pps``: what it sent.
    """

    frame_bytes: float
    flows: int | None
    link_bps: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float

    @property
    def loss_ratio(self) -> float:
        """The share of the offered frames that was lost."""
        return 1 - self.forwarded_pps / self.offered_pps if self.offered_pps else 0.0

    def is_again(self, load: UnderLoad, least: float = 0.9) -> bool:
        """Return whether *load* was read while as much was sent, to the ratio *least*, and frames were lost again."""
        asked = least * self.intended_pps <= load.load_pps <= self.intended_pps / least
        if not (asked and load.offered_pps >= least * self.offered_pps > 0):
            return False
        return self.loss_ratio < SMALL_LOSS or 1 - load.forwarded_pps / load.offered_pps >= self.loss_ratio / 2


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
