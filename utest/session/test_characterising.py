"""Characterisation of a session: its traffic, its trials, and a testbed that fails."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal
from lineproof.core.latency import LatencyCount
from lineproof.core.sentence import parse
from lineproof.core.trial import Load, Outcome, Tolerance
from lineproof.errors import SentenceError
from lineproof.methods.margin import LINE_RATE, OWN_LIMIT
from lineproof.robot.characterisation import json_data
from lineproof.session.characterising import Characteriser, flow_words
from lineproof.session.router_watch import RouterRestarted
from support.catalogue import CATALOGUE
from support.pure_router import LINE, PureRouter

SECOND = timedelta(seconds=1)
GOAL = Goal(
    goal="test", bad_share=0.6, good_share=0.12, final_trial_duration=1, duration_sum=2, exceed_ratio=0, about="a test"
)


@dataclass
class Testbed:
    """The part of a session that a characteriser asks, around a pure router."""

    router: Any = field(default_factory=PureRouter)
    restarted: bool = False
    prepared: list = field(default_factory=list)
    link_bps: float = 10e9
    most: float = 0.97

    def __post_init__(self):
        self.plan = SimpleNamespace(
            goal=GOAL,
            catalogue=CATALOGUE,
            warm_up=GOAL.warm_up,
            check_pairs=lambda traffic: None,
            check_generator=lambda traffic: None,
            link_bps=lambda pairs: self.link_bps,
            maximum_load=self.maximum_load,
        )
        self.own_part = lambda *terms: OwnPart()
        self.tolerance, self.clock_speed = Tolerance(), 1.0
        self.traffic, self.model = self, self.router
        self.router = SimpleNamespace(watch=SimpleNamespace(read_again=self._read))

    def _read(self):
        if self.restarted:
            raise RouterRestarted("the router restarted")

    def put(self, traffic, probe=None):
        self.prepared.append((traffic.profile.name, traffic.bidirectional, probe))
        self.model.directions = traffic.directions

    def maximum_load(self, traffic):
        return Load(traffic.profile.line_rate_pps(self.link_bps) * self.most)

    def measure(self, load, duration):
        outcome = self.model(load, duration)
        if not self.prepared[-1][2]:
            return outcome
        counts = tuple(
            LatencyCount(direction.tx_port, direction.rx_port, 500, 500, 10.0 + direction.tx_port, 30.0)
            for direction in outcome.directions
        )
        return Outcome(load, duration, duration, outcome.started, outcome.directions, latency=counts)


def characterised(testbed):
    begun: list[Any] = []
    seen: list[Any] = []
    return Characteriser(testbed, begun.append, lambda traffic, trial: seen.append((traffic, trial))), begun, seen


def test_a_search_warms_up_and_stays_below_the_testbeds_maximum():
    testbed = Testbed()
    worker, begun, seen = characterised(testbed)
    result = worker.search("64b 1-flow bidirectional")
    assert result["NDR"].lower.pps == pytest.approx(5e6, rel=0.006)
    assert testbed.prepared == [("64b 1-flow", True, None)]
    assert [traffic.sentence for traffic in begun] == ["64b 1-flow bidirectional"]
    assert [trial.number for _, trial in seen] == list(range(len(result.trials) + 1))
    assert max(pps for pps, _ in testbed.model.asked) == pytest.approx(0.97 * LINE, rel=1e-6)


def of(sentence):
    return parse(sentence, CATALOGUE)


@pytest.mark.parametrize(
    ("sentence", "low"),
    [
        ("64b 1-flow unidirectional ≥ 4.63 Mpps", 1.08),
        ("64b bidirectional ≥ 9.26 Mpps in total", 1.08),
        ("64b bidirectional ≥ 4.63 Mpps each way", 1.08),
    ],
)
def test_a_margin_begins_at_the_sentence_without_a_warm_up(sentence, low):
    testbed = Testbed()
    worker, begun, seen = characterised(testbed)
    found = worker.margin(of(sentence))
    assert not found.reason and found.low == pytest.approx(low, abs=0.006) and found.low <= low + 1e-6 <= found.high
    assert [trial.number for _, trial in seen] == list(range(1, len(seen) + 1))
    assert min(pps for pps, _ in testbed.model.asked) > 4.63e6
    assert len(begun) == 1


def test_a_margin_ends_where_the_generator_loses_frames_itself():
    ceiling = OwnPart(lossless_pps=6e6, received_pps=6e6)
    testbed = Testbed(PureRouter(LINE))
    testbed.own_part = lambda *terms: ceiling
    worker, begun, _ = characterised(testbed)
    found = worker.margin(of("64b unidirectional ≥ 5 Mpps"))
    assert (found.low, found.high, found.limit) == (pytest.approx(6e6 * 0.98 / 5e6), None, OWN_LIMIT)
    begun.clear()
    assert worker.margin(of("64b unidirectional ≥ 5.9 Mpps")).trials == () and begun == []


def test_a_margin_asks_for_no_more_than_the_clocks_allow():
    testbed = Testbed(PureRouter(LINE * 2))
    testbed.most = 1.0
    worker, _, _ = characterised(testbed)
    assert worker.margin(of("64b unidirectional ≥ 100% line rate")).trials == ()
    found = worker.margin(of("64b unidirectional ≥ 50% line rate"))
    assert (found.low, found.high, found.limit) == (pytest.approx(2 * 0.9998), None, LINE_RATE)


def test_nothing_of_a_margin_is_certain_if_the_router_restarted():
    testbed = Testbed(restarted=True)
    worker, _, _ = characterised(testbed)
    found = worker.margin(of("64b unidirectional ≥ 4 Mpps"))
    assert (found.low, found.high, found.reason) == (1.0, None, "the router restarted")


def test_a_ramp_ends_at_the_testbeds_maximum_and_has_its_own_warm_up():
    testbed = Testbed()
    worker, _, seen = characterised(testbed)
    result = worker.ramp("64b unidirectional", steps=10, warm_up=SECOND, hold=SECOND)
    assert result.plan.target == pytest.approx(97)
    assert [trial.number for _, trial in seen] == list(range(1, 13))
    assert testbed.model.asked[0] == (1000, 1)


def test_rfc_2544_takes_sizes_in_order_and_latency_follows_at_each_throughput():
    testbed = Testbed(PureRouter(3e6))
    worker, begun, seen = characterised(testbed)
    found = worker.throughput("bidirectional", 64, 512, duration=SECOND, resolution=0.01)
    assert [item.size for item in found] == [64, 512]
    assert [item.throughput.pps for item in found] == pytest.approx([3e6, 0.97 * 10e9 / 8 / 532], rel=0.05)
    testbed.prepared.clear()
    measured = worker.latency("bidirectional", found, repeats=2, duration=SECOND)
    assert [[direction.mean for direction in item.directions] for item in measured] == [[10, 11], [10, 11]]
    assert [name for name, _, _ in testbed.prepared] == ["64b", "512b"]
    assert all(probe.pps == 1000 for _, _, probe in testbed.prepared)
    assert [item.sentence for item in begun] == ["64b bidirectional", "512b bidirectional"] * 2
    assert [trial.number for traffic, trial in seen[-2:]] == [1, 2]


def test_all_words_are_parsed_before_any_frame_is_sent():
    testbed = Testbed()
    worker, _, _ = characterised(testbed)
    with pytest.raises(SentenceError):
        worker.throughput("bidirectional", 64, 20_000)
    with pytest.raises(SentenceError, match="each once"):
        worker.throughput("bidirectional", 64, 64)
    with pytest.raises(SentenceError):
        worker.scale("flows", [1, 8], lambda number: f"64b 1-flow unidirectional {flow_words(number)}")
    with pytest.raises(SentenceError):
        worker.search("64b unidirectional ≥ 5 Mpps")
    assert not testbed.prepared and not testbed.model.asked


def test_scaling_keeps_each_points_trials_under_its_own_words():
    testbed = Testbed()
    worker, begun, seen = characterised(testbed)
    result = worker.scale("flows", [1, 1000], lambda number: f"64b unidirectional {flow_words(number)}", deadline=500)
    assert all(bounds.finished for point in result.points for bounds in point.result.bounds)
    assert [item.sentence for item in begun] == ["64b unidirectional 1-flow", "64b unidirectional 1000-flows"]
    for item, point in zip(begun, result.points, strict=True):
        mine = [trial for traffic, trial in seen if traffic is item]
        assert [trial.number for trial in mine] == list(range(len(point.result.trials) + 1))
    values: list[int] = []
    worker.scale("queues", [1, 2], lambda value: "64b unidirectional", set_up=values.append)
    assert values == [1, 2]


def test_results_become_json_data():
    worker, _, _ = characterised(Testbed())
    for result in (
        worker.search("64b unidirectional"),
        worker.search("64b unidirectional", deadline=0),
        worker.ramp("64b unidirectional", steps=4),
        worker.throughput("unidirectional", 64, duration=SECOND),
        worker.loss_curve("64b unidirectional", duration=SECOND),
        worker.scale("frame size", [64, 1518], lambda size: f"{size}b unidirectional"),
    ):
        data = json.loads(json.dumps(json_data(result), allow_nan=False))
        assert data
    with pytest.raises(ValueError, match="Unable to serialize"):
        json_data(object())
