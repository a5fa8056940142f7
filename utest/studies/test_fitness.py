"""Whether a generator fills a line: by the interval of its repeats, and never where others took its CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.bounds import Bounds
from lineproof.studies.fitness import Fitness, fit, senders_of
from lineproof.studies.forms import markdown, sender_heads, sender_words, text
from lineproof.studies.measuring import (
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
from lineproof.studies.page import page
from lineproof.studies.results import results_of
from lineproof.studies.study import Study
from lineproof.units import line_rate_pps
from support.study_builders import measurements

GIGABIT = line_rate_pps(1e9, 64)


def repeats(*shares: float, **more: float) -> list[dict[str, float]]:
    """One measurement for each of *shares* of a gigabit's line rate."""
    fixed = {FRAME: 64.0, LINK: 10e9, CORE_SHARE: 1.0, STEAL: 0.0, IDLE: 1.0}
    return [{**fixed, OFFERED: share * GIGABIT, RECEIVED: share * GIGABIT, **more} for share in shares]


def lossy(*shares: float) -> list[dict[str, float]]:
    """Repeats that fill the line, of which only *shares* arrive."""
    return [{**row, RECEIVED: share * row[OFFERED]} for row, share in zip(repeats(1.2, 1.2, 1.2), shares, strict=True)]


def unclocked(idle: float) -> list[dict[str, float]]:
    """Repeats of a sender whose CPU time is not known."""
    return [{key: row[key] for key in row if key != CORE_SHARE} for row in repeats(0.6, 0.6, 0.6, **{IDLE: idle})]


@pytest.mark.parametrize(
    ("rows", "link", "verdict", "reason"),
    [
        # the interval of the repeats decides
        (repeats(1.2, 1.21, 1.19), 1e9, Fitness.FIT, ""),
        (repeats(0.6, 0.61, 0.59), 1e9, Fitness.UNFIT, ""),
        (repeats(1.3, 0.7, 1.1), 1e9, Fitness.OPEN, "the interval at 95 % has the line rate in it"),
        (repeats(0.1), 1e9, Fitness.OPEN, "1 measurement, a verdict needs 3"),
        (repeats(5.0, 5.0), 1e9, Fitness.OPEN, "2 measurements, a verdict needs 3"),
        (lossy(1, 0.4, 1), 1e9, Fitness.OPEN, "only 40 % of what was offered were received"),
        (lossy(0.991, 0.991, 0.991), 1e9, Fitness.FIT, ""),
        # without its CPU it is not called unfit, unless the whole core would not have been enough
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.5}), 1e9, Fitness.OPEN, "it got"),
        (repeats(0.6, 0.6, 0.6, **{CORE_SHARE: 0.8}), 1e9, Fitness.UNFIT, ""),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 45.0}), 1e9, Fitness.OPEN, "it got"),
        (repeats(0.6, 0.6, 0.6, **{STEAL: 5.0}), 1e9, Fitness.UNFIT, ""),
        ([*repeats(0.6, 0.6), *repeats(0.6, **{CORE_SHARE: 0.3})], 1e9, Fitness.OPEN, "it got 30 % of its core"),
        (unclocked(0.1), 1e9, Fitness.OPEN, "no CPU was idle"),
        (unclocked(1.0), 1e9, Fitness.UNFIT, ""),
        # one that filled the line needs no more
        (repeats(1.2, 1.2, 1.2, **{CORE_SHARE: 0.3, STEAL: 20.0}), 1e9, Fitness.FIT, ""),
        (repeats(1.0, 1.0, 1.0, **{LINK: 1e9}), 10e9, Fitness.OPEN, "its port has 1 Gbit/s"),
    ],
)
def test_a_line_is_filled_or_not_by_what_was_measured_on_a_core_of_its_own(
    rows: list[dict[str, float]], link: float, verdict: Fitness, reason: str
) -> None:
    found = fit(rows, link)
    assert found.verdict is verdict and (
        reason in str(found) if reason else "it got" not in found.reason or rows == unclocked(0.1)
    )


@pytest.mark.parametrize(("directions", "way"), [(1.0, ""), (2.0, " each way")])
def test_all_rates_of_the_table_are_of_the_worse_direction(directions: float, way: str) -> None:
    sends = f"64b 1-flow {'bi' if directions > 1 else 'uni'}directional"
    names = {"study": "senders", "title": "A sender", "platform": "linux_router", "bypass": True}
    study = Study.model_validate({**names, "measures": {"64b": {"sends": sends}}, "variants": {"own": {}}})
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
    trial: Any = SimpleNamespace(outcome=outcome, offered=200, seconds=Bounds(1.0, 1.0))
    words: Any = SimpleNamespace(profile=SimpleNamespace(mean_size=64.0))
    assert _figures(trial, words, 1e9, here)[CORE_SHARE] == share
