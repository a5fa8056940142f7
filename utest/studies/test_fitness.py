"""Whether a generator fills a line: by the interval of its repeats, and never where others took its CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.studies.fitness import Fitness, fit, senders_of
from lineproof.studies.forms import markdown, sender_heads, sender_words, text
from lineproof.studies.page import page
from lineproof.studies.results import results_of
from lineproof.studies.sending import (
    CORE_SHARE,
    DIRECTIONS,
    FRAME,
    IDLE,
    L1,
    L2,
    LINK,
    OFFERED,
    RECEIVED,
    STEAL,
    _figures,
)
from lineproof.studies.study import Study
from lineproof.units import line_rate_pps
from support.study_builders import measurements

GIGABIT = line_rate_pps(1e9, 64)


def repeats(*shares: float, **more: float) -> list[dict[str, float]]:
    """One measurement for each of *shares* of a gigabit's line rate."""
    fixed = {FRAME: 64.0, LINK: 10e9, CORE_SHARE: 1.0, STEAL: 0.0, IDLE: 1.0}
    return [{**fixed, OFFERED: share * GIGABIT, RECEIVED: share * GIGABIT, **more} for share in shares]


def test_the_interval_of_the_repeats_decides() -> None:
    assert fit(repeats(1.2, 1.21, 1.19), 1e9).verdict is Fitness.FIT
    assert fit(repeats(0.6, 0.61, 0.59), 1e9).verdict is Fitness.UNFIT
    wide = fit(repeats(1.3, 0.7, 1.1), 1e9)
    assert wide.verdict is Fitness.OPEN and "the interval at 95 % has the line rate in it" in str(wide)


@pytest.mark.parametrize("share", [0.1, 5.0])
def test_two_equal_measurements_decide_nothing(share: float) -> None:
    assert str(fit(repeats(share), 1e9)) == "not decided: 1 measurement, a verdict needs 3"
    assert str(fit(repeats(share, share), 1e9)) == "not decided: 2 measurements, a verdict needs 3"


def test_what_does_not_arrive_fills_no_line() -> None:
    rows = [
        {**row, RECEIVED: share * row[OFFERED]} for row, share in zip(repeats(1.2, 1.2, 1.2), (1, 0.4, 1), strict=True)
    ]
    assert str(fit(rows, 1e9)) == "not decided: only 40 % of what was offered were received"
    assert fit([{**row, RECEIVED: 0.991 * row[OFFERED]} for row in rows], 1e9).verdict is Fitness.FIT


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({CORE_SHARE: 0.5}, Fitness.OPEN),
        # with the whole core it would not have been enough
        ({CORE_SHARE: 0.8}, Fitness.UNFIT),
        ({STEAL: 45.0}, Fitness.OPEN),
        ({STEAL: 5.0}, Fitness.UNFIT),
    ],
)
def test_a_sender_without_its_cpu_is_not_called_unfit(more: dict[str, float], verdict: Fitness) -> None:
    found = fit(repeats(0.6, 0.6, 0.6, **more), 1e9)
    assert found.verdict is verdict
    assert ("it got" in found.reason) is (verdict is Fitness.OPEN)


def test_one_starved_repeat_leaves_it_open() -> None:
    rows = [*repeats(0.6, 0.6), *repeats(0.6, **{CORE_SHARE: 0.3})]
    assert str(fit(rows, 1e9)) == "not decided: it got 30 % of its core"


def test_a_sender_that_filled_the_line_needs_no_more_cpu() -> None:
    assert fit(repeats(1.2, 1.2, 1.2, **{CORE_SHARE: 0.3, STEAL: 20.0}), 1e9).verdict is Fitness.FIT


@pytest.mark.parametrize(("idle", "verdict"), [(0.1, Fitness.OPEN), (1.0, Fitness.UNFIT)])
def test_a_sender_whose_cpu_time_is_not_known_needs_idle_cpus(idle: float, verdict: Fitness) -> None:
    rows = repeats(0.6, 0.6, 0.6, **{IDLE: idle})
    for row in rows:
        del row[CORE_SHARE]
    assert fit(rows, 1e9).verdict is verdict


def test_a_slower_port_says_nothing_of_a_faster_line() -> None:
    assert str(fit(repeats(1.0, 1.0, 1.0, **{LINK: 1e9}), 10e9)) == "not decided: its port has 1 Gbit/s"


@pytest.mark.parametrize(("directions", "way"), [(1.0, ""), (2.0, " each way")])
def test_all_rates_of_the_table_are_of_the_worse_direction(directions: float, way: str) -> None:
    study = Study.model_validate(
        {
            "study": "senders",
            "title": "A sender",
            "platform": "linux_router",
            "bypass": True,
            "measures": {
                "64b": {"sends": "64b 1-flow bidirectional" if directions > 1 else "64b 1-flow unidirectional"}
            },
            "variants": {"own": {}},
        }
    )
    figures = {FRAME: 64.0, LINK: 10e9, DIRECTIONS: directions, OFFERED: 1e6, RECEIVED: 1e6, L1: 1.7e9, L2: 1.3e9}
    found = results_of(study, measurements(study, {"own": [2e3] * 5}, "64b", figures=figures))
    (sender,) = senders_of(found)
    assert (sender.offered, sender.l1_bps, sender.l2_bps) == (1e6, 1e6 * 84 * 8, 1e6 * 64 * 8)
    heads = dict(zip(sender_heads([sender]), sender_words(sender), strict=True))
    assert heads[f"kframes/s{way}"] == "1000" and heads[f"Gbit/s (L1){way}"] == "0.672"
    for shown in (text(found), markdown(found), page(found)):
        assert ("each" in shown) is bool(way)


@pytest.mark.parametrize(("here", "share"), [(True, 1.0), (False, 0.25)])
def test_senders_of_both_directions_share_the_cores_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, here: bool, share: float
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    row = SimpleNamespace(offered=100, forwarded=100)
    readings = {"sender_cpu_seconds": 1.0, "sender_cores": 4.0}
    outcome = SimpleNamespace(directions=[row, row], readings=readings, duration=1.0)
    trial: Any = SimpleNamespace(outcome=outcome, offered=200, seconds=1.0)
    words: Any = SimpleNamespace(profile=SimpleNamespace(mean_size=64.0))
    assert _figures(trial, words, 1e9, here)[CORE_SHARE] == share
