"""A study as a file says it, and the order of its measurements. docs/studies.md has all keys.

A *row* is what is measured (``measures``), a *variant* is on what; a *block* measures every row on every variant once.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from ..config import Config, Location, read_yaml, validate_config
from ..core.quantity import Requirement
from ..core.registry import quantities
from ..core.sentence import measured, parse_traffic
from ..core.traffic.catalogue import Catalogue
from ..core.units import Unit
from ..errors import ConfigError, SentenceError
from ..platforms import CommandPair, RouterSetup, named_file, read_platform
from ..project import Project
from ..visible import shortened

RateUnit = Literal["percent of line", "pps", "kpps", "Mpps", "Gbit/s"]
"""Per cent of one direction's line rate; bit/s are of L1. Both directions are added."""

TABLE_UNITS = (*get_args(RateUnit), "percent of lines")
"""Units of rates in a source's table."""

AT_LEAST = "at_least"
"""A figure beside a measurement's value, 1: the router did not fall behind at any load that was offered, so that the
value is the most that was, and its own limit is somewhere above."""

LINE, LINK = "line_pps", "link_bps"
"""Figures beside each rate: one direction's line rate in frames/s of its traffic, and in bit/s of L1."""


class Kind(NamedTuple):
    """A kind of row. ``unit``: of its figures; "": it is a rate, in the unit of its row or study.

    ``measured``: the unit of the quantity at one load, ``at`` or the testbed's maximum; None: it has no such. Of
    several that have this unit, ``quantity`` is the name. ``figures``: whose mean is the value.
    """

    unit: str = ""
    quantity: str = ""
    measured: Unit | None = None
    figures: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = {
    "ramp": Kind(),
    "forwards": Kind("", "forwards", Unit.PPS, ("forwarded_pps",)),
    "takes_in": Kind("", "forwards", Unit.PPS),
    "drops_sending": Kind("", "forwards", Unit.PPS),
    "sends": Kind(),
    "cycles": Kind("cycles/packet", "cycles", Unit.CYCLES, ("cycles_per_packet",)),
    "cycles_without_input": Kind(
        "cycles/packet", "cycles", Unit.CYCLES_WITHOUT_INPUT, ("cycles_per_packet_without_input",)
    ),
    "vectors": Kind("packets/call", "", Unit.VECTORS, ("vectors_per_call",)),
    "energy": Kind("µJ/packet", "energy", Unit.MICROJOULES, ("energy_uj_low", "energy_uj_high")),
    "cpu_time": Kind("ns/packet", "forwards", Unit.PPS),
}

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[^\s/|](?:[^\r\n/|]*[^\s/|])?$")]
"""The name of a row or a variant. No ``/`` and ``|``: tables and messages join names by them."""

Words = Annotated[str, Field(min_length=1, max_length=200)]
FLOWS = r"^[0-9]{1,9}[kM]?-flows?$"
Figure = float | Annotated[tuple[float, ...], Field(min_length=2, max_length=100)]
"""A published figure, or those of several runs."""


class StudyTolerance(Config):
    """How far ours may be from the published one: the larger of ``points`` and ``percent``.

    ``points``: percentage points of one direction's line rate (of rates alone), but no more than ``most_percent`` of
    the published value, so that slow rows are judged by that; ``percent``: of the published value.
    """

    points: Annotated[float, Field(ge=0, le=100)] = 3.0
    percent: Annotated[float, Field(ge=0, le=100)] = 5.0
    most_percent: Annotated[float, Field(ge=0, le=100)] = 10.0

    def allowed(self, published: float, line: float | None, difference: bool = False) -> float:
        """Return how far ours may be, in the unit of both. *line*: one direction's line rate; None: no rate.

        *difference*: of what comes in and goes out, whose own size says nothing of how exactly it is known.
        """
        points = self.points / 100 * line if line is not None else 0.0
        if not difference:
            points = min(points, self.most_percent / 100 * abs(published))
        return max(points, self.percent / 100 * abs(published))

    def words(self, rate: bool = True, difference: bool = False) -> str:
        """Return what is allowed, of a *rate* and a *difference* of two."""
        percent = f"{self.percent:g} % of the published figure"
        if not rate or not self.points:
            return percent
        most = "" if difference else f" (up to {self.most_percent:g} % of the figure)"
        return f"{percent}, or {self.points:g} points of line rate if that is more{most}"


