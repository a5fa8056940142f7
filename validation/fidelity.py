"""Published figures of real routers against those of the forwarding model, and ministat's answers for both.

No traffic and no clock: the model's pure functions alone. The figures are those of the studies (variables/studies), of
which each says how far the model may be from them. The model's five runs, for ministat, differ by the spread of its
platform, drawn from a seed.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lineproof.commands.main import finish
from lineproof.project import Project
from lineproof.simulation import Noise
from lineproof.stats import compare
from lineproof.studies.study import Study
from lineproof.units import counted
from lineproof_bench.model.forwarding import forward
from lineproof_bench.model.noise import ModelNoise
from support.published import ModelledVariant, loads_at, modelled_variants, published_rows, published_studies, text_of

RUNS = 5
"""Runs of the model for each variant."""

WITHIN = (5.0, 10.0)
"""Per cent of the published figure."""


def closeness_words(errors: Sequence[float]) -> str:
    """A sentence with the median and the 95th percentile of *errors* in per cent, and how many are small; ""."""
    if not errors:
        return ""
    ordered = sorted(errors)
    middle, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    small = ", ".join(f"{sum(error <= most for error in errors)} within {most:g} %" for most in WITHIN)
    return f"error of {counted(len(errors), 'figure')}: median {middle:.1f} %, 95th percentile {high:.1f} %; {small}"


@dataclass(frozen=True, slots=True)
class MinistatAnswer:
    """-1, 0 or 1: less proven, nothing proven, more proven at 95 %, by the published runs and by the model's."""

    study: str
    name: str
    published: int
    modelled: int


def answers(project: Project) -> Iterator[MinistatAnswer]:
    """Compare each variant with a baseline whose figures, and its own, are several runs.

    Raises ConfigError.
    """
    found = {
        (each.study.study, each.row, each.variant): each
        for each in modelled_variants(project, published_studies(project))
    }
    runs: dict[tuple[str, str, str], list[float]] = {}
    for (study, row, name), variant in found.items():
        own = variant.study.published_figures(row, name)
        baseline = variant.study.baseline_of(name)
        theirs = variant.study.published_figures(row, baseline) if baseline else ()
        if baseline is None or len(own) < 2 or len(theirs) < 2:
            continue
        for key in ((study, row, name), (study, row, baseline)):
            if key not in runs:
                runs[key] = list(_runs(found[key]))
        modelled = _answer(runs[study, row, baseline], runs[study, row, name])
        yield MinistatAnswer(study, variant.name, _answer(theirs, own), modelled)


def _runs(variant: ModelledVariant) -> Iterator[float]:
    seed = zlib.crc32(f"{variant.study.study}/{variant.row}/{variant.variant}".encode())
    noise = ModelNoise(Noise(), variant.study.seed + seed)
    for _ in range(RUNS):
        noise.new_trial(variant.model.spread)
        model = noise.apply(variant.model)
        loads = loads_at(model, variant.traffic.profile, False)(model.ceiling)
        yield sum(load.pps * fate.forwarded for load, fate in zip(loads, forward(model, loads).fates, strict=True))


def _answer(baseline: list[float] | tuple[float, ...], own: list[float] | tuple[float, ...]) -> int:
    found = compare(baseline, own, method="pooled")
    return 0 if not found.significant else 1 if found.difference > 0 else -1


def answers_text(found: Sequence[MinistatAnswer]) -> str:
    """Where ministat answers otherwise for the model's runs than for the published ones, and how often it does not."""
    words = {-1: "less", 0: "no difference proven", 1: "more"}
    lines = [
        f"{row.study}, {row.name}: published {words[row.published]}, modelled {words[row.modelled]}"
        for row in found
        if row.published != row.modelled
    ]
    return "\n".join([*lines, f"{len(found) - len(lines)} of {len(found)} answers of ministat are the published ones."])


def main() -> int:
    """Print the tables; 0 when enough rows are inside, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.fidelity", description=__doc__)
    parser.add_argument("--answers", action="store_true", help="print ministat's answers in place of the tables")
    options = parser.parse_args()
    if options.answers:
        print(answers_text(tuple(answers(Project.find()))))
        return 0
    project = Project.find()
    found = published_rows(project)
    for study in published_studies(project):
        rows = found[study.study]
        print(f"{study.title}\n\n{_unit(study)}\n")
        print(text_of(rows))
        for row in rows:
            if not row.inside and row.explained:
                print(f"{chr(10)}{row.name}: {row.explained}")
        close = closeness_words([row.error_percent for row in rows])
        print(f"\n{sum(row.inside for row in rows)} of {len(rows)} rows inside; {close}.\n")
    every = [row for rows in found.values() for row in rows]
    inside = sum(row.inside for row in every)
    print(
        f"In all {inside} of {len(every)} rows inside ({100 * inside / len(every):.1f} %, at least 95 % must be);"
        f" {closeness_words([row.error_percent for row in every])}."
    )
    return 0 if inside >= 0.95 * len(every) else 1


def _unit(study: Study) -> str:
    kinds = {study.unit_of(row): measure.is_rate for row, measure in study.measures.items()}
    others = [unit for unit, is_rate in kinds.items() if not is_rate]
    line = ["Rates in per cent of one direction's line rate; both directions added."] if any(kinds.values()) else []
    return " ".join(line + ([f"Others in {', '.join(others)}."] if others else []))


if __name__ == "__main__":
    finish(main)
