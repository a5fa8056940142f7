"""Cycles per packet: read while frames flow, over all packets of the trials that count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import read_goal
from lineproof.core.packet_cost import cost_figures, packet_costs, together
from lineproof.core.sentence import parse
from lineproof.core.telemetry import NodeRuntime, Telemetry
from lineproof.core.trial import DURING_READING, DirectionCount, During, Load, Outcome
from lineproof.core.verdict import Ruling, Verdict
from lineproof.errors import TestbedError
from lineproof.methods.cost import RuntimeCounters, cost
from lineproof.methods.sequential import TrialConditions
from lineproof.routers.vpp_output import parse_runtime
from support.catalogue import CATALOGUE
from support.fake_router import sample
from support.known_router import RANK
from support.paths import VARIABLES

SENTENCE = "64b 1-flow unidirectional costs ≤ 300 cycles/packet"
NAMED = f"{SENTENCE} at 1 Mpps"


@pytest.fixture(autouse=True, scope="module")
def still() -> Iterator[None]:
    """Real time stands still: a rehearsal of the router's commands takes no time, however busy this machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lineproof.methods.cost.time", SimpleNamespace(monotonic=lambda: 0.0))
        yield


def node(thread: str, name: str, state: str, calls: int, vectors: int, clocks: float) -> NodeRuntime:
    return NodeRuntime(thread, name, state, calls, vectors, 0, clocks, vectors / calls)


