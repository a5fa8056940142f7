"""TRex's account of streams, compared with the profile's arithmetic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.errors import TestbedError
from lineproof.generators.base import Probe
from lineproof.generators.trex.pattern_checks import check_layers, line_use
from support.catalogue import CATALOGUE
from support.paths import DATA

RECORDED = DATA / "trex-rpc" / "official-v3.08.jsonl"


def report(sizes: dict[int, float], speed: float = 10e9, **other: float) -> dict[str, dict[str, Any]]:
    """TRex's report of streams of so many frames/s of each size (bytes with FCS)."""
    rate = {
        "pps": sum(sizes.values()),
        "bps_l2": sum(8 * size * pps for size, pps in sizes.items()),
        "bps_l1": sum(8 * (size + 20) * pps for size, pps in sizes.items()),
        "speed_bps": speed,
    }
    # a real server's line is a little slower than its port
    return {"0": {**rate, "line_util": 100 * rate["bps_l1"] / (0.9999 * speed) if speed else 0.0, **other}}


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ("64b", {64: 1.0}),
        ("imix", {64: 28 / 48, 594: 16 / 48, 1518: 4 / 48}),
        ("1514b", {1518: 1.0}),
        ("9216b vlan", {9216: 1.0}),
    ],
)
def test_matching_figures_pass(words: str, sizes: dict[int, float]):
    profile = CATALOGUE.profile(words.split())
    check_layers(profile, report(sizes), None)
    check_layers(profile, report(sizes, speed=0.0), None)  # a port without a speed
    check_layers(profile, {"0": {}}, None)


def test_probe_frames_are_part_of_the_figures():
    check_layers(CATALOGUE.profile(["64b"]), report({64: 1 + 1000.0}), (Probe(1000.0), {64: 1.0}))
    reported = report({64: 28 / 48 + 350, 594: 16 / 48 + 150, 1518: 4 / 48})
    check_layers(CATALOGUE.profile(["imix"]), reported, (Probe(500.0), {64: 0.7, 594: 0.3}))


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (report({60: 1.0}), "counts 640 bits per frame of '64b' at port 0 on L1, and they are 672"),
        (report({64: 1.0}, bps_l1=512.0), "counts 512 bits per frame of '64b' at port 0 on L1, and they are 672"),
        (report({64: 1.0}, bps_l2=480.0), "counts 480 bits per frame of '64b' at port 0 on L2, and they are 512"),
        (
            report({64: 1.0}, line_util=100 * 672 / 40e9),
            "for the line of port 0, and says that the port runs at 10; fix 'port_speed' (Mbit/s) in trex_cfg.yaml",
        ),
    ],
)
def test_different_figures_are_reported(rates: dict[str, dict[str, Any]], message: str):
    with pytest.raises(TestbedError) as caught:
        check_layers(CATALOGUE.profile(["64b"]), rates, None)
    assert message in str(caught.value)


def test_recorded_answers_have_these_names_and_arithmetic():
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    answers = [row["result"] for row in rows if row.get("method") == "validate"]
    assert answers
    for answer in answers:
        for event in answer["graph"]["events"]:
            assert event["diff_bps_l1"] - event["diff_bps_l2"] == pytest.approx(8 * 20 * event["diff_pps"])
        rate = answer["rate"]
        assert rate["max_bps_l1"] - rate["max_bps_l2"] == pytest.approx(160 * rate["max_pps"])
        assert 100 * rate["max_bps_l1"] / rate["max_line_util"] == pytest.approx(10e9, rel=2e-4)


def test_line_use_is_that_of_the_busiest_port():
    directions = (
        DirectionCount(0, 1, 1000, 1000, 1000, 64_000, 64_000),
        DirectionCount(1, 0, 2000, 2000, 2000, 128_000, 128_000),
    )
    outcome = Outcome(Load(1000.0), 1.0, 1.0, 0.0, directions)
    assert line_use(outcome, {0: 1e6, 1: 1e7}) == pytest.approx(67.2)
    assert line_use(outcome, {0: 0.0}) is None
