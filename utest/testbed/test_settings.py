"""Testbed files are read into typed objects. Refused ones are in the golden messages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.config import Config
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.traffic.profiles import OWN_ADDRESSES, PAIRS, AddressRange, Flows, FrameClass, Profile
from lineproof.errors import ConfigError
from lineproof.generators.trex.profile_loader import TrexProfileLoader
from lineproof.project import Project
from lineproof.system.login import Login
from lineproof.testbed.lab import PowerCycleSettings
from lineproof.testbed.settings import (
    HardwareSettings,
    SideSettings,
    ToleranceSettings,
    TrexGeneratorSettings,
    default_side,
    network_misfits,
    read_testbed,
)
from support.paths import ROOT

HARDWARE = """\
testbed: lab
kind: hardware
generator:
  address: 192.0.2.10
router:
  address: 192.0.2.20
  user: admin
  key: keys/id
"""


def lab(folder: Path, text: str) -> HardwareSettings:
    (folder / "lab.yaml").write_text(text)
    found = read_testbed(folder, "lab")
    assert isinstance(found, HardwareSettings)
    return found


SECRETS = (
    *("S3cret!", "'S3cret", '"S3cret" x', "*S3cret", "!S3cret", "&S3cret", "S3cret: x", "[S3cret]", "{S3cret: 1}"),
    *("|\n      -----BEGIN-----\n      S3cret!", "-----BEGIN-----\n      S3cret!"),
)


@pytest.mark.parametrize(
    "field",
    [
        *("password_from", "passphrase_from", "key", "key_from", "host_key"),
        *("user", "known_hosts", "port", "address", "password", "sudo"),
    ],
)
@pytest.mark.parametrize("owner", ["router", "ssh"])
def test_no_message_shows_what_a_login_holds(tmp_path: Path, field: str, owner: str) -> None:
    refused = 0
    for secret in SECRETS:
        login = {"address": "192.0.2.20", "user": "admin", field: secret}
        rows = "".join(f"    {key}: {value}\n" for key, value in login.items() if (owner, key) != ("ssh", "address"))
        server = HARDWARE.replace("  address: 192.0.2.10\n", f"  address: 192.0.2.10\n  ssh:\n{rows}")
        router = f"testbed: lab\nkind: hardware\ngenerator: {{address: 192.0.2.10}}\nrouter:\n{rows}"
        try:
            lab(tmp_path, router if owner == "router" else server)
        except ConfigError as error:
            refused += 1
            assert "S3cret" not in str(error)
    assert refused >= len(SECRETS) - 1  # 'S3cret!' may name a key's file


TEXT = (ROOT / "variables" / "testbeds" / "lab-example.yaml").read_text(encoding="utf-8")
GENERATOR, ROUTER, REST = re.split(r"^(?:router:|# configure:)", TEXT[TEXT.index("\ngenerator:") :], flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (HardwareSettings, TEXT),
        (TrexGeneratorSettings, GENERATOR),
        (Login, ROUTER),
        (SideSettings, REST),
        (ToleranceSettings, REST),
    ],
)
def test_the_example_shows_every_key_of_a_testbed_of_hardware(model: type[Config], part: str) -> None:
    """Set or commented out; what is below 'start', 'power' and 'lab' is in the page that the example names."""
    begins = r"^ *(?:- )?(?:# *)?" if model in (HardwareSettings, TrexGeneratorSettings, Login) else r"(?<![\w.])"
    missing = [key for key in model.model_fields if not re.search(rf"{begins}{key}:(?: |$)", part, re.MULTILINE)]
    assert missing == []


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
        (("16.0.0.0/8", "20.0.0.0/8"), [1], "20.0.0.0/8 does not hold 48.0.0.4 to 48.0.0.254, where '64b' is sent"),
        (("48.0.0.0/8", "16.0.0.0/8"), [1, 0], "48.0.0.0/8 does not hold 16.0.0.4 to 16.0.0.254, where '64b' is sent"),
        (("16.0.0.0/25", "48.0.0.0/8"), [0], "expected 'network: 16.0.0.0/8'"),
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
    captured = replace(mine, frames=(FrameClass(64, data=b"x" * 60),), flows=OWN_ADDRESSES)
    assert not list(network_misfits(hardware("16.0.0.0/8", "48.0.0.0/8"), captured, True))


@pytest.mark.parametrize(
    ("text", "coordinator", "filters", "power"),
    [
        ("{coordinator: a.example}", "a.example:20408", {"name": "bench"}, None),
        ("{coordinator: 'a:1', place: other, power: true}", "a:1", {"name": "other"}, PowerCycleSettings()),
        ("{coordinator: 'a:1', tags: {speed: 10g, ports: 2}}", "a:1", {"speed": "10g", "ports": "2"}, None),
        ("{coordinator: 'a:1', power: {off: 5 s}}", "a:1", {"name": "bench"}, PowerCycleSettings(off=5.0)),
    ],
)
def test_what_is_asked_of_labgrid(
    tmp_path: Path, text: str, coordinator: str, filters: dict[str, str], power: PowerCycleSettings | None
) -> None:
    (tmp_path / "bench.yaml").write_text(f"testbed: bench\nkind: simulated\nlab: {text}\n", encoding="utf-8")
    lab = read_testbed(tmp_path, "bench").lab
    assert lab is not None
    assert (lab.coordinator, lab.filters("bench"), lab.power) == (coordinator, filters, power)
