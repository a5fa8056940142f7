"""A card's file is read, chosen by what TRex reports, and only turns a FAIL into INCONCLUSIVE."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.ceilings.cards import (
    Card,
    CardChoice,
    CardFile,
    PublishedLimits,
    Versions,
    card_of_each_port,
    choose_card,
    read_cards,
)
from lineproof.core.rule import Ruling
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.project import Project
from lineproof.session.plan import Plan
from support.ceilings import CATALOGUE, FAILING, FILES, LINE, LINK, ceiling, measured_limits, ports, promise, ruled
from support.paths import ROOT

SOURCE = {"title": "a page", "url": "https://example.org/", "says": "it says so", "seen": "2026-11-21"}

CARD = """\
card: box
name: Box
drivers: [net_box]
limits:
  - pps_per_card: 12000000
    frames_below: 160
    source:
      title: a page
      url: https://example.org/page
      says: it stops at 12 Mpps
      seen: "2026-11-21"
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "pps_per_card: 12000000",
            "pps_per_card: 0",
            r"box\.yaml:5: 'limits\.0\.pps_per_card': should be greater than 0",
        ),
        ("    frames_below: 160", "    pps_per_port: 160", r"box\.yaml:6: .*exactly one of pps_per_port"),
        ("https://example.org/page", "a book", r"box\.yaml:9: .*expected https://"),
        ('"2026-11-21"', "yesterday", r"box\.yaml:11: .*is not a day"),
        ("name: Box", "name: Box\nspeeds: [fast]", r"box\.yaml:3: .*'fast' is not a link speed"),
    ],
)
def test_wrong_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, words: str):
    assert old in CARD
    (tmp_path / "box.yaml").write_text(CARD.replace(old, new))
    with pytest.raises(ConfigError, match=words):
        read_cards(tmp_path)


def test_card_named_by_a_testbed_must_exist(tmp_path: Path):
    shutil.copytree(ROOT / "variables", tmp_path / "variables")
    path = tmp_path / "variables" / "testbeds" / "lab-example.yaml"
    text = path.read_text()
    for card, fine in (("intel_x710", True), ("intel_x711", False)):
        path.write_text(text.replace("  force: false", f"  card: {card}\n  force: false"))
        if fine:
            plan = Plan.read(Project(tmp_path), "netgate6100", None, "lab-example", "quick")
            assert plan.card == card
        else:
            with pytest.raises(ConfigError, match="no card 'intel_x711' here; did you mean 'intel_x710'"):
                Plan.read(Project(tmp_path), "netgate6100", None, "lab-example", "quick")


@pytest.mark.parametrize(
    ("bounds", "server", "holds"),
    [
        ({}, None, True),
        ({"before": "v3.07"}, "v3.03 (Jan 1 2024, STL)", True),
        ({"before": "v3.07"}, "v3.07", False),
        ({"before": "v3.07"}, "v2.100", True),
        ({"before": "v3.07"}, None, False),
        ({"before": "v3.07"}, "lineproof 0.1.0", False),
        ({"since": "v2.88", "before": "v2.89"}, "v2.88", True),
        ({"since": "v2.88", "before": "v2.89"}, "v2.87", False),
    ],
)
def test_fact_applies_to_its_trex_versions(bounds: dict[str, str], server: str | None, holds: bool):
    assert Versions(**bounds).include(server) is holds


# -- which card


@pytest.mark.parametrize(
    ("found", "card"),
    [
        (ports("net_i40e", 10), "intel_x710"),
        (ports("net_i40e", 25), "intel_xxv710"),
        (ports("net_i40e", 40), "intel_xl710"),
        # what it is called tells more than how fast it happens to run
        (ports("net_i40e", 10, "Ethernet Controller XL710 for 40GbE QSFP+"), "intel_xl710"),
        (ports("net_i40e", 10, "Ethernet Controller XXV710 for 25GbE SFP28"), "intel_xxv710"),
        (ports("net_i40e", 10, "Ethernet Controller X710 for 10GbE SFP+"), "intel_x710"),
        (ports("net_ixgbe", 10, "82599ES 10-Gigabit SFI/SFP+"), "intel_82599"),
        (ports("net_ixgbe", 10), "intel_82599"),
        (ports("net_ice", 100), "intel_e810_100g"),
        (ports("net_mlx5", 100, "MT27800 Family [ConnectX-5]"), "mellanox_connectx5"),
        (ports("net_af_packet", 10, "Unknown"), "linux_af_packet"),
        (ports("lineproof_wire", 10), "lineproof_wire"),
        # a slower link, or an unknown speed
        (ports("net_ice", 10, "Ethernet Controller E810-C for QSFP"), "intel_e810_100g"),
        (ports("net_ice", 10, "Ethernet Controller E810-XXV for SFP"), "intel_e810_25g"),
        (ports("net_ice", 25, "Ethernet Controller E810-C for SFP"), "intel_e810_25g"),
        (ports("net_ice", 100, "Unknown"), "intel_e810_100g"),
        (ports("net_i40e", 0, "Ethernet Controller X710 for 10GbE SFP+"), "intel_x710"),
        (ports("net_mlx5", 25, "MT27710 Family [ConnectX-4 Lx]"), "mellanox_connectx4"),
    ],
)
def test_a_slower_link_or_an_unknown_speed_hides_no_card(found: tuple[GeneratorPort, ...], card: str):
    choice = choose_card(FILES, found)
    assert choice.file is not None, choice.why
    assert choice.file.card.card == card


