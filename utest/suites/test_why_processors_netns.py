"""Which processor of a real kernel router has no time, or too short a queue: sender and packets have one each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lineproof.counts.explanation import Confidence
from lineproof.session.session import Session
from lineproof.sla.verdict import Ruling, Verdict
from suites.test_why_netns import CONDITIONS, IN, OF_CARDS, OUT, judged, session, set_up, why
from support.costly_router import overloaded
from support.kernel_router import run_in_generator, run_in_router
from support.patience import undisturbed, wait_until
from support.processors import BACKLOG, anywhere_afterwards, keep_to, nobody_sends, packets_first

__all__ = ["session"]

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors: one sends, one is the router's"),
    pytest.mark.skipif(
        "LINEPROOF_PROCESSORS" not in os.environ,
        reason="needs a machine that nothing else uses: LINEPROOF_PROCESSORS=1 says that this is one",
    ),
]

TRIES = 6
"""How often a sentence is tried until a shared machine lets its sender and the router work as they should."""

FINELY = 1.25
"""How much costlier the router becomes each time: the sender's processor must have time left where the other has not.
"""

STEERING = f"/sys/class/net/{IN}/queues/rx-0/rps_cpus"
ONE, SEVERAL = "64b 1-flow unidirectional ≥ 40 kpps", "64b unidirectional ≥ 40 kpps"
ONE_FLOW = "one flow enters by one receive queue, which one worker serves"
STEERED = "all packets are steered to CPU 1 (RPS)"


@pytest.fixture(autouse=True)
def both_processors() -> Iterator[None]:
    """What sends and the router have one each: no other test of real frames beside them."""
    with nobody_sends():
        yield


@contextlib.contextmanager
def steered(session: Session, mask: int) -> Iterator[None]:
    """Software steers the packets of each flow to one of the processors in *mask*."""
    with anywhere_afterwards(), set_up(session, (f"echo {mask:x} > {STEERING}",), (f"echo 0 > {STEERING}",)):
        yield


def tried(attempt: Callable[[], Verdict], fits: Callable[[Verdict], bool]) -> Verdict:
    """The verdict of the first try that *fits*, with what sends on the processor that handles fewer packets.

    The first try tells which that is. On a machine that others use, their programs may take either processor, and the
    generator's time, in any try.
    """
    cpu = 0

    def placed() -> Verdict:
        nonlocal cpu
        keep_to(cpu)
        verdict = attempt()
        if verdict.why.load and len(verdict.why.load.cpus) == 2:
            cpu = min(verdict.why.load.cpus, key=lambda found: found.packets_per_s or 0.0).cpu
        return verdict

    def lacks(verdict: Verdict) -> str:
        return "" if verdict.ruling is Ruling.FAIL and fits(verdict) else verdict.message

    return undisturbed(placed, lacks, TRIES, free=1)


def says(words: str) -> Callable[[Verdict], bool]:
    return lambda verdict: words in str(verdict.why)


def slowed(session: Session, sentence: str, words: str) -> Verdict:
    """Of a router so slow that a reason has *words*: one that is only just too slow is not busy all the time."""
    fits = says(words)
    return tried(lambda: overloaded(session, lambda: judged(session, sentence), fits, FINELY), fits)


def rules_of(verdict: Verdict) -> set[str]:
    return {found.rule for found in verdict.why.explanations}


@contextlib.contextmanager
def irqbalance(folder: Path) -> Iterator[None]:
    """The real one at work here, with a policy that bans every interrupt, and no right to move any."""
    program = shutil.which("irqbalance", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("this machine has no 'irqbalance'")
    policy = folder / "policy"
    policy.write_text("#!/bin/sh\necho ban=true\n")
    policy.chmod(0o700)
    script = (
        "mount --bind /proc/irq /proc/irq && mount -o remount,bind,ro /proc/irq && mount -t tmpfs none /run &&"
        f" exec {program} --foreground --policyscript={policy} --interval=1"
    )
    with subprocess.Popen(["unshare", "-m", "sh", "-c", script]) as running:
        try:
            wait_until(lambda: Path(f"/proc/{running.pid}/comm").read_text().strip() == "irqbalance")
            yield
            assert running.poll() is None
        finally:
            running.kill()


def test_one_flow_is_named_though_both_processors_may_take_it(session: Session) -> None:
    with packets_first(), steered(session, 0b11):
        verdict = slowed(session, ONE, ONE_FLOW)
    first = verdict.why.explanations[0]
    assert (first.rule, first.figures["busy_workers"]) == ("backlog", 1.0), verdict.message
    assert first.confidence in (Confidence.CERTAIN, Confidence.LIKELY)
    assert "more workers would not help one flow" in str(verdict.why)
    assert not any(words in str(verdict.why) for words in (*OF_CARDS, STEERED, "do not spread"))


def test_several_flows_on_both_processors_are_not_one(session: Session) -> None:
    """The sender shares a processor with half of them, so that it may be what limits."""
    with steered(session, 0b11):
        verdict = overloaded(session, lambda: why(session, SEVERAL))
    assert not any(words in str(verdict.why) for words in ("one flow", "steered")), verdict.message


def test_irqbalance_is_named_beside_one_processor_that_has_all_flows(session: Session, tmp_path: Path) -> None:
    with packets_first(), steered(session, 0b10), irqbalance(tmp_path):
        assert session.router.driver.facts().irqbalance is True
        verdict = slowed(session, SEVERAL, STEERED)
    first = verdict.why.explanations[0]
    assert first.rule == "backlog" and first.confidence in (Confidence.CERTAIN, Confidence.LIKELY)
    (beside,) = (found for found in verdict.why.explanations if found.rule == "irqbalance")
    assert beside.confidence is Confidence.POSSIBLE
    assert "one flow" not in str(verdict.why)


def test_irqbalance_is_not_named_where_a_shaper_binds(session: Session, tmp_path: Path) -> None:
    commands, undo, *_ = CONDITIONS["a shaper"]
    with set_up(session, commands, undo), irqbalance(tmp_path):
        assert session.router.driver.facts().irqbalance is True
        verdict = why(session)
    assert rules_of(verdict) == {"shaper"}, verdict.message


def test_a_tiny_backlog_is_named_and_no_processor_without_time(session: Session) -> None:
    """The queue of a processor is the only ring of a kernel's interface without a card: here of 4 frames."""
    with packets_first(backlog=4), steered(session, 0b10):
        verdict = tried(lambda: judged(session, "64b unidirectional ≥ 20 kpps"), says("too short for moments"))
    first = verdict.why.explanations[0]
    assert first.rule == "backlog" and first.confidence is not Confidence.CERTAIN, verdict.message
    assert f"enlarge net.core.{BACKLOG.name}" in first.remedy
    assert not any(words in str(verdict.why) for words in (*OF_CARDS, "one flow", STEERED))


