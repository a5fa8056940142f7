"""Deviations of a measurement from the method that it is named after: part of the result, and printed with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .rule import Ruling
from .trial import EXAMINED, EXAMINED_SLOWLY
from .verdict import RFC2544_GOAL, Verdict


@dataclass(frozen=True, slots=True)
class Deviation:
    """``source``: the method and its section; ``asks``: what it asks for; ``done``: what was done instead."""

    source: str
    asks: str
    done: str

    def __str__(self) -> str:
        return f"{self.source} asks for {self.asks}; here: {self.done}"


TRIALS_OF_SECTION_23 = (
    Deviation(
        "RFC 2544 23",
        "routing updates and learning frames before each trial",
        "routes and neighbours are static, and no frames are sent before a trial to learn them",
    ),
    Deviation(
        "RFC 2544 23",
        "pauses of 2 s before a trial, 2 s after it for residual frames, and 5 s until the next one",
        "at most 0.2 s before a trial; 2 s at most after it, ended once no frame is missing or none has come for 1.6 s",
    ),
)
"""The deviations of every method that follows RFC 2544."""

LOSS_OF_OFFERED_FRAMES = Deviation(
    "RFC 9971 (trial loss ratio)",
    "the ratio of the frames that the router was intended to get, all directions together",
    "the ratio of the offered frames, of the worst direction unless a sentence says 'in total'",
)


def deviations_of_verdict(verdict: Verdict) -> tuple[str, ...]:
    """Return what *verdict* declares: RFC 9971's loss ratio where loss is judged, RFC 2544's trials with its goal."""
    found: list[Deviation] = []
    if verdict.requirement.quantity.judges_loss:
        found.append(LOSS_OF_OFFERED_FRAMES)
    if verdict.promise.goal.goal == RFC2544_GOAL or verdict.is_rfc2544_throughput:
        found += TRIALS_OF_SECTION_23
    is_pass = verdict.ruling is Ruling.PASS
    if is_pass and verdict.requirement.quantity.doubts and (done := list(_not_looked_at(verdict))):
        asked = "only those received frames that are the frames that were sent"
        found.append(Deviation("RFC 2544 10", asked, "; ".join(done)))
    return tuple(map(str, found))


def _not_looked_at(verdict: Verdict) -> Iterator[str]:
    """Yield what would have shown frames that are not the ones sent, and was not done."""
    if not verdict.looked_at(EXAMINED):
        slowly = verdict.looked_at(EXAMINED_SLOWLY)
        done = f"{slowly} frames of slow traffic were compared with what was sent, none at the load" if slowly else ""
        yield done or "all are counted; what is in them was not looked at"
    if not any(trial.outcome.latency for trial in verdict.trials):
        yield "no probe frames were among them, whose numbers show loss, copies and order"
