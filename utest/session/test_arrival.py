"""Frames of a new kind are sent slowly before the first trial."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from lineproof.core.foreign import Heard
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.traffic.profiles import Profile, Traffic
from lineproof.core.trial import DirectionCount, During, Fault, Load, Outcome, Problem
from lineproof.errors import TestbedError
from lineproof.generators.base import Abilities, Direction, Generator, GeneratorPort, Probe
from lineproof.generators.site import GeneratorEndpoint
from lineproof.generators.streams import Stream, profile_streams
from lineproof.session.generator import GeneratorConnection
from lineproof.session.traffic import SentTraffic
from lineproof.simulation import parse_fault
from lineproof.system.ssh_shell import SshShell
from lineproof.testbed.settings import TrexGeneratorSettings, default_side
from support import simulated_session
from support.catalogue import CATALOGUE

Forwards = Callable[[bytes, Direction], float]
"""The share of such frames that the router forwards."""


def everything(frame: bytes, direction: Direction) -> float:
    return 1.0


@dataclass
class FakeGenerator:
    """Sends the prepared streams through a router that ``forwards`` so much of each of them."""

    forwards: Forwards = everything
    streams: dict[Direction, tuple[Stream, ...]] = field(default_factory=dict)
    prepared: list[tuple[str, bool]] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    problems: tuple[Problem, ...] = ()
    miscounts: bool = False
    """True: its card takes probe frames for errors."""

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        self.streams = {direction: profile_streams(profile, direction) for direction in directions}
        self.prepared.append((profile.name, probe is not None))

    def idle(self, seconds: float, keep: int = 0) -> dict[int, Heard]:
        return {}

    def measure(
        self,
        load: Load,
        duration: float,
        during: During | None = None,
        keep: int = 0,
        rates: Sequence[float] = (),
    ) -> Outcome:
        counts, each = [], rates or [load.pps] * len(self.streams)
        self.slow += [self.prepared[-1][0]] if rates else []
        for (direction, streams), pps in zip(self.streams.items(), each, strict=True):
            sent = round(pps * duration)
            share = sum(item.share * self.forwards(bytes.fromhex(item.frame), direction) for item in streams)
            counts.append(DirectionCount(direction.tx_port, direction.rx_port, sent, sent, round(sent * share)))
        probed = self.miscounts and self.prepared[-1][1]
        latency = tuple(LatencyCount(row.tx_port, row.rx_port, 10, 0) for row in counts) if probed else ()
        readings = {"ierrors": 10.0 * len(latency)}
        return Outcome(load, duration, duration, 0.0, tuple(counts), self.problems, readings, latency)


def opened(forwards: Forwards = everything, bypassed: bool = False) -> tuple[SentTraffic, FakeGenerator]:
    """The traffic of an open session whose reachability was checked."""
    driver = FakeGenerator()
    sides = tuple(default_side(number) for number in range(2))
    facts = SimpleNamespace(generator=SimpleNamespace(ports=(0, 1)), sides=sides, simulated=False, clock_speed=1000.0)
    testbed: Any = SimpleNamespace(facts=facts, problems=tuple)
    generator: Any = SimpleNamespace(
        driver=driver, bypassed=bypassed, known_limits=None, ports=(), card_macs={}, reconnect=lambda: None, switch=None
    )
    links = SimpleNamespace(retried=lambda check: check())
    router: Any = SimpleNamespace(not_forwarded={}, restarts=0, restarted=False, connected=False, links=links)
    router.trouble = str
    probe = Traffic(CATALOGUE.profile(["64b"]), True)
    lab = SimpleNamespace(set_up=(), prepare="configure")
    plan: Any = SimpleNamespace(catalogue=CATALOGUE, abilities=Abilities(), probe=probe, misfits=list, testbed=lab)
    traffic = SentTraffic(plan, testbed, generator, router)
    traffic.check_reachability()
    driver.forwards = forwards
    driver.slow.clear()
    return traffic, driver


def put(traffic: SentTraffic, words: str, bidirectional: bool = False, probe: Probe | None = None) -> None:
    traffic.put(Traffic(CATALOGUE.profile(words.split()), bidirectional), probe)


NEW = "check its routes, neighbours, filters and MTU for"


@pytest.mark.slow
def test_the_router_is_asked_what_it_shows(tmp_path: Path):
    with simulated_session.opened(tmp_path, ("netgate6100", "linux", "simulated"), set_up=("vlan",)) as session:

        def refused() -> str:
            with pytest.raises(TestbedError) as caught:
                session.traffic.put(Traffic(CATALOGUE.profile(["128b", "qinq"]), True))
            return str(caught.value).partition("what is not set up is not lost: ")[2]

        session.cause_fault(parse_fault("one-way loss", start=0, port=1, share=0.99, of="cable"))
        assert refused().startswith(f"{NEW} frames with Ethernet, 2 VLAN tags")
        route = f"48.0.0.0/8 via 100.65.2.2 dev {session.interfaces[1]}"
        session.router.shell(f"sudo -n ip route del {route}", 2.0)
        assert refused() == f"the router does not show any more: 'ip route replace {route}' (now: none)"
        session.router.shell(f"sudo -n ip link set dev {session.interfaces[1]} down", 2.0)
        assert refused() == f"the router's {session.interfaces[1]} is down"
        with mock.patch.object(session.router.watch, "read_again", side_effect=TestbedError("no route to host")):
            assert refused() == "the router does not answer: no route to host"


def test_networks_beyond_those_of_the_testbed_are_named():
    traffic, driver = opened(lambda frame, direction: float(frame[30] != 10))
    profile = CATALOGUE.profile(["64b"])
    elsewhere = profile.flows.destination.__class__("10.0.0.1", "10.0.0.254")
    there = Profile("there", profile.frames, profile.flows.__class__(profile.flows.source, elsewhere))
    with pytest.raises(TestbedError, match=r"and 10\.0\.0\.1$"):
        traffic.put(Traffic(there, False))
    assert driver.slow == ["there"]


def test_streams_for_latency_are_put_after_the_check():
    traffic, driver = opened()
    put(traffic, "128b ipv6", probe=Probe(1000.0))
    assert driver.slow == ["128b ipv6"]
    assert driver.prepared[-2:] == [("128b ipv6", False), ("128b ipv6", True)]


def test_a_card_that_takes_probe_frames_for_errors_is_sent_none_in_sentences_of_loss():
    # i40e with firmware 9.5 (trex-core #1222)
    traffic, driver = opened()
    driver.miscounts = True
    put(traffic, "64b", probe=Probe(10.0, times=False))
    assert traffic.measure(Load(1000.0), 1.0).latency == ()
    assert driver.prepared[-2:] == [("64b", True), ("64b", False)]


def test_what_was_seen_is_forgotten_when_the_router_may_have_changed():
    traffic, driver = opened()

    def sent_again() -> bool:
        driver.slow.clear()
        put(traffic, "128b ipv6")
        return driver.slow == ["128b ipv6"]

    assert sent_again() and not sent_again()
    traffic.router.restarts += 1  # type: ignore[misc]
    assert sent_again() and not sent_again()
    traffic.forget()  # released, or claimed again
    assert sent_again() and not sent_again()
    driver.problems = (Problem(Fault.LINK_DOWN, "generator port 0"),)
    traffic.measure(Load(1000.0), 1.0)
    driver.problems = ()
    traffic.measure(Load(1000.0), 1.0)
    assert sent_again() and not sent_again()


LATENCY, OTHER = frozenset({"latency", "flow_stats"}), frozenset({"flow_stats"})


@pytest.mark.slow
def test_a_switch_counts_beside_any_generator() -> None:
    switch = {"run": "echo 1000", "received": "(.*)", "sent": "(.*)", "ports": ["Et1", "Et2"], "settle": 0}
    settings = TrexGeneratorSettings.model_validate({"address": "192.0.2.1", "switch": switch})
    traffic, driver = opened()
    facts = SimpleNamespace(generator=GeneratorEndpoint((0, 1), lambda *_: cast(Generator, driver)))
    parts: Any = SimpleNamespace(testbed=SimpleNamespace(generator=settings)), SimpleNamespace(facts=facts)
    cast(Any, traffic.generator).switch = GeneratorConnection(*parts).switch
    put(traffic, "64b")
    # its counts stand still
    sent, received = map(str, traffic.measure(Load(1000.0), 1.0).problems)
    assert "the switch counted 0 frames sent by port 0, the generator 1000" in sent and "received by port 1" in received


@pytest.mark.parametrize(
    ("measures", "bidirectional", "lacking"),
    [
        ((LATENCY, OTHER), False, 1),
        ((OTHER, LATENCY), False, None),
        ((OTHER, LATENCY), True, 0),
        ((LATENCY, frozenset()), False, 1),
        ((None, None), True, None),
    ],
)
def test_a_receiving_port_that_measures_no_latency_is_named(
    measures: tuple[frozenset[str] | None, ...], bidirectional: bool, lacking: int | None
):
    traffic, _ = opened()
    ports = (GeneratorPort(at, "", 10e9, True, "net_x", measures=known) for at, known in enumerate(measures))
    traffic.generator.ports = tuple(ports)  # type: ignore[misc]
    says = rf"reports that its port {lacking} \(driver net_x\) measures"
    with contextlib.nullcontext() if lacking is None else pytest.raises(TestbedError, match=says):
        put(traffic, "64b", bidirectional, Probe(10.0))


@pytest.mark.slow
@pytest.mark.parametrize("words", ["netgate6100 vpp", "netgate6100 linux", "netgate6100 pfsense"])
def test_a_route_that_somebody_takes_back_makes_no_fail(words: str, tmp_path: Path) -> None:
    platform, software = words.split()
    with simulated_session.opened(tmp_path, (platform, software, "simulated")) as session:
        passed, failed = "64b 1-flow unidirectional ≥ 10 kpps", "64b 1-flow unidirectional ≥ 90% line rate"
        assert simulated_session.judged(session, passed).ruling is Ruling.PASS
        verdict = simulated_session.judged(session, failed)
        assert verdict.ruling is Ruling.FAIL and "none unexplained" in verdict.message, verdict.message
        (ledger,) = verdict.ledgers
        assert ledger.whole.lost == verdict.trials[-1].lost > 0 and ledger.whole.gaps == (0, 0, 0)
        # whether it was taken back is not known
        with mock.patch.object(session.router.watch, "taken_back", side_effect=TestbedError("the answer is cut")):
            unseen = simulated_session.judged(session, failed)
        pending = session.router.watch.router.changes
        route = next(change for change in pending if "48.0.0.0/8" in change.do_text)
        with closing(SshShell(session.testbed.facts.router)) as shell:
            shell.open()
            assert shell(route.undo[0], 10.0).status == 0
        verdict = simulated_session.judged(session, passed)
    for found in (unseen, verdict):
        assert found.ruling is Ruling.INCONCLUSIVE and found.trials[0].lost
        assert Fault.SET_UP in {problem.fault for trial in found.trials for problem in trial.problems}, found.message