class StudyRow(Config):
    """A row of a study: one of KINDS, whose value is the traffic in a sentence's words.

    ``at``: a load per port, as ``1 Mpps``. ``steps``: of a ramp. ``marks``: lines in the picture, in the row's unit.
    ``imix``: the mean bytes of an internet mix, whose Gbit/s are a second axis of frames/s.
    """

    kind: str
    traffic: Words
    at: Words | None = None
    steps: Annotated[int, Field(ge=2, le=1000)] = 100
    unit: RateUnit | None = None
    repeats: Annotated[int | None, Field(ge=1, le=100)] = None
    tolerance: StudyTolerance | None = None
    marks: Mapping[Name, float] = {}
    imix: Annotated[float | None, Field(gt=0)] = None
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read_kind(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        kinds = [kind for kind in KINDS if kind in data]
        rest = {key: value for key, value in data.items() if key not in kinds}
        return {**rest, "kind": " and ".join(kinds) or "none", "traffic": data[kinds[0]] if kinds else "none"}

    @model_validator(mode="after")
    def _check_kind(self) -> StudyRow:
        if self.kind not in KINDS:
            raise ValueError(f"has {self.kind} of {', '.join(KINDS)}; expected one")
        fitting = {"at": self.how.measured is not None, "steps": self.kind == "ramp", "unit": self.is_rate}
        if unfitting := [key for key, fits in fitting.items() if key in self.model_fields_set and not fits]:
            raise ValueError(f"{' and '.join(unfitting)} is not for '{self.kind}'; remove it")
        return self

    @property
    def how(self) -> Kind:
        """The kind of the row."""
        return KINDS[self.kind]

    @property
    def is_rate(self) -> bool:
        """Return whether its figures are rates."""
        return not self.how.unit

    @property
    def is_difference(self) -> bool:
        """Return whether its figures are differences of two rates."""
        return self.kind == "drops_sending"


class Variant(Config):
    """A router as it is measured; what it has takes the place of the study's, the software's or the rows' own.

    ``configured``: what its commands make of the router, for the simulation's model. ``facts``: what the router must
    report of itself beside version, workers and receive queues, by name (of :class:`.RouterFacts`, of a card, or of
    ``other``); ``settings``: command -> expression that must be in its answer. ``restart``: the command without which
    ``commands`` do not hold: they are run again after it, and it once they are undone. ``by_hand``: what a person has
    to do for it, beside installing the software and starting it.
    """

    platform: Name | None = None
    software: Name | None = None
    about: str = ""
    value: float | None = None
    commands: tuple[CommandPair, ...] = ()
    configured: Mapping[str, bool | int | float | str] = {}
    rx_queues: Annotated[int, Field(ge=1, le=64)] | None = None
    baseline: Name | None = None
    testbed: Name | None = None
    traffic: Words | None = None
    flows: Annotated[str | None, Field(pattern=FLOWS)] = None
    measures: Annotated[tuple[Name, ...] | None, Field(min_length=1)] = None
    facts: Mapping[Words, float | str] = {}
    settings: Mapping[Words, re.Pattern[str]] = {}
    restart: str = ""
    by_hand: str = ""

    @property
    def setup(self) -> RouterSetup:
        """Return what its commands make of the router."""
        return RouterSetup(commands=self.commands, configured=self.configured)


class Parameter(Config):
    """The meaning of the variants' ``value``, and the axis that it is drawn over."""

    name: Name
    unit: str = ""
    axis: Literal["linear", "log"] = "linear"


class Published(Config):
    """Figures of the source: row -> variant -> figure, or those of several runs. ``explained``: why one is outside."""

    tolerance: StudyTolerance = StudyTolerance()
    rows: Mapping[Name, Mapping[Name, Figure]]
    explained: Mapping[Name, Mapping[Name, Annotated[str, Field(min_length=1, max_length=1000)]]] = {}


class StudyTable(Config):
    """A table as the source prints it: each cell is a ``measure`` of a ``variant`` in a ``unit``.

    In these ``{row}`` and ``{column}`` stand for the cell's own. ``unit``: of rates any RateUnit, or ``percent of
    lines`` (of all directions together); of cycles also ``pps``, which the core forwarded, and ``MHz``: its clock by
    both.
    """

    rows: Annotated[tuple[Words, ...], Field(min_length=1)]
    columns: Annotated[tuple[Words, ...], Field(min_length=1)]
    measure: Words = "{row}"
    variant: Words = "{column}"
    unit: str = ""

    def place(self, row: str, column: str) -> tuple[str, str, str]:
        """Return measure, variant and unit ("": the measure's own) of a cell."""
        measure, variant, unit = (
            text.replace("{row}", row).replace("{column}", column) for text in (self.measure, self.variant, self.unit)
        )
        return measure, variant, unit


class Study(Config):
    """A study. ``repeats``: blocks; ``seed``: of the order within them; ``unit``: of rates; ``seconds``: of a trial.

    ``facts``: of all variants of a platform, by its name. ``tables``: the source's, by their titles.
    """

    study: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,60}$")]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    about: str = ""
    source: str = ""
    platform: Name | None = None
    testbed: Name | None = None
    bypass: bool = False
    repeats: Annotated[int, Field(ge=1, le=100)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    seconds: Annotated[float | None, Field(gt=0, le=3600)] = None
    unit: RateUnit = "percent of line"
    baseline: Name | None = None
    parameter: Parameter | None = None
    facts: Mapping[Name, Mapping[Words, float | str]] = {}
    measures: Annotated[Mapping[Name, StudyRow], Field(min_length=1)]
    variants: Annotated[Mapping[Name, Variant], Field(min_length=1)]
    published: Published = Published(rows={})
    tables: Mapping[Name, StudyTable] = {}

    def platform_of(self, variant: str) -> str:
        """Return the name of a variant's platform."""
        return self.variants[variant].platform or self.platform or ""

    def facts_of(self, variant: str) -> Mapping[str, float | str]:
        """Return what the router must report of itself as *variant*."""
        return {**self.facts.get(self.platform_of(variant), {}), **self.variants[variant].facts}

    def baseline_of(self, variant: str) -> str | None:
        """Return what *variant* is compared with; None: nothing, as for one that is such a baseline itself."""
        baseline = self.variants[variant].baseline or self.baseline
        return None if baseline == variant else baseline

    @property
    def baselines(self) -> frozenset[str]:
        """The variants that others are compared with."""
        return frozenset(filter(None, map(self.baseline_of, self.variants)))

    def rows_of(self, variant: str) -> tuple[str, ...]:
        """Return the names of the rows that a variant has, in the study's order."""
        own = self.variants[variant].measures
        return tuple(name for name in self.measures if own is None or name in own)

    def traffic_of(self, row: str, variant: str) -> str:
        """Return what is sent for *row* through *variant*."""
        own = self.variants[variant]
        parts = (own.traffic or self.measures[row].traffic).split()
        if own.flows is not None:
            frames, *others = (word for word in parts if not re.fullmatch(FLOWS, word))
            parts = [frames, own.flows, *others]
        return " ".join(parts)

    def sentence_of(self, row: str, variant: str) -> str:
        """Return a measurement in words for records and people."""
        measure = self.measures[row]
        at = f" at {measure.at}" if measure.at else ""
        return f"{measure.kind.replace('_', ' ')} of {self.traffic_of(row, variant)}{at}"

    def measured_of(self, row: str, variant: str, catalogue: Catalogue) -> Requirement:
        """Return the quantity that is measured for a row at one load. Raises SentenceError."""
        measure, traffic = self.measures[row], parse_traffic(self.traffic_of(row, variant), catalogue)
        how = measure.how
        having = (own for own in quantities().values() if how.measured in own.units)
        return measured(traffic, quantities().get(how.quantity) or next(having), how.measured or Unit.PPS, measure.at)

    def repeats_of(self, row: str) -> int:
        """Return in how many blocks a row is measured."""
        return min(self.repeats, self.measures[row].repeats or self.repeats)

    def unit_of(self, row: str) -> str:
        """Return the unit of a row's figures."""
        measure = self.measures[row]
        return measure.how.unit or measure.unit or self.unit

    def tolerance_of(self, row: str) -> StudyTolerance:
        """Return how far a row's figures may be from the published ones."""
        return self.measures[row].tolerance or self.published.tolerance

    def published_figures(self, row: str, variant: str) -> tuple[float, ...]:
        """Return what the source has: a figure, or those of several runs."""
        figure = self.published.rows.get(row, {}).get(variant, ())
        return figure if isinstance(figure, tuple) else (figure,)

    def explanation(self, row: str, variant: str) -> str:
        """Return why the published figure is not met, as the file says; ""."""
        return self.published.explained.get(row, {}).get(variant, "")


def rate_units(line_pps: float, link_bps: float, directions: int = 1) -> dict[str, float]:
    """Return how many frames/s each of TABLE_UNITS is: *line_pps* are *link_bps* bit/s of L1, one direction's."""
    percent = line_pps / 100
    rates = {"percent of line": percent, "percent of lines": directions * percent, "Gbit/s": 1e9 * line_pps / link_bps}
    return {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6, **rates}


# -- the order of the measurements -------------------------------------------------------------------------------------


Turn = Literal["first", "", "last"]
"""The baseline's two places in a block; "": another variant."""


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement: *row* of *variant*, in *block* 1, 2 …"""

    block: int
    turn: Turn
    variant: str
    row: str

    @property
    def place(self) -> tuple[int, Turn, str]:
        """The same for steps that are measured one after another, once their variant is set up."""
        return self.block, self.turn, self.variant

    def __str__(self) -> str:
        place = f", {self.turn}" if self.turn else ""
        return f"block {self.block}{place}: {self.variant}, {self.row}"


def steps_of(study: Study) -> tuple[Step, ...]:
    """Return all measurements of *study* in their order, the same each time.

    A row with fewer ``repeats`` is left out of later blocks; one with a single repeat has no second baseline, which
    nothing could be compared with.
    """
    steps: list[Step] = []
    for block in range(1, study.repeats + 1):
        others = [name for name in study.variants if name != study.baseline]
        # a text as the seed gives the same order on every Python
        random.Random(f"{study.seed}/{block}").shuffle(others)  # noqa: S311  (nothing secret depends on it)
        order: list[tuple[Turn, str]] = [("", name) for name in others]
        if study.baseline is not None:
            order.insert(0, ("first", study.baseline))
            order += [("last", study.baseline)] if others else []
        for turn, variant in order:
            for row in study.rows_of(variant):
                if block <= (repeats := study.repeats_of(row)) and (turn != "last" or repeats > 1):
                    steps.append(Step(block, turn, variant, row))
    return tuple(steps)


# -- files and their errors --------------------------------------------------------------------------------------------


def load_study(path: Path) -> Study:
    """Read the study in the file *path*. Raises ConfigError with file, line and key."""
    data, lines = read_yaml(path)
    study = validate_config(data, Study, path, lines, "study")
    for place, message in _contradictions(study):
        raise _wrong(path, message, *place)
    return study


def _contradictions(study: Study) -> Iterator[tuple[Location, str]]:
    """Yield where the parts of *study* do not fit each other, and why; the first is raised."""
    names: list[tuple[Location, str | None, Collection[str], str]] = [
        (("baseline",), study.baseline, study.variants, "no variant '{}'")
    ]
    for name, own in study.variants.items():
        at = "variants", name
        names.append(((*at, "baseline"), own.baseline, study.variants, "no variant '{}'"))
        for number, row in enumerate(own.measures or ()):
            names.append(((*at, "measures", str(number)), row, study.measures, "no row '{}' in 'measures'"))
        if not study.platform_of(name):
            yield at, "has no 'platform', and neither has the study; expected one of them"
    for row, figures in study.published.rows.items():
        names.append((("published", "rows", row), row, study.measures, "no row '{}' in 'measures'"))
        names += [(("published", "rows", row, name), name, study.variants, "no variant '{}'") for name in figures]
    for place, name_there, known, problem in names:
        if name_there is not None and name_there not in known:
            yield place, f"{problem.format(name_there)}; known: {shortened(', '.join(known), 600)}"
    for row, figures in study.published.rows.items():
        for name in figures:
            if row not in study.rows_of(name):
                yield ("published", "rows", row, name), f"'{name}' is not measured in this row; see its 'measures'"
    for row, measure in study.measures.items():
        if (measure.kind == "sends") is not study.bypass:
            why = (
                "and the study bypasses the router; expected 'sends'" if study.bypass else "which needs 'bypass: true'"
            )
            yield ("measures", row), f"is '{measure.kind}', {why}"
    for title, table in study.tables.items():
        for cell in product(table.rows, table.columns):
            row, name, unit = table.place(*cell)
            if name not in study.variants or row not in study.rows_of(name):
                yield ("tables", title), f"'{row}' of '{name}', for {' and '.join(map(repr, cell))}, is not measured"
            measure = study.measures[row]
            units = TABLE_UNITS if measure.is_rate else ("pps", "MHz") if measure.kind == "cycles" else ()
            if unit and unit not in units:
                yield ("tables", title), f"'{unit}' is no unit of '{row}'; expected one of {', '.join(units) or 'none'}"


def check_study(project: Project, name: str) -> Study:
    """Return the study *name* with its platforms and traffic words, without a testbed.

    Raises ConfigError with file, line and key.
    """
    path = named_file(project.studies, name, "study")
    study, catalogue = load_study(path), Catalogue.read(project.profiles)
    if study.testbed is not None:
        with placed(path, "", "testbed"):
            named_file(project.testbeds, study.testbed, "testbed")
    for variant, own in study.variants.items():
        box, place = study.platform_of(variant), ("variants", variant)
        with placed(path, "", *(place if own.platform else ()), "platform"):
            named_file(project.platforms, box, "platform")
        softwares = read_platform(project.platforms, box).software
        if own.software is not None and own.software not in softwares:
            message = f"'{box}' has no software '{own.software}'; known: {', '.join(softwares)}"
            raise _wrong(path, message, *place, "software")
        for row in study.rows_of(variant):
            measure, here = study.measures[row], f"row '{row}' of variant '{variant}': "
            with placed(path, here, *((*place, "traffic") if own.traffic else ("measures", row, measure.kind))):
                parse_traffic(study.traffic_of(row, variant), catalogue)
            if measure.at is not None:
                with placed(path, here, "measures", row, "at"):
                    study.measured_of(row, variant, catalogue)
    return study


@contextlib.contextmanager
def placed(path: Path, before: str, *place: str) -> Iterator[None]:
    """Raise errors of the block as those of the study in *path*, at the key *place*, with words *before* them."""
    try:
        yield
    except (ConfigError, SentenceError) as error:
        raise _wrong(path, f"{before}{error}", *place) from None


def _wrong(path: Path, message: str, *place: str) -> ConfigError:
    key = f"'{'.'.join(place)}': " if place else ""
    return ConfigError(f"{key}{message}", path, read_yaml(path)[1].get(place, 1) if place else None)
