"""What a packet costs: cycles and CPU time through the whole chain, and which trials say something of it."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, read_trial
from lineproof.errors import TestbedError
from lineproof.routers.base import Result, Shell
from lineproof.routers.ssh_shell import SshShell
from lineproof.session.cpu_time import CpuReading, CpuTime, why_unusable
from lineproof.session.session import Session
from support.simulated_session import judged


@pytest.mark.slow
def test_the_sentence_finds_what_the_model_spends(session: Session) -> None:
    kept: list[str] = []
    sentence = "64b 1-flow unidirectional costs ≤ 450 cycles/packet at 10 Mpps"
    verdict = judged(session, sentence, on_telemetry=lambda name, reading: kept.append(name))
    assert verdict.ruling is Ruling.PASS, verdict.message
    assert verdict.figures["cycles_per_packet"] == pytest.approx(440, rel=0.02)
    # one flow keeps one worker busy: the others are no part of the mean
    assert verdict.figures["cycles_per_packet_vpp_wk_0"] == verdict.figures["cycles_per_packet"]
    assert "cycles_per_packet_vpp_wk_1" not in verdict.figures
    assert kept.count("under load") == len(verdict.trials)


class FailingShell:
    """*shell*, in which the *number*-th command with *word* in it fails, and the first 'clear runtime' takes long."""

    def __init__(self, shell: Shell, word: str, number: int) -> None:
        self._shell, self._word, self._left = shell, word, number
        self._slow = True

    def __call__(self, command: str, limit: float) -> Result:
        if self._slow and "clear runtime" in command:
            # so the trials leave two seconds of real time and more for the commands
            self._slow = False
            time.sleep(1.0)
        self._left -= self._word in command
        if self._left == 0 and self._word in command:
            raise TestbedError("the SSH link to the router broke")
        return self._shell(command, limit)


# the first 'clear' is a rehearsal; readings: before the trials, the rehearsal, the first trial
@pytest.mark.slow
@pytest.mark.parametrize(("word", "number"), [("clear runtime", 2), ("show runtime", 3)])
def test_traffic_stops_when_a_command_of_the_router_fails(session: Session, word: str, number: int) -> None:
    router = session.router
    shell = router.shell
    router.connect(FailingShell(shell, word, number))
    try:
        verdict = judged(session, "64b 1-flow unidirectional costs ≤ 1 cycles/packet at 1 kpps")
        assert verdict.ruling is Ruling.INCONCLUSIVE and "the SSH link to the router broke" in str(verdict.reason)
        assert verdict.trials == ()

        def received() -> int:
            return sum(item.rx_packets for item in router.watch.read().interfaces.values())

        first = received()
        time.sleep(0.1)  # 5 s of the testbed's clock
        assert received() == first
        # the generator did not fail, so it is not connected again
        assert judged(session, "64b 1-flow unidirectional ≥ 1 Mpps").ruling is Ruling.PASS
        assert session.traffic.reconnection.note == ""
    finally:
        router.connect(shell)


@pytest.mark.slow
def test_a_login_and_twenty_commands_during_a_trial_change_no_count(session: Session) -> None:
    """One process serves generator and router."""
    asked: list[str] = []
    session.traffic.put_for(session.plan.requirement("64b bidirectional ≥ 78% line rate in total"))

    def ask() -> None:
        with closing(SshShell(session.testbed.facts.router)) as shell:
            shell.open()
            asked.extend(shell("vppctl show runtime", 10.0).stdout for _ in range(20))

    def counts() -> list[tuple[int, int]]:
        outcome = session.traffic.measure(Load(5e6), 60.0)
        return [(row.offered, row.forwarded) for row in outcome.directions]

    alone = counts()
    asking = threading.Thread(target=ask)
    asking.start()
    assert counts() == alone
    asking.join()
    assert len(asked) == 20 and len(set(asked)) > 1, "it was asked while frames were counted"


READ = [CpuReading(0, 0.0, 0.0)]


def outcome(offered: int, lost: int = 0, problems: tuple[Problem, ...] = ()) -> Outcome:
    counts = (DirectionCount(0, 1, 100_000, offered, offered - lost),)
    return Outcome(Load(100_000.0), 1.0, 1.0, 0.0, counts, problems=problems)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (outcome(100_000), ""),
        (outcome(40_000), ""),  # the machine could not send more: what it sent has its price
        (outcome(100_000, lost=900), ""),
        (outcome(100_000, lost=1100), "1100 of 100000 frames lost"),
        (outcome(100_000, problems=(Problem(Fault.LINK_DOWN, "port 1"),)), "a link was down"),
        (outcome(100_000, lost=-1), ""),  # a bridge says that it is there
        (outcome(100_000, lost=-1100), "more frames came back"),
        (outcome(100_000, problems=(Problem(Fault.CPU_BOUND, "99 %"),)), ""),
    ],
)
def test_only_what_was_sent_and_came_back_has_a_price(found: Outcome, reason: str) -> None:
    said = why_unusable(read_trial(1, found, Tolerance()), READ)
    assert said.startswith(reason) and bool(said) == bool(reason)


def test_nothing_read_is_no_price() -> None:
    assert "nothing was read" in why_unusable(read_trial(1, outcome(100_000), Tolerance()), [])


def test_one_disturbed_window_does_not_move_the_value() -> None:
    assert CpuTime((1500.0, 1510.0, 9000.0, 1490.0, 1505.0)).value == 1505.0
    assert CpuTime(reason="no").value is None
