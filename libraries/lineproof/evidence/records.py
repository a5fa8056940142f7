"""The records of a run: environment, trials, requirements, readings, margins, measurements, its files.

A record is a dataclass, made of the types of the core. They are its format: pydantic writes, reads and checks it, and
makes its JSON Schema. Times are Unix time in s; rates are frames/s of one direction; sizes are bytes with FCS. What
has no end or is not known is ``null`` (:mod:`~lineproof.core.json_types`).
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from ..config import value_problem
from ..core.bounds import UNKNOWN, Bounds
from ..core.doubts import OwnPart
from ..core.goal import Goal
from ..core.json_types import Count, Figure, Moment, NotNegative, Positive
from ..core.ledger import Ledger
from ..core.quantity import Promise, Quantity, Reason, Requirement
from ..core.registry import is_installed, quantities
from ..core.router_facts import RouterFacts, RouterSetUp
from ..core.rule import Ruling
from ..core.sentence import parse
from ..core.step_down import StepDown
from ..core.traffic.profiles import AddressRange, Flows, FrameClass, Profile
from ..core.trial import Load, Problem, Tolerance, Trial
from ..core.under_load import Why
from ..core.units import Unit
from ..core.verdict import Try
from ..documents.document import Note, Table
from ..errors import SentenceError
from ..generators.base import GeneratorPort
from ..json_text import parse_json
from ..session.judging import Reading
from ..units import apart
from ..visible import shortened

Id = Annotated[str, Field(min_length=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Base64 = Annotated[str, Field(pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")]

_SEALS = re.compile(rb', "previous": "[0-9a-f]{64}", "sha256": "[0-9a-f]{64}"\}\s*\Z')
"""The end of a line that is chained (:mod:`.run_files`)."""


class Record:
    """A record: a dataclass whose fields are its JSON data, the name of its ``schema`` among them."""

    schema: str
    __pydantic_config__ = ConfigDict(
        extra="forbid", strict=True, ser_json_inf_nan="constants", json_schema_serialization_defaults_required=True
    )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data. Raises ValueError if something in it is not JSON data."""
        return {"schema": self.schema, **_adapter(type(self)).dump_python(self, mode="json")}

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Return the record that *text* holds, sealed or not. Raises ValueError saying what is missing or wrong."""
        data = parse_json(text)
        schema_there = data.get("schema") if isinstance(data, dict) else None
        if schema_there != cls.schema:
            raise ValueError(f"'schema' is {shortened(repr(schema_there))}; expected '{cls.schema}'")
        try:
            record: Self = _adapter(cls).validate_json(_SEALS.sub(b"}", text))
        except ValidationError as error:
            raise ValueError(_first_misfit(error)) from None
        return record

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of the record's line, with the links of its :mod:`.run_files`."""
        schema_of_line = _adapter(cls).json_schema(mode="serialization")
        links = {key: {"type": "string", "pattern": "^[0-9a-f]{64}$"} for key in ("previous", "sha256")}
        schema_of_line["properties"] |= links
        schema_of_line["required"] = [*schema_of_line["required"], *links]
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{cls.schema}", **schema_of_line}


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _first_misfit(error: ValidationError) -> str:
    """Return the first thing that is wrong: ``trial.outcome.directions[0].lost: expected a whole number (got 'x')``."""
    first = error.errors(include_url=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    if first["type"].startswith("missing"):
        return shortened(f"{where} is missing")
    value = first["input"]
    got = "" if value is None or isinstance(value, list | dict) else f" (got {shortened(repr(value), 60)})"
    return shortened(f"{where}: {value_problem(first, hidden=not got)}{got}")


@dataclass(frozen=True)
class RunRecord(Record):
    """A record of the run with the id ``run``. ``simulated``: nothing in it is a measurement of a router."""

    run: Id
    simulated: bool


@dataclass(frozen=True)
class TrialRecord(RunRecord):
    """One line of ``trials.jsonl``: a trial and all that is needed to judge it again without the testbed.

    ``requirement``: the number of the requirement within the run. ``streams``: the file of what the generator was told
    to send, in the run's folder. ``evidence``: ``keeps``, ``misses`` or ``open``, what the trial shows of the limit; ""
    where nothing is judged. ``step_down``: the counts while the load changed, where it did.
    """

    requirement: Count
    test: str
    sentence: str
    trial: Trial
    streams: str = ""
    evidence: Annotated[str, Field(pattern="^(keeps|misses|open)?$")] = ""
    step_down: StepDown | None = None
    schema: Literal["lineproof.trial/4"] = "lineproof.trial/4"


@dataclass(frozen=True, slots=True)
class KnownAfterwards:
    """Problems of the ``trials`` with these numbers that were known only after the last of them."""

    trials: tuple[Count, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class RequirementRecord(RunRecord):
    """One line of ``requirements.jsonl``: an SLA sentence and its verdict.

    ``quantity``: the name of that of the sentence, which is parsed again when it is read; ``load_pps``: of each sending
    port, at which it was judged; ``cores``: those of the router where it says ``per core``. ``trials``: the numbers of
    its trials in ``trials.jsonl``; ``tolerance``: of them, as in force. ``own_part``: the generator's, as it was held
    against them. ``evidence``: odds of the ruling, reached and needed. ``other_tries``: verdicts of other runs on the
    same sentence, goal and router, in order; ``begins_at_1``: why that of the run which was named is not evidence;
    ``runs`` whose trials are, with their number. ``why``: the explanation of its loss; None: nobody asked.
    ``deviations``: from RFC 2544 section 23 and RFC 9971, in words. ``breakdown``: what went wrong with the testbed
    before or between the trials, and ended them; None: nothing. ``expected``: the verdict with which its test passes;
    ``documentation``: of the test.
    """

    number: Count
    test: str
    sentence: str
    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"]
    message: str
    goal: Goal
    quantity: Id
    profile: str
    mean_size: Positive
    link_bps: Positive
    load_pps: Positive
    trials: tuple[Count, ...]
    started: Moment
    ended: Moment
    cores: Annotated[int, Field(ge=1)] = 1
    tolerance: Tolerance = field(default_factory=Tolerance)
    own_part: OwnPart = field(default_factory=OwnPart)
    evidence: tuple[float, float] | None = None
    known_afterwards: tuple[KnownAfterwards, ...] = ()
    other_tries: tuple[Try, ...] = ()
    begins_at_1: str = ""
    runs: Mapping[str, int] = field(default_factory=dict)
    ledgers: tuple[Ledger, ...] = ()
    why: Why | None = None
    deviations: tuple[str, ...] = ()
    breakdown: str | None = None
    expected: Literal["PASS", "FAIL", "INCONCLUSIVE"] = "PASS"
    documentation: str = ""
    schema: Literal["lineproof.requirement/5"] = "lineproof.requirement/5"

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Return the record that *text* holds. Raises ValueError, also for a sentence that says nothing."""
        record = super().from_json(text)
        try:
            _ = record.promise
        except (SentenceError, ValueError) as error:
            raise ValueError(f"sentence: {error}") from None
        return record

    @property
    def requirement(self) -> Requirement:
        """The sentence, parsed again. Raises SentenceError."""
        return recorded_requirement(self.sentence, self.quantity, self.profile, self.mean_size, self.cores)

    @property
    def promise(self) -> Promise:
        """The sentence in numbers, as it was judged."""
        return self.requirement.promise(self.goal, Load(self.load_pps), self.link_bps, self.own_part)

    def known_of(self, trial: Trial) -> Trial:
        """Return *trial* with the problems that were known only after the last of its sentence."""
        return replace(trial, problems=(*trial.problems, *self._known_by_trial[trial.number]))

    @cached_property
    def _known_by_trial(self) -> Mapping[int, Sequence[Problem]]:
        """The problems of each trial in ``known_afterwards``: a day has 86 400 trials."""
        known = defaultdict[int, list[Problem]](list)
        for part in self.known_afterwards:
            for number in dict.fromkeys(part.trials):
                known[number] += part.problems
        return known

    @property
    def counts_as(self) -> str:
        """The verdict as runs count it: a PASS where it is the one that the test expects, else no proof of anything."""
        if self.verdict == self.expected:
            return "PASS"
        return self.verdict if self.expected == "PASS" else "INCONCLUSIVE"

    @property
    def outcome(self) -> str:
        """The message of the test: the sentence's own, or that another verdict was expected."""
        is_wanted = self.expected in ("PASS", self.verdict)
        return self.message if is_wanted else unexpected(self.sentence, self.message, self.expected)

    @property
    def tries(self) -> tuple[Try, ...]:
        """Verdicts of other runs on the same sentence, goal and router, in order, and its own last."""
        odds = self.evidence[0] if self.evidence else 1.0
        odds = 1 / max(odds, 1e-300) if self.verdict == "FAIL" else odds
        return *self.other_tries, Try(self.run, self.verdict, self.ended, odds, tuple(self.runs))


@dataclass(frozen=True)
class EnvironmentRecord(RunRecord):
    """``environment.json``: testbed, host and versions.

    ``versions``: generator, client, server, router, as each reports it: ``{"generator.server": "v3.08"}``.
    ``clock_speed``: seconds of the testbed's clock per second of real time. ``cpu_steal_percent``: CPU time that the
    hypervisor withheld from this machine during the run, in per cent of all CPU time; None before the end and if the
    system does not report it. ``ended`` None: the run did not finish. ``code``: which Lineproof it was
    (:func:`~.recorder.code_identity`). ``ports``: the generator's, as it describes them; ``interfaces``: of the router,
    by the generator's port. ``study``: its name; "": the run is of a suite.
    ``simulated_because``: the signs of a simulation, in words. ``interrupted``: the sentence in which the run was
    ended. ``unjudged``: the suite's set-up that failed, or tests that failed without a verdict. ``suite``: its name,
    ``sla``: where its SLA is (words, addresses). ``fingerprints``: the SHA-256 of each file that defines the test.
    ``host_key``: the router's fingerprint ("": it ends with the run). ``generator_card``: which card the ports are on,
    and why. ``extra``: JSON data for people and other programs.
    """

    testbed: str
    platform: str
    software: str
    clock_speed: Positive
    started: Moment
    ended: Moment | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    cpu_steal_percent: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    ports: tuple[GeneratorPort, ...] = ()
    interfaces: Mapping[str, str] = field(default_factory=dict)
    router_facts: RouterFacts | None = None
    study: str = ""
    simulated_because: tuple[str, ...] = ()
    interrupted: str = ""
    unjudged: str = ""
    suite: str = ""
    sla: str = ""
    description: str = ""
    goal: Goal | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    router_configuration: RouterSetUp = field(default_factory=RouterSetUp)
    host_key: str | None = None
    generator_card: Mapping[str, Any] = field(default_factory=dict)
    schema: Literal["lineproof.environment/4"] = "lineproof.environment/4"


@dataclass(frozen=True)
class MarginRecord(RunRecord):
    """The search after ``requirement``: loads carried as ratios to the threshold, 1.08 is 108 %.

    ``low``: the highest load that was carried within the goal; ``high``: the lowest that was not, None: all that was
    asked for was carried, or nothing above was proven. ``reason``: what ended the search early, "": nothing did.
    ``limit``: what ``low`` is, where no more could be asked for (``the generator's limit``, ``line rate``).
    ``seconds`` of traffic.
    ``number``: that of the search's own trials.
    """

    requirement: Count
    test: str
    sentence: str
    low: NotNegative
    high: float | None
    reason: str
    seconds: NotNegative
    number: Count = 0
    limit: str = ""
    schema: Literal["lineproof.margin/1"] = "lineproof.margin/1"

    @property
    def finished(self) -> bool:
        """The bounds are as close as asked, or no more could be asked for."""
        return not self.reason

    def __str__(self) -> str:
        """Return ``carries 108.2 % to 109.1 % of it``; the ends are rounded outwards, as no more was proven."""
        low = f"{apart(100 * self.low, 100, 4, math.floor):.9g} %"
        unfinished = f"; the search is unfinished: {self.reason}" if self.reason else ""
        if self.high is None:
            return f"carries ≥ {low} of it{f' ({self.limit})' if self.limit else ''}{unfinished}"
        high = f"{apart(100 * self.high, 100, 4, math.ceil):.9g} %"
        return f"carries {low}{'' if high == low else f' to {high}'} of it{unfinished}"


@dataclass(frozen=True)
class MeasurementRecord(RunRecord):
    """*row* of *variant* in *block*; *turn*: ``first``, ``last`` of the baseline, else "".

    ``value`` in ``unit``; None: a gap, and ``reason`` says why. ``requirement``: the number of its trials in
    ``trials.jsonl``. ``curve``: of a ramp, offered and forwarded at each step, in ``unit``. ``figures``: others, by
    name; of a rate one direction's line rate, too. ``excused``: a gap that is no failure, because the variant is not
    here, or cannot do what the row asks for.
    """

    study: Id
    block: Annotated[int, Field(ge=1)]
    turn: Literal["first", "", "last"]
    variant: Id
    row: Id
    platform: str
    software: str
    sentence: str
    value: float | None
    unit: str
    reason: str
    requirement: Count
    started: Moment
    ended: Moment
    curve: tuple[tuple[float, float], ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    excused: bool = False
    schema: Literal["lineproof.measurement/1"] = "lineproof.measurement/1"


@dataclass(frozen=True)
class ReadingRecord(RunRecord):
    """A reading while requirement number ``requirement`` was judged.

    The router's raw output is in ``telemetry.jsonl``, unless it is a PASS.
    """

    requirement: Count
    reading: Reading
    schema: Literal["lineproof.reading/4"] = "lineproof.reading/4"


@dataclass(frozen=True)
class CharacterisationRecord(RunRecord):
    """The result of a search, a ramp, a test of RFC 2544 or a comparison over flows or sizes.

    Its trials stand in ``trials.jsonl`` under the numbers ``number`` to ``last``, one for each traffic. ``method``: as
    ``RFC 2544 throughput``. ``sentence``: the traffic in words; ``shown``: the result as people read it, with the
    declared deviations, and its ``picture`` as SVG. ``result``: the figures; loads in frames/s into each port, trials
    by their numbers.
    """

    number: Annotated[int, Field(ge=1)]
    last: Annotated[int, Field(ge=1)]
    test: str
    method: str
    sentence: str
    shown: tuple[Note | Table, ...]
    link_bps: Positive
    started: Moment
    ended: Moment
    result: Any
    picture: str = ""
    loadtest: Mapping[str, Any] | None = None
    schema: Literal["lineproof.characterisation/2"] = "lineproof.characterisation/2"


@dataclass(frozen=True)
class InputRecord(Record):
    """A file that defines the run, or the streams that were sent, by its path; ``base64``: it is no UTF-8 text."""

    run: Id
    name: str
    text: str | None = None
    base64: Base64 | None = None
    schema: Literal["lineproof.input/1"] = "lineproof.input/1"

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return b64decode(self.base64 or "") if self.text is None else self.text.encode()


@dataclass(frozen=True)
class TelemetryRecord(Record):
    """The output of the router, or of a process of the testbed, at a ``moment``: ``texts`` by command or process.

    ``requirement``: the number of a sentence that did not pass; 0: of the whole run.
    """

    run: Id
    requirement: Count
    moment: str
    texts: Mapping[str, str]
    schema: Literal["lineproof.telemetry/1"] = "lineproof.telemetry/1"


@dataclass(frozen=True)
class Manifest(Record):
    """``manifest.json``: the sums of a run's ``files``, by name."""

    run: Id
    files: Mapping[str, Digest]
    schema: Literal["lineproof.manifest/1"] = "lineproof.manifest/1"


def unexpected(sentence: str, message: str, expected: str) -> str:
    """Return the message of a test that expects another verdict than its sentence has, and what to do about it."""
    first = message.partition("\n")[0]
    remedy = f"\n  the promise is kept: remove expect={expected}" if first.startswith("PASS") else ""
    return f"INCONCLUSIVE: {sentence}: {expected} was expected\n  {first}{remedy}"


def code_text(code: Mapping[str, Any]) -> str:
    """Return which Lineproof *code* of an environment's record is, as ``0.1 (commit 0123456789ab with changes)``."""
    dirty = " with changes" if code.get("dirty") is True else ""
    return f"{code.get('version', 'unknown')} (commit {str(code.get('commit', 'unknown'))[:12]}{dirty})"


# -- a recorded sentence, parsed again ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SentProfile(Profile):
    recorded_size: float = 64.0

    @cached_property
    def mean_size(self) -> float:
        """The recorded mean size in bytes with FCS."""
        return self.recorded_size


@dataclass(frozen=True)
class _SentTraffic:
    """Knows the traffic that was sent, and takes each word for one of it that is no quantity's."""

    sent: Profile

    def spelled(self, word: str) -> str | None:
        if word in self.words() or word.lower() not in {quantity.word for quantity in quantities().values()}:
            return word
        return None

    def profile(self, words: list[str]) -> Profile:
        return self.sent

    def words(self) -> list[str]:
        return self.sent.name.split()


class _NotInstalled(Quantity):
    """Stands for a quantity of another distribution: it knows no figure of its trials."""

    word = ""
    units = tuple(Unit)
    doubts = ()

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        return tuple(UNKNOWN for _ in trials[0].outcome.directions)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        return Reason(f"quantity '{self.name}' is not installed")


@lru_cache(maxsize=1000)
def recorded_requirement(sentence: str, quantity: str, profile: str, mean_size: float, cores: int) -> Requirement:
    """Return *sentence*, parsed. Raises SentenceError.

    *quantity*: its name. One that is not installed has no figures; *profile*, *mean_size*: of its traffic; *cores*: of
    the router.
    """
    otherwise = None
    if not is_installed(quantity):
        at_least = "≥" in sentence or ">=" in sentence
        otherwise = type("NotInstalled", (_NotInstalled,), {"name": quantity, "at_least": at_least})()
    address = AddressRange("16.0.0.1", "16.0.0.1")
    sent = _SentProfile(profile, (FrameClass(64),), Flows(address, address), recorded_size=mean_size)
    requirement = parse(sentence, _SentTraffic(sent), otherwise)
    if (name := requirement.quantity.name) != quantity:
        raise SentenceError(f"'{sentence}' is of quantity '{name}'; its record says '{quantity}'")
    return requirement.on_cores(cores)
