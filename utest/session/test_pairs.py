"""Several pairs of ports: sentences about them, the addresses of each, and a run on two of them."""

from __future__ import annotations

import ipaddress
import struct
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.phrases import rate_figures
from lineproof.core.rule import Ruling
from lineproof.core.traffic.profiles import PAIRS
from lineproof.core.trial import Load, Tolerance, read_trial
from lineproof.errors import ConfigError, SentenceError
from lineproof.generators.base import Direction
from lineproof.generators.streams import profile_streams
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.testbed.settings import default_side
from support import robot_run, simulated_session
from support.catalogue import CATALOGUE
from support.made_testbeds import promised, router


@given(
    st.integers(0, PAIRS - 1),
    st.booleans(),
    st.sampled_from(["64b", "64b 1-flow", "64b 256-networks", "imix", "64b 1M-flows"]),
)
def test_every_address_is_in_the_networks_of_its_pair(pair: int, swapped: bool, words: str):
    networks = [ipaddress.IPv4Network(default_side(2 * pair + side).network) for side in (0, 1)]
    if swapped:
        networks.reverse()
    for stream in profile_streams(CATALOGUE.profile(words.split()), Direction(0, 1, swapped, pair)):
        frame = bytes.fromhex(stream.frame)
        ends = {26: [struct.unpack_from("!I", frame, 26)[0]], 30: [struct.unpack_from("!I", frame, 30)[0]]}
        for variable in stream.variables:
            # the range is a whole number of steps long
            ends[variable.offset] += [variable.minimum, variable.maximum - variable.step + 1]
        for offset, network in zip((26, 30), networks, strict=True):
            assert all(ipaddress.IPv4Address(value) in network for value in ends[offset])


def test_a_platform_with_too_few_interfaces_is_refused(tmp_path: Path):
    home = robot_run.project(tmp_path)
    path = home / "variables" / "platforms" / "linux_router.yaml"
    path.write_text(path.read_text().replace("[lr-r0, lr-r1, lr-r2, lr-r3]", "[lr-r0, lr-r1, lr-r2]"))
    with pytest.raises(ConfigError, match=r"'linux' has 3 interfaces .*'netns-pairs' is cabled to 4"):
        Plan.read(Project(home), "linux_router", "linux", "netns-pairs", "quick")


@pytest.mark.parametrize(("gbps", "refused"), [((10, 10, 2.5, 10), True), ((10, 2.5, 2.5, 2.5), False)])
def test_a_sentence_over_pairs_of_several_line_rates_is_refused(gbps: tuple[float, ...], refused: bool) -> None:
    plan = Plan.read(Project(robot_run.ROOT), "linux_router", "linux", "netns-pairs", "quick")
    ports = {str(number): 1e9 * speed for number, speed in enumerate(gbps)}
    plan = replace(plan, platform=plan.platform.model_copy(update={"ports": ports}))
    with pytest.raises(SentenceError, match=r"line rates of 2\.5 and 10 Gbit/s") if refused else nullcontext():
        plan.requirement("imix unidirectional on 2 pairs ≥ 95% line rate each way")
    plan.requirement("imix unidirectional ≥ 95% line rate")


def test_a_long_trial_counts_for_its_seconds_in_the_figures_of_pairs() -> None:
    promise = promised("64b bidirectional on 2 pairs forwards ≥ 1 Mpps in total")
    lossy, sound = router(*[0.5] * 4)(Load(1e6), 1.0), router(*[0.0] * 4)(Load(1e6), 10.0)
    figures = rate_figures(promise, [read_trial(1, outcome, Tolerance()) for outcome in (lossy, sound)])
    assert figures["all_pairs_forwarded_pps"] == figures["forwarded_pps"]
    assert figures["pair_1_forwarded_pps"] == pytest.approx(2e6 * 10.5 / 11)


@pytest.mark.slow
def test_a_verdict_is_the_same_with_its_ends_exchanged_and_says_whose_line_rate_it_is(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)

    def message(cabled: str) -> str:
        (home / "variables/testbeds/mixed.yaml").write_text(f"testbed: mixed\nkind: simulated\ncabled: {cabled}\n")
        with simulated_session.opened(tmp_path, ("netgate6100", "pfsense", "mixed"), home=home) as session:
            return simulated_session.owed(session, "1514b unidirectional ≥ 95% line rate").message

    assert message("[WAN3, LAN1]") == (found := message("[LAN1, WAN3]"))
    assert found.startswith("PASS: ") and "\n  line rate 2.5 Gbit/s, the slower of 2.5 and 10" in found
    with pytest.raises(ConfigError, match=r"mixed\.yaml: 'cabled': no port 'LAN9'; platform 'netgate6100' has WAN3,"):
        message("[WAN3, LAN9]")


@pytest.mark.slow
def test_two_pairs_of_the_model(tmp_path: Path):
    home = robot_run.project(tmp_path)
    text = "testbed: pairs\nkind: simulated\ncabled: [LAN1, LAN2, LAN3, LAN4]\npairs: 2\nclock_speed: 50\n"
    (home / "variables/testbeds/pairs.yaml").write_text(text)
    with simulated_session.opened(tmp_path, ("netgate6100", "pfsense", "pairs"), home=home) as session:
        passed = simulated_session.owed(session, "64b bidirectional on 2 pairs ≥ 0.4 Mpps in total")
        failed = simulated_session.owed(session, "64b unidirectional on 2 pairs ≥ 80% line rate each way")
    assert (passed.ruling, failed.ruling) == (Ruling.PASS, Ruling.FAIL), failed.message
    assert "none unexplained" in failed.message
    ways = [(row.tx_port, row.rx_port) for row in passed.trials[0].outcome.directions]
    assert ways == [(0, 1), (1, 0), (2, 3), (3, 2)]


@pytest.mark.netns
def test_two_pairs_through_a_real_kernel(tmp_path: Path):
    suite = robot_run.ROOT / "tests" / "linux_router_pairs.robot"
    found = robot_run.run(tmp_path, suite, "-t", "Both*", "-t", "IPv6*", *robot_run.short_goal(tmp_path), limit=300)
    assert found.status == 0, found.console
    assert robot_run.processes_of(tmp_path) == []
