"""Both ends of the links that a run brings up: awaited, named where one is late, and not awaited for nothing."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.rule import Ruling
from lineproof.core.telemetry import LinkState
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome
from lineproof.errors import TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.session.links import (
    ALL_RATIO,
    NONE_RATIO,
    LinkWait,
    NothingArrives,
    OthersArrive,
    check_arrival,
)
from lineproof.session.router import check_line_rate
from lineproof.session.session import Session
from lineproof.simulation import RouterHabits, parse_fault
from support.patience import wait_until
from support.simulated_session import judged, kernel_session, run_in_router, started


def ends(generator: bool, router: bool) -> dict[str, bool]:
    return {"the generator's port 0": generator, "the router's eth1": router}


@pytest.mark.parametrize(
    ("generator", "router", "words"),
    [
        (True, False, "no link at the router's eth1, after 15 s"),
        (False, True, "no link at the generator's port 0, after 15 s"),
        (False, False, "no link at the generator's port 0 and the router's eth1, after 15 s"),
    ],
)
def test_the_late_end_is_named(generator: bool, router: bool, words: str) -> None:
    with pytest.raises(TestbedError, match=words):
        LinkWait(0.2, 15).await_all(lambda: ends(generator, router))


def test_nothing_is_awaited_where_nothing_was_brought_up() -> None:
    wait = LinkWait(60, 60)
    began = time.monotonic()
    wait.await_all(lambda: ends(True, True))
    assert wait.noted_words == "" and not wait.pending
    with pytest.raises(NothingArrives):
        wait.retried(Mock(side_effect=NothingArrives("none of 1000 frames came back")))
    assert time.monotonic() - began < 10


def test_a_link_that_was_not_there_is_awaited_and_how_long_is_noted() -> None:
    wait, answers = LinkWait(5, 5), iter([ends(True, False)] * 3 + [ends(True, True)])
    wait.await_all(lambda: next(answers))
    assert wait.pending  # traffic after it is awaited
    assert wait.noted_words.startswith(" (the router's eth1 after 0.") and "port 0" not in wait.noted_words


def test_frames_that_the_router_held_while_a_link_was_late_are_sent_again_once() -> None:
    """They come with those of the next try, and then there are more than were sent."""

    def answers(*found: type[TestbedError] | None) -> Callable[[], None]:
        left = list(found)

        def probe() -> None:
            if (error := left.pop(0)) is not None:
                raise error("port 1 received 2002 frames")

        return probe

    wait = LinkWait(30, 30)
    wait.begin()
    wait.retried(answers(NothingArrives, OthersArrive, None))
    assert not wait.pending
    for found in ((OthersArrive,), (NothingArrives, OthersArrive, OthersArrive)):
        wait.begin()
        with pytest.raises(OthersArrive):
            wait.retried(answers(*found))


@contextmanager
def session(folder: Path, **settings: Any) -> Iterator[Session]:
    """A session on the simulated Netgate 6100, not configured yet."""
    with started(folder, **settings) as found:
        found.generator.connect()
        found.router.connect()
        yield found


@pytest.mark.slow
def test_a_vpp_that_looks_at_its_links_every_3_seconds_and_links_that_come_late_are_awaited(tmp_path: Path) -> None:
    habits = RouterHabits(link_delay=60, link_poll=30)
    with session(tmp_path, router_habits=habits, link_wait=600) as found:
        found.router.configure()
        assert "the router's TenGigabitEthernet3/0/0 after " in found.router.links.noted_words
        assert "the generator's port 0 after " in found.router.links.noted_words
        found.traffic.check_reachability()
        assert any("links were awaited" in note for note in found.router.configuration().notes)
        found.router.configure()
        assert found.router.links.noted_words == "" and not found.router.links.pending
        # a link that flaps comes back at once, and VPP has not seen it: it loses no more than those frames
        requirement = found.plan.requirement("64b 1-flow unidirectional ≥ 1 Mpps")
        found.traffic.put_for(requirement)
        found.cause_fault(parse_fault("link flap", start=1, at=0.2, **{"for": 0.1}))
        first, *later = judged(found, requirement.sentence).trials
        assert Fault.LINK_DOWN in {problem.fault for problem in first.problems} and first.lost
        assert not any(trial.lost for trial in later)
        assert judged(found, requirement.sentence).ruling is Ruling.PASS


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Session]:
    with kernel_session(tmp_path) as found:
        yield found  # afterwards, that a route went with the link is no failure


@pytest.mark.netns
def test_routes_lost_with_a_link_are_restored(kernel: Session) -> None:
    run = partial(run_in_router, kernel)
    name = kernel.testbed.facts.sides[1].interface
    forwarded = Path("/sys/class/net") / name / "statistics" / "tx_packets"

    def flap() -> None:
        # in the first trial, however long the router takes to be read before it
        wait_until(lambda: int(run("cat", str(forwarded))) >= before + 500)
        run("ip", "link", "set", "dev", name, "down")
        time.sleep(0.6)  # links are looked at every 0.5 s of a trial
        run("ip", "link", "set", "dev", name, "up")

    requirement = kernel.plan.requirement("64b unidirectional ≥ 5 kpps")
    for _ in range(6):  # to look at the links while one is down takes a processor at that moment
        kernel.traffic.put_for(requirement)
        before = int(run("cat", str(forwarded)))
        flapping = threading.Thread(target=flap)
        flapping.start()
        verdict = judged(kernel, requirement.sentence)
        flapping.join()
        if Fault.LINK_DOWN in {problem.fault for trial in verdict.trials for problem in trial.problems}:
            break
    # nobody knows what of it the router lost, so it is neither forgiven nor blamed; the next trial has its routes again
    assert verdict.ruling is Ruling.INCONCLUSIVE, verdict.message
    assert not verdict.trials[-1].lost
    assert "48.0.0.0/8" in run("ip", "route")


@pytest.mark.parametrize(
    ("router", "generator", "refused", "words"),
    [
        (10e9, 10e9, False, ""),
        (10e9, 0.0, False, ""),
        (None, 10e9, False, ""),
        (None, 0.0, False, "says: neither end of eth1 (10 Gbit/s) shows the speed of its link"),
        # a switch between
        (25e9, 10e9, False, ""),
        (10e9, 25e9, False, ""),
        (25e9, 0.0, True, "runs at a speed that its driver does not report; the platform 'box' says 10 Gbit/s"),
        (25e9, 25e9, True, "eth1 runs at 25 Gbit/s ('ethtool'); the generator's port 0 runs at 25 Gbit/s; the"),
        (1e9, 10e9, True, "eth1 runs at 1 Gbit/s ('ethtool'); the generator's port 0 runs at 10 Gbit/s; the"),
    ],
)
def test_only_a_contradiction_is_refused_with_both_figures_and_who_says_them(
    router: float | None, generator: float, refused: bool, words: str
) -> None:
    states = [LinkState("eth1", speed_bps=router, speed_from="ethtool")]
    connection: Any = SimpleNamespace(
        plan=SimpleNamespace(platform=SimpleNamespace(platform="box", ports={"LAN": 10e9})),
        testbed=SimpleNamespace(facts=SimpleNamespace(generator=SimpleNamespace(ports=(0,)))),
        ports=(GeneratorPort(0, "", generator, True, "net_virtio"),),
    )
    with pytest.raises(TestbedError, match=re.escape(words)) if refused else nullcontext():
        found = check_line_rate(states, connection)
        assert (words in found) if words else not found


# -- mistakes that a little slow traffic shows before any trial: crossed cables, directions that carry nothing


SENT = [1000, 1250, 1500, 1750]
DIRECTIONS = [(0, 1), (1, 0), (2, 3), (3, 2)]


def outcome(received: list[int], sent: list[int] | None = None) -> Outcome:
    counts = zip(DIRECTIONS, sent or SENT, received, strict=True)
    directions = tuple(DirectionCount(tx, rx, offered, offered, forwarded) for (tx, rx), offered, forwarded in counts)
    return Outcome(Load(1000.0), 1.0, 1.0, 0.0, directions)


@given(st.permutations(range(4)).filter(lambda order: order != sorted(order)))
def test_any_crossed_cables_are_found(order: list[int]) -> None:
    with pytest.raises(OthersArrive, match=r"received \d+ frames, and \d+ of .* were to arrive there"):
        check_arrival("mine", outcome([SENT[item] for item in order]))


@pytest.mark.parametrize(
    ("received", "least", "says"),
    [
        # all, those of a slow router, and a few frames of a switch
        (SENT, ALL_RATIO, ""),
        ([980, 1200, 1400, 1000], NONE_RATIO, ""),
        ([1010, 1250, 1500, 1750], NONE_RATIO, ""),
        # a bridge that does not forward yet sends its own frames
        ([1000, 1250, 3, 1750], NONE_RATIO, "3 of 1500 frames .* from the generator's port 2 came back at port 3"),
        # with addresses of its own all must be forwarded
        ([0, 1250, 1500, 1750], ALL_RATIO, "none of 1000 frames of 'mine' .* lost: why"),
        ([1000, 600, 1500, 1750], ALL_RATIO, "600 of 1250 frames of 'mine' .* came back at port 0"),
        ([2000, 1250, 1500, 1750], ALL_RATIO, "port 1 received 2000 frames, and 1000 of 'mine' were to"),
    ],
)
def test_a_direction_that_carries_nothing_is_named(received: list[int], least: float, says: str) -> None:
    with pytest.raises(TestbedError, match=says) if says else nullcontext():
        check_arrival("mine", outcome(received), lambda: "why", least)


def test_a_port_that_sends_nothing_is_named() -> None:
    with pytest.raises(TestbedError, match="port 0 sends no frames"):
        check_arrival("mine", outcome([0, 1250, 1500, 1750], [0, 1250, 1500, 1750]))
