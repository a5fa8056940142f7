"""Readings under load: real outputs, this machine, simulated routers."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.under_load import CpuLoad, QueueLoad, UnderLoad
from lineproof.routers import RouterKind, freebsd, linux, make_router, vpp
from lineproof.routers.base import Result
from lineproof.routers.shell_output import plain_text
from lineproof.routers.vpp.output import parse_runtime
from support.fake_router import sample, shell_of, simulated
from support.scripted_shells import broken, this_machine

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
    found = vpp.worker_load(parse_runtime(plain_text(sample("vpp/w1_polling_max/show_runtime.txt")))[1], 0.0)
    assert found is not None and found.busy is None and found.nodes[0].share is None


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


def test_frames_of_each_queue_are_the_difference_of_two_readings() -> None:
    before = sample("freebsd/sysctl.dev.ix.queues.txt")
    after = before.replace("queue3.rx_packets: 143762837", "queue3.rx_packets: 143763837")
    found = freebsd.queue_loads("ix0", before, after, 2.0)
    assert [(queue.queue, queue.packets_per_s) for queue in found] == [(0, 0), (1, 0), (2, 0), (3, 500)]
    # the other interface's counters are of frames sent
    assert freebsd.queue_loads("ix1", before, after, 2.0) == ()
    reset = before.replace("143762837", "5")
    assert freebsd.queue_loads("ix0", before, reset, 2.0)[3] == QueueLoad("ix0", 3)


@pytest.mark.parametrize(
    ("interface", "row", "is_counted"),
    [
        ("igb1", "dev.igb.1.queue2.rx_packets", True),
        ("em0", "dev.em.0.queue_rx_2.rx_packets", True),
        ("ixl0", "dev.ixl.0.pf.rxq02.packets", True),
        ("ixl0", "dev.ixl.0.pf.que2.rx_packets", True),
        ("cxl0", "dev.cxl.0.rxq.2.rxcsum", True),
        ("mce0", "dev.mce.0.rxstat2.packets", True),
        ("bxe1", "dev.bxe.1.queue.2.rx_ucast_packets", True),
        ("mlxen1", "hw.mlxen1.stat.rx_ring2.packets", True),
        ("oce0", "dev.oce.0.stats.rx.queue2.rx_pkts", True),
        # frames sent, and those of other ports
        ("bxe0", "dev.bxe.0.rx_ucast_packets", False),
        ("bxe0", "dev.bxe.0.queue.2.tx_ucast_packets", False),
        ("mlxen0", "hw.mlxen0.stat.tx_ring2.packets", False),
        ("mlxen0", "hw.mlxen1.stat.rx_ring2.packets", False),
        ("oce0", "dev.oce.0.stats.tx.queue2.tx_pkts", False),
        ("oce0", "dev.oce.0.stats.rx.queue2.rx_bytes", False),
    ],
)
def test_each_driver_has_its_own_names(interface: str, row: str, is_counted: bool) -> None:
    # synthetic rows: the names are those of the drivers' sources (see _QUEUE_PACKETS), the counts are made up
    found = freebsd.queue_loads(interface, f"{row}: 10\n", f"{row}: 30\n", 1.0)
    assert found == (QueueLoad(interface, 2, "", 20.0),) * is_counted


def test_of_two_displays_the_last_counts() -> None:
    text = sample("freebsd/top-CHIPS.cxgbe.txt")
    both = text + text.replace("CPU1    1  13:14 100.00%", "CPU6    6  13:14  42.00%")
    assert freebsd.Thread("intr{irq285: t5nex0:0a1}", 6, 0.42) in freebsd.parse_top(both)
    assert len(freebsd.parse_top(both)) == len(freebsd.parse_top(text))
    assert freebsd.parse_top("") == freebsd.parse_top("last pid: 3\ntop: sysctl failed\n") == ()


def test_a_queue_is_served_where_the_thread_of_its_interrupt_runs() -> None:
    # the names of top are cut before the queue's number: interrupts of vmstat -i, of the same machine, have it
    def cpus(kind: str, names: str) -> dict[str, int]:
        threads = freebsd.parse_top(sample(f"freebsd/{kind}"))
        return freebsd.interrupt_cpus(threads, freebsd.interrupts(sample(f"freebsd/{names}")))

    assert freebsd.queue_cpus("ix", {}, cpus("top-CHSI.ix.txt", "vmstat-i.ix.txt")) == {}
    # synthetic: the names that sysctl has for the card and its port (cxgbe(4): t4_main.c, t4_child_location_str)
    port = {"%parent": "t5nex0", "%location": "port=0"}
    chelsio = cpus("top-CHIPS.cxgbe.txt", "vmstat-i.cxgbe.txt")
    assert freebsd.queue_cpus("cxl0", port, chelsio) == {0: 7, 1: 1, 2: 0, 3: 6, 4: 5, 5: 4, 6: 2, 7: 3}
    assert freebsd.queue_cpus("cxl0", {**port, "%parent": "t5nex1"}, chelsio) == {}
    assert freebsd.queue_cpus("cxl0", {}, chelsio) == {}


def test_ticks_that_count_back_or_have_no_rate_are_no_seconds() -> None:
    old = freebsd.processor_ticks("0 0 10 100 1000 5 0 0 0 2000")
    new = freebsd.processor_ticks("0 0 10 220 1007 5 0 0 0 2127")
    assert freebsd.elapsed(new, old, 127) is None
    assert freebsd.elapsed(old, new, None) is None
    assert freebsd.processor_ticks("0 0 10 100") == ()


# -- Linux -------------------------------------------------------------------------------------------------------------


def test_idle_time_that_counts_back_is_no_reading() -> None:
    # by a tick it may
    before, after = "cpu3 1 0 0 10 0 0 0 0 0 0\n", "cpu3 1 0 0 1 0 0 0 0 0 0\ncpu4 1 1\n"
    assert linux.cpu_loads(before, after, {0: 5.0}) == (CpuLoad(3),)


COUNTED = ("rx_queue_4_packets", "rx4_packets", "rx-4.packets", "rx-4.rx_packets", "queue_4_rx_cnt")
OTHERS = ("rx_queue_4_xdp_packets", "tx_queue_4_packets", "rx4_bytes", "rx_packets", "rx4_packets_phy")


@pytest.mark.parametrize("name", [*COUNTED, "[4]: rx_ucast_packets", *OTHERS])
def test_each_driver_of_linux_has_its_own_names(name: str) -> None:
    found = linux.queue_loads("eth0", {name: 10}, {name: 30}, {4: "CPU 1"}, 2.0)
    assert found == (QueueLoad("eth0", 4, "CPU 1", None if name in OTHERS else 10.0),)


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


# -- all ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_router_that_answers_nothing_gives_nothing_and_says_why(kind: RouterKind) -> None:
    waited: list[int] = []
    found = make_router(kind, broken, ("eth1",)).under_load(lambda: waited.append(1))
    assert found == UnderLoad(unread=found.unread) and found.unread and waited == [1]
