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

from lineproof.commands.main import finish
from lineproof.project import Project
from lineproof.simulation import Noise
from lineproof.stats import compare
from lineproof.studies.study import Study
from lineproof.units import counted
from lineproof_bench.model.forwarding import forward
from lineproof_bench.model.noise import ModelNoise
from support.published import (
    ModelledVariant,
    PublishedRow,
    loads_at,
    modelled_variants,
    published_rows,
    published_studies,
)

from .population import print_table

RUNS = 5
"""Runs of the model for each variant."""
WITHIN = (5.0, 10.0)
"""Per cent of the published figure."""
LEAST_INSIDE = 0.95


def closeness(errors: Sequence[float]) -> str:
    """Return the median and the 95th percentile of *errors* in per cent, and how many are small, in words."""
    ordered = sorted(errors)
    middle, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    small = ", ".join(f"{sum(error <= most for error in errors)} within {most:g} %" for most in WITHIN)
    return f"error of {counted(len(errors), 'figure')}: median {middle:.1f} %, 95th percentile {high:.1f} %; {small}"


def print_study(study: Study, rows: Sequence[PublishedRow]) -> None:
    """Print the figures of *study*, and why some of them are outside."""
    others = {study.unit_of(row) for row, measure in study.measures.items() if not measure.is_rate}
    units = ["rates in per cent of one direction's line rate, both directions added", *sorted(others)]
    lines = []
    for row in rows:
        digits = 2 if row.published < 1000 else 0
        figures = f"{row.modelled:.{digits}f}", f"{row.error:+.{digits}f}", f"{row.allowed:.{digits}f}"
        lines.append([row.name, f"{row.published:.7g}", *figures, "yes" if row.inside else "NO"])
    head = ["row", "published", "modelled", "error", "allowed", "inside"]
    print_table(f"{study.title} ({', '.join(units)})", head, lines)
    for row in rows:
        if not row.inside and row.explained:
            print(f"{row.name}: {row.explained}\n")
    errors = closeness([row.error_percent for row in rows])
    print(f"{sum(row.inside for row in rows)} of {len(rows)} rows inside; {errors}.\n")


def answers(project: Project) -> Iterator[tuple[str, int, int]]:
    """Compare each variant with a baseline whose figures, and its own, are several runs.

    Yields its name, and the answers by the published runs and by the model's: -1, 0 or 1 for less, nothing or more
    proven at 95 %. Raises ConfigError.
    """
    variants = {
        (one.study.study, one.row, one.variant): one for one in modelled_variants(project, published_studies(project))
    }
    runs: dict[tuple[str, str, str], list[float]] = {}
    for (study, row, name), variant in variants.items():
        own = variant.study.published_figures(row, name)
        baseline = variant.study.baseline_of(name)
        theirs = variant.study.published_figures(row, baseline) if baseline else ()
        if baseline is None or len(own) < 2 or len(theirs) < 2:
            continue
        for key in ((study, row, name), (study, row, baseline)):
            if key not in runs:
                runs[key] = list(_runs(variants[key]))
        modelled = _answer(runs[study, row, baseline], runs[study, row, name])
        yield f"{study}, {variant.name}", _answer(theirs, own), modelled


def _runs(variant: ModelledVariant) -> Iterator[float]:
    seed = zlib.crc32(f"{variant.study.study}/{variant.row}/{variant.variant}".encode())
    noise = ModelNoise(Noise(), variant.study.seed + seed)
    for _ in range(RUNS):
        noise.new_trial(variant.model.spread)
        model = noise.apply(variant.model)
        loads = loads_at(model, variant.traffic.profile, False)(model.ceiling)
        yield sum(load.pps * fate.forwarded for load, fate in zip(loads, forward(model, loads).fates, strict=True))


def _answer(baseline: Sequence[float], own: Sequence[float]) -> int:
    comparison = compare(baseline, own, method="pooled")
    return 0 if not comparison.significant else 1 if comparison.difference > 0 else -1


def print_answers(project: Project) -> None:
    """Print where ministat answers otherwise for the model's runs than for the published ones."""
    texts, every = {-1: "less", 0: "no difference proven", 1: "more"}, list(answers(project))
    for name, published, modelled in every:
        if published != modelled:
            print(f"{name}: published {texts[published]}, modelled {texts[modelled]}")
    equal = sum(published == modelled for _, published, modelled in every)
    print(f"{equal} of {len(every)} answers of ministat are the published ones.")


def main() -> int:
    """Print the tables; 0 when enough rows are inside, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.fidelity", description=__doc__)
    parser.add_argument("--answers", action="store_true", help="print ministat's answers in place of the tables")
    project = Project.find()
    if parser.parse_args().answers:
        print_answers(project)
        return 0
    rows = published_rows(project)
    for study in published_studies(project):
        print_study(study, rows[study.study])
    every = [row for of_study in rows.values() for row in of_study]
    inside = sum(row.inside for row in every)
    print(
        f"In all {inside} of {len(every)} rows inside ({100 * inside / len(every):.1f} %, at least"
        f" {100 * LEAST_INSIDE:g} % must be); {closeness([row.error_percent for row in every])}."
    )
    return int(inside < LEAST_INSIDE * len(every))


if __name__ == "__main__":
    finish(main)
