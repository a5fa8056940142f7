"""The addresses in a testbed's file, compared with the traffic and with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.traffic.profiles import PAIRS, AddressRange, Flows, FrameClass, Profile
from lineproof.generators.trex.profile_loader import TrexProfileLoader
from lineproof.project import Project
from lineproof.testbed.files import network_misfits, next_hop_misfits
from lineproof.testbed.settings import HardwareSettings, default_side
from support.paths import ROOT

CATALOGUE = Catalogue.read(Project(ROOT).profiles, TrexProfileLoader(""))
USUAL = CATALOGUE.profile(["64b"])


def hardware(*networks: str, prepare: str = "configure", **keys: str) -> HardwareSettings:
    sides = [
        {**default_side(index).model_dump(exclude_none=True), "network": network, **(keys if not index else {})}
        for index, network in enumerate(networks)
    ]
    generator = {"address": "192.0.2.1", "ports": list(range(len(networks)))}
    router = {"address": "192.0.2.2", "user": "admin", "key": "/nowhere"}
    data = {"testbed": "lab", "kind": "hardware", "prepare": prepare, "generator": generator, "router": router}
    return HardwareSettings.model_validate({**data, "sides": sides})


@given(st.integers(1, PAIRS), st.sampled_from([[], ["1-flow"], ["256-networks"], ["1M-flows"], ["ipv6"]]))
def test_the_default_networks_hold_what_lineproofs_words_send(pairs: int, words: list[str]) -> None:
    testbed = hardware(*(default_side(index).network for index in range(2 * pairs)))
    assert not list(network_misfits(testbed, CATALOGUE.profile(["128b", *words]), True, pairs))


@pytest.mark.parametrize(
    ("networks", "sides", "words"),
    [
        (("16.0.0.0/8", "20.0.0.0/8"), [1], "in no side's network, so that the router gets no route to them"),
        (("48.0.0.0/8", "16.0.0.0/8"), [1, 0], "they are in 'sides.1.network', 16.0.0.0/8, so that they go to another"),
        (("16.0.0.0/25", "48.0.0.0/8"), [0], "16.0.0.0/25 does not hold 16.0.0.4 to 16.0.0.254, where '64b' is sent"),
        (("16.0.0.0/25", "48.0.0.0/8"), [0], "it holds some of them only; expected 'network: 16.0.0.0/8'"),
    ],
)
def test_a_network_that_the_traffic_does_not_use_is_named(
    networks: tuple[str, ...], sides: list[int], words: str
) -> None:
    found = list(network_misfits(hardware(*networks), USUAL, True))
    assert [(item.side, item.key, item.certain) for item in found] == [(side, "network", True) for side in sides]
    assert words in str(found[-1]) and str(found[0]).startswith(f"'sides.{sides[0]}.network': ")
    # routes that are there already are not read from this file
    assert not any(item.certain for item in network_misfits(hardware(*networks, prepare="none"), USUAL, True))


def test_it_is_judged_by_the_addresses_of_the_profile_that_is_sent() -> None:
    flows = Flows(AddressRange("10.1.0.1", "10.1.0.9"), AddressRange("10.2.0.1", "10.2.0.200"))
    mine = Profile("mine", (FrameClass(64),), flows)
    testbed = hardware("10.1.0.0/16", "10.2.0.0/24")
    assert not list(network_misfits(testbed, mine, True))
    assert len(list(network_misfits(testbed, USUAL, True))) == 2
    assert [item.side for item in network_misfits(hardware("16.0.0.0/8", "48.0.0.0/8"), mine, False)] == [1]
    (expected,) = network_misfits(hardware("10.1.0.0/16", "48.0.0.0/8"), mine, True)
    assert str(expected).endswith("expected 'network: 10.2.0.0/24'")
    # the router may have routes for a capture's addresses of its own
    captured = replace(mine, frames=(FrameClass(64, data=b"x" * 60),))
    assert not any(item.certain for item in network_misfits(hardware("16.0.0.0/8", "48.0.0.0/8"), captured, True))


@pytest.mark.parametrize(
    ("hop", "prepare", "words"),
    [
        ("100.65.1.1", "configure", None),
        ("2001:db8:1::9", "configure", None),
        (
            "100.65.1.9",
            "configure",
            "100.65.1.9 is no address of this side; the router has 100.65.1.1 ('address'); right",
        ),
        ("100.65.1.9", "none", None),  # VRRP
        (
            "100.65.9.1",
            "none",
            "100.65.9.1 is no address of this side; the router has 100.65.1.1 ('address'); it is not",
        ),
        ("100.65.1.2", "none", "it is 'peer', the generator's own port"),
    ],
)
def test_a_next_hop_that_the_router_most_likely_does_not_have_is_a_warning(
    hop: str, prepare: str, words: str | None
) -> None:
    found = list(next_hop_misfits(hardware("16.0.0.0/8", "48.0.0.0/8", prepare=prepare, next_hop=hop)))
    assert len(found) == (words is not None)
    assert all(words in str(item) and item.side == 0 and not item.certain for item in found if words)
