"""Runs of one sentence as a team collects them over months."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from support import made_runs
from support.made_runs import Sentence, made_run

SENTENCE = "64b unidirectional forwards ≥ 5 Mpps"
BEGIN = 1_790_000_000.0
around = partial(made_runs.around, count=5)


def write_run(
    folder: Path,
    day: int,
    rates: Sequence[float],
    *,
    name: str = "",
    release: str = "24.02",
    sentence: str = SENTENCE,
    margin: tuple[float, float | None] | None = None,
    goal: str = "standard",
    **more: Any,
) -> Path:
    """Write a run, *day* days after BEGIN, whose trials forwarded *rates*, in frames/s. *more*: as of made_run."""
    known: dict[str, Any] = {
        "started": BEGIN + day * 86_400,
        "versions": {"router.vpp": release, "generator.server": "3"},
        "extra": {},
    }
    judged = Sentence(sentence, rates, margin=margin)
    return made_run(folder, name or f"run-{day:04d}", judged, goal=goal, **known, **more)


def two_releases(folder: Path) -> list[Path]:
    """Write ten runs at 5.4 Mpps, then ten of another release at 5.2 Mpps."""
    before = [write_run(folder, day, around(5.4e6, day)) for day in range(10)]
    return before + [write_run(folder, day, around(5.2e6, day), release="24.06") for day in range(10, 20)]
