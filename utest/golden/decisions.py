"""Ruling and number of trials of made-up runs of every quantity. Rows: seed, ruling's letter, trials."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import cycle

from golden import net
from lineproof.core.deciding import TrialConditions, decide
from support.made_testbeds import LINE_PPS
from support.made_trials import SENTENCES, promise_of, run_of

SEEDS = 1_000
"""Of each quantity, which has its own: another quantity changes no row of it."""


def row(name: str, seed: int) -> str:
    """Return the row of a quantity and *seed*."""
    pick = random.Random(f"{name} {seed}").choice
    promise, trials = promise_of(pick, name), cycle(run_of(pick))
    decision = decide(promise, lambda *asked: next(trials).outcome(*asked), TrialConditions(), LINE_PPS)
    return f"{seed} {decision.ruling.value[0] if decision.ruling else ''} {len(decision.trials)}"


def texts() -> Mapping[str, str]:
    return {f"{name}.txt": "".join(f"{row(name, seed)}\n" for seed in range(SEEDS)) for name in SENTENCES}


def differences(seeds: Iterable[int]) -> list[str]:
    """Return the rows of *seeds*, of each quantity, that are not the recorded ones."""
    recorded = {file: text.splitlines() for file, text in net.recorded("decisions").items()}
    rows = ((name, row(name, seed)) for seed in seeds for name in SENTENCES)
    return [f"{name}: {line}" for name, line in rows if line not in recorded[f"{name}.txt"]]
