"""The generator's machine is read as it shows itself; what it does not show is missing, with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.routers.base import Result
from lineproof.routers.host_reading import read_host
from lineproof.testbed.opening import local_shell
from lineproof_bench.shells.trex_host import HABITS
from support.trex_host import shell_of


def test_a_machine_that_shows_nothing_says_so() -> None:
    facts = read_host(lambda command, limit: Result("", "sh: not found\n", 127, 0.0))
    assert facts.unread and facts.os is None and facts.nics == ()


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=300), st.integers(0, 255))
def test_no_output_of_a_host_is_an_exception(text: str, status: int) -> None:
    def shell(command: str, limit: float) -> Result:
        count = command.count("@@lineproof")
        marks = "".join(f"{text}\n@@lineproof {index} {status}\n" for index in range(count))
        return Result(marks, "", 0, 0.0)

    read_host(shell)


def test_every_habit_is_of_use() -> None:
    # only Linux's own driver shows the firmware
    shown = {habit: read_host(shell_of(habit, "held by linux")) for habit in HABITS}
    fit = shown.pop("held by linux")
    assert fit != read_host(shell_of()) and fit not in shown.values()


@pytest.mark.slow
def test_this_machine_is_read() -> None:
    facts = read_host(local_shell)
    assert facts.cpu and facts.other["kernel command line"]
