"""Made-up routers and testbeds at the seam, with the rulings that are right: what a losing side would try.

``python -m validation.attacks [-v]`` exits 1 if a ruling is another one. The cases are in ``attacks.yaml``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import yaml

from lineproof.commands.main import finish
from lineproof.core.doubts import OwnPart, with_doubts
from lineproof.core.foreign import IDLE_SECONDS, ForeignFrames
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.quantity import Promise
from lineproof.core.trial import Fault, Load, Measure, Outcome, Tolerance, Trial, read_trial, unended
from lineproof.evidence.resume import UNREAD
from support import made_testbeds as made
from support.made_testbeds import CLEAN, decided, promised, router

OWN = {
    "CLEAN": CLEAN,
    "UNWATCHED": OwnPart(),
    "LOSSY": OwnPart(trials=30, lossy=8, most_lost=400),
    "NEAR_CEILING": OwnPart(trials=1000, lossless_pps=5.05e6, received_pps=5.05e6),
    "SLOW_OWN": OwnPart(trials=1000, delay=500.0),
}
"""The generator's own part, as far as it is known."""


def costly(cycles: float, vectors_per_call: float = 100.0, testbed: Measure | None = None) -> Measure:
    """Return a router whose runtime counters show so many cycles per packet."""
    packets = 1_000_000
    cost = PacketCost("vpp_wk_0", packets, packets, cycles * packets, 0.0, packets, round(packets / vectors_per_call))
    return made.with_readings(testbed or router(), cost_readings([cost]))


def above(capacity: float, usual: Measure, beyond: Measure) -> Measure:
    """Return a testbed that is another one as soon as more comes than *capacity*."""
    return lambda load, seconds: (beyond if load.pps > capacity else usual)(load, seconds)


def with_clock(testbed: Measure, clock: float, *errors: float) -> Measure:
    """Return *testbed*, whose sending takes longer by *errors* (s each, in turn) and is known to *clock* s."""
    turns = cycle(errors or (0.0,))

    def measure(load: Load, seconds: float) -> Outcome:
        outcome = testbed(load, seconds)
        readings = {**outcome.readings, "elapsed_uncertainty": clock}
        return replace(outcome, elapsed=seconds + next(turns), readings=readings)

    return measure


def budgeted(testbed: Measure, a_second: int) -> Measure:
    """Return *testbed* where so many foreign frames *a_second* came before, while nothing was sent."""
    foreign = ForeignFrames({1: round(a_second * IDLE_SECONDS)})
    return lambda load, seconds: foreign.with_budgets(testbed(load, seconds))


def share(of: float) -> Callable[[int], int]:
    """Return the number of frames that is this share of some, rounded down."""
    return lambda frames: int(frames * of + 1e-6)


HERE = (costly, above, with_clock, budgeted, share)
BUILDERS: Mapping[str, Callable[..., Any]] = {
    **{builder.__name__: builder for builder in HERE},
    **{name: getattr(made, name) for name in ("router", "then", "joined", "slow", "recovering", "powered", "down")},
    "probe_frames": made.probe_frames,
    "fault": lambda kind, *rest: made.fault(Fault[kind], *rest),
    "repeated": lambda times, *parts: made.then(*parts * times),
}
"""The makers of the file's testbeds, by name."""


def _are_arguments(data: Mapping[Any, Any]) -> bool:
    """Return whether *data* are arguments by name, and neither a histogram nor a builder."""
    return all(isinstance(key, str) and key not in BUILDERS for key in data)


@dataclass(frozen=True)
class Attack:
    """A case of the file; its testbed is made when it is tried. ``wanted``: the rulings that are right, as initials."""

    name: str
    wanted: str
    sentence: str
    testbed: Any
    names: Mapping[str, Any]
    goal: str = "standard"
    own: str = "CLEAN"
    warm_up: bool = False
    earlier: Sequence[Sequence[Any]] = ()
    """Testbeds of the trials that run after run counted before it was ended in one more."""

    def built(self, data: Any) -> Any:
        """Return what *data* describes: a name, a list, or a builder with its arguments, the last of them by name."""
        if isinstance(data, str):
            return self.built(self.names[data]) if data in self.names else data
        if isinstance(data, list):
            return tuple(self.built(part) for part in data)
        if not isinstance(data, dict):
            return data
        if (name := next(iter(data), "")) not in BUILDERS:
            return {key: self.built(part) for key, part in data.items()}
        given = data[name]
        named = given[-1] if given and isinstance(given[-1], dict) and _are_arguments(given[-1]) else {}
        return BUILDERS[name](*map(self.built, given[: len(given) - bool(named)]), **self.built(named))

    def ruling(self) -> str:
        """Return the ruling of the product."""
        promise = promised(self.sentence, self.goal, OWN[self.own])
        decision = decided(promise, self.built(self.testbed), self.warm_up, self._earlier(promise))
        return "none" if decision.ruling is None else decision.ruling.value

    def _earlier(self, promise: Promise) -> list[Trial]:
        """Return the trials of earlier runs as :mod:`lineproof.evidence.resume` gives them out."""
        trials: list[Trial] = []
        for number, run in enumerate(self.earlier):
            seconds = promise.quantity.trial_seconds(promise)
            last = read_trial(0, router()(Load(promise.load_pps), 1.5), Tolerance())  # the warm-up
            for testbed in run:
                if testbed == "ended":
                    last = unended(last)
                else:
                    outcome = self.built(testbed)(Load(promise.load_pps), seconds)
                    last = read_trial(len(trials) + 1, outcome, Tolerance())
                    last = with_doubts(last, promise.conditions, promise.quantity.doubts)
                trials.append(replace(last, run=f"run {number}", problems=(*last.problems, UNREAD)))
        return trials


def main() -> int:
    """Print each attack whose ruling is wrong (``-v``: all); 1 if there is one, else 0."""
    data, wrong = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")), 0
    for name, wanted, sentence, testbed, *more in data["cases"]:
        attack = Attack(name, wanted, sentence, testbed, data["names"], **(more[0] if more else {}))
        ruling = attack.ruling()
        is_right = ruling[0] in wanted
        wrong += not is_right
        if not is_right or "-v" in sys.argv:
            print(f"{'right' if is_right else 'WRONG'}: {name}: {ruling}, wanted {wanted}")
    print(f"{len(data['cases']) - wrong} of {len(data['cases'])} right")
    return int(wrong > 0)


if __name__ == "__main__":
    finish(main)
