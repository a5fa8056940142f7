"""Procedures: each is a keyword that measures, and its result as a record, a document and a chart.

A procedure chooses the loads, and the result is how much the router carries. Nothing fails because a router is slow.
:class:`ProcedureRun` joins it with the testbed: traffic put on the ports, numbered trials, one deadline of them all.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from pydantic_core import to_jsonable_python

from ..core.doubts import Conditions
from ..core.quantity import TrafficWords
from ..core.registry import PROCEDURES, extensions
from ..core.sentence import parse_traffic
from ..core.trial import Fault, Load, Measure, Trial, read_trial
from ..core.verdict import Deviation
from ..documents.document import Note, Table
from ..errors import ConfigError, TestbedError
from ..generators.base import Method, Probe
from ..session.router_watch import RouterRestarted
from ..session.session import Session
from .trials import TAKEN_AT_ITS_WORD, ProcedureResult, TrialSeries, worst_rate

SENDABLE = 0.9
"""The share of what an overloaded generator sent that is asked of it next."""

NONE = "–"
"""The cell of what was not measured."""

EACH = "frames/s each port"


class ProcedureRun:
    """The procedure *name* at work on *session* with the traffic *words*; loads end at the testbed's maximum.

    *begin* gets each traffic before its first trial, *on_trial* each trial before the next begins. *deadline*: the most
    s of traffic of all trials together, ``sent`` those so far. ``searches``: how many it makes.
    """

    def __init__(
        self,
        session: Session,
        begin: Callable[[TrafficWords], None] = lambda traffic: None,
        on_trial: Callable[[TrafficWords, Trial], None] = lambda traffic, trial: None,
        deadline: float = math.inf,
        name: str = "",
        words: str = "",
    ) -> None:
        self.session, self.begin, self.on_trial = session, begin, on_trial
        self.deadline, self.name, self.words = deadline, name, words
        self.searches, self.sent = 1, 0.0

    def call(self, name: str) -> Callable[..., None]:
        """Return the suite's keyword *name* as a function, which raises TestbedError. Raises SentenceError if none."""
        raise ConfigError(f"'{name}' is a keyword, and no suite runs")

    @property
    def title(self) -> str:
        """Return what is measured, as a title: ``Ramp: 64b unidirectional``."""
        return f"{self.name[:1].upper()}{self.name[1:]}: {self.words}"

    @property
    def measure(self) -> Measure:
        """Return the one seam below: ``measure(load, seconds)``."""
        return self.session.traffic.measure

    def traffic(self, traffic_words: str) -> TrafficWords:
        """Return the traffic that *traffic_words* name. Raises SentenceError."""
        traffic, plan = parse_traffic(traffic_words, self.session.plan.catalogue), self.session.plan
        plan.check_pairs(traffic)
        plan.check_generator(traffic)
        return traffic

    def link_bps(self, traffic: TrafficWords) -> float:
        """Return line rate in bit/s of each port."""
        return self.session.plan.link_bps(traffic.pairs)

    def line(self, traffic: TrafficWords) -> float:
        """Return line rate in frames/s of each port."""
        return traffic.profile.line_rate_pps(self.link_bps(traffic))

    def put(
        self, traffic: TrafficWords, warm_up: bool = True, as_sent: bool = False, probe: Probe | None = None
    ) -> Load:
        """Put *traffic* on the ports and warm the router up with it; return the highest load to ask for.

        *as_sent*: where the generator fell behind in the warm-up, a tenth less than it sent. Without a *probe* of its
        own, trials have probe frames that show loss beneath copies, as those of a verdict.
        """
        session, seconds = self.session, self.session.plan.warm_up
        self.begin(traffic)
        session.examine(True)
        highest = session.plan.maximum_load(traffic)
        session.traffic.put(traffic, probe or session.traffic.few_probes(traffic, highest.pps))
        if warm_up and seconds:
            trial = read_trial(0, self.measure(highest, seconds), session.tolerance, session.clock_speed)
            self.on_trial(traffic, trial)
            # a generator that is asked for less than it can has time to send it
            if as_sent and any(problem.fault.generator_too_slow for problem in trial.problems):
                return Load(SENDABLE * min(worst_rate(trial, "offered") or highest.pps, highest.pps))
        return highest

    def announce(self, trials: int, traffic: float) -> None:
        """Tell, before the first of so many *trials* with so many s of *traffic*, how long they take."""

    def series(self, traffic: TrafficWords) -> TrialSeries:
        """Return a series of trials of *traffic*, which end at the deadline of all."""
        session, goal = self.session, self.session.plan.goal
        # a generator that was watched below the loads that are tried may lose more at them, but no less
        own = session.own_part(traffic, 0.0, goal.final_trial_duration)
        own = own if own.lossy else TAKEN_AT_ITS_WORD
        of_trials = math.inf, goal.resolution, goal.unseen, goal.risk, goal.final_trial_duration, own
        return TrialSeries(
            self.measure,
            session.tolerance,
            session.clock_speed,
            on_trial=partial(self.keep, traffic),
            deadline=self.deadline - self.sent,
            longest_trial=goal.longest_trial,
            conditions=Conditions(*of_trials),
            sentence=traffic.sentence,
        )

    def keep(self, traffic: TrafficWords, trial: Trial) -> None:
        """Count *trial* as traffic of the deadline, and pass it on. If frames changed, the next one's are looked at."""
        self.session.examine(any(problem.fault is Fault.CHANGED for problem in trial.problems))
        self.sent += trial.outcome.duration
        self.on_trial(traffic, trial)

    def router_problem(self) -> str:
        """Return the router's restart or failed reading since the last one, in words; "": none."""
        try:
            self.session.router.watch.read_again()
        except RouterRestarted as error:
            return str(error)
        except TestbedError as error:
            return f"the router could not be read: {error}"
        return ""


