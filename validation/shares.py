"""The common part of studies: their options, shares of routers with exact intervals, claims, sections and tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
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
        if not self.of:
            return 0.0, 1.0
        from scipy.stats import binomtest  # takes a second

        found = binomtest(self.passed, self.of).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, in words with its figures. *good*: by the figures, *shown*: by the bounds of their intervals."""

    words: str
    good: bool
    shown: bool


def print_claims(found: list[Claim], routers: int, markdown: bool) -> int:
    """Print what became of each claim; the exit status: 1 if one does not hold, else 0."""
    for claim in found:
        kept = "kept" if claim.shown else f"not shown with {routers} routers"
        print(f"{'- ' if markdown else ''}{claim.words}: {kept if claim.good else 'NOT KEPT'}")
    return 0 if all(claim.good for claim in found) else 1


def print_section(title: str, text: str, markdown: bool) -> None:
    """Print *text* below its *title*."""
    print(f"{'### ' if markdown else ''}{title}\n\n{text}\n", flush=True)


def options_of(name: str, doc: str) -> argparse.Namespace:
    """Return what the command line of a study says."""
    parser = argparse.ArgumentParser(prog=f"python -m validation.{name}", description=doc.partition("\n")[0])
    parser.add_argument("--routers", type=int, default=1000, metavar="N", help="made-up routers (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as in docs/methodology/")
    options = parser.parse_args()
    if options.routers < 20:
        parser.error(f"--routers {options.routers}: at least 20 are needed")
    return options


def table(head: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    """Return a table as text, or as Markdown; the first column is words, the others are figures."""
    if markdown:
        lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    plain = [[cell.replace("`", "") for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in plain) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in plain
    )
