"""Counts of a simulated router never fall while time goes on, whatever it forwards and however often they are read."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.simulation.habits import LossBursts, Noise
from lineproof_bench.shells.machine import Machine, Memory, words_of
from support.fake_router import KINDS, simulated
from support.model_bench import configuration, configured_model, traffic

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "freebsd": ("sysctl kern.cp_times dev.ix.0 dev.ix.1", "netstat -ibndW", "netstat -s -f inet"),
    "linux": (
        "cat /proc/stat",
        "cat /proc/uptime",
        "ip -j -s -s link show",
        "cat /proc/net/softnet_stat",
        "cat /proc/net/snmp",
        "cat /proc/net/netstat",
        "cat /proc/interrupts",
        "ethtool -S enp3s0f0",
    ),
    "vpp": (
        "vppctl show interface",
        "vppctl show errors",
        "vppctl show runtime",
    ),
}
"""Commands that show counters."""

INTERFACE = re.compile(r"\S+ +\d+ +(up|down) ")
RATES = re.compile(r"Time .*|  vector rates .*")
"""Lines of ``show runtime`` without counters."""


def numbers(text: str, base: int) -> dict[tuple[str, int], int]:
    """The whole numbers of *text*, by thread or VPP's interface, the words of their line, and the place in it."""
    found: dict[tuple[str, int], int] = {}
    seen: Counter[str] = Counter()
    thread, pattern = "", r"[0-9a-f]{8}" if base == 16 else r"\d+"
    for line in text.splitlines():
        words = re.sub(r'[][{}",:]', " ", line).split() if line.startswith("[{") else line.split()  # JSON in one line
        if words[:1] == ["Thread"] or RATES.fullmatch(line):
            thread = line if words[:1] == ["Thread"] else thread
            continue
        if INTERFACE.match(line):
            thread = words.pop(0)
        # a ratio, as cycles per frame, is no counter
        known = ("#" if re.fullmatch(pattern, word) else re.sub(r"[\d.]*\.\d+(e-?\d+)?", "~", word) for word in words)
        name = " ".join((thread, *known))
        seen[name] += 1
        for place, word in enumerate(words):
            if re.fullmatch(pattern, word):
                found[f"{name} {seen[name]}", place] = int(word, base)
    return found


def readings(machine: Machine, kind: str) -> Iterator[tuple[tuple[str, str, int], int]]:
    for command in COUNTERS[kind]:
        for (name, place), value in numbers(machine.run(command).stdout, 16 if "softnet" in command else 10).items():
            yield (command, name, place), value


@pytest.mark.parametrize(("kind", "software"), [("freebsd", "pfsense"), ("linux", "linux"), ("vpp", "vpp")])
@given(
    rates=st.tuples(st.floats(1, 15e6), st.floats(1, 15e6)),
    words=st.sampled_from(["64b", "imix", "64b 1-flow"]),
    begin=st.floats(0, 1e5),
    steps=st.lists(st.floats(0, 0.3), min_size=2, max_size=12),
    noisy=st.booleans(),
    routed=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_counters_never_fall(
    kind: str,
    software: str,
    rates: tuple[float, float],
    words: str,
    begin: float,
    steps: list[float],
    noisy: bool,
    routed: bool,
) -> None:
    noise = Noise(capacity=0.1, bursts=LossBursts(packets=5000, every=0.05)) if noisy else None
    backend, clock = configured_model(software, noise=noise)
    if not routed:
        backend.configure(replace(configuration(backend), routes=(("48.0.0.0/9", "100.65.2.2"),)))
    machine = Machine(KINDS[kind][0](), lambda: backend, Memory())
    clock.time = begin
    before: dict[tuple[str, str, int], int] = {}
    for number, step in enumerate(steps):
        if number == 1:
            backend.start({port: traffic(words, rate, swapped=port == 1) for port, rate in enumerate(rates)}, 1.0)
        clock.time += step
        now = dict(readings(machine, kind))
        fallen = {key: (before[key], now[key]) for key in before.keys() & now.keys() if now[key] < before[key]}
        assert not fallen
        before = now


# -- the simulated shells' commands


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
        ("ip link set dev eth9 up", 'Cannot find device "eth9"', 1),
        ("ip route add 16.0.0.0/8 via 1.2.3.4", "Error: Nexthop has invalid gateway.", 2),
        ("ip addr del 1.2.3.4/24 dev eth1", "RTNETLINK answers: Cannot assign requested address", 2),
        ("ip addr add 1.2.3/24 dev eth1", "any valid prefix is expected", 1),
        ("ip frobnicate", 'Object "frobnicate" is unknown', 1),
        ("sysctl -n net.ipv4.nosuch", "No such file or directory", 255),
    ],
)
def test_linux_refuses_as_linux_does(command: str, said: str, status: int) -> None:
    machine, _ = simulated("linux")
    output = machine.run(command)
    assert said in output.stderr
    assert output.status == status
