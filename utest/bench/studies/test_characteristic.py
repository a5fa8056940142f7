"""The headline figures of the studies of decision rules, on a small sample of the same routers."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.generators.trex.client.drain import QUIET_TIME
from lineproof.generators.trex.driver import TrexSettings
from lineproof.project import Project
from lineproof.sla.verdict import Ruling
from lineproof.traffic.catalogue import Catalogue
from lineproof_bench.studies import characteristic, cost
from lineproof_bench.studies.decision_rules import goal_rule, mlrsearch_rule
from lineproof_bench.studies.router_population import (
    NOISE,
    SET_UP,
    Goals,
    RouterKind,
    RouterPopulation,
    RuleVerdict,
    all_rules,
)
from lineproof_bench.studies.shares import Claim, PassShare, bound_text, print_claims
from support.paths import ROOT

PROJECT = Project(ROOT)
CATALOGUE = Catalogue.read(PROJECT.profiles)
GOALS = Goals.read(PROJECT)
SEED = 7


@pytest.mark.parametrize("rate", [5e6, 200e3])
def test_standard_separates_routers_one_per_cent_apart(rate: float):
    rules = [goal_rule(GOALS.standard)]
    found = characteristic.characteristic(RouterPopulation(CATALOGUE, SEED, rate), rules, 150, (-0.01, 0.01))
    assert characteristic.sharpness(found).good


@given(number=st.integers(0, 10_000), rate=st.floats(20e3, 1e6))
@settings(max_examples=10, deadline=None)
def test_trials_grow_only_where_a_queue_shows(number: int, rate: float):
    goal = GOALS.standard
    population = RouterPopulation(CATALOGUE, SEED, rate, RouterKind(replace(NOISE, burst=0)))
    known, unknown = (goal_rule(goal, backlog_known=known) for known in (True, False))
    sound = population.judge(known, number, 1.01)
    assert (sound.ruling, sound.traffic) == (Ruling.PASS, goal.warm_up + goal.plan_for(1).good_for_pass[0])
    # where all are expected to have a queue, trials of a sound router are longer too
    assert population.judge(unknown, number, 1.01).traffic >= sound.traffic
    assert not population.judge(known, number, 0.985).passed


def test_a_buffer_hides_the_shortage_where_trials_stay_short_and_no_backlog_is_known():
    rule = goal_rule(GOALS.standard.model_copy(update={"longest_trial": None}), backlog_known=False)
    found = characteristic.characteristic(RouterPopulation(CATALOGUE, SEED, 200e3), [rule], 20, (-0.01,))
    assert found[rule.name][-0.01].ratio == 1


@pytest.mark.slow
def test_standard_keeps_its_bounds_of_cost():
    found = cost.costs(RouterPopulation(CATALOGUE, SEED), all_rules(GOALS), 150, SEED)
    assert not [claim.words for claim in cost.claims(found) if not claim.good]
    assert found["bisection, 30 s"].mean == 240


@pytest.mark.parametrize(("ratio", "ruling", "trials"), [(1.05, Ruling.PASS, 8), (0.95, Ruling.FAIL, 9)])
def test_mlrsearch_stops_when_the_load_of_the_sla_is_classified(ratio: float, ruling: Ruling, trials: int):
    # a warm-up, and 7 trials of 1.5 s: half of 21 s may be bad, more may not
    found = RouterPopulation(CATALOGUE, SEED).judge(mlrsearch_rule(), 0, ratio)
    assert (found.ruling, found.traffic) == (ruling, trials)


def test_real_time_counts_set_up_and_the_wait_for_missing_frames():
    assert TrexSettings("a server").drain > QUIET_TIME  # else the whole drain would be the wait
    population = RouterPopulation(CATALOGUE, SEED)
    found = {ratio: population.judge(mlrsearch_rule(), 0, ratio) for ratio in (1.05, 0.95)}
    assert found[1.05].real == pytest.approx(8 + 8 * 0.1 + SET_UP)
    assert found[0.95].real == pytest.approx(9 + 9 * 0.1 + 9 * QUIET_TIME + SET_UP)


@pytest.mark.slow
def test_the_studies_print_their_tables_and_draw_their_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    common = ["--routers", "20", "--seed", "3", "--root", str(ROOT), "--plots", str(tmp_path)]
    cost.main([*common, "--markdown"])
    characteristic.main(common)
    printed = capsys.readouterr().out
    assert "(20 routers)" in printed
    assert "passed at -1 %" in printed
    assert "Wald" in printed
    assert "standard keeps its promises: not shown with 20 routers" in printed
    figures = {path.name for path in tmp_path.iterdir()}
    assert figures == {"operating-characteristic.svg", "buffer.svg", "cost.svg"}


def test_a_share_is_printed_with_its_interval():
    # Clopper-Pearson, 95 %: the rule of three for none of 100
    assert PassShare(0, 100).interval == "0 % (0 … 3.62)"
    assert PassShare(997, 1000).interval.startswith("99.7 % (99.1 … ")


def test_few_routers_prove_nothing_even_if_the_figures_keep_the_bound():
    def curves(passed_below: int, of: int) -> characteristic.Curves:
        edge = characteristic.EDGE
        return {"`standard`": {-edge: PassShare(passed_below, of), edge: PassShare(of, of)}}

    found = [characteristic.sharpness(item) for item in (curves(0, 20), curves(0, 1000), curves(20, 1000))]
    texts = [bound_text(claim.good, claim.shown, 20) for claim in found]
    assert texts == ["not shown with 20 routers", "kept", "NOT KEPT"]


def test_a_study_exits_with_1_only_if_a_figure_breaks_its_bound(capsys: pytest.CaptureFixture[str]):
    kept, open_, broken = Claim("a", True, True), Claim("b", True, False), Claim("c", False, False)
    assert print_claims([kept, open_], 20, markdown=False) == 0
    assert print_claims([kept, broken], 20, markdown=False) == 1
    assert capsys.readouterr().out.splitlines() == ["a: kept", "b: not shown with 20 routers", "a: kept", "c: NOT KEPT"]


def made(name: str, seconds: float, failed: int, number: int) -> cost.RuleCost:
    # every fifth takes twice as long; all are fast enough, so a FAIL is wrong
    return cost.RuleCost(
        tuple(
            RuleVerdict(1.05, Ruling.PASS if at >= failed else Ruling.FAIL, taken, taken + 1)
            for at in range(number)
            for taken in [seconds * (2 if at % 5 == 0 else 1)]
        )
    )


@pytest.mark.parametrize(("routers", "shown"), [(20, [False, True, False, True, False, False]), (1000, [True] * 6)])
def test_what_a_cost_study_proves_depends_on_its_number_of_routers(routers: int, shown: list[bool]):
    found = {
        cost.STANDARD: made("ours", 6.0, 0, routers),
        cost.BISECTION: made("theirs", 66.0, routers // 2, routers),
        cost.MLRSEARCH: made("csit", 7.0, 0, routers),
    }
    claims = cost.claims(found)
    assert all(claim.good for claim in claims)
    assert [claim.shown for claim in claims] == shown


def test_a_standard_that_takes_longer_breaks_the_bounds_of_cost():
    found = {
        cost.STANDARD: made("ours", 10.0, 0, 100),
        cost.BISECTION: made("theirs", 240.0, 50, 100),
        cost.MLRSEARCH: made("csit", 8.0, 0, 100),
    }
    assert [claim.good for claim in cost.claims(found)] == [False, False, True, True, False, True]
