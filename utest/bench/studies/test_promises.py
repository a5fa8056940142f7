"""The check of the goals' promises: it finds plans that break one, and code that differs from its plan."""

from dataclasses import replace

import pytest

from lineproof.sla.goals import Goal, Promise
from lineproof.sla.sequential_plan import SequentialPlan
from lineproof.traffic.catalogue import Catalogue
from lineproof_bench.studies import noises, promises
from lineproof_bench.studies.decision_rules import goal_rule, repeated_rule
from lineproof_bench.studies.promises import PromiseCheck, check_promises, promise_claims, promises_table
from lineproof_bench.studies.router_population import Goals
from lineproof_bench.studies.shares import PassShare
from support.model_bench import PROJECT

CATALOGUE = Catalogue.read(PROJECT.profiles)
GOALS = Goals.read(PROJECT)
SEED = 5
AT_SLA = Promise(capacity=0, at_most=0.05)


@pytest.mark.parametrize("goal", [GOALS.quick, GOALS.standard], ids=["quick", "standard"])
def test_the_goals_keep_their_promises_and_the_code_its_plan(goal: Goal) -> None:
    found = check_promises(CATALOGUE, SEED, goal, 40)
    assert list(dict.fromkeys(item.directions for item in found)) == [1, 2, 4, 8]
    assert all(claim.good for claim in promise_claims(found))


def test_another_plan_breaks_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "DIRECTIONS", (1,))
    generous = GOALS.standard.model_copy(update={"plan": {1: SequentialPlan.fixed(3, 3)}})
    kept, same = promise_claims(check_promises(CATALOGUE, SEED, generous, 40))
    assert not kept.good and "at the SLA with 1" in kept.words
    assert same.good


def test_code_that_passes_more_than_its_plan_is_found() -> None:
    check = PromiseCheck("standard", AT_SLA, 1, 0.04, PassShare(40, 1000))
    assert check.kept and check.agrees and not check.shown
    # more than chance explains, though the plan itself keeps the promise
    found = [replace(check, found=PassShare(number, 1000)) for number in (45, 55, 90)]
    assert [(item.kept, item.agrees) for item in found] == [(True, True), (True, True), (False, False)]
    # less is allowed where the bound on all frames makes the code stricter, but not of sound routers
    assert replace(check, found=PassShare(0, 1000)).agrees
    sound = PromiseCheck("standard", Promise(capacity=0.005, at_least=0.9), 1, 0.997, PassShare(970, 1000))
    assert sound.kept and not sound.agrees


def test_the_table_says_what_is_not_shown_and_what_is_broken() -> None:
    by_number = [PromiseCheck("standard", AT_SLA, number, 0.04, PassShare(4, 100)) for number in promises.DIRECTIONS]
    assert "not shown with 100 routers" in promises_table(by_number, markdown=True)
    assert "NOT KEPT" in promises_table([*by_number[:3], replace(by_number[3], by_plan=0.06)], markdown=True)


def test_a_noise_that_breaks_a_promise_is_marked() -> None:
    goal = GOALS.standard
    assert not noises.breaks(goal, 0.0, PassShare(4, 100))
    assert noises.breaks(goal, 0.0, PassShare(20, 100))
    assert noises.breaks(goal, 0.005, PassShare(90, 100))
    assert noises.breaks(goal, -0.01, PassShare(10, 100))
    nothing, some = PassShare(0, 100), PassShare(20, 100)
    rows = {"a noise": [noises.Rulings(nothing, some), *[noises.Rulings(some, nothing)] * 3]}
    expected = "| a noise | 0 % (20 % inconclusive) | **20 %** | **20 %** | **20 %** |"
    assert noises.noises_table(goal, rows, markdown=True).splitlines()[-1] == expected


def judged(noise: str, rule_name: str = "") -> list[float]:
    rule = goal_rule(GOALS.standard)
    if rule_name:
        rule = repeated_rule(rule, 3)
    kind = noises.NOISES[noise]
    return [item.passed.ratio for item in noises.judge_at_capacities(CATALOGUE, SEED, kind, rule, 60)]


def test_noises_do_what_the_documents_say() -> None:
    # -1 %, the SLA, +0.5 %, +1 %
    assert judged(noises.AS_ASSUMED)[1] < 0.15
    assert judged(noises.SLOW_GENERATOR)[1] > 0.15
    assert judged(noises.LEVELS)[0] > 0.3
    once, repeated = judged(noises.RUN_TO_RUN)[1], judged(noises.RUN_TO_RUN, "on 3 days")[1]
    assert once > 0.2 > repeated
