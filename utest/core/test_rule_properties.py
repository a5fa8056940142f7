"""The rule for any sequence of trials: what each ruling needs, and that more loss never makes it better."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import Goal
from lineproof.core.trial import Fault, Load, Outcome, Trial
from lineproof.core.verdict import Ruling, loss_rule
from lineproof.methods.sequential import TrialConditions, most_trials, run_until_decided
from support.known_router import RANK
from support.outcomes import outcome


def any_goal() -> st.SearchStrategy[Goal]:
    return st.builds(
        lambda length, number, loss, exceed, invalid, clear, scout: Goal(
            goal="any",
            final_trial_duration=length,
            duration_sum=length * number,
            loss_ratio=loss,
            exceed_ratio=exceed,
            clear_loss_ratio=clear,
            scout=0 if clear is None else scout * length,
            invalid_trials=invalid,
            about="",
        ),
        st.sampled_from([0.7, 1.0, 8.2]),
        st.integers(1, 20),
        st.sampled_from([0, 0.001, 0.1]),
        st.floats(0, 0.9),
        st.integers(0, 5),
        st.sampled_from([None, 0.1, 0.4]),
        st.sampled_from([0, 0.5]),
    )


@dataclass(frozen=True)
class Event:
    """What happens to one trial, whatever its duration."""

    loss: float = 0.0
    sent: float = 1.0
    faults: tuple[Fault, ...] = ()


def events(sent: tuple[float, ...] = (0, 0.5, 0.99, 1.0, 1.2)) -> st.SearchStrategy[Event]:
    return st.builds(
        lambda loss, sent, faults: Event(loss, sent, tuple(faults)),
        st.sampled_from([0, 0.0005, 0.01, 0.2, 0.5, 1.0]),
        # mostly the full load, because else almost every sequence is inconclusive
        st.one_of(st.just(1.0), st.sampled_from(sent)),
        st.one_of(st.just([]), st.lists(st.sampled_from(Fault), max_size=1)),
    )


def run_trials(goal: Goal, seen: list[Event]) -> tuple[Ruling, tuple[Trial, ...]]:
    """The ruling and trials of the real method over *seen*; the last event repeats."""
    left = list(seen)

    def measure(load: Load, duration: float) -> Outcome:
        event = left.pop(0) if len(left) > 1 else left[0]
        return outcome(load.pps, duration, event.loss, event.sent, event.faults)

    evidence_of = loss_rule(goal, False)
    found = run_until_decided(measure, Load(1000), goal, evidence_of, TrialConditions(), goal.scout, needed=Load(1000))
    return found.ruling, found.trials


def sequences(of: st.SearchStrategy[Event] | None = None) -> st.SearchStrategy[list[Event]]:
    return st.lists(events() if of is None else of, min_size=1, max_size=30)


@given(any_goal(), sequences())
def test_pass_needs_the_duration_sum_of_good_trials(goal: Goal, seen: list[Event]):
    ruling, trials = run_trials(goal, seen)
    if ruling is Ruling.PASS:
        good = [
            item.outcome.duration
            for item in trials
            if item.valid
            and item.outcome.duration >= goal.final_trial_duration
            and item.loss_ratio(False) <= goal.loss_ratio
            and item.offered + 1 >= 0.998 * 1000 * item.outcome.duration
        ]
        assert sum(good) >= goal.duration_sum * (1 - goal.exceed_ratio) - 1e-6
        clear = goal.clear_loss_ratio
        assert clear is None or not any(item.blames_router and item.clear_loss(False) > clear for item in trials)


@given(any_goal(), sequences())
def test_fail_needs_loss_by_the_router(goal: Goal, seen: list[Event]):
    ruling, trials = run_trials(goal, seen)
    if ruling is Ruling.FAIL:
        assert any(item.blames_router and item.loss_ratio(False) > goal.loss_ratio for item in trials)


@given(any_goal(), st.lists(st.floats(0, 0.98), min_size=1, max_size=30))
def test_unsent_frames_alone_are_inconclusive(goal: Goal, shares: list[float]):
    assert run_trials(goal, [Event(sent=share) for share in shares])[0] is Ruling.INCONCLUSIVE


# without duplicates: a frame lost beside a duplicated frame looks like neither
@given(any_goal(), sequences(events(sent=(0, 0.5, 0.99, 1.0))), st.data())
def test_more_loss_never_improves_a_verdict(goal: Goal, seen: list[Event], data: st.DataObject):
    more = data.draw(st.lists(st.sampled_from([0.0, 0.002, 0.3, 1.0]), min_size=len(seen), max_size=len(seen)))
    worse = [replace(event, loss=max(event.loss, loss)) for event, loss in zip(seen, more, strict=True)]
    assert RANK[run_trials(goal, worse)[0]] <= RANK[run_trials(goal, seen)[0]]


@given(any_goal(), sequences())
def test_every_sequence_of_trials_ends_in_a_ruling(goal: Goal, seen: list[Event]):
    assert len(run_trials(goal, seen)[1]) <= most_trials(goal)


@given(any_goal(), st.floats(0, 0.95))
def test_clear_loss_ratio_stays_above_the_sentences_loss_ratio(goal: Goal, ratio: float):
    allowed = goal.with_loss_ratio(ratio)
    assert allowed.loss_ratio == ratio
    assert (allowed.clear_loss_ratio is None) == (goal.clear_loss_ratio is None)
    if allowed.clear_loss_ratio is not None:
        assert ratio <= allowed.clear_loss_ratio <= 1
