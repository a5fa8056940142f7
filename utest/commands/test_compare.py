"""Two runs of a suite compared: what is proven worse, and what is not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from linerate.commands.main import main
from linerate.counts.latency import LatencyCount
from linerate.counts.trial import DirectionCount, Load, Outcome, Trial
from linerate.errors import TestbedError
from linerate.evidence.records import EnvironmentRecord
from linerate.evidence.run import RunFolder
from support.evidence_builders import requirement_record, trial_record

FORWARDS = "64b 1-flow unidirectional forwards ≥ 5 Mpps"
LATENCY = "64b unidirectional latency mean ≤ 50 µs at 1 Mpps"
VARIATION = "64b unidirectional pdv mean ≤ 5 µs at 1 Mpps"
COSTS = "64b 1-flow costs ≤ 400 cycles/packet at 1 Mpps"
RECOVERS = "64b unidirectional recovers in ≤ 2 s"
LOAD = "64b unidirectional ≥ 5 Mpps"


def run(
    folder: Path, name: str, rates: dict[str, list[float]], verdict: Any = "PASS", vpp: str = "24.10", **more: Any
) -> Path:
    """A run whose trials forwarded *rates* (frames/s), with the readings that the sentence needs."""
    written = RunFolder.create(folder, name)
    written.write_environment(
        EnvironmentRecord(name, False, "lab", "box", "vpp", 1.0, 0.0, versions={"router.vpp": vpp})
    )
    for number, (sentence, figures) in enumerate(rates.items(), 1):
        for place, figure in enumerate(figures, 1):
            # what an overload loses, say, must not be compared instead
            frames = round(figure) if sentence in (FORWARDS, LOAD) else 10_000_000 - place
            readings = {
                RECOVERS: {"recovery_low_s": 0.9 * figure, "recovery_high_s": figure},
                COSTS: {"cycles_per_packet": figure},
            }.get(sentence, {})
            counts = (DirectionCount(0, 1, 10_000_000, 10_000_000, frames),)
            mean, slow = (figure, 0) if sentence == LATENCY else (20.0, round(figure * 1000))
            late = sentence in (LATENCY, VARIATION)
            histogram = {10: 10_000 - slow, 900_000: slow}
            probe = (LatencyCount(0, 1, 10_000, 10_000, mean, 2 * mean, histogram=histogram),) if late else ()
            outcome = Outcome(Load(1e7), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe)
            record = replace(trial_record(), run=name, requirement=number, sentence=sentence, test="T")
            written.add_trial(replace(record, trial=Trial(place, outcome, ())))
        written.add_requirement(
            replace(requirement_record(), run=name, number=number, sentence=sentence, test="T", verdict=verdict, **more)
        )
    return written.path


def around(mean: float, seed: int, spread: float = 0.002) -> list[float]:
    chance = random.Random(seed)
    return [mean * (1 + chance.gauss(0, spread)) for _ in range(20)]


def test_slower_is_worse_and_the_exit_status_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = run(tmp_path, "old", {FORWARDS: around(5e6, 1)})
    new = run(tmp_path, "new", {FORWARDS: around(4.9e6, 2)}, vpp="25.02")
    assert main(["compare", str(old), str(new)]) == 1
    output = capsys.readouterr().out
    assert f"WORSE   {FORWARDS}: 5" in output
    assert "router.vpp: 24.10 → 25.02" in output
    assert "1 of 1 sentence proven worse" in output
    assert main(["compare", str(new), str(old)]) == 0
    assert f"better  {FORWARDS}" in capsys.readouterr().out


def test_a_sentence_that_only_one_run_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    both = run(tmp_path, "both", {FORWARDS: around(5e6, 1), LATENCY: around(20, 1)})
    one = run(tmp_path, "one", {FORWARDS: around(5e6, 1)})
    assert main(["compare", str(both), str(one)]) == 0
    assert f"only in the reference: {LATENCY}" in capsys.readouterr().out
    assert main(["compare", "--json", str(one), str(both)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["only_reference"], found["only_candidate"]) == ([], [LATENCY])
    assert [row["state"] for row in found["sentences"]] == ["nothing proven"] and found["worse"] == 0


def test_more_latency_is_worse(tmp_path: Path):
    old = run(tmp_path, "old", {LATENCY: around(20, 1)})
    new = run(tmp_path, "new", {LATENCY: around(25, 2)})
    assert (main(["compare", str(old), str(new)]), main(["compare", str(new), str(old)])) == (1, 0)


def test_a_later_recovery_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, new = (run(tmp_path, name, {RECOVERS: around(mean, 3)}) for name, mean in (("old", 0.5), ("new", 0.6)))
    assert main(["compare", str(old), str(new)]) == 1 and "s" in capsys.readouterr().out
    assert main(["compare", str(new), str(old)]) == 0


def test_noise_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = run(tmp_path, "old", {FORWARDS: around(5e6, 1, 0.02)})
    new = run(tmp_path, "new", {FORWARDS: around(4.99e6, 2, 0.02)})
    assert main(["compare", str(old), str(new), "--method", "pooled", "--confidence", "0.99"]) == 0
    assert "0 of 1 sentence proven worse" in capsys.readouterr().out


def test_a_pass_that_fails_now_is_worse_whatever_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, new = run(tmp_path, "old", {LOAD: [1e7]}), run(tmp_path, "new", {LOAD: [1e7]}, verdict="FAIL")
    assert main(["compare", str(old), str(new)]) == 1
    assert "PASS → FAIL" in capsys.readouterr().out


def test_equal_runs_are_reported_as_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, new = run(tmp_path, "old", {LOAD: [1e7] * 5}), run(tmp_path, "new", {LOAD: [1e7] * 5})
    assert main(["compare", str(old), str(new)]) == 0
    assert "0 loss ratio in both; no spread in either run, so no test" in capsys.readouterr().out


def test_runs_of_different_suites_are_refused(tmp_path: Path):
    old, new = run(tmp_path, "old", {LOAD: [1e7]}), run(tmp_path, "new", {FORWARDS: [1e7]})
    with pytest.raises(TestbedError, match="no sentence in common"):
        main(["compare", str(old), str(new)])


@pytest.mark.parametrize(("sentence", "mean", "unit"), [(VARIATION, 2.0, "µs"), (COSTS, 300.0, "cycles/packet")])
def test_each_sentence_is_compared_by_what_it_asks_for(
    sentence: str, mean: float, unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    old, new = (run(tmp_path, name, {sentence: around(mean * by, 4)}) for name, by in (("old", 1), ("new", 1.1)))
    assert main(["compare", str(old), str(new)]) == 1 and f" {unit} (+10 ±" in capsys.readouterr().out
    assert main(["compare", str(new), str(old)]) == 0 and "better" in capsys.readouterr().out


def test_without_any_spread_only_a_relevant_difference_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = run(tmp_path, "old", {FORWARDS: [5e6] * 5})
    hair, less = (run(tmp_path, name, {FORWARDS: [rate] * 5}) for name, rate in (("hair", 4.9999e6), ("less", 4.9e6)))
    assert main(["compare", str(old), str(hair)]) == 0
    assert "(-0.002 %); no spread in either run, so no test: counts from 0.1 % on" in capsys.readouterr().out
    assert main(["compare", str(old), str(less)]) == 1


def test_short_trials_are_no_observations(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    terms = {"final_trial_duration": 60.0}
    old, new = (run(tmp_path, name, {FORWARDS: [5e6] * 5}, goal_terms=terms) for name in ("old", "new"))
    assert main(["compare", str(old), str(new)]) == 0
    assert "0 and 0 observations, too few to compare" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "status", "words"),
    [
        ("FAIL", "PASS", 0, "better  64b"),
        ("PASS", "INCONCLUSIVE", 0, "unsure  64b"),
        (
            "INCONCLUSIVE",
            "PASS",
            0,
            "0 of 1 sentence proven worse; 1 with a verdict that became, or was, INCONCLUSIVE",
        ),
        ("PASS", "FAIL", 1, "WORSE   64b"),
    ],
)
def test_a_changed_verdict_is_shown(
    before: str, after: str, status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    old, new = run(tmp_path, "old", {LOAD: [1e7]}, before), run(tmp_path, "new", {LOAD: [1e7]}, after)
    assert main(["compare", str(old), str(new)]) == status
    printed = capsys.readouterr().out
    assert words in printed and f"[{before} → {after}]" in printed


@pytest.mark.parametrize("text", ["0,95", "95 %", "1.0", "nan", ""])
def test_a_wrong_confidence_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str):
    with pytest.raises(SystemExit) as ended:
        main(["compare", "--confidence", text, str(tmp_path), str(tmp_path)])
    assert ended.value.code == 2
    said = f"'{text}' is no confidence; expected a number between 0 and 1 with a decimal point, as 0.95"
    assert said in capsys.readouterr().err
