"""The content of the sheet, who signs it about what, and why a run cannot be signed off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from ...config import Config, matching, read_yaml, validate_config
from ...core.goal import Goal
from ...errors import ConfigError, LineproofError, in_words
from ...units import counted
from ...visible import shortened
from ..records import EnvironmentRecord, RequirementRecord
from ..rejudge import DIFFERS, SUSPECT, rejudge
from ..run import RecordedRun, recorded_run
from ..run_files import MANIFEST_FILE, sha256_of
from ..summary import RunSummary, summary_of
from .signature import verify

WEAKEST_SHARE, WEAKEST_RISK = 0.5, 0.05
"""A goal with a larger share of bad trials, or a larger risk, is too weak."""

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


class Waiver(Config):
    """``author`` answers for ``sentence`` not being kept, or not proven, up to and with the day ``expires`` (UTC)."""

    sentence: Words
    author: Words
    reason: Words
    expires: Annotated[str, matching(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "expected a date as 2027-03-31")]

    def fits(self, record: RequirementRecord) -> bool:
        """Return whether it is about *record*."""
        return _plain(self.sentence) == _plain(record.sentence)


class About(Config):
    """The file of ``--about``: what no program can know. What is missing is a blank to fill in by hand.

    ``parties``: each with its name, signatory and what else is to be said. ``facts``: nameplate, place and what else
    belongs on the sheet. ``deviations``: what was done otherwise than agreed, beside what the records declare.
    """

    parties: Mapping[Literal["supplier", "tester", "buyer", "witness"], Mapping[Words, Words]] = {}
    facts: Mapping[Words, Words] = {}
    deviations: tuple[Words, ...] = ()
    waivers: tuple[Waiver, ...] = ()

    def waivers_of(self, record: RequirementRecord) -> list[Waiver]:
        """Return those of *record*; one that passed needs none."""
        return [waiver for waiver in self.waivers if record.verdict != "PASS" and waiver.fits(record)]


@dataclass(frozen=True)
class Sheet:
    """A run that is signed off. ``about``: the user's words; ``made`` in UTC; ``key``: the public one, "": not signed.

    ``manifest``: the SHA-256 of manifest.json; "": the run was never closed. ``again``: what its records say when they
    are judged again. ``reasons``: why it cannot be signed off, without their subject; () unless it is a ``draft``.
    """

    run: RecordedRun
    summary: RunSummary
    environment: EnvironmentRecord
    about: About
    manifest: str
    made: datetime
    again: str
    reasons: tuple[str, ...] = ()
    draft: bool = False
    key: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what stands across every page."""
        return ("DRAFT",) * self.draft + ("SIMULATED",) * self.run.simulated


def make_sheet(folder: Path, now: datetime, about: Path | None = None, draft: bool = False) -> Sheet:
    """Return the sheet of the run in *folder*. *about*: the user's file. *now*: UTC.

    Raises ConfigError with one sentence where the run was altered, where the file is wrong, and, unless it is a
    *draft*, where the run cannot be signed off.
    """
    run = recorded_run(verify(folder)[0])
    told = _read_about(about, run.requirements, f"{now:%Y-%m-%d}") if about else About()
    summary, (again, contradicted) = summary_of(run), _judged_again(folder)
    reasons = (*_reasons(run, summary, told), *contradicted)
    if reasons and not draft:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise ConfigError(f"cannot be signed off: {reasons[0]}{more}; '--draft' makes a sheet to look at", folder)
    manifest = sha256_of(folder / MANIFEST_FILE) if (folder / MANIFEST_FILE).is_file() else ""
    environment, made = run.environment, now.replace(microsecond=0)
    return Sheet(run, summary, environment, told, manifest, made, again, reasons, draft)


def goals_of(run: RecordedRun) -> tuple[Goal, ...]:
    """Return the goals by which the sentences of *run* were judged."""
    return tuple({record.goal.goal: record.goal for record in run.requirements}.values())


def _reasons(run: RecordedRun, summary: RunSummary, about: About) -> Iterator[str]:
    kinds = run.testbed_kinds
    if run.simulated:
        yield "it is simulated, so that no router was measured"
    elif kinds != {"hardware"}:
        yield f"its testbed is no hardware ({', '.join(sorted(kinds)) or 'its file was not kept'})"
    for goal in goals_of(run):
        share = goal.bad_share or 1.0
        if not goal.is_strict and (share > WEAKEST_SHARE or goal.risk > WEAKEST_RISK):
            yield (
                f"its goal '{goal.goal}' is too weak: {100 * goal.risk:g} % of routers pass that miss a promise in"
                f" {100 * share:g} % of their trials; run with one as 'standard'"
            )
    if not (run.path / MANIFEST_FILE).is_file():
        yield "it did not end, so that it has no manifest to sign"
    elif summary.incomplete:
        yield f"it is incomplete ({'; '.join(summary.incomplete)})"
    if not run.requirements:
        yield "no sentence was judged in it"
    undecided = [record for record in run.requirements if record.verdict == "INCONCLUSIVE"]
    if names := [record.sentence for record in undecided if not about.waivers_of(record)]:
        yield f"INCONCLUSIVE and not waived: {_some(names)}"


def _judged_again(folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return what the records say when they are judged again, and why they are not to be signed, in words.

    Whoever changes a record can seal the run again; he would have to change all that leads to its verdict too.
    """
    try:
        judged = rejudge(folder)
    except LineproofError as error:
        return f"no: {in_words(error)}", ()
    promises = counted(len(judged.sentences), "promise")
    wrong = _some([one.record.sentence for one in judged.sentences if one.state in (DIFFERS, SUSPECT)])
    words = f"its records of {wrong} come to another verdict, or contradict themselves ('lineproof rejudge' says how)"
    return f"{judged.same} of {promises} come to the same verdict", (*judged.changed, *([words] if wrong else []))


def _some(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _read_about(path: Path, records: Sequence[RequirementRecord], today: str) -> About:
    """Return the user's file.

    Raises ConfigError naming a waiver that has expired before *today*, or that is about none of *records*.
    """
    data, lines = read_yaml(path)
    about = validate_config(data, About, path, lines)
    for index, waiver in enumerate(about.waivers):
        name, problem = shortened(waiver.sentence), ""
        if waiver.expires < today:
            problem = f"the waiver of '{name}' by {shortened(waiver.author)} expired on {waiver.expires}"
        elif not any(map(waiver.fits, records)):
            known = _some([shortened(record.sentence) for record in records if record.verdict != "PASS"])
            problem = f"no sentence of this run is '{name}'; those that need a waiver: {known or 'none'}"
        if problem:
            raise ConfigError(problem, path, lines.get(("waivers", str(index))))
    return about


def _plain(sentence: str) -> str:
    return " ".join(sentence.replace(">=", "≥").replace("<=", "≤").split())