@contextlib.contextmanager
def slow_ring(session: Session) -> Iterator[None]:
    """The 256 slots of the veth pair behind OUT, emptied by a thread of the kernel that gets little time (NAPI).

    A veth pair has them where its receiving end has GRO, and its sending end does no segmentation.
    """
    far = "port1"
    begin = (
        f"ethtool -K {far} gro on && echo 1 > /sys/class/net/{far}/threaded && pid=$(pgrep -n napi/{far})"
        " && taskset -p 2 $pid && renice -n 19 $pid"
    )
    end = f"echo 0 > /sys/class/net/{far}/threaded; ethtool -K {far} gro off"
    with set_up(session, (f"ethtool -K {OUT} tso off",), (f"ethtool -K {OUT} tso on",)):
        keep_to(0)
        # after that, or it would be kept there, too; it goes before, as a fast processor needs little time for the ring
        hog = subprocess.Popen(["nice", "-n", "-20", "sh", "-c", "while :; do :; done"])
        try:
            os.sched_setaffinity(hog.pid, {1})
            try:
                run_in_generator(session, "sh", "-c", begin)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"this kernel has no veth with a ring that a thread empties: {error.stderr.strip()}")
            yield
        finally:
            hog.kill()
            hog.wait()
            with contextlib.suppress(subprocess.CalledProcessError):
                run_in_generator(session, "sh", "-c", end)


RINGS = {
    "with a short queue before it": (
        f"tc qdisc add dev {OUT} root pfifo limit 5",
        "short queue",
        f"by the queueing discipline of {OUT}, pfifo limit 5p: frames come faster than {OUT} takes them",
    ),
    "alone": (
        "true",
        "tx slots",
        f"found no free slot: what is at the other end of {OUT} (no card) takes them too slow",
    ),
}


@pytest.mark.parametrize("name", RINGS)
def test_a_full_ring_is_named(session: Session, name: str) -> None:
    command, rule, words = RINGS[name]
    with anywhere_afterwards(), slow_ring(session), set_up(session, (command,), (f"tc qdisc del dev {OUT} root",)):
        # the ring is full where its thread gets too little time beside what else runs there
        verdict = undisturbed(
            lambda: why(session, "64b unidirectional ≥ 80 kpps"),
            lambda found: "" if found.ruling is Ruling.FAIL else found.message,
            TRIES,
            free=1,
        )
    assert rules_of(verdict) == {rule}, verdict.message
    assert words in str(verdict.why)
    assert all(ledger.lost for ledger in verdict.ledgers)
    assert not any(each.unexplained_before_rx or each.unexplained_rx_to_tx for each in verdict.ledgers)


def test_a_tiny_receive_ring_of_a_card_is_named(session: Session) -> None:
    try:
        run_in_router(session, "ethtool", "-G", IN, "rx", "64")
    except subprocess.CalledProcessError as error:
        pytest.skip(
            f"'ethtool -G {IN} rx 64': {error.stderr.strip()}. A veth has no receive ring that can be set, and a frame"
            " that finds its 256 slots full is refused to its sender, so that it was not sent. tun, macvtap, ifb have"
            " none either, and the only card of this machine is the one that it is reached by"
        )
    verdict = why(session)
    assert "receive ring of 64 frames" in str(verdict.why), verdict.message
