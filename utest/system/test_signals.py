"""Each signal that a person or a machine ends a program with ends it in order, and in words."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from lineproof.commands.main import INTERRUPTED, finish
from lineproof.system.signals import ENDING, Interrupted, let_go_of_terminal, termination_as_interrupt

WORDS = {
    signal.SIGINT: "interrupted by Ctrl-C",
    signal.SIGTERM: "interrupted by SIGTERM",
    signal.SIGHUP: "interrupted by a hang-up (SIGHUP)",
    signal.SIGQUIT: "interrupted by SIGQUIT",
}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # pytest itself may run under nohup
    yield
    assert {number: signal.getsignal(number) for number in ENDING} == {**before, signal.SIGHUP: signal.SIG_DFL}
    signal.signal(signal.SIGHUP, before[signal.SIGHUP])


@pytest.mark.parametrize("number", ENDING)
def test_the_first_signal_interrupts_and_the_next_ones_do_not(number: signal.Signals) -> None:
    closed = False
    with pytest.raises(Interrupted) as caught, termination_as_interrupt():
        try:
            signal.raise_signal(number)
            time.sleep(60)
        finally:
            for other in ENDING:
                signal.raise_signal(other)
            closed = True
    assert closed and str(caught.value) == WORDS[number]


def test_an_ignored_hang_up_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with termination_as_interrupt():
        signal.raise_signal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("number", ENDING)
def test_a_command_ends_with_one_sentence(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        signal.raise_signal(number)
        return 0

    with pytest.raises(SystemExit) as ended:
        finish(work)
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == f"lineproof: {WORDS[number]}\n"


def test_a_closed_terminal_is_written_to_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "__stderr__", terminal)
        let_go_of_terminal()
        assert os.isatty(slave)
        os.close(master)
        let_go_of_terminal()
        terminal.write("nobody reads this\n")
        terminal.flush()
