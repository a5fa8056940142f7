"""The content of the sheet, who signs it about what, and why a run cannot be signed off."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints

from ...config import Config, load_config, read_yaml, validate_config
from ...core.goal import Goal
from ...errors import ConfigError, LineproofError, in_words
from ...units import counted
from ...visible import shortened
from ..records import EnvironmentRecord, RequirementRecord
from ..rejudge import DIFFERS, SUSPECT, rejudge
from ..run import RecordedRun, read_run
from ..run_files import MANIFEST_FILE, sha256_of
from ..sentence_rows import SentenceRow
from ..signature import PublicKey
from ..summary import RunSummary, summary_of
from ..verification import verify

KEPT = "PASS"

Part = Literal["supplier", "tester", "buyer", "witness"]
PARTIES: tuple[Part, ...] = get_args(Part)

WEAKEST_SHARE, WEAKEST_RISK = 0.5, 0.05
"""A goal is too weak if a router that misses its promise in more of its trials passes, or one at it more often."""


@dataclass(frozen=True)
class Sheet:
    """A run that is signed off. ``waivers``: by the number of the sentence's record. ``made`` in UTC.

    ``again``: what its records say when they are judged again, in words. ``reasons``: why it cannot be signed off, as
    sentences without their subject; () unless it is a ``draft``. ``key``: that it will be signed with. ``manifest``:
    the SHA-256 of manifest.json; None: the run was never closed. ``attached``: files of the user in the PDF.
    """

    run: RecordedRun
    summary: RunSummary
    environment: EnvironmentRecord
    about: About
    waivers: Mapping[int, Waiver]
    manifest: str | None
    made: datetime
    again: str = ""
    reasons: tuple[str, ...] = ()
    draft: bool = False
    key: PublicKey | None = None
    attached: tuple[Path, ...] = ()

    @property
    def rows(self) -> tuple[SentenceRow, ...]:
        """Return its sentences."""
        return self.summary.rows

    def number(self, row: SentenceRow) -> int:
        """Return its number on the sheet, from 1: those of the records have gaps where margins were searched."""
        return 1 + self.rows.index(row)

    @property
    def watermark(self) -> tuple[str, ...]:
        """Return what stands across every page."""
        return (*(["DRAFT"] if self.draft else []), *(["SIMULATED"] if self.run.simulated else []))

    def waiver(self, row: SentenceRow) -> Waiver | None:
        """Return the waiver that *row* needs and has."""
        return None if row.record.verdict == KEPT else self.waivers.get(row.record.number)

    @property
    def parties(self) -> Mapping[str, Mapping[str, str]]:
        """Return who signs, by its part in it: without a witness, if none is named."""
        named = dict(self.about.parties)
        return {part: named.get(part, {}) for part in PARTIES if part != "witness" or part in named}


def make_sheet(
    folder: Path,
    now: datetime,
    about: Path | None = None,
    waivers: Path | None = None,
    draft: bool = False,
) -> Sheet:
    """Return the sheet of the run in *folder*. *about*, *waivers*: the user's files. *now*: UTC.

    Raises ConfigError with one sentence where the run was altered, where a file is wrong, and, unless it is a *draft*,
    where the run cannot be signed off.
    """
    verify(folder)[0].refuse_altered()
    run = read_run(folder)
    environment = run.known_environment
    told = About() if about is None else load_config(about, About)
    summary, waived = summary_of(run), read_waivers(waivers, run.requirements, now.date())
    again, contradicted = _judged_again(folder)
    reasons = (*_reasons(run, summary, waived), *contradicted)
    if reasons and not draft:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ConfigError(f"cannot be signed off: {reasons[0]}{more}; '--draft' makes a sheet to look at", folder)
    manifest = folder / MANIFEST_FILE
    return Sheet(
        run,
        summary,
        environment,
        told,
        waived,
        sha256_of(manifest) if manifest.is_file() else None,
        now.replace(microsecond=0),
        again,
        reasons,
        draft,
        attached=tuple(path for path in (about, waivers) if path is not None),
    )


def goals_of(rows: Sequence[SentenceRow]) -> tuple[Goal, ...]:
    """Return the goals by which the sentences were judged."""
    return tuple({row.record.goal: row.record.promise.goal for row in rows}.values())


def _reasons(run: RecordedRun, summary: RunSummary, waivers: Mapping[int, Waiver]) -> Iterator[str]:
    kinds = run.testbed_kinds
    if run.simulated:
        yield "it is simulated, so that no router was measured"
    elif kinds != {"hardware"}:
        yield f"its testbed is no hardware ({', '.join(sorted(kinds)) or 'its file was not kept'})"
    for goal in goals_of(summary.rows):
        share = goal.bad_share or 1.0
        if not goal.is_strict and (share > WEAKEST_SHARE or goal.risk > WEAKEST_RISK):
            yield (
                f"its goal '{goal.goal}' is too weak: up to {100 * goal.risk:g} % of routers pass that miss a promise"
                f" in {100 * share:g} % of their trials; expected at most {100 * WEAKEST_RISK:g} % and"
                f" {100 * WEAKEST_SHARE:g} %, as of 'standard'"
            )
    if not (run.path / MANIFEST_FILE).is_file():
        yield "it did not end, so that it has no manifest to sign"
    elif summary.incomplete:
        yield f"it is incomplete ({'; '.join(summary.incomplete)})"
    if not run.requirements:
        yield "no sentence was judged in it"
    undecided = [row.record for row in summary.rows if row.record.verdict == "INCONCLUSIVE"]
    if names := [f"'{record.sentence}'" for record in undecided if record.number not in waivers]:
        yield f"INCONCLUSIVE and not waived: {_some(names)}"


def _judged_again(folder: Path) -> tuple[str, list[str]]:
    """Return what the records say when they are judged again, and why they are not to be signed, in words.

    Whoever changes a record can seal the run again; he would have to change all that leads to its verdict too.
    """
    try:
        found = rejudge(folder)
    except LineproofError as error:
        return f"not judged again: {in_words(error)}", []
    same, of_all = sum(item.same for item in found.sentences), counted(len(found.sentences), "promise")
    words = (
        f"{'all' if same == len(found.sentences) else f'{same} of'} {of_all} come to the same verdict from the records"
    )
    wrong = [f"'{item.record.sentence}'" for item in found.sentences if item.state in (DIFFERS, SUSPECT)]
    how = "come to another verdict, or contradict themselves ('lineproof rejudge' says how)"
    return words, [*found.changed, *([f"its records of {_some(wrong)} {how}"] if wrong else [])]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


# -- the user's files --------------------------------------------------------------------------------------------------

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


class About(Config):
    """The file of ``--about``: what no program can know. What is missing is a blank to fill in by hand.

    ``parties``: each with its name, signatory and what else is to be said. ``device``: nameplate and papers, as
    ``serial``. ``testbed``: as ``place``. ``cables``: by the generator's port. ``deviations``: what was done otherwise
    than agreed, beside what the records declare.
    """

    contract: Words | None = None
    parties: Mapping[Part, Mapping[Words, Words]] = {}
    device: Mapping[Words, Words] = {}
    testbed: Mapping[Words, Words] = {}
    cables: Mapping[Annotated[str, Field(pattern=r"[0-9]{1,2}")], Words] = {}
    deviations: tuple[Words, ...] = ()
    remarks: Words | None = None


def _date(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError("expected a date as 2027-03-31")
    return value


class Waiver(Config):
    """``author`` answers for ``sentence`` not being kept, or not proven, up to and with the day ``expires`` (UTC).

    ``test``: the test with the sentence, where several have it.
    """

    sentence: Words
    test: Words | None = None
    author: Words
    reason: Words
    expires: Annotated[date, BeforeValidator(_date)]

    def fits(self, record: RequirementRecord) -> bool:
        """Return whether it is about *record*."""
        return _plain(self.sentence) == _plain(record.sentence) and self.test in (None, record.test)


class Waivers(Config):
    """The file of ``--waivers``."""

    waivers: Annotated[tuple[Waiver, ...], Field(min_length=1)]


def read_waivers(path: Path | None, records: Sequence[RequirementRecord], today: date) -> dict[int, Waiver]:
    """Return the waivers of *path*, by the number of the sentence in *records* that each is about.

    Raises ConfigError naming the waiver that has expired before *today*, that is about no sentence of the run, or about
    one that another waiver is about.
    """
    if path is None:
        return {}
    data, lines = read_yaml(path)
    by_number: dict[int, Waiver] = {}
    for index, waiver in enumerate(validate_config(data, Waivers, path, lines).waivers):
        line, name = lines.get(("waivers", str(index))), shortened(waiver.sentence)
        mine = [record.number for record in records if waiver.fits(record)]
        problem = ""
        if waiver.expires < today:
            problem = f"the waiver of '{name}' by {shortened(waiver.author)} expired on {waiver.expires}"
        elif not mine:
            known = "; ".join(shortened(record.sentence) for record in records if record.verdict != KEPT)
            of_test = f" of test {waiver.test!r}" if waiver.test else ""
            problem = f"no sentence of this run is '{name}'{of_test}; those that need a waiver: {known or 'none'}"
        elif twice := [number for number in mine if number in by_number]:
            problem = f"a second waiver of sentence {twice[0]}, '{name}'; keep one, or name its 'test'"
        if problem:
            raise ConfigError(problem, path, line)
        by_number |= dict.fromkeys(mine, waiver)
    return by_number


def _plain(sentence: str) -> str:
    return " ".join(sentence.replace(">=", "≥").replace("<=", "≤").split())
