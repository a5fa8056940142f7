"""The headline figures of the studies of decision rules, on a small sample of the same routers."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linerate.counts.trial import Load
from linerate.project import Project
from linerate.traffic.catalogue import Catalogue
from linerate_bench.studies import characteristic, cost
from linerate_bench.studies.decision_rules import goal_rule
from linerate_bench.studies.noisy_router import NoisyRouter, RouterNoise
from linerate_bench.studies.router_population import Goals, RouterPopulation, RuleVerdict, all_rules
from support.paths import ROOT

PROJECT = Project(ROOT)
CATALOGUE = Catalogue.read(PROJECT.profiles)
GOALS = Goals.read(PROJECT)
SEED = 7
STILL = RouterNoise(capacity=0.0, burst=0)


def lost(router: NoisyRouter, pps: float, duration: float = 1.0) -> int:
    return router.measure(Load(pps), duration).directions[0].lost


def test_a_router_without_noise_loses_frames_beyond_capacity_and_buffer():
    assert lost(NoisyRouter(1e6, "", STILL), 1.004e6) == 0
    assert lost(NoisyRouter(1e6, "", STILL), 1.01e6) == 10_000 - 4096
    # the buffer is empty again when the next trial begins
    router = NoisyRouter(1e6, "", STILL)
    assert [lost(router, 1.005e6) for _ in range(3)] == [904] * 3


def test_bursts_come_as_often_as_they_should_whatever_the_trials():
    for duration in (1.0, 30.0):
        router = NoisyRouter(1e9, "a seed", RouterNoise(capacity=0.0))
        found = sum(lost(router, 1e6, duration) for _ in range(round(50_000 / duration)))
        assert 900 < found / 500 < 1100


def test_capacity_spreads_as_it_should():
    router = NoisyRouter(1e6, "a seed", RouterNoise(burst=0, buffer=0))
    rates = [2e6 - lost(router, 2e6) for _ in range(2000)]
    mean = sum(rates) / len(rates)
    spread = (sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5
    assert mean == pytest.approx(1e6, rel=0.001)
    assert spread == pytest.approx(3000, rel=0.1)


@settings(max_examples=30)
@given(st.integers(), st.lists(st.tuples(st.floats(1e3, 1e7), st.floats(0.1, 60)), max_size=10))
def test_the_same_seed_is_the_same_router(seed: int, asked: list[tuple[float, float]]):
    first, second = (NoisyRouter(1e6, str(seed), RouterNoise()) for _ in range(2))
    for pps, duration in asked:
        assert first.measure(Load(pps), duration) == second.measure(Load(pps), duration)
    assert first.traffic == pytest.approx(sum(duration for _, duration in asked))


@pytest.mark.parametrize("rate", [5e6, 200e3])
def test_standard_separates_routers_one_per_cent_apart(rate: float):
    rules = [goal_rule(GOALS.standard)]
    found = characteristic.characteristic(RouterPopulation(CATALOGUE, SEED, rate), rules, 150, (-0.01, 0.01))
    assert characteristic.is_sharp(found)


def test_without_longer_trials_a_buffer_hides_the_shortage():
    rule = goal_rule(GOALS.standard.model_copy(update={"longest_trial": None}))
    found = characteristic.characteristic(RouterPopulation(CATALOGUE, SEED, 200e3), [rule], 20, (-0.01,))
    assert found[rule.name][-0.01].ratio == 1


@pytest.mark.slow
def test_standard_is_cheaper_than_bisection_and_than_csits_search():
    found = cost.costs(RouterPopulation(CATALOGUE, SEED), all_rules(GOALS), 150, SEED)
    assert not [claim.words for claim in cost.claims(found) if not claim.good]
    assert found["bisection, 30 s"].mean == 240


@pytest.mark.slow
def test_the_studies_print_their_tables_and_draw_their_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    common = ["--routers", "20", "--seed", "3", "--root", str(ROOT), "--plots", str(tmp_path)]
    cost.main([*common, "--markdown"])
    characteristic.main(common)
    printed = capsys.readouterr().out
    assert "| `standard` | 20 |" in printed
    assert "passed at -1 %" in printed
    figures = {path.name for path in tmp_path.iterdir()}
    assert figures == {"operating-characteristic.svg", "buffer.svg", "cost.svg"}


def test_a_share_is_printed_with_its_interval():
    # Clopper-Pearson, 95 %: the rule of three for none of 100
    assert characteristic.PassShare(0, 100).interval == "0 % (0 … 3.62)"
    assert characteristic.PassShare(997, 1000).interval.startswith("99.7 % (99.1 … ")


def test_few_routers_prove_nothing_even_if_the_figures_keep_the_bound():
    def curves(passed_below: int, of: int) -> characteristic.Curves:
        return {
            "`standard`": {
                -characteristic.EDGE: characteristic.PassShare(passed_below, of),
                characteristic.EDGE: characteristic.PassShare(of, of),
            }
        }

    few, many, wrong = curves(0, 20), curves(0, 1000), curves(20, 1000)
    texts = [
        characteristic.bound_text(characteristic.is_sharp(c), characteristic.is_proven(c), 20)
        for c in (few, many, wrong)
    ]
    assert texts == ["not shown with 20 routers", "kept", "NOT KEPT"]


@pytest.mark.parametrize(("routers", "shown"), [(20, [False, True, False, False]), (1000, [True] * 4)])
def test_what_a_cost_study_proves_depends_on_its_number_of_routers(routers: int, shown: list[bool]):
    def made(name: str, seconds: float, failed: int, number: int) -> cost.RuleCost:
        # every fifth takes twice as long; all are fast enough, so a FAIL is wrong
        return cost.RuleCost(
            tuple(RuleVerdict(1.05, at >= failed, seconds * (2 if at % 5 == 0 else 1)) for at in range(number))
        )

    found = {
        cost.STANDARD: made("ours", 10.0, 0, routers),
        cost.BISECTION: made("theirs", 110.0, routers // 2, routers),
        cost.MLRSEARCH: made("csit", 24.0, 0, routers // 5),
    }
    claims = cost.claims(found)
    assert all(claim.good for claim in claims)
    assert [claim.shown for claim in claims] == shown
