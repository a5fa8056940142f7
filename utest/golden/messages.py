"""Messages of scripted verdicts, one for each branch of a message: what the user reads, word for word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from golden import refused
from golden.refused import indented, raised
from golden.scripted import ScriptedBench, T
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import Placement
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Cause, NeighbourEntry, Stage
from lineproof.core.trial import (
    ABOVE_IDLE_UNCERTAINTY,
    HOST_COUNTS,
    IDLE_POWER,
    POWER,
    UNCERTAINTY,
    Fault,
    Problem,
)
from lineproof.core.under_load import CpuLoad, UnderLoad, WorkerLoad
from lineproof.core.verdict import where_lost
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction, GeneratorPort
from lineproof.generators.streams import profile_streams
from lineproof.generators.trex.outcomes import probe_counts
from lineproof.procedures.calibrate import find_ceiling
from lineproof.procedures.search.margin import margin
from lineproof.procedures.trials import TrialSeries
from lineproof.quantities import cycles as cycles_quantity
from lineproof.routers.linux import FILTER_DROPS
from lineproof.routers.vpp import FAILED_ALLOCATIONS
from lineproof.routers.why import BRIDGE, KERNEL_IDENT, explanation
from lineproof.session.came_back import SeenFrames, check_router_bypassed
from lineproof.session.explaining import explained
from lineproof.session.judging import judge
from lineproof.units import duration_text
from support.ceilings import CATALOGUE, LINE, ceiling, measured_limits
from support.made_testbeds import probe_group
from support.paths import VARIABLES
from support.pure_router import EVERY_TRIAL, PureRouter, run_on
from support.why_evidence import (
    FORWARDED,
    LOST,
    OFFERED,
    SPREAD,
    TRIED,
    cpus,
    dropped,
    facts,
    ledger,
    load,
    nic,
    on,
    qdisc,
)

TRAFFIC = {"uni": "64b unidirectional", "bi": "64b bidirectional", "pairs": "64b unidirectional on 2 pairs"}


def judged(sentence: str, *script: T, **more: Any) -> str:
    """Return the message of a verdict. The first word of *sentence* is one of TRAFFIC."""
    first, _, rest = sentence.partition(" ")
    requirement = parse(f"{TRAFFIC[first]} {rest}", CATALOGUE)
    trials = script or (T(),)
    bench = ScriptedBench(requirement, lambda number, *_: trials[min(number, len(trials) - 1)], **more)
    with mock.patch.object(cycles_quantity, "time", SimpleNamespace(monotonic=lambda: 0.0)):
        verdict = judge(bench, requirement)
    return explained(verdict, more.get("facts"), more.get("under_load")).message


def fault(name: str, frames: int | None = None) -> tuple[Problem, ...]:
    """Return the fault *name*, which explains so many lost *frames* (None: any number)."""
    return (Problem(Fault[name], "made up", frames),)


GOOD, BURST, LINK, SLOW = T(), T((9,)), T(faults=fault("LINK_DOWN")), T(sent=0.9)
OFTEN = (GOOD, GOOD, *(GOOD, BURST) * 7)


def probed(trial: T, **counts: Any) -> T:
    """Return *trial* with probe frames, of which *counts* are not usual."""
    return replace(trial, probes=(replace(LatencyCount(0, 1, 1000, 1000), **counts),))


def _throughput() -> Mapping[str, str]:
    rate, each = "uni ≥ 1 Mpps", "bi ≥ 1 Mpps each way"
    crc = (Cause(Stage.ARRIVING, "rx_crc_errors", "eth1", 70),)
    gone = NeighbourEntry("eth2", "100.65.2.2", "02:00:00:00:00:02")
    wrong = replace(gone, mac="02:00:00:00:00:09", fix="SET IT", found_at="eth9")
    paused, lag = {"eth2": 1000}, {"elapsed_uncertainty": 0.003}
    return {
        "pass": judged(rate),
        "pass at line rate": judged("uni ≥ 100% line rate"),
        "pass with bad trials": judged(each, T((9, 3)), T((0, 8)), GOOD, drops=True),
        "pass in total": judged("bi loses ≤ 0.5% in total at 1 Mpps each way", T((4000, 3)), goal="standard"),
        "pass of pairs": judged("pairs ≥ 1 Mpps each way", T((0, 5)), GOOD),
        "pass after a link was down": judged(rate, LINK, GOOD),
        "loss beyond the load": judged(rate, T((5,), sent=1.00001)),
        "pass with more asked": judged(rate, T(readings=lag), goal="rfc2544"),
        "pass with longer trials": judged(rate, T(backlog=(9000,)), GOOD),
        "queues that always grow": judged(rate, T(backlog=(90_000,))),
        "pass with foreign frames": judged(rate, T(foreign=(5,))),
        "too many foreign frames": judged(rate, T(foreign=(500,))),
        "budget that does not suffice": judged(rate, *(BURST, GOOD, GOOD) * 20),
        "pass counted by the host": judged(rate, T(readings={HOST_COUNTS: 1.0}), goal="rfc2544"),
        "pass of a soak": judged(f"{rate} for 30 s", GOOD, BURST, GOOD),
        "pass with pauses": judged(rate, pauses=paused),
        "pass with damaged frames": judged(rate, causes=crc),
        "pass, then no answer": judged(rate, silent=1),
        "pass by loss, then no answer": judged(rate, BURST, GOOD, silent=2),
        "frames twice": judged(rate, T((200,)), GOOD, copies=3000),
        "frames twice behind drops": judged(rate, causes=(Cause(Stage.PASSING, "error", "", 5),), copies=3000),
        "pass beside counters that stand still": judged(rate, counted=0.0),
        "fail beside counters of other frames": judged(rate, T((0.2,)), counted=0.4),
        "late beside counters of other frames": judged("uni latency p99 ≤ 100 µs at 1 Mpps", T((2000,)), counted=0.4),
        "no probes": judged(rate, BURST, GOOD, uncounted="NOT COUNTED"),
        "probes came twice": judged(rate, probed(BURST, duplicates=9), uncounted="NOT COUNTED"),
        "probes came once": judged(rate, probed(BURST), probed(GOOD), uncounted="NOT COUNTED"),
        "probes went elsewhere": judged(rate, probed(GOOD, received=980, elsewhere=20)),
        "fail by one trial": judged(rate, T((0.2,)), drops=True),
        "fail at less than the load": judged(rate, T((0.2,), sent=0.9, readings={"cpu_util": 85.0})),
        "fail of one direction": judged(each, T((2000, 0)), drops=True),
        "fail beside copies": judged("bi ≥ 2 Mpps in total", T((0.2, -0.3))),
        "fail of a pair": judged("pairs ≥ 2 Mpps in total", T((2000, 100))),
        "fail of a soak": judged(f"{rate} for 60 s", GOOD, BURST),
        "fail by all frames together": judged(rate, T((0.04,)), GOOD),
        "pass after one very bad trial": judged(rate, T((0.02,)), GOOD),
        "fail by loss ratio": judged("uni loses ≤ 0.5% at 1 Mpps", T((6000,))),
        "fail, then no answer": judged(rate, T((2000,)), silent=4),
        "fail, no answer between trials": judged(rate, T((2000,)), silent=2, ended=("TRex ended",)),
        "fail with pauses that may have cost it": judged(rate, T((2000,)), pauses=paused),
        "fail of forwarding with pauses": judged("uni forwards ≥ 1 Mpps", T((2000,)), pauses=paused),
        "fail with pauses that do not matter": judged(rate, T((2000,)), pauses={"eth1": 5}),
        "fail with damaged frames": judged(rate, T((5,)), causes=crc),
        "fail with few damaged frames": judged(rate, T((2000,)), causes=crc),
        "fail without a neighbour": judged(rate, T((2000,)), neighbours=(gone,)),
        "fail with a wrong neighbour": judged(each, T((2000, 0)), neighbours=(wrong,)),
        "fail beside a wrong neighbour": judged(each, T((2000,)), neighbours=(wrong,)),
        "fail, neighbours not read": judged(each, T((2000,)), neighbours=TestbedError("no answer")),
        "fail, neighbours not understood": judged(rate, T((2000,)), neighbours=()),
        "pass, neighbours not read": judged(rate, neighbours=TestbedError("no answer")),
        "fail after the router": judged(rate, T((20_000,)), behind=True),
        "loss after the router, not watched": judged(rate, T((20_000,)), behind=True, limits=None),
        "fail explained": judged(
            rate, T((0.2,)), drops=True, under_load=UnderLoad(1e6, 1e6, 8e5, (WorkerLoad("w", 1.0),))
        ),
        "spoilt": judged(rate, LINK),
        "slow generator": judged(rate, SLOW),
        "clock": judged(rate, T(slow=float("nan"))),
        "too short": judged(rate, T(slow=0.5)),
        "odd counts": judged(rate, T(sent=1.1, slow=1.2, foreign=(5000,), readings={"cpu_util": 99.0})),
        "surplus": judged(rate, T((-5,))),
        "rate too low": judged(rate, T(slow=1.05, readings={"apart": 0.05})),
        "load not certain": judged(rate, T(slow=1.004, readings={"apart": 0.01})),
        "paused": judged(rate, T(sent=0.9, faults=fault("PAUSED"))),
        "breakdown": judged(rate, breaks=2, ended=("TRex ended",)),
        "no answer before": judged(rate, silent=0),
        "restarted": judged(rate, T((2000,)), uptimes=(9e5, 5)),
    }


def _ceilings() -> Mapping[str, str]:
    rate, near = "uni ≥ 7.4 Mpps", measured_limits()
    stale = measured_limits(ceiling(measured="2020-01-01T00:00:00+00:00"))
    unfit = replace(near, kind="netns")

    def watched(seconds: float, lossy: int) -> Any:
        terms = {"goal": "standard", "load_pps": 7e6, "trials": 30, "lossy": lossy, "most_lost": 9 * (lossy > 0)}
        terms |= {"trial_duration": seconds / 30}
        return measured_limits(ceiling(lossless=LINE, watched=terms))

    rare = {"goal": "standard"}
    return {
        "near the ceiling": judged(rate, T((0.2,)), limits=near),
        "near a stale ceiling": judged(rate, T((0.2,)), limits=stale),
        "below the ceiling": judged("uni ≥ 1 Mpps", T((0.2,)), limits=near),
        "ceiling of receiving": judged("uni forwards ≥ 7.4 Mpps", T((0.2,)), pps=9e6, limits=near),
        "ceiling of a reduced load": judged(
            "uni recovers in ≤ 1 s at 14.8 Mpps", T(), T(overload=(1.5, 0, 0.2)), limits=near
        ),
        "rare loss, not watched": judged("uni ≥ 1 Mpps", *OFTEN, **rare, limits=None),
        "rare loss, watched too short": judged("uni ≥ 1 Mpps", *OFTEN, **rare, limits=watched(3, 0)),
        "rare loss, watched with loss": judged("uni ≥ 1 Mpps", *OFTEN, **rare, limits=watched(30, 15)),
        "rare loss, watched without loss": judged("uni ≥ 1 Mpps", *OFTEN, **rare, limits=watched(30, 0)),
        "calibrations": "\n".join(map(str, (near, stale, unfit))),
    }


def _forwards() -> Mapping[str, str]:
    rate, spread = "uni forwards ≥ 800 kpps", tuple(T((0.01 * n,)) for n in (1, 5, 3, 2, 9))
    return {
        "forwards": judged(rate),
        "forwards, spread": judged("uni forwards ≥ 950 kpps", *spread),
        "forwards, skewed": judged(rate, T((0.15,)), *(T((0.01 + n / 1e5,)) for n in range(30)), goal="standard"),
        "forwards, one trial": judged(rate, goal="rfc2544"),
        "forwards, ceiling": judged(rate, T(sent=0.96, foreign=(5,)), T((0.01,), sent=0.96, backlog=(2000,))),
        "forwards, in total": judged("bi forwards ≥ 1.6 Mpps in total", T((0.1, 0.2))),
        "forwards, of pairs": judged("pairs forwards ≥ 800 kpps each way", T((0.1, 0.2))),
        "forwards, fail": judged("bi forwards ≥ 800 kpps each way", T((0.7, 0.1))),
        "forwards, too little offered": judged(rate, pps=7e5),
        "forwards, spoilt": judged(rate, LINK),
        "forwards, longer": judged(rate, T((0.1,), backlog=(150_000,)), goal="standard"),
    }


def _latency() -> Mapping[str, str]:
    sentence, slow = "uni latency p99 ≤ 100 µs at 1 Mpps", {20: 19_000, 400: 1000}

    def t(histogram: Mapping[int, int], lost: float = 0, faults: tuple[Problem, ...] = (), **more: Any) -> T:
        came = sum(histogram.values())
        fields = {"sent": came, "received": came, "maximum": float(max(histogram, default=0)), "minimum": 5.0, **more}
        probes = [probe_group(histogram, tx_port=at, rx_port=1 - at, **fields) for at in (0, 1)]
        return T((lost,), faults=faults, probes=probe_counts(probes))

    fast = t({20: 20_000})
    own = {"mean_us": 4.2, "p99_low_us": 0, "p99_high_us": 10}
    known = measured_limits(ceiling(lossless=LINE, latency=own))
    return {
        "latency": judged(sentence, fast),
        "latency, own part known": judged(sentence, fast, limits=known),
        "latency, fail within its own part": judged("uni latency p99 ≤ 15 µs at 1 Mpps", fast, limits=known),
        "latency, fail": judged(sentence, t(slow)),
        "latency, fail with pauses": judged(sentence, t(slow, 2000), pauses={"eth2": 1000}),
        "latency, fail by loss": judged(sentence, t({20: 20_000}, 20_000)),
        "latency, no probes at all by loss": judged(sentence, T((2000,))),
        "latency, fail by all frames": judged(sentence, t({20: 100, 4000: 19_900}), fast),
        "latency, open by all frames": judged(
            "uni latency p99 ≤ 95 µs at 1 Mpps", t({20: 13_000, 90: 6000, 200: 1000}), fast
        ),
        "latency, coarse": judged("uni latency p99 ≤ 25 µs at 1 Mpps", fast),
        "latency, coarse from 0": judged("uni latency p99 ≤ 5 µs at 1 Mpps", t({0: 20_000})),
        "latency, few probes": judged("uni latency p99.9 ≤ 100 µs at 1 Mpps", t({20: 900})),
        "latency, probes gone": judged(sentence, t({20: 50}, sent=20_000)),
        "latency, some lost": judged("uni latency max ≤ 100 µs at 1 Mpps", t({20: 20_000}, 0, sent=20_010)),
        "latency, histogram too large": judged(sentence, t({20: 20_000}, received=19_000)),
        "latency, histogram too small": judged(sentence, t({20: 19_000}, sent=20_000, received=20_000)),
        "latency, may be late": judged(sentence, t({0: 900, 20: 19_100}, out_of_order=500, maximum=2e6)),
        "latency, none": judged(sentence),
        "latency, spoilt": judged(sentence, t(slow, faults=fault("LINK_DOWN"))),
        "pdv": judged("bi pdv p99 ≤ 100 µs at 1 Mpps each way", t(slow)),
    }


def _cost() -> Mapping[str, str]:
    cycles, energy, idle = (
        "uni costs ≤ 200 cycles/packet",
        "uni costs ≤ 20 µJ/packet",
        "uni costs ≤ 10 µJ/packet above idle",
    )

    def w(watts: float, unsure: float = 0.0, **more: Any) -> T:
        known = {POWER: watts, UNCERTAINTY: unsure, IDLE_POWER: 10.0, ABOVE_IDLE_UNCERTAINTY: unsure}
        return T(readings=known, **more)

    return {
        "cycles": judged(cycles),
        "cycles of two workers": judged(
            "bi costs ≤ 250 cycles/packet at 1 Mpps each way", LINK, T(cycles=(200, 2100.4)), T(cycles=(190, 210))
        ),
        "cycles without input": judged("uni costs ≤ 200 cycles/packet without input", T(cycles=(210,))),
        "vectors": judged("uni gathers ≥ 90 vectors/call"),
        "cycles, fail": judged(cycles, T(cycles=(250,))),
        "cycles, one bad trial": judged(cycles, T(cycles=(2500,)), T()),
        "cycles, spoilt": judged(cycles, LINK),
        "cycles, read late": judged(cycles, T(late=1.0), T()),
        "cycles, not read": judged(cycles, T(late=-1.05)),
        "cycles, cleared by others": judged(cycles, T(covered=-0.5)),
        "cycles, no packets": judged(cycles, T(cycles=(0,))),
        "cycles, no answer": judged(cycles, silent=3),
        "energy": judged(energy, w(19)),
        "energy, meter that stands still": judged(energy, w(10)),
        "energy above idle": judged(idle, w(19)),
        "energy, fail": judged(energy, w(21, 0.5)),
        "energy, fail of most": judged(energy, w(18.6, 1.5), w(18.6, 1.5), w(22, 1.5)),
        "energy, one bad trial": judged(energy, w(90), w(19)),
        "energy, one bad trial of an uncertain meter": judged(energy, w(60, 1), w(18, 1)),
        "energy, open": judged(energy, w(20, 0.5)),
        "energy, no load seen": judged(idle, w(10.5, 1)),
        "energy, no power": judged(energy),
        "energy, spoilt": judged(energy, w(19, faults=fault("LINK_DOWN"))),
    }


def _recovery() -> Mapping[str, str]:
    sentence = "uni recovers in ≤ 1 s at 6 Mpps"

    def o(lag: float, always: float = 0.0, overload: float = 0.2, faults: tuple[Problem, ...] = (), **step: Any) -> T:
        return T(overload=(lag, always, overload), faults=faults, step=step)

    return {
        "recovery": judged(sentence, o(0), o(0.5)),
        "recovery, both ways": judged("bi recovers in ≤ 1 s at 6 Mpps each way", o(0), o(0.5), goal="rfc2544"),
        "recovery, fail": judged(sentence, o(0), o(1.5)),
        "recovery, one of several": judged(sentence, o(0), o(0.5), o(1.1), o(0.5)),
        "recovery, one late trial": judged(sentence, o(0), o(4), o(0.5)),
        "recovery, loss at any load": judged(sentence, o(0, 0.1), o(0.5, 0.1)),
        "recovery, spoilt control": judged(sentence, replace(LINK, overload=(0, 0, 0)), o(1.5)),
        "recovery, not overloaded": judged(sentence, o(0), o(0, overload=0.001)),
        "recovery, not timed": judged(sentence, o(0), o(0.5, sent=(2e6, 2.5e6))),
        "recovery, few samples": judged(sentence, o(0), o(0.5, samples=())),
        "recovery, open": judged(sentence, o(0), o(1.0)),
        "recovery, spoilt": judged(sentence, o(0), o(0.5, faults=fault("LINK_DOWN"))),
    }


def _why() -> Mapping[str, str]:
    one, big = replace(TRIED, flows=1), replace(TRIED, frame_bytes=1518, forwarded_pps=2.1e6)
    big = replace(big, intended_pps=3e6, offered_pps=3e6)
    big_load = load(0.2, 0.2, asked=3e6, forwarded_pps=2.1e6)
    slot = {"pci_address": "0000:03:00.0", "pcie_speed": 8.0, "pcie_width_max": 8}
    x4, x7, x8 = (facts(nics=(nic(pcie_width=lanes, **slot),)) for lanes in (4, 7, 8))

    rx, full, both, uneven = ledger(), load(1.0, 1.0, 1.0), ledger(both=True), load(1.0, 0.6, 0.6)
    waits, late = dropped("rx_dropped", Stage.ARRIVING, place="a"), {"softnet backlog full CPU 0": 9.0}
    packets, programs, idle = (1.0, 1.0, 0.0, 6e6), (1.0, 0.3, 0.0, 6e6), (0.1, 0.1, 0.0, 0.0)
    many = dropped("rx_dropped", Stage.ARRIVING, frames=LOST + 100_000)
    few = replace(TRIED, forwarded_pps=9_990_000)
    freebsd = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=(CpuLoad(0, 1.0, user=0.6),))
    buffers = replace(rx, reasons=(Drop(Stage.ARRIVING, "rx-no-buf", "a", 40_000, FAILED_ALLOCATIONS),))
    shared = facts((Placement("a", 0, "w0"), Placement("b", 0, "w0"), Placement("b", 1, "w1")))
    uneven_placed = facts((*shared.placement, Placement("a", 1, "w2")))
    nearly, vm = (14_878_000, 14_600_000), {"hypervisor": "kvm"}
    cases: Mapping[str, tuple[Any, ...]] = {
        "nothing read": (TRIED, rx),
        "generator": (replace(TRIED, intended_pps=14e6, forwarded_pps=1e7), ledger(forwarded=OFFERED)),
        "line": (replace(TRIED, offered_pps=2e7, intended_pps=2e7), ledger(Stage.LEAVING, 20_000_000, 14_880_952)),
        "sending ring": (TRIED, ledger(Stage.LEAVING)),
        "sending ring at a full line": (replace(TRIED, offered_pps=14_878_000), ledger(Stage.LEAVING, *nearly)),
        "slow program": (TRIED, dropped("tx_dropped", Stage.LEAVING), on(nics=(nic(interface="b", driver="veth"),))),
        "shaper": (TRIED, qdisc("tbf rate 2Gbit burst 5Kb")),
        "netem": (TRIED, qdisc("netem limit 1000 loss 30%")),
        "short queue": (TRIED, qdisc("pfifo limit 5p")),
        "shaper that drops more": (TRIED, qdisc("tbf rate 2Gbit", 5_000_000)),
        "filter": (TRIED, dropped(FILTER_DROPS, Stage.PASSING, "by filters of tc (ingress)", place="a")),
        "filter of a firewall": (TRIED, dropped("x", Stage.PASSING, frames=0), facts(firewall="on: nftables")),
        "locks of tables": (
            TRIED,
            rx,
            facts(os="FreeBSD 11.1-RELEASE", other={KERNEL_IDENT: "GENERIC"}),
            load(*[1.0] * 8),
        ),
        "locks of a bridge": (TRIED, rx, facts(os="FreeBSD 12.4-RELEASE", other={BRIDGE: "bridge0"}), full),
        "all workers": (TRIED, rx, facts(), replace(full, workers=(WorkerLoad("w0", 1.0, 1e6, None, 300.0),))),
        "all of several workers": (TRIED, rx, facts(firewall="on: pf"), full),
        "all workers of a virtual machine": (TRIED, rx, facts(other=vm), full),
        "shared worker": (TRIED, both, uneven_placed, uneven),
        "shared worker of two flows": (one, both, shared, load(1.0, 0.0, 0.0)),
        "one flow": (one, rx, facts(), load(1.0, 0.0, 0.0)),
        "one flow each way": (one, both, None, load(1.0, 0.0)),
        "few queues": (TRIED, rx, facts(SPREAD[:1]), load(1.0, 0.0, 0.0)),
        "one processor": (TRIED, rx, on("CPU 0", "CPU 0"), cpus(packets, idle, idle)),
        "one processor by steering": (TRIED, rx, on("CPU 0", nics=(nic(steered_to={0: "0"}),)), cpus(packets, idle)),
        "uneven workers": (TRIED, rx, facts(), uneven),
        "four busy workers": (replace(TRIED, flows=None), rx, None, load(1.0, 1.0, 1.0, 1.0, 0.5, 0.005)),
        "no buffers": (TRIED, buffers, facts(), load(0.2, 0.2, condition={"free buffers of numa-0": "0 of 16383"})),
        "bus": (big, rx, x4, big_load),
        "card or bus": (big, rx, x7, big_load),
        "bus not read": (TRIED, rx, facts(), load(0.2, 0.2)),
        "card": (TRIED, rx, x8, load(0.2, 0.2)),
        "card with one flow": (one, rx, x4, load(0.2, 0.2)),
        "late worker": (few, ledger(forwarded=9_990_000), facts(), load(0.3)),
        "steal": (TRIED, rx, on("CPU 0"), cpus((1.0, 0.4, 0.6, 6e6))),
        "some steal": (TRIED, rx, on("CPU 0"), cpus((1.0, 0.9, 0.1, 6e6))),
        "programs": (TRIED, rx, on("CPU 0"), cpus(programs)),
        "programs of FreeBSD": (TRIED, rx, on("CPU 0", os="FreeBSD 14.1"), freebsd),
        "backlog": (TRIED, waits),
        "backlog of one processor": (TRIED, waits, on("CPU 0"), cpus(packets, counters=late)),
        "backlog of an idle processor": (TRIED, waits, on("CPU 0"), cpus((0.3, 0.3, 0.0, 6e6), counters=late)),
        "backlog with programs": (TRIED, waits, on("CPU 0"), cpus(programs, counters=late)),
        "backlog of more than was lost": (TRIED, many),
    }
    reasons = {name: explanation(*inputs) for name, inputs in cases.items()}
    return {f"why: {name}": "\n".join(why.lines) if why else "" for name, why in reasons.items()}


def _ledgers() -> Mapping[str, str]:
    def counted(*drops: Drop, rx: int | None = 1000, tx: int | None = 900, missing: str = "", lost: int = 100) -> str:
        accounts = (DirectionAccount(0, 1, "eth1", "eth2", 1000, 1000 - lost, rx, tx, drops),)
        return where_lost(Ledger(1, 1, accounts, missing=missing))

    def drop(frames: int, name: str = "rx-miss", interface: str = "eth1", meaning: str = "its queue was full") -> Drop:
        return Drop(Stage.ARRIVING, name, interface, frames, meaning)

    return {
        "ledger: missing": counted(missing="no login"),
        "ledger: other interfaces": counted(rx=0, tx=0),
        "ledger: other receiving interface": counted(rx=3),
        "ledger: none": counted(rx=None),
        "ledger: none before": counted(rx=900),
        "ledger: none after": counted(tx=1000),
        "ledger: all": counted(drop(100)),
        "ledger: some": counted(drop(70), drop(20, interface="eth2")),
        "ledger: few": counted(drop(20, interface="", meaning="")),
        "ledger: more": counted(drop(150)),
        "ledger: many": counted(drop(50), drop(30, "b"), drop(10, "c"), drop(9, "rx-miss", "eth2")),
    }


def _others() -> Mapping[str, str]:
    directions, ports = (
        (Direction(0, 1), Direction(1, 0, swapped=True)),
        [GeneratorPort(n, f"02:00:00:00:00:0{n}", 10e9, True, "x") for n in (0, 1)],
    )
    one = CATALOGUE.profile(["64b", "1-flow"])

    def bypass(*changes: tuple[int, int]) -> str:
        frame = bytearray.fromhex(profile_streams(one, directions[0])[0].frame)
        frame[6:12] = bytes.fromhex("020000000000")
        for place, value in changes:
            frame[place] = value
        return raised(lambda: check_router_bypassed({1: [bytes(frame)]}, one, directions, ports))

    def cause(words: str, *seen: str) -> str:
        known = SeenFrames(["16.0.0.0/8", "48.0.0.0/8"])
        for earlier in seen:
            known.note(CATALOGUE.profile(earlier.split()), directions)
        return known.likely_cause(CATALOGUE.profile(words.split()), directions)

    def margin_of(router: PureRouter, deadline: float = 60) -> str:
        goal, own = read_goal(VARIABLES / "goals", "quick"), OwnPart(trials=1000)
        run = run_on(router, deadline, goal=goal, own=own, most=14e6 / LINE)
        result = margin(run, parse("64b unidirectional ≥ 5 Mpps", CATALOGUE))
        return f"{result.low:.4f} to {result.high and f'{result.high:.4f}'} {result.reason}".strip()

    def limits(router: Any) -> str:
        return raised(lambda: find_ceiling(TrialSeries(router), LINE))

    return {
        "bypass: nothing came": bypass((26, 1)),
        "bypass: routed": bypass((6, 9)),
        "cause: 72b qinq": cause("72b qinq"),
        "cause: 1518b after 64b": cause("1518b", "64b"),
        "margin": margin_of(PureRouter(6e6)),
        "margin of all": margin_of(PureRouter()),
        "margin, deadline": margin_of(PureRouter(6e6), deadline=8),
        "margin, spoilt": margin_of(PureRouter(6e6, spoils=EVERY_TRIAL)),
        "margin, breakdown": margin_of(PureRouter(6e6, breaks=3)),
        "ceiling: lossy": limits(PureRouter(capacity=1.0)),
        "ceiling: silent": limits(PureRouter(ceiling=1.0)),
        "ceiling: breakdown": limits(PureRouter(breaks=1)),
        "ceiling: spoilt": limits(PureRouter(spoils=EVERY_TRIAL)),
        "durations": ", ".join(map(duration_text, (0.5, 48, 180, 200, 7200, 7500))),
    }


def texts() -> Mapping[str, str]:
    cases: dict[str, str] = {}
    for part in (_throughput, _ceilings, _forwards, _latency, _cost, _recovery, _ledgers, _why, _others):
        cases |= part()
    said = "".join(f"{name}\n{indented(text)}\n" for name, text in cases.items())
    return {"messages.txt": said, "refused.txt": "".join(refused.rows())}