@pytest.mark.parametrize(
    ("found", "named", "words"),
    [
        (ports("net_mlx5", 100), None, "net_mlx5 may be mellanox_connectx4 or mellanox_connectx5 or .*say which"),
        (ports("net_i40e", 1), None, "net_i40e may be intel_x710 or .*'card: intel_x710'"),
        (ports("net_new", 10), None, "no file in variables/generators knows net_new"),
        (ports(""), None, "does not report its ports' driver"),
        (ports("net_ixgbe"), "intel_x710", "which TRex drives by net_i40e, but the driver here is net_ixgbe; fix"),
    ],
)
def test_unknown_card_has_a_reason(found: tuple[GeneratorPort, ...], named: str | None, words: str):
    choice = choose_card(FILES, found, named)
    assert choice.file is None
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(choice.why)


def test_card_named_by_the_testbed_is_chosen():
    choice = choose_card(FILES, ports("net_i40e", 10), "intel_xl710")
    assert choice.file is not None
    assert (choice.file.card.card, choice.why) == ("intel_xl710", "named in the testbed file")


def test_ports_of_one_card_share_bus_and_device():
    assert card_of_each_port(ports("a", pci=("0000:03:00.0", "0000:03:00.1"))) == ("0000:03:00", "0000:03:00")
    assert card_of_each_port(ports("a", pci=("0000:03:00.0", "0000:82:00.0"))) == ("0000:03:00", "0000:82:00")
    assert len(set(card_of_each_port(ports("a")))) == 1


@pytest.mark.parametrize(
    ("cards", "bidirectional", "pairs", "sending"),
    [
        ("aa", False, 1, 1),
        ("aa", True, 1, 2),
        ("ab", True, 1, 1),
        ("aaaa", True, 2, 4),
        ("aaaa", False, 2, 2),
        ("aabb", True, 2, 2),
        ("aabb", True, 1, 2),
        ("abab", False, 2, 2),  # both senders on card a
        ("abab", True, 2, 2),
        ("aaab", True, 2, 3),
    ],
)
def test_limit_of_a_card_is_shared_by_its_sending_ports(cards, bidirectional, pairs, sending):
    unknown = CardChoice(None, "not known")
    assert PublishedLimits(unknown, LINK, None, tuple(cards)).most_senders_on_one_card(bidirectional, pairs) == sending


# -- the rule


def published_limits(server: str | None = None, one_card: bool = True, **card: object) -> PublishedLimits:
    content = Card.model_validate({"card": "box", "name": "Box", "drivers": ["net_box"], **card})
    return PublishedLimits(
        CardChoice(CardFile(content, Path("box.yaml"), "0" * 64), "by its driver"),
        LINK,
        server,
        ("", "") if one_card else ("a", "b"),
    )


def limit(**values: object) -> dict[str, object]:
    return {**values, "source": SOURCE}


HALF = "64b bidirectional ≥ 50% line rate each way"


def test_fail_above_a_published_ceiling_is_inconclusive():
    promised = promise(HALF, published_limits(limits=[limit(pps_per_card=12e6)]))
    assert ruled(promised, LINE / 2) is Ruling.INCONCLUSIVE
    own = promised.own
    assert "12 Mpps per card, 2 ports of it send: 6 Mpps from each port (source: a page" in own.words
    assert (own.evidence["card"], own.evidence["file"], own.evidence["ceiling_pps"]) == ("box", "box.yaml", 6e6)


@pytest.mark.parametrize(
    ("card", "sentence", "stays"),
    [
        (published_limits(limits=[limit(pps_per_card=12e6)]), FAILING, True),
        (published_limits(limits=[limit(pps_per_card=7e6)]), FAILING, False),
        (published_limits(limits=[limit(pps_per_port=7e6)]), HALF, False),
        # two cards, a port each
        (published_limits(one_card=False, limits=[limit(pps_per_card=12e6)]), HALF, True),
        (published_limits(limits=[limit(pps_per_port=7e6, servers={"before": "v3.07"})]), FAILING, True),
        (published_limits("v3.06", limits=[limit(pps_per_port=7e6, servers={"before": "v3.07"})]), FAILING, False),
        (published_limits(limits=[limit(bps_per_card=3e9)]), FAILING, False),
        (published_limits(limits=[limit(bps_per_card=5e9)]), FAILING, True),
        (published_limits(limits=[limit(pps_per_port=7e6, frames_below=64)]), FAILING, True),
        (published_limits(limits=[limit(pps_per_port=15e6)]), "64b unidirectional ≥ 100% line rate", True),
        (published_limits(), FAILING, True),
    ],
)
def test_limit_applies_to_its_ports_versions_and_frames(card: PublishedLimits, sentence: str, stays: bool):
    offered = LINE if "100%" in sentence else LINE / 2
    assert ruled(promise(sentence, card), offered) is (Ruling.FAIL if stays else Ruling.INCONCLUSIVE)


