"""Shares of simulated routers with exact intervals, and what they prove of a bound."""

from __future__ import annotations

from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PassShare:
    """*passed* of *of* routers."""

    passed: int
    of: int

    @property
    def ratio(self) -> float:
        """The share, 0..1; 0 of none."""
        return self.passed / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{100 * self.ratio:.4g} %" if self.of else "–"

    @property
    def bounds(self) -> tuple[float, float]:
        """Return its exact (Clopper-Pearson) confidence interval, 0..1; of none everything is possible."""
        return self.bounds_at(CONFIDENCE)

    def bounds_at(self, confidence: float) -> tuple[float, float]:
        """:attr:`bounds` of another *confidence*, 0..1."""
        if not self.of:
            return 0.0, 1.0
        from scipy.stats import binomtest  # takes a second

        found = binomtest(self.passed, self.of).proportion_ci(confidence, method="exact")
        return float(found.low), float(found.high)

    @property
    def interval(self) -> str:
        """With its :attr:`bounds`."""
        low, high = self.bounds
        return f"{self} ({100 * low:.3g} … {100 * high:.3g})" if self.of else str(self)


@dataclass(frozen=True, slots=True)
class Claim:
    """What must hold, in words with its figures. *good*: by the figures, *shown*: by the bounds of their intervals."""

    words: str
    good: bool
    shown: bool


def bound_text(good: bool, shown: bool, routers: int) -> str:
    """Return what became of a bound: *good* by the figures themselves, *shown* by their intervals."""
    if not good:
        return "NOT KEPT"
    return "kept" if shown else f"not shown with {routers} routers"


def print_claims(found: list[Claim], routers: int, markdown: bool) -> int:
    """Print what became of each claim; the exit status: 1 if one does not hold, else 0."""
    for claim in found:
        print(f"{'- ' if markdown else ''}{claim.words}: {bound_text(claim.good, claim.shown, routers)}")
    return 0 if all(claim.good for claim in found) else 1
