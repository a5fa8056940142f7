"""A card's file is read, chosen by what TRex reports, and only turns a FAIL into INCONCLUSIVE."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.ceilings import Card, PublishedLimits, choose_card
from lineproof.core.rule import Ruling
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.project import Project
from lineproof.session.plan import Plan
from support.ceilings import CARDS, CATALOGUE, FAILING, LINE, LINK, ceiling, measured_limits, ports, promise, ruled
from support.paths import ROOT

SOURCE = {"title": "a page", "url": "https://example.org/", "says": "it says so", "seen": "2026-11-21"}


def test_card_named_by_a_testbed_must_exist(tmp_path: Path):
    shutil.copytree(ROOT / "variables", tmp_path / "variables")
    path = tmp_path / "variables" / "testbeds" / "lab-example.yaml"
    text = path.read_text()
    path.write_text(text.replace("  force: false", "  card: intel_x711\n  force: false"))
    with pytest.raises(ConfigError, match="no card 'intel_x711' here; did you mean 'intel_x710'"):
        Plan.read(Project(tmp_path), "netgate6100", None, "lab-example", "quick")


# -- which card


@pytest.mark.parametrize(
    ("found", "card"),
    [
        (ports("net_i40e", 10), "intel_x710"),
        (ports("net_i40e", 40), "intel_xl710"),
        # what it is called tells more than how fast it happens to run
        (ports("net_i40e", 10, "Ethernet Controller XL710 for 40GbE QSFP+"), "intel_xl710"),
        (ports("net_ixgbe", 10), "intel_82599"),
        (ports("net_af_packet", 10, "Unknown"), "linux_af_packet"),
        # a slower link, or an unknown speed
        (ports("net_ice", 10, "Ethernet Controller E810-XXV for SFP"), "intel_e810_25g"),
        (ports("net_ice", 100, "Unknown"), "intel_e810_100g"),
        (ports("net_i40e", 0, "Ethernet Controller X710 for 10GbE SFP+"), "intel_x710"),
        (ports("net_mlx5", 25, "MT27710 Family [ConnectX-4 Lx]"), "mellanox_connectx4"),
    ],
)
def test_a_slower_link_or_an_unknown_speed_hides_no_card(found: tuple[GeneratorPort, ...], card: str):
    assert choose_card(list(CARDS.values()), found)[0] == CARDS[card]


@pytest.mark.parametrize(
    ("found", "named", "words"),
    [
        (ports("net_mlx5", 100), None, "net_mlx5 may be mellanox_connectx4 or mellanox_connectx5 or"),
        (ports("net_i40e", 1), None, "'card: intel_x710'"),
        (ports("net_new", 10), None, "no file in variables/generators knows net_new"),
        (ports(""), None, "does not report its ports' driver"),
        (ports("net_ixgbe"), "intel_x710", "which TRex drives by net_i40e, but the driver here is net_ixgbe; fix"),
    ],
)
def test_unknown_card_has_a_reason(found: tuple[GeneratorPort, ...], named: str | None, words: str):
    card, why = choose_card(list(CARDS.values()), found, named)
    assert card is None and words in why
    assert choose_card(list(CARDS.values()), ports("net_i40e", 10), "intel_xl710")[0] is CARDS["intel_xl710"]


# -- the rule


def published(*limits: dict[str, object], server: str | None = None, cards: str = "--", **card: object):
    """Return what is published of a made-up card with *limits*, of whose copies the ports are on *cards*."""
    sourced = [{**limit, "source": SOURCE} for limit in limits]
    content = Card.model_validate({"card": "box", "name": "Box", "drivers": ["net_box"], "limits": sourced, **card})
    return PublishedLimits(content, "by its driver", ports("net_box", cards=cards), LINK, server)


def limit(rate: float, per: str = "port", **other: object) -> dict[str, object]:
    return {"rate": rate, "per": per, **other}


HALF = "64b bidirectional ≥ 50% line rate each way"
OLD: Any = {"servers": {"before": "v3.07"}}


def test_fail_above_a_published_ceiling_is_inconclusive():
    promised = promise(HALF, published=published(limit(12e6, "card")))
    assert ruled(promised, LINE / 2) is Ruling.INCONCLUSIVE
    own = promised.own
    assert "12 Mpps per card, 2 ports of it send: 6 Mpps from each port (source: a page" in own.words
    assert (own.evidence["card"], own.evidence["ceiling_pps"]) == ("box", 6e6)


@pytest.mark.parametrize(
    ("card", "sentence", "stays"),
    [
        (published(limit(12e6, "card")), FAILING, True),
        (published(limit(7e6, "card")), FAILING, False),
        (published(limit(7e6)), HALF, False),
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
        (ceiling("imix"), "this card"),  # another profile was measured, this one not
    ],
)
def test_measured_ceiling_comes_before_a_published_one(measured, words):
    own = promise(FAILING, measured_limits(measured), published(limit(1e6))).own
    assert words in own.words and bool(words) == bool(own.words)


# -- what is refused before traffic, and what is known of cards


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


BROKEN = "received frames are counted as errors"
UNKNOWN: dict[str | None, bool] = {"lineproof 0.1.0": False, None: False}
SERVERS = {"v2.100": False, "v3.03": False, "v3.04 (Jan 1 2024, STL)": True, "v3.05": False, **UNKNOWN}


@pytest.mark.parametrize(
    ("card", "part", "servers"),
    [
        *((f"mellanox_connectx{number}", BROKEN, SERVERS) for number in (4, 5, 6)),
        ("virtual", "are in no counter", {"v2.87": True, "v3.08": True}),
    ],
)
def test_facts_of_some_versions_and_cards_are_there(card: str, part: str, servers: dict[str | None, bool]):
    (quirk,) = [quirk for quirk in CARDS[card].quirks if part in quirk.quirk]
    assert {server: quirk.servers.include(server) for server in servers} == servers
