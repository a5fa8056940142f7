"""Readings under load: real outputs, this machine, simulated routers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.under_load import CpuLoad, QueueLoad, cpu_load
from lineproof.routers import RouterKind, described, freebsd, make_router, vpp
from lineproof.routers.base import Result, plain_text
from support.fake_router import sample, shell_of, simulated
from support.scripted_shells import this_machine

KINDS: tuple[RouterKind, ...] = ("vpp", "linux", "freebsd")

# -- VPP ---------------------------------------------------------------------------------------------------------------


def test_a_clock_that_went_back_gives_no_seconds_and_no_rates() -> None:
    machine = simulated("vpp")[0]
    times = iter(("9000.0", "1.0"))

    def started_again(command: str, limit: float) -> Result:
        found = shell_of(machine)(command, limit)
        if "show clock" not in command:
            return found
        return replace(found, stdout=re.sub(r"Time now [0-9.]+", f"Time now {next(times)}", found.stdout))

    found = make_router("vpp", started_again, ("eth1",)).under_load(lambda: None)
    assert next(times, None) is None and found.seconds is None and found.counters == {}


def test_without_a_clock_no_share_is_known() -> None:
    found = vpp.worker_load(vpp.parse_runtime(plain_text(sample("vpp/w1_polling_max/show_runtime.txt")))[1], 0.0)
    assert found is not None and found.busy is None and found.nodes[0].share is None


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


def test_variables_of_a_card_are_those_of_its_own_port() -> None:
    text = "dev.mlxen.1.a: 1\nhw.mlxen0.a: 2\nhw.mlxen1.a: 3\ndev.ix.10.a: 4\ndev.ix.1.a: 5\n"
    assert [freebsd.sysctl_values(text, name) for name in ("mlxen1", "ix1", "ix")] == [{"a": "3"}, {"a": "5"}, {}]


def test_of_two_displays_the_last_counts() -> None:
    text = sample("freebsd/top-CHIPS.cxgbe.txt")
    both = text + text.replace("CPU1    1  13:14 100.00%", "CPU6    6  13:14  42.00%")
    assert freebsd.Thread("intr{irq285: t5nex0:0a1}", 6, 0.42) in freebsd.parse_top(both)
    assert len(freebsd.parse_top(both)) == len(freebsd.parse_top(text))


def test_a_queue_is_served_where_the_thread_of_its_interrupt_runs() -> None:
    # the names of top are cut before the queue's number: interrupts of vmstat -i, of the same machine, have it
    def cpus(interface: str, device: Mapping[str, str], kind: str) -> dict[int, int]:
        threads = freebsd.parse_top(sample(f"freebsd/top-{kind}.txt"))
        names = freebsd.interrupts(sample(f"freebsd/vmstat-i.{kind.partition('.')[2]}.txt"))
        return freebsd.queue_cpus(interface, device, threads, names)

    assert cpus("ix", {}, "CHSI.ix") == {}
    # synthetic: the names that sysctl has for the card and its port (cxgbe(4): t4_main.c, t4_child_location_str)
    port = {"%parent": "t5nex0", "%location": "port=0"}
    assert cpus("cxl0", port, "CHIPS.cxgbe") == {0: 7, 1: 1, 2: 0, 3: 6, 4: 5, 5: 4, 6: 2, 7: 3}
    assert cpus("cxl0", {**port, "%parent": "t5nex1"}, "CHIPS.cxgbe") == cpus("cxl0", {}, "CHIPS.cxgbe") == {}


def test_ticks_that_count_back_or_have_no_rate_are_no_seconds() -> None:
    old = freebsd.processor_ticks({freebsd.TIMES: "0 0 10 100 1000 5 0 0 0 2000"})
    new = freebsd.processor_ticks({freebsd.TIMES: "0 0 10 220 1007 5 0 0 0 2127"})
    seconds = [freebsd.seconds_between(*readings) for readings in ((old, new, 127), (new, old, 127), (old, new, 0))]
    assert seconds == [1.0, None, None]
    assert freebsd.processor_ticks({freebsd.TIMES: "0 0 10 100"}) == []


# -- all: processors and queues


def test_ticks_that_count_back_are_no_load() -> None:
    before = dict.fromkeys(("user", "nice", "softirq", "idle"), 10)
    assert cpu_load(3, before, {**before, "idle": 1}, 5.0) == CpuLoad(3, packets_per_s=5.0)
    # by a tick or two the kernel may count back idle time (proc(5))
    assert cpu_load(3, before, {**before, "idle": 8, "user": 20}).busy == 1.0
    assert cpu_load(3, {}, before) == CpuLoad(3)


QUEUES = {
    "linux": (
        *("rx_queue_4_packets", "rx4_packets", "rx-4.packets", "rx-4.rx_packets", "queue_4_rx_cnt"),
        "[4]: rx_ucast_packets",
    ),
    "freebsd": (
        *("queue4.rx_packets", "queue_rx_4.rx_packets", "pf.rxq04.packets", "pf.que4.rx_packets", "rxq.4.rxcsum"),
        *("rxstat4.packets", "queue.4.rx_ucast_packets", "stat.rx_ring4.packets", "stats.rx.queue4.rx_pkts"),
    ),
    "vpp": ("rx_q4_packets", "rx_q4packets", "rx q4packets"),
}
OTHERS = (
    *("rx_queue_4_xdp_packets", "tx_queue_4_packets", "rx4_bytes", "rx_packets", "rx4_packets_phy", "rx_ucast_packets"),
    *("queue.4.tx_ucast_packets", "stat.tx_ring4.packets", "stats.tx.queue4.tx_pkts", "stats.rx.queue4.rx_bytes"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_each_driver_has_names_of_its_own_for_queues(kind: RouterKind) -> None:
    # those of the drivers' sources; the counts are made up
    table = next(table for table in described(kind).commands.tables.values() if table.queues)
    for name in QUEUES[kind]:
        assert table.queue_loads("a", {name: 10}, {name: 30}, 2.0, {}) == [QueueLoad("a", 4, "", 10.0)]
        # it was reset meanwhile
        assert table.queue_loads("a", {name: 30}, {name: 10}, 2.0, {}) == [QueueLoad("a", 4)]
    assert table.queue_loads("a", dict.fromkeys(OTHERS, 1), dict.fromkeys(OTHERS, 2), 2.0, {4: "CPU 1"}) == [
        QueueLoad("a", 4, "CPU 1")
    ]


@pytest.mark.slow
def test_this_kernel_is_read_twice() -> None:
    def spin() -> None:
        subprocess.run(["timeout", "0.3", "sh", "-c", "while :; do :; done"], check=False)

    found = make_router("linux", this_machine, ("lo",)).under_load(spin)
    assert found.seconds is not None and 0.25 < found.seconds < 10
    online = Path("/proc/stat").read_text().count("\ncpu")
    assert len(found.cpus) == online
    assert max(cpu.busy or 0 for cpu in found.cpus) > 0.05
    assert all(cpu.packets_per_s is not None for cpu in found.cpus)
    assert found.queues == ()
