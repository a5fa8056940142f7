"""Budgets before a run, and progress while sentences are judged."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.deciding import Asked, Budget, Standing, TrialConditions
from lineproof.core.foreign import LATEST
from lineproof.core.goal import Goal
from lineproof.core.rule import Ruling
from lineproof.core.trial import Load, Measure, Outcome, Trial, read_trial
from lineproof.errors import ConfigError, SentenceError
from lineproof.evidence.resume import UNREAD
from lineproof.power import CommandMeterSettings
from lineproof.project import Project
from lineproof.session.judging import EndedTrial, judge
from lineproof.session.plan import PROBE_SHARE, Plan, check_simulable
from lineproof.session.progress import Progress
from lineproof.session.session import Session
from support.made_testbeds import decided, goal_named, promised, router
from support.paths import ROOT
from support.power_bench import PowerBench
from support.simulated_session import opened

GOALS = [goal_named(name) for name in ("quick", "standard", "rfc2544")]
RATE = "64b unidirectional ≥ 5 Mpps"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Clock:
    moment: float = 0.0

    def __call__(self) -> float:
        return self.moment


def losing(frames: int) -> Measure:
    """Return a testbed that loses so many frames of 5 million."""
    return router(frames / 5e6)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.goal)
def test_a_budget_is_the_time_of_the_verdicts(goal: Goal):
    budget = Budget.of(promised(RATE, goal), 0.0)
    passed = decided(promised(RATE, goal), losing(0))
    assert passed.ruling is Ruling.PASS
    assert sum(trial.outcome.duration for trial in passed.trials) == pytest.approx(budget.until_pass)
    assert len(passed.trials) == budget.trials


@given(st.lists(st.booleans(), min_size=200, max_size=200), st.sampled_from(GOALS), st.sampled_from((0.0, 0.1)))
def test_no_verdict_takes_longer_than_the_budgets_maximum(good: list[bool], goal: Goal, held: float):
    rows = iter(good)

    def measure(load: Load, duration: float) -> Outcome:
        found = losing(0 if next(rows) else 1)(load, duration)
        # queues that always grow make trials as long as they may be
        rows_held = tuple(replace(row, backlog=round(held * row.offered)) for row in found.directions)
        return replace(found, directions=rows_held)

    found = decided(promised(RATE, goal), measure)
    budget = Budget.of(promised(RATE, goal), 0.0)
    assert sum(trial.outcome.duration for trial in found.trials) <= budget.at_most + 1e-9
    # the frames that a trial misses are waited for, and late ones
    assert budget.most_wall_seconds(1.0) >= budget.at_most + LATEST * len(found.trials)


def test_the_budget_of_a_power_meter_is_the_time_of_the_trials_with_it():
    bench, goal = PowerBench(), GOALS[0]
    powered = bench.powered()
    assert powered.settings is not None
    least, idle = powered.settings.trial_seconds(1.0), powered.settings.idle_seconds()
    assert least > goal.final_trial_duration
    promise = promised("64b 1-flow unidirectional costs ≤ 20 µJ/packet at 5 Mpps", goal)
    budget, began = Budget.of(promise, 0.0, least, idle), bench.now
    found = decided(promise, powered.of_sentence())
    assert found.ruling is Ruling.PASS
    assert sum(trial.outcome.duration for trial in found.trials) == pytest.approx(budget.until_pass)
    assert bench.now - began == pytest.approx(budget.until_pass + budget.beside)
    assert (budget + budget).beside == 2 * idle


def test_a_suites_budget_knows_the_power_meter_of_its_testbed():
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "quick")
    words = ("64b unidirectional costs ≤ 1.4 µJ/packet", "64b unidirectional ≥ 5 Mpps")
    costs, other = (plan.requirement(sentence) for sentence in words)
    meter = CommandMeterSettings(kind="command", run="x", accuracy=1)
    metered = replace(plan, testbed=plan.testbed.model_copy(update={"power": meter}))
    assert metered.budget([other]) == plan.budget([other])
    assert plan.budget([costs]).beside == 0
    found = metered.budget([costs, other])
    trials = plan.goal.fewest_trials
    longer = meter.trial_seconds(plan.clock_speed) - plan.goal.final_trial_duration
    assert found.until_pass == pytest.approx(plan.budget([costs, other]).until_pass + trials * longer)
    assert found.beside == meter.idle_seconds() == 5


def one_trial(lost: int = 0) -> Trial:
    return read_trial(1, losing(lost)(Load(5e6), 1.0), TrialConditions().tolerance)


def standings(*lost: int, words: str = RATE) -> Iterator[Standing]:
    """How the trials stand after each of them, in which so many frames were lost, under goal 'standard'."""
    asked = Asked(promised(words, GOALS[1]))
    yield from (asked.add(one_trial(count)) for count in lost)


def test_a_terminal_shows_one_line_that_fits_and_is_removed_at_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "70")
    stream = Terminal()
    progress = Progress(stream, sentences=9)
    progress.begin(RATE, 5e6)
    assert "sentence 1 of 9, warming up: 64b unidirectional ≥ 5 Mpps at 5 Mpps\x1b8" in stream.getvalue()
    *_, standing = standings(0, 0, 0, 7)
    progress.hear(EndedTrial(one_trial(lost=7), standing))
    shown = stream.getvalue()
    assert "sentence 1 of 9, trial 1, 8 s left, 1 bad, lost 7 of 5000000: 64b uni\x1b8" in shown
    assert "\n" not in shown, "a newline would tear Robot's own line apart"
    progress.end()
    assert stream.getvalue().endswith("\x1b[K\x1b8")


def test_a_log_gets_a_plain_line_every_30_seconds():
    stream, now = io.StringIO(), Clock()
    progress = Progress(stream, now=now)
    progress.begin(RATE, 5e6)
    for second, standing in enumerate(standings(*[0] * 65, words=f"{RATE} for 2 min")):
        now.moment = float(second)
        progress.hear(EndedTrial(one_trial(), standing))
    progress.end()
    first, second_line = stream.getvalue().splitlines()
    assert first == "sentence 1, trial 1, 1 min 29 s left, lost 0 of 5000000: 64b unidirectional ≥ 5 Mpps at 5 Mpps"
    assert "59 s left" in second_line and "\x1b" not in stream.getvalue()


def test_work_that_is_no_sentence_shows_its_steps_unless_its_stream_is_closed():
    stream = Terminal()
    progress = Progress(stream)
    progress.work("connecting to the router")
    assert "connecting to the router\x1b8" in stream.getvalue()
    progress.step("trial 3, lost 7 of 100 at 5 Mpps")
    assert "connecting to the router, trial 3, lost 7 of 100 at 5 Mpps\x1b8" in stream.getvalue()
    stream.close()
    progress.begin(RATE, 5e6)
    progress.hear(EndedTrial(one_trial(), next(standings(0))))
    progress.end()


def plan(goal: str) -> Plan:
    return Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", goal)


@pytest.mark.parametrize("goal", ["standard", "quick", "rfc2544"])
@pytest.mark.parametrize("words", ["latency p99.9 ≤ 100 µs", "pdv p99 ≤ 100 µs", "reorders ≤ 0.1%"])
def test_a_percentile_needs_room_for_its_probe_frames(goal: str, words: str) -> None:
    found = plan(goal)
    needed = found.probes_needed(found.measurable(f"64b unidirectional {words} at 1 kpps"))
    least = needed / PROBE_SHARE / found.goal.final_trial_duration
    found.requirement(f"64b unidirectional {words} at {1.01 * least:.0f} pps")
    with pytest.raises(SentenceError, match="probe frames that goal"):
        found.requirement(f"64b unidirectional {words} at {0.99 * least:.0f} pps")


def test_probe_frames_of_more_groups_than_trex_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "imix bidirectional latency p99 ≤ 100 µs at 1 Mpps each way"
    monkeypatch.setattr("lineproof.session.plan.MOST_PROBE_GROUPS", 6)
    plan("standard").requirement(words)
    monkeypatch.setattr("lineproof.session.plan.MOST_PROBE_GROUPS", 5)
    with pytest.raises(SentenceError, match="of 3 sizes from 2 ports are 6 packet groups; expected at most 5"):
        plan("standard").requirement(words)


@pytest.mark.parametrize(
    ("model", "lack"), [({}, "no 'model:'"), ({"software": {"vpp": {}}}, "no 'linux' in 'model.software'")]
)
def test_a_software_without_a_model_cannot_be_simulated(model: dict[str, Any], lack: str) -> None:
    box = plan("quick").platform.model_copy(update={"model": model})
    with pytest.raises(ConfigError, match=f"netgate6100.yaml: has {lack}, so testbed 'simulated' cannot"):
        check_simulable(Project(ROOT), box, "linux", "simulated")


# -- trials of an earlier run before those of a session: what they decide, and what must be looked at first


SENTENCE = "64b unidirectional ≥ 1 Mpps"


def earlier(session: Session, *, lost: int) -> list[Trial]:
    """Return two trials of a run that was interrupted; the first lost so many frames."""
    trials = judge(session, session.plan.requirement(SENTENCE)).trials[:2]
    (row,) = trials[0].outcome.directions
    outcome = replace(trials[0].outcome, directions=(replace(row, forwarded=row.forwarded - lost),))
    of_run = (replace(trials[0], outcome=outcome), trials[1])
    return [replace(trial, run="a", problems=(*trial.problems, UNREAD)) for trial in of_run]


@pytest.mark.slow
@pytest.mark.parametrize(("probed", "ruling"), [(True, Ruling.PASS), (False, Ruling.INCONCLUSIVE)])
def test_where_an_interrupted_run_lost_frames_it_needs_probe_frames(
    tmp_path: Path, probed: bool, ruling: Ruling
) -> None:
    with opened(tmp_path) as session:
        before = earlier(session, lost=20)
        if not probed:
            before = [replace(trial, outcome=replace(trial.outcome, latency=())) for trial in before]
        verdict = judge(session, session.plan.requirement(SENTENCE), earlier=before)
        assert verdict.ruling is ruling, verdict.message
        assert verdict.runs == {"a": 2} and all(trial.run == "" for trial in verdict.trials[2:])


def test_a_soak_is_judged_in_one_run() -> None:
    of_two = plan("quick")
    of_two = replace(of_two, goal=of_two.goal.model_copy(update={"runs": 2}))
    with pytest.raises(SentenceError, match="judged in one run"):
        of_two.requirement(f"{SENTENCE} for 20 s")
