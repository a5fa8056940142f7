"""Commands of the simulated shells: a line is one command, and what is wrong is refused as a real router does."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.shells.machine import words_of
from support.fake_router import simulated


@given(st.lists(st.text("ab $'\"\\;|&>?#*é", min_size=1, max_size=12), min_size=1, max_size=5))
def test_words_are_split_as_a_shell_does(words: list[str]) -> None:
    assert words_of(shlex.join(words)) == words


@given(st.text(max_size=40))
def test_any_line_is_answered(text: str) -> None:
    machine, _ = simulated("vpp")
    assert 0 <= machine.run(text).status <= 255


@pytest.mark.parametrize(
    ("line", "stdout", "status"),
    [
        ("", "", 0),
        ("sudo -n hostname", "dut\n", 0),
        ("/bin/hostname", "dut\n", 0),
        ("nosuch", "", 127),
        *((more, "", 2) for more in ("cat 'a", "hostname; hostname", "hostname | cat", "cat $(id)", "cat\nhostname")),
    ],
)
def test_a_line_is_one_command(line: str, stdout: str, status: int) -> None:
    machine, _ = simulated("linux")
    output = machine.run(line)
    assert (output.stdout, output.status) == (stdout, status)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vppctl show ip fib 16.0.0.0/8", "dpo-drop"),
        ("vppctl show bogus", "show: unknown input `bogus'\r\n"),
        ("vppctl bogus", "unknown input `bogus'\r\n"),
        ("vppctl set interface state eth9 up", "unknown interface `eth9'\r\n"),
        ("vppctl set interface ip address eth1 nonsense", "unknown input"),
    ],
)
def test_vpp_commands(command: str, expected: str) -> None:
    machine, _ = simulated("vpp")
    output = machine.run(command)
    assert expected in output.stdout
    assert output.status == 0


@pytest.mark.parametrize(
    ("command", "said", "status"),
    [
        ("ip link set dev eth9 up", 'Device "eth9" does not exist.', 1),
        ("ip addr del 1.2.3.4/24 dev eth1", "RTNETLINK answers: No such process", 1),
        ("ip frobnicate", 'Object "frobnicate" is unknown', 1),
        ("sysctl -n net.ipv4.nosuch", "No such file or directory", 255),
    ],
)
def test_what_linux_cannot_do_fails(command: str, said: str, status: int) -> None:
    machine, _ = simulated("linux")
    output = machine.run(command)
    assert said in output.stderr
    assert output.status == status
