"""Ruling and number of trials of made-up runs of every quantity. Rows: seed, ruling's letter, trials."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import cycle

from golden import net
from lineproof.core.deciding import TrialConditions, decide
from support.made_testbeds import LINE_PPS
from support.made_trials import SENTENCES, promise_of, run_of

SEEDS = 10_000

QUANTITIES = tuple(SENTENCES)
"""The quantities of the seeds, in turn."""


def row(seed: int) -> tuple[str, str]:
    """Return the quantity of *seed*, and its row."""
    pick, name = random.Random(seed).choice, QUANTITIES[seed % len(QUANTITIES)]
    promise, trials = promise_of(pick, name), cycle(run_of(pick))
    decision = decide(promise, lambda *asked: next(trials).outcome(*asked), TrialConditions(), LINE_PPS)
    return name, f"{seed} {decision.ruling.value[0] if decision.ruling else ''} {len(decision.trials)}"


def texts() -> Mapping[str, str]:
    rows: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    for name, line in map(row, range(SEEDS)):
        rows[name].append(f"{line}\n")
    return {f"{name}.txt": "".join(lines) for name, lines in rows.items()}


def differences(seeds: Iterable[int]) -> list[str]:
    """Return the rows of *seeds* that are not the recorded ones."""
    recorded = {line for text in net.recorded("decisions").values() for line in text.splitlines()}
    return [f"{name}: {line}" for name, line in map(row, seeds) if line not in recorded]
