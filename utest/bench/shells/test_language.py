"""The simulated shells' command language and their commands."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.shells.language import SyntaxIssue, parse
from support.fake_router import simulated


@given(st.lists(st.text("ab $'\"\\;|&>?\n#*é", max_size=12), min_size=1, max_size=5))
def test_quoted_words_are_kept(words: list[str]) -> None:
    machine, _ = simulated("linux")
    assert machine.run(shlex.join(["echo", *words])).stdout.rstrip("\n") == " ".join(words).rstrip("\n")


@given(st.text(max_size=40))
def test_any_line_is_answered(text: str) -> None:
    machine, _ = simulated("vpp")
    output = machine.run(text)
    assert 0 <= output.status <= 255 or text.strip().startswith("exit")


@pytest.mark.parametrize(
    ("line", "stdout", "status"),
    [
        ("echo a; echo b", "a\nb\n", 0),
        ("true && echo yes || echo no", "yes\n", 0),
        ("false && echo yes || echo no", "no\n", 0),
        ("false; echo $?", "1\n", 0),
        ("nosuch; echo \"got $?\"; echo '$?'", "got 127\n$?\n", 0),
        ("sh -c 'false; echo \"@@ $?\"'", "@@ 1\n", 0),
        ("echo a > /dev/null", "", 0),
        ("nosuch 2>&1", "sh: 1: nosuch: not found\n", 127),
        ("cat /proc/stat | grep eth1 | head -1 | grep -F nothing", "", 1),
        ("echo one; exit 3; echo two", "one\n", 3),
        ("", "", 0),
        ("sudo hostname", "dut\n", 0),
        ("sudo -n sh -c hostname", "dut\n", 0),
        ("# nothing", "", 0),
    ],
)
def test_lines(line: str, stdout: str, status: int) -> None:
    machine, _ = simulated("linux")
    output = machine.run(line)
    assert (output.stdout, output.status) == (stdout, status)


@pytest.mark.parametrize("line", ["echo 'a", 'echo "a', "a &&", "| a", "echo $(id)", "a & b", "(a)"])
def test_unknown_syntax_is_an_error(line: str) -> None:
    with pytest.raises(SyntaxIssue):
        parse(line)
    machine, _ = simulated("linux")
    assert machine.run(line).status == 2


def test_nesting_ends() -> None:
    machine, _ = simulated("linux")
    line = "hostname"
    for _ in range(6):
        line = f"sh -c {shlex.quote(line)}"
    assert "nested too deeply" in machine.run(line).stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("vppctl sh ver", "vpp v22.02"),
        ("vppctl show run", "Thread 1 vpp_wk_0 (lcore 1)\r\n"),
        ("vppctl show run | grep 'vector rates' | grep -v 'in 0'", "in 1.0000e5, out 1.0000e5, drop 0.0000e0"),
        ("vppctl show int rx", "Thread 1 (vpp_wk_0):\r\n node dpdk-input:\r\n    eth1 queue 0 (polling)\r\n"),
        ("vppctl show hard", "Link speed: 10 Gbps"),
        ("vppctl show err", "blackholed packets"),
        ("vppctl show ip fib 16.0.0.0/8", "dpo-drop"),
        ("vppctl show bogus", "show: unknown input `bogus'\r\n"),
        ("vppctl bogus", "unknown input `bogus'\r\n"),
        ("vppctl set interface state eth9 up", "unknown interface `eth9'\r\n"),
        ("vppctl set interface ip address eth1 nonsense", "unknown input"),
        ("uname -a", "SIMULATED"),
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
        ("ip link set dev eth9 up", 'Cannot find device "eth9"', 1),
        ("ip link show dev eth9", 'Device "eth9" does not exist.', 1),
        ("ip route add 16.0.0.0/8 via 1.2.3.4", "Error: Nexthop has invalid gateway.", 2),
        ("ip addr del 1.2.3.4/24 dev eth1", "RTNETLINK answers: Cannot assign requested address", 2),
        ("ip addr add 1.2.3/24 dev eth1", "any valid prefix is expected", 1),
        ("ip frobnicate", 'Object "frobnicate" is unknown', 1),
        ("sysctl -n net.ipv4.nosuch", "No such file or directory", 255),
        ("cat /etc/shadow", "No such file or directory", 1),
        ("echo 1 > /etc/passwd", "Permission denied", 2),
    ],
)
def test_linux_refuses_as_linux_does(command: str, said: str, status: int) -> None:
    machine, _ = simulated("linux")
    output = machine.run(command)
    assert said in output.stderr
    assert output.status == status


def test_freebsd_speaks_as_freebsd_does() -> None:
    machine, _ = simulated("freebsd")
    assert machine.run("sysctl net.inet.ip.forwarding=0").stdout == "net.inet.ip.forwarding: 1 -> 0\n"
    assert machine.run("pfctl -d").stderr == "pf disabled\n"
    assert machine.run("pfctl -d").status == 1
    assert "Network is unreachable" in machine.run("route add -net 16.0.0.0/8 100.65.1.2").stderr
    machine.run("ifconfig eth1 inet 100.65.1.1/24")
    assert machine.run("route add -net 16.0.0.0/8 100.65.1.2").stdout == "add net 16.0.0.0: gateway 100.65.1.2\n"
    assert "netmask 0xffffff00" in machine.run("ifconfig eth1").stdout
    assert "16.0.0.0/8         100.65.1.2" in machine.run("netstat -rn").stdout
    assert machine.run("netstat -I eth9 -bnd").status == 1
    assert "Ibytes" in machine.run("netstat -I eth1 -bnd").stdout
