"""Generators' own ceilings are measured, kept in files, and spare routers a FAIL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.ceilings import (
    Card,
    OwnLatency,
    PublishedLimits,
    choose_card,
    own_latency,
    read_calibration,
    write_calibration,
)
from lineproof.core.doubts import USABLE_SHARE
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.trial import Load, Outcome
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.procedures.calibrate import SEARCH_WIDTH, find_ceiling
from lineproof.procedures.trials import TrialSeries
from lineproof.project import Project
from lineproof.session.plan import Plan
from support.ceilings import (
    CARDS,
    CATALOGUE,
    FAILING,
    LINE,
    LINK,
    NOW,
    calibration,
    ceiling,
    measured_limits,
    ports,
    promise,
    ruled,
)
from support.paths import ROOT
from support.pure_router import PureRouter

SOURCE = {"title": "a page", "url": "https://example.org/", "says": "it says so", "seen": "2026-11-21"}


def test_card_named_by_a_testbed_must_exist(tmp_path: Path):
    text = (ROOT / "variables" / "testbeds" / "lab-example.yaml").read_text()
    (testbeds := tmp_path / "variables" / "testbeds").mkdir(parents=True)
    (testbeds / "lab-example.yaml").write_text(text.replace("  force: false", "  card: intel_x711\n  force: false"))
    with pytest.raises(ConfigError, match="no card 'intel_x711' here; did you mean 'intel_x710'"):
        Plan.read(Project(tmp_path), "netgate6100", None, "lab-example", "quick")


@pytest.mark.parametrize(
    ("own", "named", "expected"),
    [
        (ports("net_i40e", 10), None, "intel_x710"),
        (ports("net_i40e", 40), None, "intel_xl710"),
        (ports("net_i40e", 10), "intel_xl710", "intel_xl710"),
        # what it is called tells more than how fast it happens to run
        (ports("net_i40e", 10, "Ethernet Controller XL710 for 40GbE QSFP+"), None, "intel_xl710"),
        (ports("net_ixgbe", 10), None, "intel_82599"),
        # a slower link, or an unknown speed
        (ports("net_ice", 10, "Ethernet Controller E810-XXV for SFP"), None, "intel_e810_25g"),
        (ports("net_ice", 100, "Unknown"), None, "intel_e810_100g"),
        (ports("net_i40e", 0, "Ethernet Controller X710 for 10GbE SFP+"), None, "intel_x710"),
        # or why not
        (ports("net_mlx5", 100), None, "net_mlx5 may be mellanox_connectx4 or mellanox_connectx5 or"),
        (ports("net_i40e", 1), None, "'card: intel_x710'"),
        (ports("net_new", 10), None, "no file in variables/generators knows net_new"),
        (ports(""), None, "does not report its ports' driver"),
        (ports("net_ixgbe"), "intel_x710", "which TRex drives by net_i40e, but the driver here is net_ixgbe; fix"),
    ],
)
def test_card_is_found_by_driver_description_and_speed(
    own: tuple[GeneratorPort, ...], named: str | None, expected: str
):
    card, why = choose_card(list(CARDS.values()), own, named)
    assert card.card == expected if card else expected in why


def published(*limits: dict[str, object], server: str | None = None, cards: str = "--", **card: object):
    """Return what is published of a made-up card with *limits*, of whose copies the ports are on *cards*."""
    sourced = [{**limit, "source": SOURCE} for limit in limits]
    content = Card.model_validate({"card": "box", "name": "Box", "drivers": ["net_box"], "limits": sourced, **card})
    return PublishedLimits(content, "by its driver", ports("net_box", cards=cards), LINK, server)


def limit(rate: float, per: str = "port", **other: object) -> dict[str, object]:
    return {"rate": rate, "per": per, **other}


HALF = "64b bidirectional ≥ 50% line rate each way"
OLD: Any = {"servers": {"before": "v3.07"}}


@pytest.mark.parametrize(
    ("card", "sentence", "stays"),
    [
        (published(limit(12e6, "card")), FAILING, True),
        (published(limit(7e6, "card")), FAILING, False),
        (published(limit(7e6)), HALF, False),
        (published(limit(12e6, "card")), HALF, False),
        (published(limit(12e6, "card"), cards="ab"), HALF, True),
        (published(limit(7e6, **OLD)), FAILING, True),
        (published(limit(7e6, **OLD), server="v3.06"), FAILING, False),
        (published(limit(3e9, "card", unit="bit/s")), FAILING, False),
        (published(limit(5e9, "card", unit="bit/s")), FAILING, True),
        (published(limit(7e6, frames_below=64)), FAILING, True),
        (published(limit(15e6)), "64b unidirectional ≥ 100% line rate", True),
        (published(), FAILING, True),
    ],
)
def test_limit_applies_to_its_ports_versions_and_frames(card: PublishedLimits, sentence: str, stays: bool):
    offered = LINE if "100%" in sentence else LINE / 2
    assert ruled(promise(sentence, published=card), offered) is (Ruling.FAIL if stays else Ruling.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (ceiling(lossless=LINE), ""),
        (ceiling(lossless=LINE / 2), "router bypassed"),
        (
            ceiling("imix"),
            "this card (Box) is known to stop at 1 Mpps per card: 1 Mpps from each port (source: a page",
        ),  # another profile was measured, this one not
    ],
)
def test_measured_ceiling_comes_before_a_published_one(measured, words):
    own = promise(FAILING, measured_limits(measured), published(limit(1e6, "card"))).own
    assert words in own.words and bool(words) == bool(own.words)


def test_frames_that_a_card_cannot_send_are_refused():
    card = published(frame_sizes=[{"largest": 512, "source": SOURCE}])
    card.check_sendable(CATALOGUE.profile(["512b"]), probes=False)
    with pytest.raises(TestbedError, match="known not to send frames of 1518 bytes"):
        card.check_sendable(CATALOGUE.profile(["1514b"]), probes=False)


@pytest.mark.parametrize(
    ("card", "firmware", "server", "words"),
    [
        ("intel_x710", "4.26 0x8000143f 0.0.0", "v3.08", ["too old"]),
        ("intel_x710", "6.01 0x80003493 1.1747.0", "v2.60", ["27 Mpps"]),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", "v3.08", ["low-latency queue"]),
        ("intel_xxv710", "9.50 0x8000f251 1.3682.0", "v3.08", ["low-latency queue", "receive errors"]),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", None, []),
        ("intel_x710", "N/A", "v3.08", []),
        ("mellanox_connectx5", "16.24.1000 (MT_0000000080)", "v3.08", ["older than what TRex's manual"]),
    ],
)
def test_firmware_is_compared_by_its_numbers_and_trexs_version(
    card: str, firmware: str, server: str | None, words: list[str]
):
    problems = [fact.problem for fact in CARDS[card].firmware_facts(firmware, server)]
    assert len(problems) == len(words) and all(map(str.__contains__, problems, words)), problems


@pytest.mark.parametrize(
    ("card", "words", "server", "refused"),
    [
        ("intel_x710", "128b vlan", "v3.08", False),
        ("intel_82599", "128b vlan", "v3.08", True),
        ("intel_e810_100g", "128b", "v3.06", True),
        ("intel_e810_100g", "128b", "v3.08", False),
        ("intel_e810_software", "128b", "v3.06", False),
        ("mellanox_connectx5", "128b ipv6", "v3.08", False),
    ],
)
def test_what_hardware_filters_cannot_measure_software_can(card: str, words: str, server: str, refused: bool):
    profile, filtering = CATALOGUE.profile(words.split()), frozenset({"flow_stats", "latency"})
    own = [replace(port, measures=filtering) for port in ports(CARDS[card].drivers[0])]
    limits = PublishedLimits(CARDS[card], "", own, LINK, server)
    limits.check_sendable(profile, probes=False)
    if refused:
        with pytest.raises(TestbedError, match=r"not to measure the latency .*start TRex with '--software'"):
            limits.check_sendable(profile, probes=True)
    else:
        limits.check_sendable(profile, probes=True)
    software = [replace(port, measures=filtering | {"tpg"}) for port in own]
    replace(limits, ports=software).check_sendable(profile, probes=True)


LATENCY = OwnLatency(mean_us=4.2, p99_low_us=0, p99_high_us=10)


SHARES = st.floats(0.002, 1.2).map(lambda share: share * LINE)


@given(SHARES, SHARES, st.sampled_from([1, 2]))
def test_the_ceiling_is_found_within_the_width(sends: float, receives: float, directions: int):
    loop = PureRouter(receives, ceiling=sends, directions=directions)
    rates = find_ceiling(TrialSeries(loop), LINE)
    most = min(sends, LINE)
    assert rates["offered_pps"] == pytest.approx(most, abs=1)
    carried = min(most, receives)
    assert carried * (1 - 2 * SEARCH_WIDTH) - 1 <= rates["lossless_pps"] <= carried + 1
    assert rates["received_pps"] == pytest.approx(carried, abs=1)
    assert len(loop.asked) <= 40


def test_own_latency_is_of_the_worse_direction():
    slow = LatencyCount(1, 0, 100, 100, 7.0, 30.0, 2.0, {0: 98, 20: 2})
    quick = replace(slow, tx_port=0, rx_port=1, mean=4.0)
    worse = own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, (), latency=(quick, slow)))
    assert worse == OwnLatency(mean_us=7.0, p99_low_us=20.0, p99_high_us=30.0)
    assert own_latency(Outcome(Load(1e6), 1.0, 1.0, 0.0, ())) is None


def test_calibration_is_read_as_written(tmp_path: Path):
    written = calibration(ceiling(latency=LATENCY))
    path = write_calibration(tmp_path / "new", written)
    assert read_calibration(tmp_path / "new", "lab", "box") == written
    assert path.read_text().startswith("# ")
    assert [entry.name for entry in path.parent.iterdir()] == ["lab-box.yaml"]


def test_other_ceilings_of_the_same_generator_are_kept(tmp_path: Path):
    def kept(*again: Any, **other: object) -> dict[str, float]:
        write_calibration(tmp_path, calibration(*again, **other))
        read = read_calibration(tmp_path, "lab", "box")
        assert read is not None
        return {entry.traffic: entry.lossless_pps for entry in read.ceilings}

    kept(ceiling("64b"), ceiling("imix"))
    assert kept(ceiling("64b", lossless=1e6)) == {"imix": LINE / 2, "64b": 1e6}
    assert kept(ceiling("64b"), versions={"server": "v3.09"}) == {"64b": LINE / 2}


def test_profiles_are_compared_by_content():
    known = measured_limits(ceiling("64b var2"))
    assert known.entry(CATALOGUE.profile(["64b"]), False) is not None
    assert known.entry(CATALOGUE.profile(["64b"]), True) is None
    assert known.entry(CATALOGUE.profile(["64b", "1-flow"]), False) is None


@pytest.mark.parametrize(
    ("changed", "stale", "unfit"),
    [
        ({"now": NOW + timedelta(days=89)}, "", ""),
        ({"now": NOW + timedelta(days=91)}, "91 days old", ""),
        ({"server": "v3.09"}, "was v3.08, and is v3.09 now", ""),
        ({"server": None}, "", ""),
        ({"link_bps": 25e9}, "", "10 Gbit/s; now: real generator, 'hardware' testbed, 25 Gbit/s"),
        ({"kind": "netns"}, "", "now: real generator, 'netns' testbed"),
        ({"simulated": True}, "", "now: simulated generator"),
    ],
)
def test_calibration_is_stale_by_age_or_version_and_unfit_for_another_testbed(
    changed: dict[str, Any], stale: str, unfit: str
):
    known = replace(measured_limits(), **changed)
    for words, part in ((known.why_stale, stale), (known.why_unfit, unfit)):
        assert part in words and bool(part) == bool(words)


@pytest.mark.parametrize(
    ("percent", "known", "lost", "ruling"),
    [
        (45, measured_limits(), 0.6, Ruling.FAIL),  # 40 % of line rate came back
        (55, measured_limits(), 0.505, Ruling.INCONCLUSIVE),  # 49 %, of the 50 % that the generator receives
        # it receives less while it sends all it can
        (45, measured_limits(ceiling(received_pps=LINE / 3)), 0.6, Ruling.INCONCLUSIVE),
    ],
)
def test_what_came_back_of_a_forwarding_rate_is_compared_with_the_ceiling(percent, known, lost, ruling):
    assert ruled(promise(f"64b unidirectional forwards ≥ {percent}% line rate", known), LINE, lost=lost) is ruling


@given(
    st.sampled_from([FAILING, "64b unidirectional loses ≤ 1% at 60% line rate"]),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0, 1.0),
)
def test_a_ceiling_only_changes_fail_to_inconclusive(sentence: str, offered: float, lossless: float, lost: float):
    known = measured_limits(ceiling(lossless=lossless * LINE))
    alone, near = (ruled(promise(sentence, limits), offered * LINE, lost) for limits in (None, known))
    assert near is alone or (alone, near) == (Ruling.FAIL, Ruling.INCONCLUSIVE)
    # else frames sent beyond the load may be the lost ones
    if alone is Ruling.FAIL and sentence == FAILING and lost > 0.01 and lossless < 0.99:
        assert (near is Ruling.FAIL) == (round(offered * LINE) <= USABLE_SHARE * lossless * LINE)
