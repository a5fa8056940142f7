"""The content of the sheet, who signs it about what, and why a run cannot be signed off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from ...config import Config, load_config, read_yaml, validate_config
from ...errors import ConfigError, LineproofError, in_words
from ...units import counted
from ...visible import shortened
from ..records import VERDICTS, EnvironmentRecord, RequirementRecord
from ..rejudging import DIFFERS, SUSPECT, UNKNOWN, rejudge
from ..run import RecordedRun, read_run
from ..run_files import MANIFEST_FILE, sha256_of
from ..sentence_rows import SentenceRow
from ..signature import PublicKey
from ..summary import RunSummary, summary_of
from ..verification import verify

KEPT = "PASS"


@dataclass(frozen=True)
class Sheet:
    """A run that is signed off. ``waivers``: by the number of the sentence's record. ``made`` in UTC.

    ``again``: what its records say when they are judged again, in words.

    ``reasons``: why it cannot be signed off, as sentences without their subject; () unless it is a ``draft``.
    ``key``: that it will be signed with. ``manifest``: the SHA-256 of manifest.json; None: the run was never closed.
    ``attached``: files of the user that the PDF carries along.
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
        """The waiver that *row* needs and has."""
        return None if row.record.verdict == KEPT else self.waivers.get(row.record.number)

    @property
    def used_waivers(self) -> tuple[tuple[SentenceRow, Waiver], ...]:
        """Return those that a sentence needs."""
        return tuple((row, waiver) for row in self.rows if (waiver := self.waiver(row)) is not None)

    @property
    def parties(self) -> dict[str, Party]:
        """Return who signs, by its part in it."""
        return {name: party for name, party in self.about.parties if party is not None}

    @property
    def verdicts(self) -> str:
        """``8 PASS, 1 FAIL, 0 INCONCLUSIVE``."""
        found = Counter[str](row.record.verdict for row in self.rows)
        return ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS)


def make_sheet(
    folder: Path,
    now: datetime,
    about: Path | None = None,
    waivers: Path | None = None,
    draft: bool = False,
) -> Sheet:
    """The sheet of the run in *folder*. *about*, *waivers*: the user's files. *now*: UTC.

    Raises ConfigError with one sentence where the run was altered, where a file is wrong, and, unless it is a *draft*,
    where the run cannot be signed off.
    """
    verify(folder).refuse_problems()
    run = read_run(folder)
    summary = summary_of(run)
    if run.environment is None:
        raise ConfigError("cannot be signed off: it has no environment.json, which says what was tested", folder)
    told = read_about(about)
    waived = read_waivers(waivers, run.requirements, now.date())
    again, contradicted = _judged_again(folder)
    reasons = (*_reasons(run, summary, waived), *contradicted)
    if reasons and not draft:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ConfigError(f"cannot be signed off: {reasons[0]}{more}; '--draft' makes a sheet to look at", folder)
    manifest = folder / MANIFEST_FILE
    return Sheet(
        run,
        summary,
        run.environment,
        told,
        waived,
        sha256_of(manifest) if manifest.is_file() else None,
        now.replace(microsecond=0),
        again,
        reasons,
        draft,
        attached=tuple(path for path in (about, waivers) if path is not None),
    )


def _reasons(run: RecordedRun, summary: RunSummary, waivers: Mapping[int, Waiver]) -> Iterator[str]:
    if run.simulated:
        yield "it is simulated, so that no router was measured"
    if not (run.path / MANIFEST_FILE).is_file():
        yield "it did not end, so that it has no manifest to sign"
    elif summary.incomplete:
        yield f"it is incomplete ({'; '.join(summary.incomplete)})"
    if not run.requirements:
        yield "no sentence was judged in it"
    if undecided := [row for row in summary.rows if row.record.verdict == "INCONCLUSIVE"]:
        names = [f"'{row.record.sentence}'" for row in undecided if row.record.number not in waivers]
        if names:
            yield f"INCONCLUSIVE and not waived: {_some(names)}"


