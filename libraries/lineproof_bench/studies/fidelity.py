"""Published figures of real routers against those of the forwarding model.

No traffic and no clock: the model's pure functions alone. The figures are those of the studies (variables/studies), of
which each says how far the model may be from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lineproof.project import Project
from lineproof.studies.closeness import closeness_words

from .answers import MinistatAnswer, answers
from .published import PublishedRow, Table, tables

MOST_OUTSIDE = 2
"""Rows of the Netgate 6100's rates that may be outside."""

LEAST_INSIDE = 0.95
"""The share of all rows that must be inside."""


def text_of(found: Sequence[PublishedRow], markdown: bool = False) -> str:
    """The rows as text."""
    head = ("row", "published", "modelled", "error", "allowed", "inside")
    cells = [
        (
            row.name,
            f"{row.published:.7g}",
            f"{row.modelled:.{_digits(row)}f}",
            f"{row.error:+.{_digits(row)}f}",
            f"{row.allowed:.{_digits(row)}f}",
            "yes" if row.inside else "NO",
        )
        for row in found
    ]
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in [head, ("---", *["---:"] * 4, "---"), *cells]]
    else:
        width = max(len(line[0]) for line in cells)
        lines = [f"{line[0]:{width}}" + "".join(f"{cell:>11}" for cell in line[1:]) for line in [head, *cells]]
    return "\n".join(lines)


def _digits(row: PublishedRow) -> int:
    return 2 if row.published < 1000 else 0


def enough_inside(found: Sequence[Table]) -> bool:
    """Whether the rule is kept: for each table that has one of its own, and over all."""
    every = [row for table in found for row in table.rows]
    inside = sum(row.inside for row in every)
    strict = [row for table in found if table.strict for row in table.rows]
    return sum(not row.inside for row in strict) <= MOST_OUTSIDE and inside >= LEAST_INSIDE * len(every)


def answers_text(found: Sequence[MinistatAnswer]) -> str:
    """Where ministat answers otherwise for the model's runs than for the published ones, and how often it does not."""
    words = {-1: "less", 0: "no difference proven", 1: "more"}
    lines = [
        f"{row.study}, {row.name}: published {words[row.published]}, modelled {words[row.modelled]}"
        for row in found
        if row.published != row.modelled
    ]
    return "\n".join([*lines, f"{len(found) - len(lines)} of {len(found)} answers of ministat are the published ones."])


def main(argv: list[str]) -> int:
    """Print the tables; 0 when enough rows are inside, else 1."""
    parser = argparse.ArgumentParser(prog="lineproof study fidelity", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print the tables as in docs/fidelity.md")
    parser.add_argument("--root", type=Path, help="the project's folder, the one with variables/ (default: found)")
    parser.add_argument("--answers", action="store_true", help="print ministat's answers in place of the tables")
    options = parser.parse_args(argv)
    if options.answers:
        print(answers_text(tuple(answers(Project.find(options.root)))))
        return 0
    found = tables(Project.find(options.root))
    for table in found:
        inside = sum(row.inside for row in table.rows)
        print(f"{'### ' if options.markdown else ''}{table.title}\n\n{table.unit}\n")
        print(text_of(table.rows, options.markdown))
        for row in table.rows:
            if not row.inside and row.explained:
                print(f"{chr(10)}{row.name}: {row.explained}")
        limit = f"; {MOST_OUTSIDE} may be outside" if table.strict else ""
        print(f"\n{inside} of {len(table.rows)} rows inside{limit}; {closeness_words([r.pair for r in table.rows])}.\n")
    every = [row for table in found for row in table.rows]
    inside = sum(row.inside for row in every)
    print(
        f"In all {inside} of {len(every)} rows inside ({100 * inside / len(every):.1f} %, at least 95 % must be);"
        f" {closeness_words([row.pair for row in every])}."
    )
    return 0 if enough_inside(found) else 1
