"""What a simulated router counts never falls while time goes on, whatever it forwards and however often it is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.simulation.habits import LossBursts, Noise
from lineproof_bench.shells.machine import Machine, Memory
from support.fake_router import KINDS
from support.model_bench import configuration, configured_model, traffic

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "freebsd": ("sysctl -n kern.cp_times", "sysctl dev.ix.0", "sysctl dev.ix.1", "netstat -ibd", "netstat -s"),
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
        "vppctl show interface TenGigabitEthernet3/0/0",
        "vppctl show interface TenGigabitEthernet3/0/1",
        "vppctl show errors",
        "vppctl show runtime",
    ),
}
"""Commands that show counters."""

RATES = re.compile(r"Time .*|  vector rates .*")
"""Lines of ``show runtime`` without counters."""


def numbers(text: str, base: int) -> dict[tuple[str, int], int]:
    """The whole numbers of *text*, by thread, the words of their line, and the place in it."""
    found: dict[tuple[str, int], int] = {}
    seen: Counter[str] = Counter()
    thread, pattern = "", r"[0-9a-f]{8}" if base == 16 else r"\d+"
    for line in text.splitlines():
        words = re.sub(r'[][{}",:]', " ", line).split() if line.startswith("[{") else line.split()  # JSON in one line
        if words[:1] == ["Thread"] or RATES.fullmatch(line):
            thread = line if words[:1] == ["Thread"] else thread
            continue
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


@pytest.mark.parametrize(("kind", "software"), [("freebsd", "pfsense"), ("linux", "linux")])
def test_a_processor_without_time_left_keeps_its_idle_time(kind: str, software: str) -> None:
    """Its idle time stands still for as long as it is full, and has been something before."""
    backend, clock = configured_model(software)
    machine = Machine(KINDS[kind][0](), lambda: backend, Memory())
    clock.time = 61.237
    backend.start({0: traffic("64b", 14e6)}, 5.0)
    found = []
    for _ in range(500):
        clock.time += 0.00731
        found.append(dict(readings(machine, kind)))
    for before, now in pairwise(found):
        assert all(now[key] >= before[key] for key in before.keys() & now.keys())