def rows_of(run: ProcedureRun, results: Sequence[ProcedureResult]) -> Sequence[Note | Table]:
    """Return the document of *results*, without their deviations: which ended early, and the rows of all."""
    return [*endings(results), Table.of([row for result in results for row in result.rows])]


@dataclasses.dataclass(frozen=True)
class Procedure:
    """One way to measure how much a router carries: ``MY_PROCEDURE = Procedure(…)`` in a folder, and its registration.

    ``keyword``: its name in suites, with the arguments and documentation of ``measure``, which returns one result or a
    tuple of them, and a ``deadline``. ``name``: of its records. ``needs``: what it asks of a generator beside its
    traffic. ``may_be_nothing``: times that may be 0. Of its results ``parts`` are the document without deviations,
    ``picture`` is a chart (SVG), and ``loadtest`` what trex-loadtest-viz reads.
    """

    keyword: str
    name: str
    measure: Callable[..., Any]
    tags: tuple[str, ...] = ("characterise",)
    needs: Method | None = None
    may_be_nothing: tuple[str, ...] = ()
    parts: Callable[[ProcedureRun, Sequence[Any]], Sequence[Note | Table]] = rows_of
    picture: Callable[[ProcedureRun, Sequence[Any]], str] = lambda run, results: ""
    loadtest: Callable[[ProcedureRun, Sequence[Any]], Mapping[str, Any] | None] = lambda run, results: None


@cache
def procedures() -> tuple[Procedure, ...]:
    """Return every procedure. Raises ConfigError naming a distribution whose own cannot be loaded."""
    return tuple(extensions(PROCEDURES, Procedure))


def endings(results: Sequence[ProcedureResult]) -> list[Note]:
    """Return why some of *results* ended early, each reason once, after the values of these results."""
    values = defaultdict[str, list[str]](list)
    for result in results:
        values[result.ended] += [result.value] if result.value else []
    return [Note(": ".join(filter(None, (", ".join(values[why]), why)))) for why in values if why]


def figure(value: float | Load | None, form: str = ",.0f", factor: float = 1.0) -> str:
    """Return *value*, or the frames/s of a load, times *factor* as a cell."""
    number = value.pps if isinstance(value, Load) else value
    return NONE if number is None else f"{number * factor:{form}}"


def json_data(result: Any) -> Any:
    """Return *result*, of a procedure, as JSON data.

    Loads are frames/s into each port, trials their numbers in ``trials.jsonl``, figures that are not finite ``null``.
    Raises ValueError for what has no form in JSON.
    """
    return json.loads(json.dumps(result, default=_plain), parse_constant=lambda name: None)


def _plain(value: Any) -> Any:
    match value:
        case Load():
            return value.pps
        case Trial():
            return value.number
        case Deviation():
            return str(value)
    if not dataclasses.is_dataclass(value):
        return to_jsonable_python(value)
    data = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, ProcedureResult):
        del data["rows"]
        data |= data.pop("figures")
    return data