def worker(packets: int, cycles: float, thread: str = "vpp_wk_0") -> tuple[NodeRuntime, ...]:
    """The nodes of a worker that spent *cycles* on each of its *packets*, two fifths of them in the input node."""
    if not packets:
        return (node(thread, "dpdk-input", "polling", 1_000_000, 0, 200.0),)
    return (
        node(thread, "dpdk-input", "polling", 1_000_000, packets, 0.4 * cycles),
        node(thread, "ip4-lookup", "active", max(1, packets // 64), packets, 0.6 * cycles),
    )


@dataclass
class Bench:
    """A polling worker and a generator, on a clock that only trials and commands move, which take *command* s each."""

    clock_hz: float = 299e6
    command: float = 0.0
    now: float = 100.0
    cleared: float = 0.0
    sending: tuple[float, float, float] = (0.0, 0.0, 0.0)
    sent: list[float] = field(default_factory=list)

    def clear(self) -> None:
        self.now += self.command
        self.cleared = self.now

    def read(self) -> Telemetry:
        self.now += self.command
        begin, end, pps = self.sending
        packets, since_clear = (
            round(pps * max(0.0, min(self.now, end) - max(self.cleared, begin))),
            self.now - self.cleared,
        )
        cycles = self.clock_hz * since_clear / packets if packets else 0.0
        return Telemetry(self.now, {}, runtime=worker(packets, cycles), since_clear=since_clear)

    def measure(self, load: Load, duration: float, during: During) -> Outcome:
        begin, self.sending = self.now, (self.now, self.now + duration, load.pps)
        self.sent.append(duration)
        self.now += 0.1
        during(self.wait)
        took, self.now = self.now - begin, max(self.now, begin + duration) + 2.0
        frames = round(load.pps * duration)
        counts = (DirectionCount(0, 1, frames, frames, frames // 2),)
        return Outcome(load, duration, duration, 0.0, counts, readings={DURING_READING: took})

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def judged(self, sentence: str = NAMED, goal: str = "quick") -> Verdict:
        runtime = RuntimeCounters(self.clear, self.read)
        requirement, terms = parse(sentence, CATALOGUE), read_goal(VARIABLES / "goals", goal)
        return cost(requirement, Load(1e6), terms, self.measure, runtime, 10e9, TrialConditions())


# -- the reading lies in the traffic


@pytest.mark.parametrize("command", [0.0, 0.02, 0.15])
def test_polling_before_and_after_the_frames_is_in_no_reading(command: float) -> None:
    verdict = Bench(command=command).judged()
    assert all(trial.valid for trial in verdict.trials)
    assert verdict.ruling is Ruling.PASS
    assert all(trial.outcome.readings["cycles_per_packet"] == pytest.approx(299, rel=1e-6) for trial in verdict.trials)
    assert all(trial.outcome.readings["runtime_seconds"] == pytest.approx(1 + command) for trial in verdict.trials)
    assert Bench(clock_hz=301e6, command=command).judged().ruling is Ruling.FAIL


def test_a_late_answer_does_not_lengthen_every_later_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(command=3.0)
    measure = bench.measure

    def measure_fast_later(load: Load, duration: float, during: During) -> Outcome:
        bench.command = 3.0 if not bench.sent else 0.05
        return measure(load, duration, during)

    monkeypatch.setattr(bench, "measure", measure_fast_later)
    assert bench.judged(goal="standard").ruling is Ruling.PASS
    assert bench.sent[1] > 7 and bench.sent[-1] < 2.5


def test_a_trial_counts_for_the_goals_duration_however_long_it_sends() -> None:
    bench = Bench(command=0.15)
    verdict = bench.judged()
    assert verdict.ruling is Ruling.PASS
    assert len(verdict.trials) == 4 and min(bench.sent) >= 1.5


@pytest.mark.parametrize("command", ["clear", "read"])
def test_an_error_of_the_router_passes_the_generator_as_it_is(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, passed = Bench(), list[bool]()
    measure = bench.measure

    def fails() -> None:
        if bench.sent:
            raise TestbedError("the SSH link broke")

    def measure_noting(load: Load, duration: float, during: During) -> Outcome:
        try:
            return measure(load, duration, during)
        except Exception as error:
            # a session connects a generator again whose call raised a TestbedError
            passed.append(isinstance(error, TestbedError))
            raise

    monkeypatch.setattr(bench, "measure", measure_noting)
    setattr(bench, command, fails)
    with pytest.raises(TestbedError, match="the SSH link broke"):
        bench.judged()
    assert passed == [False]


# -- the verdict


Rows = list[tuple[int, float]]


def judged(rows: Rows, goal: str) -> tuple[Verdict, Rows]:
    """The verdict where trial n sees the n-th (packets, cycles per packet); the last one repeats; the rows used."""
    bench, used = Bench(), list[tuple[int, float]]()

    def read() -> Telemetry:
        if not bench.sent:
            return Bench.read(bench)
        used.append(rows[min(len(used), len(rows) - 1)])
        return Telemetry(0.0, {}, runtime=worker(*used[-1]), since_clear=bench.now - bench.cleared)

    bench.read = read  # type: ignore[method-assign]
    return bench.judged(goal=goal), used


ROWS = st.lists(st.tuples(st.integers(1, 10**7), st.sampled_from([1.0, 250.0, 299.9, 300.0, 301.0, 1e6])), min_size=1)
GOALS = st.sampled_from(["quick", "standard", "rfc2544"])


@given(ROWS, GOALS)
def test_a_pass_never_contradicts_its_sentence(rows: Rows, goal: str) -> None:
    verdict, used = judged(rows, goal)
    mean = sum(packets * cycles for packets, cycles in used) / sum(packets for packets, _ in used)
    assert verdict.figures["cycles_per_packet"] == pytest.approx(mean)
    if verdict.ruling is Ruling.PASS:
        assert mean <= 300 * (1 + 1e-9)


@given(ROWS, GOALS, st.data())
def test_dearer_packets_never_make_a_verdict_better(rows: Rows, goal: str, data: st.DataObject) -> None:
    dearer = [(packets, cycles * data.draw(st.sampled_from([1.0, 1.001, 3.0]))) for packets, cycles in rows]
    assert RANK[judged(dearer, goal)[0].ruling] <= RANK[judged(rows, goal)[0].ruling]


# -- what a reading says


def test_time_of_show_runtime_is_its_decimal_where_the_rate_contradicts_it() -> None:
    block = parse_runtime(sample("vpp/w1_polling_50k/show_runtime.txt"))[-1]
    assert replace(block, rate_in=1.0).seconds == block.time


@pytest.mark.parametrize("path", ["w1_polling_50k", "w1_interrupt_50k", "w0_interrupt_50k", "w0_polling_max"])
def test_a_recorded_reading_gives_the_sum_of_the_clocks_that_a_person_adds_up(path: str) -> None:
    blocks = parse_runtime(sample(f"vpp/{path}/show_runtime.txt"))
    costs = packet_costs(Telemetry(0.0, {}, runtime=tuple(node for block in blocks for node in block.nodes)))
    # the main thread of a VPP with workers sees no packets
    assert [item.thread for item in costs] == ["vpp_wk_0" if "w1" in path else "vpp_main"]
    visited = [item for item in blocks[-1].nodes if item.vectors]
    assert together(costs).total == pytest.approx(sum(item.clocks for item in visited), rel=1e-3)
    graph = next(item for item in visited if item.name == "ip4-lookup")
    assert costs[0].vectors_per_call == pytest.approx(graph.vectors / graph.calls)


def test_threads_count_by_their_packets_and_those_without_any_do_not() -> None:
    nodes = worker(3000, 400.0) + worker(1000, 200.0, "vpp_wk_1") + worker(0, 0.0, "vpp_wk_2")
    figures = cost_figures([packet_costs(Telemetry(0.0, {}, runtime=nodes))])
    assert figures["cycles_per_packet"] == pytest.approx(350)
    assert figures["cycles_per_packet_vpp_wk_0"] == pytest.approx(400)
    assert figures["cycles_per_packet_vpp_wk_1"] == pytest.approx(200)
    assert "cycles_per_packet_vpp_wk_2" not in figures


def test_a_stray_frame_brings_no_idle_threads_polling_in() -> None:
    idle = (
        node("vpp_wk_1", "dpdk-input", "polling", 1_000_000, 1, 299e6),
        node("vpp_wk_1", "ethernet-input", "active", 1, 1, 900.0),
    )
    figures = cost_figures([packet_costs(Telemetry(0.0, {}, runtime=worker(1000, 300.0) + idle))])
    assert figures["cycles_per_packet"] == pytest.approx(300)
    assert "cycles_per_packet_vpp_wk_1" not in figures


def test_an_input_node_that_found_nothing_was_polled_all_the_same() -> None:
    nodes = (*worker(1000, 300.0), node("vpp_wk_0", "af-packet-input", "polling", 5000, 0, 100.0))
    (cost,) = packet_costs(Telemetry(0.0, {}, runtime=nodes))
    assert cost.total == pytest.approx(800)
    assert cost.without_input == pytest.approx(
        packet_costs(Telemetry(0.0, {}, runtime=worker(1000, 300.0)))[0].without_input
    )


def test_a_packet_that_is_handed_over_counts_once_with_the_cycles_of_both_threads() -> None:
    handed = (node("vpp_wk_1", "ip4-lookup", "active", 100, 1000, 300.0),)
    costs = packet_costs(Telemetry(0.0, {}, runtime=worker(1000, 100.0) + handed))
    whole = together(costs)
    assert whole is not None and (whole.packets, whole.total) == (1000, pytest.approx(400))
    assert [item.total for item in costs] == [pytest.approx(100), pytest.approx(300)]


# -- what a sentence may bound
