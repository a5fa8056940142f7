"""The records of a run: environment, trials, requirements, readings, margins, measurements.

Every record has its schema (``lineproof.trial/3`` …), its run and whether it was simulated; one of another schema is
refused. The JSON Schema files are in ``schemas/`` beside this module. Times are Unix time in s; rates are frames/s of
one direction; sizes are bytes with FCS. A number that is not finite is written as ``null`` and read back as NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal, Self, get_args

import fastjsonschema
from pydantic import ValidationError

from ..core.bounds import UNKNOWN, Bounds, Limit
from ..core.causes import Role, Stage
from ..core.doubts import OwnPart
from ..core.frame_sizes import FrameSizes
from ..core.goal import Goal
from ..core.pause_names import Pauses
from ..core.quantity import Promise, Quantity, Requirement, Scope
from ..core.registry import quantity_named
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Trial
from ..core.units import RATE_UNITS, Unit, Value
from ..core.verdict import Try
from ..errors import ConfigError
from ..session.router_watch import Reading
from ..units import Rate
from ..visible import shortened
from .json_fields import (
    field_data,
    finite,
    outcome_data,
    problems_data,
    read_fields,
    read_figure,
    read_outcome,
    read_problems,
    read_step_down,
    step_down_data,
)
from .rates import is_set_aside

TRIAL = "lineproof.trial/3"
REQUIREMENT = "lineproof.requirement/3"
ENVIRONMENT = "lineproof.environment/2"
READING = "lineproof.reading/2"
FILE = "lineproof.file/1"
MANIFEST = "lineproof.manifest/1"
CHARACTERISATION = "lineproof.characterisation/1"
UNDER_LOAD = "lineproof.under_load/1"
MARGIN = "lineproof.margin/1"
MEASUREMENT = "lineproof.measurement/1"

INTERRUPTED = "interrupted"
"""Key of the sentence in which the run was ended, in the environment record's extra data."""

SIMULATED_BECAUSE = "simulated_because"
"""Key of the signs of a simulation, in words, in the environment record's extra data."""

UNJUDGED = "unjudged"
"""Key of the reason why no sentence was judged, the suite's set-up that failed, in the same data."""

KNOWN_AFTERWARDS = "known_afterwards"
"""Key of the problems that were known only after the trials, with the trials' numbers, in the same data."""

TRIES, BEGINS_AT_1 = "tries", "begins_at_1"
"""Keys there: verdicts of other runs on the same sentence, and why that of the run which was named is not evidence."""

OWN_PART = "own_part"
"""Key of the generator's own part, as it was held against the trials, in a requirement record's extra data."""

VerdictWord = Literal["PASS", "FAIL", "INCONCLUSIVE"]
VERDICTS: tuple[str, ...] = get_args(VerdictWord)


def schema(name: str) -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of a record, as ``schema(TRIAL)``."""
    short = name.removeprefix("lineproof.").split("/")[0]
    text = (files(__package__) / "schemas" / f"{short}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def why_unfit(data: Any, kind: str) -> str:
    """Where *data* does not fit the schema *kind*, in words; empty if it does."""
    if isinstance(data, dict) and data.get("schema") != kind:
        return f"'schema' is {shortened(repr(data.get('schema')))}; expected '{kind}'"
    try:
        _validator(kind)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        return shortened(error.message.replace("data.", "", 1))
    return ""


@cache
def _validator(kind: str) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = fastjsonschema.compile(schema(kind), use_default=False)
    return found


@dataclass(frozen=True, slots=True)
class RateFigures:
    """A rate in every unit: frames/s, L1 bit/s, L2 bit/s, per cent of one direction's line rate."""

    pps: float
    l1_bps: float
    l2_bps: float
    percent: float

    @classmethod
    def of(cls, rate: Rate) -> RateFigures:
        """The figures of a :class:`Rate`."""
        return cls(rate.pps, rate.l1_bps, rate.l2_bps, rate.percent)


