"""A run's sentences as rows: demand, figures and margin in the sentence's own unit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from lineproof.core.latency import LatencyCount
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.errors import ConfigError
from lineproof.evidence import records
from lineproof.evidence.demand import Demand
from lineproof.evidence.margin import MarginRecord
from lineproof.evidence.run import RunFolder, read_margins, read_run
from lineproof.evidence.sentence_rows import SentenceRow, sentence_rows
from lineproof.project import Project
from lineproof.session.plan import Plan
from support.evidence_builders import RUN, requirement_record, trial_record
from support.paths import ROOT

LINK = 10e9
SEARCH = MarginRecord(RUN, True, 1, "T", "64b unidirectional ≥ 5 Mpps", 1.08, 1.09, True, "", 12.0)


def demand(sentence: str) -> Demand:
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "standard")
    return Demand.of(parse(sentence, plan.catalogue), LINK)


def trial(number: int, forwarded: int, **readings: float) -> Trial:
    counts = (DirectionCount(0, 1, 1_000_000, 1_000_000, forwarded),)
    probe = (LatencyCount(0, 1, 1000, 1000, 20.0, 90.0, histogram={10: 990, 80: 10}),)
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe), ())


def row(
    folder: Path, sentence: str, trials: Sequence[Trial], verdict: str = "PASS", margin: bool = False
) -> SentenceRow:
    wanted = demand(sentence)
    with RunFolder.create(folder, RUN) as run:
        for each in trials:
            run.add_trial(replace(trial_record(), sentence=sentence, trial=each))
        terms = {"final_trial_duration": 1.0, "confidence": 0.95}
        run.add_requirement(
            requirement_record(sentence=sentence, demand=wanted, verdict=verdict, goal_terms=terms, link_bps=LINK)
        )
        if margin:
            run.add_result(2, "margin.json", json.dumps(SEARCH.to_json()))
    (found,) = sentence_rows(read_run(run.path), read_margins(run.path))
    return found


@pytest.mark.parametrize(
    ("sentence", "words", "figure"),
    [
        ("64b unidirectional ≥ 50% line rate", "≥ 50% line rate", 100 * 990_000 / (LINK / 672)),
        ("64b unidirectional ≥ 500 kpps", "≥ 500 kpps", 990_000),
        ("64b unidirectional forwards ≥ 500 Mbit/s L2", "≥ 500 Mbit/s L2", 990_000 * 512),
        ("64b unidirectional loses ≤ 2 % at 1 Mpps", "≤ 2%", 1.0),
        ("64b 1-flow costs ≤ 400 cycles/packet at 1 Mpps", "≤ 400 cycles/packet", 350.0),
        ("64b unidirectional costs ≤ 20 µJ/packet at 1 Mpps", "≤ 20 µJ/packet", 1e6 * 19 / 990_000),
        ("64b unidirectional latency mean ≤ 50 µs at 1 Mpps", "mean ≤ 50 µs", 20.0),
        ("64b unidirectional latency p50 ≤ 50 µs at 1 Mpps", "p50 ≤ 50 µs", 20.0),
        ("64b unidirectional recovers in ≤ 2 s", "≤ 2 s", 1.5),
    ],
)
def test_each_quantity_has_its_figure_in_the_sentences_unit(sentence: str, words: str, figure: float) -> None:
    wanted = demand(sentence)
    readings = {"cycles_per_packet": 350.0, "power_watts": 19.0, "recovery_low_s": 1.0, "recovery_high_s": 1.5}
    found = wanted.measured(trial(1, 990_000, **readings), 64.0, LINK)
    assert str(wanted) == words
    assert found == pytest.approx(figure)


def test_the_worse_direction_counts_unless_the_sentence_says_in_total() -> None:
    counts = tuple(DirectionCount(a, 1 - a, 10**6, 10**6, frames) for a, frames in ((0, 900_000), (1, 800_000)))
    both = Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts), ())
    each, total = (demand(f"64b bidirectional ≥ 500 kpps {scope}") for scope in ("each way", "in total"))
    assert each.measured(both, 64.0, LINK) == 800_000
    assert total.measured(both, 64.0, LINK) == 1_700_000


def test_a_throughput_that_passed_has_a_margin_only_from_a_search(tmp_path: Path) -> None:
    sentence, trials = "64b unidirectional ≥ 1 Mpps", [trial(n, 1_000_000) for n in (1, 2, 3)]
    assert row(tmp_path / "a", sentence, trials).margin is None
    found = row(tmp_path / "b", sentence, trials, margin=True)
    assert found.margin == pytest.approx((0.08, 0.09))
    assert str(found.search) == "carries 108 % to 109 % of it"


@pytest.mark.parametrize("sample", [(-2e-3, -1e-3), (1e-3, 2e-3), (-1e-3, 2e-3)])
def test_an_interval_holds_its_mean(tmp_path: Path, sample: tuple[float, ...]) -> None:
    made = row(tmp_path, "64b unidirectional costs ≤ 1 µJ/packet above idle at 1 Mpps", [])
    found = replace(made, sample=sample).measured
    assert found is not None and found.low is not None and found.high is not None
    assert found.low <= found.estimate <= found.high


def test_a_threshold_that_is_missed_has_a_margin_below_zero(tmp_path: Path) -> None:
    found = row(tmp_path, "64b unidirectional ≥ 1 Mpps", [trial(1, 600_000)], "FAIL")
    assert found.margin == pytest.approx((-0.4, -0.4))
    assert found.lost == pytest.approx(0.4)
    above = row(
        tmp_path / "c", "64b 1-flow costs ≤ 400 cycles/packet at 1 Mpps", [trial(1, 1, cycles_per_packet=440.0)]
    )
    assert above.margin == pytest.approx((-0.1, -0.1))


def test_trials_that_do_not_count_are_set_aside(tmp_path: Path) -> None:
    short = replace(trial(2, 5), outcome=replace(trial(2, 5).outcome, duration=0.2, elapsed=0.2))
    found = row(tmp_path, "64b unidirectional forwards ≥ 500 kpps", [trial(1, 10**6), short, trial(3, 10**6)])
    assert found.sample == (10**6, 10**6)
    assert found.set_aside == 1


def test_a_margin_fits_its_schema_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    data = SEARCH.to_json()
    jsonschema.validate(data, records.schema(records.MARGIN))
    assert MarginRecord.from_json(json.loads(json.dumps(data))) == SEARCH
    with RunFolder.create(tmp_path, RUN) as run:
        run.add_result(2, "margin.json", json.dumps(data | {"low": "much"}))
    with pytest.raises(ConfigError, match=r"002-margin.json.*'low' is 'much'"):
        read_margins(run.path)
