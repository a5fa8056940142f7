"""Readings under load: real outputs of VPP and FreeBSD, this machine's kernel, simulated routers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.counts.under_load import CpuLoad, QueueLoad, RouterLoad
from lineproof.routers import RouterKind, freebsd_load, freebsd_top, linux_load, make_router, vpp_load
from lineproof.routers.base import Result
from lineproof.routers.vpp_output import parse_runtime
from support.fake_router import FakeModel, router_state, sample, shell_of, simulated
from support.scripted_shells import answering, babbling, broken, this_machine

KINDS: tuple[RouterKind, ...] = ("vpp", "linux", "freebsd")
HERTZ = 2.5e9

# -- VPP ---------------------------------------------------------------------------------------------------------------


def test_a_saturated_worker_of_a_real_vpp_is_busy_with_its_sending_node() -> None:
    main, block = parse_runtime(sample("vpp/w1_polling_max/show_runtime.txt"))
    assert vpp_load.worker_load(main, HERTZ) is None
    found = vpp_load.worker_load(block, HERTZ)
    assert found is not None and found.thread == "vpp_wk_0"
    assert found.busy is not None and 0.8 < found.busy <= 1
    assert found.packets_per_s == pytest.approx(1.2038e5, rel=1e-3)
    assert found.vectors_per_call == pytest.approx(155.9, abs=0.1)
    assert found.cycles_per_packet == pytest.approx(1.44e3 + 105 + 71.7 + 1.77e4 + 145 + 86.1 + 208)
    assert [node.name for node in found.nodes][:2] == ["host-p2-tx", "af-packet-input"]
    assert found.nodes[0].share == pytest.approx(1.77e4 * 632612 / (block.seconds * HERTZ))


def test_an_idle_worker_of_a_real_vpp_handles_nothing() -> None:
    found = vpp_load.worker_load(parse_runtime(sample("vpp/w1_polling_idle/show_runtime.txt"))[1], HERTZ)
    assert found is not None
    assert found.busy is not None and found.busy < 0.05
    assert found.packets_per_s is not None and found.packets_per_s < 10


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
    found = vpp_load.worker_load(parse_runtime(sample("vpp/w1_polling_max/show_runtime.txt"))[1], None)
    assert found is not None and found.busy is None and found.nodes[0].share is None
    assert vpp_load.clock_hz(sample("vpp/misc_w1/show_cpu.txt").replace("\r", "")) == 2.5e9
    assert vpp_load.clock_hz("Base frequency: unknown") is None


def test_free_buffers_of_a_real_vpp_are_read() -> None:
    text = sample("vpp/misc_w1/show_buffers.txt")
    found = make_router("vpp", answering({"vppctl show buffers": (text, 0)}), ("eth1",)).under_load(lambda: None)
    assert found.condition == {"free buffers of default-numa-0": "15777 of 16383, 215 more in threads' caches"}


THERMAL = "/sys/devices/system/cpu/cpu{}/thermal_throttle/{}:{}\n"


@pytest.mark.parametrize("kind", ["linux", "vpp"])
def test_processors_that_lower_their_clock_are_counted(kind: RouterKind) -> None:
    seconds: dict[str, tuple[str, int] | list[str]] = {
        "cat /proc/uptime": ["10.0 1.0", "12.0 1.0"],
        "vppctl show clock": ["Time now 10.0", "Time now 12.0"],
        "vppctl clear runtime": ("", 0),
    }
    before, after = (
        THERMAL.format(0, "core_throttle_count", 5) + THERMAL.format(11, "package_throttle_count", count)
        for count in (7, 27)
    )
    outputs = {**seconds, " ".join(linux_load.THROTTLES): [before, after]}
    found = make_router(kind, answering(outputs), ("eth1",)).under_load(lambda: None)
    assert found.counters == {"processor throttled: package_throttle_count CPU 11": 10.0}
    # a machine may have no such counters: nothing is missing then
    for status, unread in ((1, False), (2, True)):
        nothing = {**seconds, " ".join(linux_load.THROTTLES): ("", status)}
        found = make_router(kind, answering(nothing), ("eth1",)).under_load(lambda: None)
        assert (" ".join(linux_load.THROTTLES) in found.unread) is unread and not found.counters


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


def test_frames_of_each_queue_are_the_difference_of_two_readings() -> None:
    before = sample("freebsd/sysctl.dev.ix.queues.txt")
    after = before.replace("queue3.rx_packets: 143762837", "queue3.rx_packets: 143763837")
    found = freebsd_load.queue_loads("ix0", before, after, 2.0)
    assert [(queue.queue, queue.packets_per_s) for queue in found] == [(0, 0), (1, 0), (2, 0), (3, 500)]
    # the other interface's counters are of frames sent
    assert freebsd_load.queue_loads("ix1", before, after, 2.0) == ()
    reset = before.replace("143762837", "5")
    assert freebsd_load.queue_loads("ix0", before, reset, 2.0)[3] == QueueLoad("ix0", 3)


@pytest.mark.parametrize(
    ("interface", "row"),
    [
        ("igb1", "dev.igb.1.queue2.rx_packets"),
        ("em0", "dev.em.0.queue_rx_2.rx_packets"),
        ("ixl0", "dev.ixl.0.pf.rxq02.packets"),
        ("ixl0", "dev.ixl.0.pf.que2.rx_packets"),
        ("cxl0", "dev.cxl.0.rxq.2.rxcsum"),
        ("mce0", "dev.mce.0.rxstat2.packets"),
        ("bxe1", "dev.bxe.1.queue.2.rx_ucast_packets"),
        ("mlxen1", "hw.mlxen1.stat.rx_ring2.packets"),
        ("oce0", "dev.oce.0.stats.rx.queue2.rx_pkts"),
    ],
)
def test_each_driver_has_its_own_names(interface: str, row: str) -> None:
    # synthetic rows: the names are those of the drivers' sources (see _QUEUE_PACKETS), the counts are made up
    found = freebsd_load.queue_loads(interface, f"{row}: 10\n", f"{row}: 30\n", 1.0)
    assert found == (QueueLoad(interface, 2, "", 20.0),)


@pytest.mark.parametrize(
    ("interface", "row"),
    [
        ("bxe0", "dev.bxe.0.rx_ucast_packets"),
        ("bxe0", "dev.bxe.0.queue.2.tx_ucast_packets"),
        ("mlxen0", "hw.mlxen0.stat.tx_ring2.packets"),
        ("mlxen0", "hw.mlxen1.stat.rx_ring2.packets"),
        ("oce0", "dev.oce.0.stats.tx.queue2.tx_pkts"),
        ("oce0", "dev.oce.0.stats.rx.queue2.rx_bytes"),
    ],
)
def test_frames_sent_and_those_of_other_ports_are_no_frames_of_a_queue(interface: str, row: str) -> None:
    assert freebsd_load.queue_loads(interface, f"{row}: 10\n", f"{row}: 30\n", 1.0) == ()


def test_real_interrupts_are_counted_by_their_names() -> None:
    found = freebsd_load.interrupts(sample("freebsd/vmstat-i.cxgbe.txt"))
    assert found["irq285: t5nex0:0a1"] == 281882 and found["irq273: igb1:que 0"] == 1291
    assert "Total" not in found and "interrupt" not in found
    assert freebsd_load.interrupts(sample("freebsd/vmstat-i.igb-iflib.txt"))["irq134: igb0:rxq0"] == 34


def test_threads_and_their_processors_are_those_of_a_real_top() -> None:
    threads = freebsd_top.parse_top(sample("freebsd/top-CHIPS.cxgbe.txt"))
    assert threads[0] == freebsd_top.Thread("intr{irq285: t5nex0:0a1}", 1, 1.0)
    assert freebsd_top.busiest(threads, 2) == {"intr{irq290: t5nex0:0a6}": pytest.approx(0.1143)}
    assert not any("idle" in one.name for one in threads) and threads[-1].share == 0
    # two of a name took this processor, beside an interrupt
    found = freebsd_top.busiest(freebsd_top.parse_top(sample("freebsd/top-CHSI.ix.txt")), 0)
    assert found["kernel{ix0 que}"] == pytest.approx(0.4658 + 0.4180)


def test_of_two_displays_the_last_counts() -> None:
    text = sample("freebsd/top-CHIPS.cxgbe.txt")
    both = text + text.replace("CPU1    1  13:14 100.00%", "CPU6    6  13:14  42.00%")
    assert freebsd_top.Thread("intr{irq285: t5nex0:0a1}", 6, 0.42) in freebsd_top.parse_top(both)
    assert len(freebsd_top.parse_top(both)) == len(freebsd_top.parse_top(text))
    assert freebsd_top.parse_top("") == freebsd_top.parse_top("last pid: 3\ntop: sysctl failed\n") == ()


def test_a_queue_is_served_where_the_thread_of_its_interrupt_runs() -> None:
    # the names of top are cut before the queue's number: interrupts of vmstat -i, of the same machine, have it
    def cpus(kind: str, names: str) -> dict[str, int]:
        threads = freebsd_top.parse_top(sample(f"freebsd/{kind}"))
        return freebsd_top.interrupt_cpus(threads, freebsd_load.interrupts(sample(f"freebsd/{names}")))

    intel = cpus("top-CHSI.ix.txt", "vmstat-i.ix.txt")
    assert freebsd_top.queue_cpus("ix0", {}, intel) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert freebsd_top.queue_cpus("ix1", {}, intel) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert freebsd_top.queue_cpus("ix", {}, intel) == {}
    # synthetic: the names that sysctl has for the card and its port (cxgbe(4): t4_main.c, t4_child_location_str)
    port = {"%parent": "t5nex0", "%location": "port=0"}
    chelsio = cpus("top-CHIPS.cxgbe.txt", "vmstat-i.cxgbe.txt")
    assert freebsd_top.queue_cpus("cxl0", port, chelsio) == {0: 7, 1: 1, 2: 0, 3: 6, 4: 5, 5: 4, 6: 2, 7: 3}
    assert freebsd_top.queue_cpus("cxl0", {**port, "%parent": "t5nex1"}, chelsio) == {}
    assert freebsd_top.queue_cpus("cxl0", {}, chelsio) == {}


def test_what_the_driver_says_of_a_queues_processor_is_right() -> None:
    row = "dev.ix.0.queue{0}.rx_packets: 10\n"
    text = row.format(0) + row.format(1) + "dev.ix.0.iflib.rxq1.cpu: 5\n"
    found = freebsd_load.queue_loads("ix0", text, text, 1.0, {0: 2, 1: 3})
    assert [queue.worker_or_cpu for queue in found] == ["CPU 2", "CPU 5"]


def test_a_router_with_top_reports_threads_and_queues() -> None:
    outputs = {
        "sysctl -n kern.cp_times": ["0 0 0 0 10 " * 4, "0 0 0 100 37 " * 4],
        "sysctl -n kern.clockrate": ["{ hz = 1000, tick = 1000, profhz = 8126, stathz = 127 }\n"] * 2,
        "vmstat -i": [sample("freebsd/vmstat-i.ix.txt")] * 2,
        "sysctl dev.ix.0": [f"dev.ix.0.queue1.rx_packets: {count}\n" for count in (5, 1005)],
        " ".join(freebsd_top.TOP): [sample("freebsd/top-CHSI.ix.txt")],
    }

    found = make_router("freebsd", answering(outputs), ("ix0",)).under_load(lambda: None)
    assert found.queues[1] == QueueLoad("ix0", 1, "CPU 1", 1000.0) and len(found.queues) == 4
    assert dict(found.cpus[3].threads) == pytest.approx(
        {"intr{irq261: ix0:que }": 0.4829, "intr{irq266: ix1:que }": 0.0376}
    )
    assert found.unread == {} and "top -b -P -H -S -d 2 -s 1 100 after" in found.raw


def test_processors_and_seconds_come_from_the_same_ticks() -> None:
    old = freebsd_load.processor_ticks("0 0 10 100 1000 5 0 0 0 2000")
    new = freebsd_load.processor_ticks("0 0 10 220 1007 5 0 0 0 2127")
    assert freebsd_load.elapsed(old, new, 127) == 1.0
    busy, idle = freebsd_load.cpu_loads(old, new)
    assert busy.busy == busy.softirq == pytest.approx(120 / 127) and idle == CpuLoad(1, 0.0, 0.0, user=0.0)
    assert freebsd_load.elapsed(new, old, 127) is None
    assert freebsd_load.elapsed(old, new, None) is None
    assert freebsd_load.processor_ticks("0 0 10 100") == ()


# -- Linux -------------------------------------------------------------------------------------------------------------


def test_processors_of_linux() -> None:
    before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 20 1000 5 0 100 0 0 0\ncpu3 1 0 0 10 0 0 0 0 0 0\n"
    after = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 30 1020 4 0 170 0 0 0\ncpu3 1 0 0 1 0 0 0 0 0 0\ncpu4 1 1\n"
    found = linux_load.cpu_loads(before, after, {0: 5.0})
    # iowait may count back by a tick; idle time that counts back by nine is no reading
    assert found == (CpuLoad(0, found[0].busy, found[0].softirq, 5.0, irq=0.0, steal=0.0, user=0.0), CpuLoad(3))
    assert (found[0].busy, found[0].softirq) == (pytest.approx(0.8), pytest.approx(0.7))


def test_interrupts_steal_and_programs_of_a_processor_are_read_apart() -> None:
    (found,) = linux_load.cpu_loads("cpu0 0 0 0 0 0 0 0 0 0 0\n", "cpu0 5 3 2 20 10 15 25 20 0 0\n", {})
    assert found == CpuLoad(0, found.busy, 0.25, irq=0.15, steal=0.2, user=0.08)
    assert (found.busy, found.on_packets) == (pytest.approx(0.7), pytest.approx(0.4))
    (freebsd,) = freebsd_load.cpu_loads(((0, 0, 0, 0, 0),), ((10, 20, 30, 15, 25),))
    assert freebsd == CpuLoad(0, 0.75, 0.15, user=0.3)


@pytest.mark.parametrize(
    "name",
    ["rx_queue_4_packets", "rx4_packets", "rx-4.packets", "rx-4.rx_packets", "queue_4_rx_cnt", "[4]: rx_ucast_packets"],
)
def test_each_driver_of_linux_has_its_own_names(name: str) -> None:
    found = linux_load.queue_loads("eth0", {name: 10}, {name: 30}, {4: "CPU 1"}, 2.0)
    assert found == (QueueLoad("eth0", 4, "CPU 1", 10.0),)


@pytest.mark.parametrize(
    "name", ["rx_queue_4_xdp_packets", "tx_queue_4_packets", "rx4_bytes", "rx_packets", "rx4_packets_phy"]
)
def test_other_counters_are_no_frames_of_a_queue(name: str) -> None:
    assert linux_load.queue_loads("eth0", {name: 10}, {name: 30}, {}, 2.0) == ()


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
    assert found == RouterLoad(unread=found.unread) and found.unread and waited == [1]


class Growing(FakeModel):
    """The counters of a router that forwards 1000 frames/s on its one thread, which is three quarters busy."""

    def pass_seconds(self, seconds: float) -> None:
        old = self._state
        thread = old.threads[0]
        thread = replace(
            thread,
            packets=thread.packets + round(1000 * seconds),
            busy_seconds=thread.busy_seconds + 0.75 * seconds,
            idle_seconds=thread.idle_seconds + 0.25 * seconds,
        )
        self._state = replace(
            old, uptime=old.uptime + seconds, since_clear=old.since_clear + seconds, threads=(thread,)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_the_figures_of_a_simulated_router_are_the_models(kind: RouterKind) -> None:
    machine, _ = simulated(kind)
    model = Growing(router_state(kind))
    machine._model = model
    found = make_router(kind, shell_of(machine), ("eth1", "eth2")).under_load(lambda: model.pass_seconds(4))
    if kind == "vpp":
        assert model.clears == 1
        (worker,) = found.workers
        assert worker.thread == "vpp_wk_0" and worker.cycles_per_packet is not None
        served = "vpp_wk_0"
    else:
        (cpu,) = found.cpus
        assert cpu.busy == pytest.approx(0.75, abs=0.02)
        served = "CPU 1"
        assert found.seconds == pytest.approx(4, rel=0.02)
    if kind == "linux":
        assert found.cpus[0].packets_per_s == pytest.approx(1000, rel=0.01)
    assert {(queue.interface, queue.worker_or_cpu) for queue in found.queues} == {("eth1", served), ("eth2", served)}
    # the model counts by thread, which serves two queues
    assert all(queue.packets_per_s is None for queue in found.queues)


TEXTS = st.one_of(
    st.text(max_size=120),
    st.from_regex(r"(cpu\d? ?[\d -]{0,40}\n){1,3}", fullmatch=True),
    st.sampled_from(
        ["vpp/w1_polling_max/show_runtime.txt", "freebsd/vmstat-i.cxgbe.txt", "freebsd/top-CHIPS.cxgbe.txt"]
    ).flatmap(lambda name: st.integers(0, 2000).map(lambda at: sample(name)[at:])),
)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(0, 3))
def test_any_output_gives_figures_in_their_ranges_and_no_exception(texts: list[str], status: int) -> None:
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    for kind in KINDS:
        found = make_router(kind, babbling(texts, status), ("eth1",)).under_load(nothing)
        shares = [share for cpu in found.cpus for share in (cpu.busy, cpu.softirq)]
        shares += [worker.busy for worker in found.workers]
        shares += [share for cpu in found.cpus for share in cpu.threads.values()]
        assert all(share is None or 0 <= share <= 1 for share in shares)
        rates = [queue.packets_per_s for queue in found.queues]
        assert all(rate is None or rate >= 0 for rate in rates)
        assert found.unread or found.raw