class Record:
    """A record: a dataclass whose fields are its JSON data, behind the name of their ``schema``."""

    __slots__ = ()
    schema: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {"schema": self.schema, **field_data(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* holds. Raises ValueError saying what is missing or wrong."""
        return read_fields(cls, data)


@dataclass(frozen=True, slots=True)
class TrialRecord(Record):
    """One line of ``trials.jsonl``: a trial and all that is needed to judge it again without the testbed.

    ``requirement``: the number of the requirement within the run. ``mean_size`` in bytes with FCS; ``link_bps``: link
    speed of one direction; ``clock_speed``: seconds of the testbed's clock per second of real time. ``streams``: the
    file of what the generator was told to send, in the run's folder. ``evidence``: ``keeps``, ``misses`` or ``open``,
    what the trial shows of the limit; "" where nothing is judged. ``frame_sizes``: bytes compared with frames.
    ``step_down``: the counts while the load changed, where it did.
    """

    schema = TRIAL

    run: str
    simulated: bool
    requirement: int
    test: str
    sentence: str
    profile: str
    mean_size: float
    link_bps: float
    trial: Trial
    clock_speed: float = 1.0
    streams: str = ""
    evidence: str = ""
    frame_sizes: tuple[FrameSizes, ...] = ()
    step_down: StepDown | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        trial, found = self.trial, self.step_down
        return {
            "schema": self.schema,
            **field_data(self, without=("trial", "step_down")),
            "number": trial.number,
            "sent_for": trial.seconds.low,
            "sent_for_at_most": trial.seconds.high,
            **outcome_data(trial.outcome),
            "problems": problems_data(trial.problems),
            **({"carried_from": trial.run} if trial.run else {}),
            **({} if found is None else {"step_down": step_down_data(found)}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* holds. Raises ValueError saying what is missing or wrong."""
        outcome, phases = read_outcome(data), data.get("step_down")
        seconds = Bounds(data["sent_for"], data["sent_for_at_most"])
        problems, run = read_problems(data["problems"]), str(data.get("carried_from", ""))
        trial = Trial(data["number"], outcome, problems, seconds, run)
        step_down = None if phases is None else read_step_down(phases, outcome)
        return read_fields(cls, {**data, "trial": trial, "step_down": step_down})


@dataclass(frozen=True, slots=True)
class RequirementRecord(Record):
    """One line of ``requirements.jsonl``: an SLA sentence and its verdict.

    ``goal_terms``: the goal's figures, as in its file. ``threshold``: in words, in every unit; ``demand``: what the
    sentence demands, in numbers. ``measured``: the rate
    found, or None. ``trials``: the numbers of its trials in ``trials.jsonl``. ``extra``: JSON data of special
    quantities (cycles per packet, latency, findings from telemetry). ``tolerance``: of its trials, as in force.
    ``deviations``: from RFC 2544 section 23 and RFC 9971, in words. ``breakdown``: what went wrong with the testbed
    before or between the trials, and ended them; None: nothing.
    """

    schema = REQUIREMENT

    run: str
    simulated: bool
    number: int
    test: str
    sentence: str
    verdict: VerdictWord
    message: str
    goal: str
    goal_terms: Mapping[str, Any]
    profile: str
    mean_size: float
    link_bps: float
    threshold: str
    measured: RateFigures | None
    trials: tuple[int, ...]
    started: float
    ended: float
    demand: Demand
    extra: Mapping[str, Any] = field(default_factory=dict)
    tolerance: Mapping[str, Any] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    breakdown: str | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, not '{self.verdict}'")

    @property
    def promise(self) -> Promise:
        """The sentence in numbers, as it was judged. Raises ConfigError where the record's terms are no goal."""
        try:
            goal = Goal.model_validate({**self.goal_terms, "goal": self.goal, "about": ""})
        except ValidationError as error:
            raise ConfigError(f"the record of '{self.sentence}' has no terms of a goal: {error}") from None
        most = self.extra.get(OWN_PART, {}).get("lossless_pps")
        own = OwnPart() if most is None else OwnPart(lossless_pps=float(most))
        return self.demand.promise(goal, own, self.mean_size, self.link_bps)

    @property
    def tries(self) -> tuple[Try, ...]:
        """Verdicts of other runs on the same sentence, goal and router, in order, and its own last."""
        odds = self.extra.get("evidence", {}).get("odds", 1.0)
        odds = 1 / max(odds, 1e-300) if self.verdict == "FAIL" else odds
        own = Try(self.run, self.verdict, self.ended, odds, tuple(self.extra.get("runs", ())))
        return *(read_fields(Try, item) for item in self.extra.get(TRIES, ())), own

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* holds. Raises ValueError saying what is missing or wrong."""
        record = read_fields(cls, data)
        _ = record.tries  # it may be a stranger's
        return record


@dataclass(frozen=True, slots=True)
class EnvironmentRecord(Record):
    """``environment.json``: testbed, host and versions.

    ``versions``: generator, client, server, router, as each reports it: ``{"generator.server": "v3.08"}``.
    ``packages``: Python distributions. ``cpu_steal_percent``: CPU time that the hypervisor withheld from this machine
    during the run, in per cent of all CPU time; None before the end and if the system does not report it. ``ended``
    None: the run did not finish. ``code``: which Lineproof it was (:func:`~.environment.code_identity`). ``ports``: the
    generator's, as it describes them; ``interfaces``: of the router, by the generator's port.
    """

    schema = ENVIRONMENT

    run: str
    simulated: bool
    testbed: str
    platform: str
    software: str
    clock_speed: float
    started: float
    ended: float | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    cpu_steal_percent: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    ports: tuple[Mapping[str, Any], ...] = ()
    interfaces: Mapping[str, str] = field(default_factory=dict)


def json_bytes(text: str) -> bytes:
    """JSON *text* as UTF-8. Half a character, as of a file's name that is not UTF-8, becomes its JSON escape."""
    return text.encode(errors="backslashreplace")


def dumps(data: Mapping[str, Any]) -> str:
    """One record as one line of JSON. Raises ValueError if a number is not finite or something is not JSON data."""
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a {data.get('schema', 'record')} record cannot be written as JSON: {error}") from None


FILE_ENDING = "-margin.json"
"""Of ``characterisation/003-margin.json``; the number is that of the search's own trials."""


@dataclass(frozen=True, slots=True)
class MarginRecord(Record):
    """The search after ``requirement``: loads carried as ratios to the threshold, 1.08 is 108 %.

    ``low``: the highest load that was carried within the goal; ``high``: the lowest that was not, None: all that was
    asked for was carried. ``finished``: they are as close as asked; if not, ``reason`` says what ended the search.
    ``seconds`` of traffic.
    """

    schema = MARGIN

    run: str
    simulated: bool
    requirement: int
    test: str
    sentence: str
    low: float
    high: float | None
    finished: bool
    reason: str
    seconds: float

    def __str__(self) -> str:
        """``carries 108.2 % to 109.1 % of it``; never more than was found, so the ends are rounded outwards."""
        low, unfinished = _percent(self.low, math.floor), ""
        if not self.finished:
            unfinished = "; the search is unfinished" + (f": {self.reason}" if self.reason else "")
        if self.high is None:
            all_sent = ": all that the ports can send" if self.finished else ""
            return f"carries at least {low} of it{all_sent}{unfinished}"
        high = _percent(self.high, math.ceil)
        return f"carries {low}{'' if high == low else f' to {high}'} of it{unfinished}"


def _percent(ratio: float, rounded: Callable[[float], int]) -> str:
    return f"{rounded(round(1000 * ratio, 6)) / 10:g} %"


@dataclass(frozen=True, slots=True)
class MeasurementRecord(Record):
    """*row* of *variant* in *block*; *turn*: ``first``, ``last`` of the baseline, else "".

    ``value`` in ``unit``; None: a gap, and ``reason`` says why. ``requirement``: the number of its trials in
    ``trials.jsonl``. ``line``: one direction's line rate in ``unit``, None where that is no rate. ``curve``: of a ramp,
    offered and forwarded at each step, in ``unit``. ``carried_from``: the run that measured it, "" for this one.
    ``excused``: a gap that is no failure, because the variant is not here, or cannot do what the row asks for.
    """

    schema = MEASUREMENT

    run: str
    simulated: bool
    study: str
    block: int
    turn: str
    variant: str
    row: str
    platform: str
    software: str
    sentence: str
    value: float | None
    unit: str
    reason: str
    requirement: int
    started: float
    ended: float
    line: float | None = None
    curve: tuple[tuple[float, float], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    carried_from: str = ""
    excused: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        figures = {name: finite(value) for name, value in self.figures.items()}
        return {"schema": self.schema, **field_data(self), "figures": figures}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* holds. Raises ValueError saying what is missing or wrong."""
        figures = {name: read_figure(value) for name, value in data["figures"].items()}
        return read_fields(cls, {**data, "figures": figures})


@dataclass(frozen=True, slots=True)
class ReadingRecord(Record):
    """A reading while requirement number ``requirement`` was judged, after ``after_trial`` of its trials.

    The router's raw output is in ``telemetry/``, not here.
    """

    schema = READING

    run: str
    simulated: bool
    requirement: int
    after_trial: int
    reading: Reading

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        found = self.reading
        return {
            "schema": self.schema,
            **field_data(self, without=("reading",)),
            "error": found.error,
            "restarted": found.restarted,
            "telemetry": None if found.telemetry is None else _telemetry_data(found.telemetry),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* holds. Raises ValueError saying what is missing or wrong."""
        found = data["telemetry"]
        if found is not None:
            causes = [{**item, "stage": Stage[item["stage"]], "role": Role[item["role"]]} for item in found["causes"]]
            found = {**found, "since_clear": read_figure(found["since_clear"]), "causes": causes}
        return read_fields(cls, {**data, "reading": {**data, "telemetry": found}})


def _telemetry_data(telemetry: Telemetry) -> dict[str, Any]:
    causes = [{**field_data(item), "stage": item.stage.name, "role": item.role.name} for item in telemetry.causes]
    found = {**field_data(telemetry, without=("raw", "causes", "neighbours", "pauses")), "causes": causes}
    if telemetry.neighbours:
        found["neighbours"] = [field_data(item) for item in telemetry.neighbours]
    if any(item != Pauses() for item in telemetry.pauses.values()):
        found["pauses"] = {name: field_data(item) for name, item in telemetry.pauses.items()}
    return found


@dataclass(frozen=True, slots=True)
class Demand:
    """``quantity`` of ``traffic`` must be ≥ (``at_least``) or ≤ ``number`` ``unit``, without SI prefix: 5e6 pps.

    ``quantity``: its name, as ``throughput``. ``pps``: a rate's threshold in frames/s, of one direction, or of all
    together where ``scope`` is ``in total``. ``load_pps``: the load of each sending port that the sentence names with
    ``at``; ``judged_pps``: the one that it was judged at. ``limit``: what a trial's figure is compared with, in the
    quantity's own unit. ``statistic``: of latency and packet delay variation, as ``p99``. ``window_s``: the seconds of
    ``for``; ``soak``: so many trials, 0 without it. ``pairs`` of ports that send.
    """

    quantity: str
    traffic: str
    at_least: bool
    number: float
    unit: str
    limit: float
    judged_pps: float
    scope: str = ""
    directions: int = 1
    pairs: int = 1
    pps: float | None = None
    load_pps: float | None = None
    statistic: str | None = None
    window_s: float | None = None
    soak: int = 0

    @classmethod
    def of(cls, requirement: Requirement, promise: Promise) -> Demand:
        """Return the demand of *requirement*, whose *promise* was judged."""
        threshold, named = requirement.threshold, requirement.named_load(promise.link_bps)
        return cls(
            quantity=requirement.quantity.name,
            traffic=requirement.traffic,
            at_least=requirement.at_least,
            number=threshold.number,
            unit=threshold.unit.value,
            limit=promise.limit.value,
            judged_pps=promise.load_pps,
            scope=requirement.scope.value,
            directions=requirement.directions,
            pairs=requirement.pairs,
            pps=requirement.threshold_pps(promise.link_bps) if threshold.unit in RATE_UNITS else None,
            load_pps=None if named is None else named.pps,
            statistic=None if requirement.statistic is None else requirement.statistic.name,
            window_s=requirement.duration_sum,
            soak=promise.soak,
        )

    def promise(self, goal: Goal, own: OwnPart, mean_size: float, link_bps: float) -> Promise:
        """Return the promise of then. Raises ConfigError where its quantity is not installed."""
        found = self.measures
        return Promise(
            quantity=found,
            # a throughput is at least its threshold, and loses at most the limit
            limit=Limit(self.limit, self.at_least and not found.threshold_is_load),
            goal=goal,
            load_pps=self.judged_pps,
            unit=Unit(self.unit),
            in_total=self.in_total,
            statistic=None if self.statistic is None else found.statistic(self.statistic),
            names_load=self.load_pps is not None,
            soak=self.soak,
            own=own,
            mean_size=mean_size,
            link_bps=link_bps,
            pairs=self.pairs,
        )

    @property
    def measures(self) -> Quantity:
        """The quantity. Raises ConfigError if it is not installed."""
        return quantity_named(self.quantity)

    @property
    def relation(self) -> str:
        """``≥`` or ``≤``."""
        return "≥" if self.at_least else "≤"

    @property
    def in_total(self) -> bool:
        """Return whether the threshold is of all directions together."""
        return self.scope == Scope.IN_TOTAL.value

    def text(self, number: float | None = None) -> str:
        """*number* (None: the threshold) with its unit, as ``5 Mpps``."""
        return str(Value(self.number if number is None else float(f"{number:.4g}"), Unit(self.unit)))

    def __str__(self) -> str:
        statistic = f"{self.statistic} " if self.statistic else ""
        return f"{statistic}{self.relation} {self.text()}{' ' + self.scope if self.scope else ''}"


def measured(promise: Promise, trial: Trial) -> float | None:
    """Return what *trial* measured, as people read it: the end that is worse for the router; None: nothing is known.

    Infinite where it has no end.
    """
    if not trial.outcome.directions or is_set_aside(trial):
        return None
    bounds = promise.quantity.shown(promise, [trial])
    if bounds == UNKNOWN:
        return None
    return bounds.low if promise.quantity.at_least else bounds.high