def _judged_again(folder: Path) -> tuple[str, list[str]]:
    """Return what the records say when they are judged again, and why they are not to be signed, in words.

    Whoever changes a record can seal the run again; he would have to change all that leads to its verdict too.
    """
    try:
        found = rejudge(folder)
    except LineproofError as error:
        return f"not judged again: {in_words(error)}", []
    same = sum(item.same for item in found.sentences)
    of = "all" if same == len(found.sentences) else f"{same} of"
    words = f"{of} {counted(len(found.sentences), 'promise')} come to the same verdict from the records"
    if unknown := [f"'{item.record.sentence}'" for item in found.sentences if item.state == UNKNOWN]:
        words += f"; the records are not enough for {_some(unknown)}"
    wrong = [
        f"'{item.record.sentence}' is {item.verdict.ruling.value if item.verdict else ''} from the records, which say"
        f" {item.record.verdict}{f' and contradict themselves: {item.problems[0]}' if item.problems else ''}"
        for item in found.sentences
        if item.state in (DIFFERS, SUSPECT)
    ]
    return words, [*found.changed, *([_some(wrong)] if wrong else [])]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


class Party(Config):
    """Who it is, and who signs for it. What is missing is a blank to fill in by hand."""

    name: Words | None = None
    address: Words | None = None
    contact: Words | None = None
    signatory: Words | None = None


class Parties(Config):
    """``supplier``: promises. ``tester``: measures. ``buyer``: accepts and waives. ``witness``: was there."""

    supplier: Party = Party()
    tester: Party = Party()
    buyer: Party = Party()
    witness: Party | None = None


class Device(Config):
    """The router, as its nameplate and papers say."""

    manufacturer: Words | None = None
    model: Words | None = None
    serial: Words | None = None
    hardware: Words | None = None
    firmware: Words | None = None


class SheetTestbed(Config):
    """The testbed, as no program can know it. ``cables``: by the generator's port, ``{"0": "DAC 1 m, no. 4711"}``."""

    generator: Words | None = None
    place: Words | None = None
    cables: Mapping[Annotated[str, Field(pattern=r"[0-9]{1,2}")], Words] = {}


class About(Config):
    """The file of ``--about``. ``deviations``: what was done otherwise than agreed, beside what the records declare."""

    contract: Words | None = None
    parties: Parties = Parties()
    device: Device = Device()
    testbed: SheetTestbed = SheetTestbed()
    deviations: Annotated[tuple[Words, ...], Field(max_length=50)] = ()
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

    waivers: Annotated[tuple[Waiver, ...], Field(min_length=1, max_length=1000)]


def read_about(path: Path | None) -> About:
    """The file *path*; of none, one that says nothing. Raises ConfigError."""
    return About() if path is None else load_config(path, About)


def read_waivers(path: Path | None, records: Sequence[RequirementRecord], today: date) -> dict[int, Waiver]:
    """The waivers of *path*, by the number of the sentence in *records* that each is about.

    Raises ConfigError naming the waiver that has expired before *today*, that is about no sentence of the run, or about
    one that another waiver is about.
    """
    if path is None:
        return {}
    data, lines = read_yaml(path)
    found: dict[int, Waiver] = {}
    for index, waiver in enumerate(validate_config(data, Waivers, path, lines).waivers):
        line, name = lines.get(("waivers", str(index))), shortened(waiver.sentence)
        if waiver.expires < today:
            words = f"the waiver of '{name}' by {shortened(waiver.author)} expired on {waiver.expires}"
            raise ConfigError(f"{words}; ask for a new one, or remove it", path, line)
        mine = [record.number for record in records if waiver.fits(record)]
        if not mine:
            known = "; ".join(shortened(record.sentence) for record in records if record.verdict != "PASS")
            words = f"no sentence of this run is '{name}'{f' of test {waiver.test!r}' if waiver.test else ''}"
            raise ConfigError(f"{words}; those that need a waiver: {known or 'none'}", path, line)
        if twice := [number for number in mine if number in found]:
            words = f"a second waiver of sentence {twice[0]}, '{name}'; keep one, or name its 'test'"
            raise ConfigError(words, path, line)
        found |= dict.fromkeys(mine, waiver)
    return found


def _plain(sentence: str) -> str:
    return " ".join(sentence.replace(">=", "≥").replace("<=", "≤").split())
