"""Counters that lie: a sound router never fails by them, and a lossy one never passes.

Trial *k* is sent from the moment 2 *k* to 2 *k* + 1; counts are in trials, of what was sent so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest

from golden.scripted import INTERFACES, ScriptedBench, T
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Cause, InterfaceCounters, Stage, Telemetry
from lineproof.core.trial import Load, Outcome
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.service import CounterReading, TrialCounts
from lineproof.generators.trex.outcomes import make_outcome
from lineproof.session.judging import judge
from support.catalogue import CATALOGUE

FRAMES, PROBES = 1_000_000, 1000
ALL, BEGINS = range(60), 0.3
DIRECTIONS = (Direction(0, 1), Direction(1, 0, swapped=True))
SENTENCES = ("64b bidirectional ≥ 1 Mpps each way", "64b bidirectional forwards ≥ 800 kpps each way")

Trials = Sequence[int]


def true(moment: float) -> float:
    return moment // 2 + min(1.0, moment % 2)


def since(moment: float, trials: Trials) -> list[float]:
    """Return how much was sent since the lie began in each of *trials*, as far as it did."""
    parts = (true(moment) - trial - BEGINS for trial in trials)
    return [part for part in parts if part > 0]


def within(moment: float, trials: Trials) -> float:
    """Return how much was sent in *trials* after the lie began in them."""
    return sum(min(1 - BEGINS, part) for part in since(moment, trials))


LIES: Mapping[str, Callable[[float, Trials], float]] = {
    "reset": lambda moment, trials: min([true(moment), *since(moment, trials)]),
    "goes back": lambda moment, trials: true(moment) - 0.5 * len(since(moment, trials)),
    "frozen": lambda moment, trials: true(moment) - within(moment, trials),
    "wraps": lambda moment, trials: (true(moment) - trials[0] - BEGINS) % (2**32 / FRAMES),
    "doubled": lambda moment, trials: true(moment) + within(moment, trials),
    "late": lambda moment, trials: true(moment - 0.4 * (moment // 2 in trials)),
}
PORTS, ROUTER, GROUPS = ("sent", "came"), ("in", "out", "drops"), ("probes sent", "probes came")
LIARS = [(name,) for name in (*PORTS, *ROUTER, *GROUPS)] + [PORTS, ROUTER, GROUPS, ("came", *ROUTER), (*PORTS, *ROUTER)]
UNSEEN = ("came", *ROUTER), "frozen"
"""A router that forwards probe frames alone looks like this, and fails."""


class LyingBench(ScriptedBench):
    """A bench that loses *loss* of the direction from port 0, whose *liars* tell a *lie* of it in these *trials*."""

    def __init__(self, sentence: str, loss: float, liars: Sequence[str], lie: str, trials: Trials) -> None:
        super().__init__(parse(sentence, CATALOGUE), lambda *trial: T(), limits=None)
        self.loss, self.liars, self.lie, self.lied, self.moment = loss, liars, LIES[lie], trials, 0.0

    def shown(self, name: str, way: int, moment: float) -> int:
        """Return the count *name* of the direction from port *way*."""
        loss = 0.0 if way else self.loss
        share = {"came": 1 - loss, "out": 1 - loss, "probes came": 1 - loss, "drops": loss}.get(name, 1.0)
        counted = self.lie(moment, self.lied) if name in self.liars and not way else true(moment)
        return round(share * counted * (PROBES if name in GROUPS else FRAMES))

    def reading(self, moment: float) -> CounterReading:
        counts: dict[int, dict[str, int]] = {}
        for port in (0, 1):
            sent, came = self.shown("sent", port, moment), self.shown("came", 1 - port, moment)
            counts[port] = {"opackets": sent, "ipackets": came, "obytes": 64 * sent, "ibytes": 64 * came}
            counts[port] |= {"oerrors": 0, "ierrors": 0}
        return CounterReading(moment, moment, counts, 0.0, 1.0)

    def measure(self, load: Load, seconds: float, during: object = None) -> Outcome:
        begin, end = self.moment, self.moment + 1
        probes = [[self.shown(name, way, end) - self.shown(name, way, begin) for name in GROUPS] for way in (0, 1)]
        self.moment += 2
        counts = TrialCounts(
            started=0.0,
            first=begin,
            before=self.reading(begin),
            at_end=self.reading(end),
            after=self.reading(end),
            finished=True,
            drained=0.0,
            clocks=(1.0, 1.0, 1.0),
            links={},
            cpu_util=10.0,
            snapshots=[self.reading(begin + share) for share in (0, 0.1, 0.35, 0.6, 0.8, 0.99)],
            # the client's process tells of no group whose count fell
            latency=[
                {"tx_port": way, "rx_port": 1 - way, "sent": sent, "received": came}
                for way, (sent, came) in enumerate(probes)
                if min(sent, came) >= 0
            ],
        )
        return make_outcome(counts, load, seconds, DIRECTIONS)

    def _counters(self) -> Telemetry:
        interfaces, causes = {}, []
        for port in (0, 1):
            received, drops = (self.shown(name, port, self.moment - 0.5) for name in ("in", "drops"))
            sent = self.shown("out", 1 - port, self.moment - 0.5)
            interfaces[INTERFACES[port]] = InterfaceCounters(received, sent)
            causes.append(Cause(Stage.PASSING, "drop", INTERFACES[port], drops))
        return Telemetry(None, interfaces, causes=tuple(causes))


def ruling(sentence: str, loss: float, liars: Sequence[str] = (), lie: str = "reset", trials: Trials = ALL) -> Ruling:
    bench = LyingBench(sentence, loss, liars, lie, trials)
    return judge(bench, bench.requirement).ruling


@pytest.mark.parametrize("sentence", SENTENCES)
def test_true_counters_decide(sentence: str) -> None:
    assert ruling(sentence, 0.0) is Ruling.PASS
    assert ruling(sentence, 0.3) is Ruling.FAIL


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("liars", LIARS, ids="+".join)
def test_no_counter_that_lies_makes_a_wrong_verdict(liars: tuple[str, ...], lie: str) -> None:
    for sentence, trials in product(SENTENCES, ([1], ALL)):
        of_sound = ruling(sentence, 0.0, liars, lie, trials)
        assert of_sound is not Ruling.FAIL or (liars, lie) == UNSEEN, (sentence, trials)
        # where half is lost, a doubled count of what came back looks like all of it
        for loss in (0.3, 0.5):
            assert ruling(sentence, loss, liars, lie, trials) is not Ruling.PASS, (sentence, trials, loss)


@pytest.mark.parametrize("simulated", [True, False])
def test_only_a_generator_that_is_no_model_is_to_be_calibrated(simulated: bool) -> None:
    bench = ScriptedBench(parse("64b 1-flow unidirectional ≥ 500 kpps", CATALOGUE), lambda *_: T((0.5,)), limits=None)
    bench.simulated, bench.settle = simulated, lambda: None  # type: ignore[method-assign]
    verdict = judge(bench, bench.requirement)
    assert verdict.ruling is Ruling.FAIL and ("lineproof calibrate" in verdict.message) is not simulated