def test_measured_ceiling_comes_before_a_published_one():
    slow = published_limits(limits=[limit(pps_per_port=1e6)])
    assert promise(FAILING, measured_limits(ceiling(lossless=LINE)), slow).own.words == ""
    assert "router bypassed" in promise(FAILING, measured_limits(ceiling(lossless=LINE / 2)), slow).own.words
    # another profile was measured, this one not
    assert "this card" in promise(FAILING, measured_limits(ceiling("imix")), slow).own.words


# -- what is refused before traffic


def test_frames_that_a_card_cannot_send_are_refused():
    card = published_limits(frame_sizes=[{"largest": 512, "source": SOURCE}])
    card.check_sendable(CATALOGUE.profile(["512b"]), probes=False)
    with pytest.raises(TestbedError, match="known not to send frames of 1518 bytes"):
        card.check_sendable(CATALOGUE.profile(["1514b"]), probes=False)


def test_record_has_file_and_reason():
    card = published_limits(limits=[limit(pps_per_port=7e6)])
    assert (card.record()["card"], card.record()["file"], card.record()["one_card"]) == ("box", "box.yaml", True)
    assert str(card) == "Box (by its driver): 7 Mpps per port (box.yaml)"
    unknown = PublishedLimits(choose_card(FILES, ports("net_new")), LINK)
    assert unknown.record() == {"card": None, "why": "no file in variables/generators knows net_new"}
    assert unknown.known_ceiling(CATALOGUE.profile(["64b"]), True) is None


# -- what is known of cards


@pytest.mark.parametrize(
    ("card", "firmware", "server", "words"),
    [
        ("intel_x710", "4.26 0x8000143f 0.0.0", "v3.08", ["too old"]),
        ("intel_x710", "5.05 0x80002899 1.1568.0", "v3.08", []),
        ("intel_x710", "6.01 0x80003493 1.1747.0", "v2.60", ["27 Mpps"]),
        ("intel_x710", "6.01 0x80003493 1.1747.0", "v3.08", []),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", "v3.08", ["low-latency queue"]),
        ("intel_xxv710", "9.50 0x8000f251 1.3682.0", "v3.08", ["low-latency queue", "receive errors"]),
        ("intel_x710", "9.20 0x8000d95e 22.0.9", None, []),
        ("intel_x710", "N/A", "v3.08", []),
        ("mellanox_connectx5", "16.24.1000 (MT_0000000080)", "v3.08", ["older than what TRex's manual"]),
        ("mellanox_connectx5", "16.35.2000 (MT_0000000080)", "v3.08", []),
    ],
)
def test_firmware_is_compared_by_its_numbers_and_trexs_version(
    card: str, firmware: str, server: str | None, words: list[str]
):
    (file,) = [file for file in FILES if file.card.card == card]
    found = [fact.problem for fact in file.card.firmware_facts(firmware, server)]
    assert len(found) == len(words) and all(word in text for word, text in zip(words, found, strict=True)), found


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
    (file,) = [file for file in FILES if file.card.card == card]
    profile = CATALOGUE.profile(words.split())
    for software, expected in ((False, refused), (True, False)):
        measures = frozenset({"flow_stats", "latency"} | ({"tpg"} if software else set()))
        own = [replace(port, measures=measures) for port in ports(file.card.drivers[0])]
        limits = PublishedLimits.of(CardChoice(file, ""), own, 10e9, server)
        limits.check_sendable(profile, probes=False)
        if expected:
            with pytest.raises(
                TestbedError, match=r"was not sent: .*not to measure the latency .*start TRex with '--software'"
            ):
                limits.check_sendable(profile, probes=True)
        else:
            limits.check_sendable(profile, probes=True)


BROKEN = "received frames are counted as errors", {"v3.03": False, "v3.04": True, "v3.05": False}


@pytest.mark.parametrize(
    ("card", "part", "servers"),
    [
        *((f"mellanox_connectx{number}", *BROKEN) for number in (4, 5, 6)),
        ("virtual", "are in no counter", {"v2.87": True, "v3.08": True}),
    ],
)
def test_facts_of_some_versions_and_cards_are_there(card: str, part: str, servers: dict[str, bool]):
    (file,) = [file for file in FILES if file.card.card == card]
    (quirk,) = [quirk for quirk in file.card.quirks if part in quirk.quirk]
    assert {server: quirk.servers.include(server) for server in servers} == servers
