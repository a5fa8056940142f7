"""ministat's answers: is a difference proven between five published runs and those of its baseline, and of the model's?

The model's five runs differ by the spread of its platform, drawn from a seed; no traffic and no clock.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lineproof.project import Project
from lineproof.simulation.noise import Noise
from lineproof.stats.comparison import compare

from ..model.noise import ModelNoise
from .published import ModelledVariant, modelled_variants, published_studies
from .traffic import at_saturation

RUNS = 5
"""Runs of the model for each variant."""


@dataclass(frozen=True, slots=True)
class MinistatAnswer:
    """-1, 0 or 1: less proven, nothing proven, more proven at 95 %, by the published runs and by the model's."""

    study: str
    name: str
    published: int
    modelled: int


def answers(project: Project, names: Sequence[str] = ()) -> Iterator[MinistatAnswer]:
    """Of every variant with a baseline whose figures, and its own, are several runs. *names*: of the studies (all).

    Raises ConfigError.
    """
    studies = tuple(study for study in published_studies(project) if not names or study.study in names)
    found = {(each.study.study, each.row, each.variant): each for each in modelled_variants(project, studies)}
    runs: dict[tuple[str, str, str], list[float]] = {}
    for (study, row, name), variant in found.items():
        own = variant.study.published_figure(row, name)
        baseline = variant.study.baseline_of(name)
        theirs = variant.study.published_figure(row, baseline) if baseline else None
        if baseline is None or not isinstance(own, tuple) or not isinstance(theirs, tuple):
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
        yield at_saturation(noise.apply(variant.model), variant.traffic.profile)[0]


def _answer(baseline: list[float] | tuple[float, ...], own: list[float] | tuple[float, ...]) -> int:
    found = compare(baseline, own, method="pooled")
    return 0 if not found.significant else 1 if found.difference > 0 else -1
