"""The sheet of a run that is signed off: who signs what, why a run cannot be, and the sheet as a page and as PDF."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from ...config import Config, matching, read_yaml, validate_config
from ...core.goal import Goal
from ...core.verdict import odds_text
from ...documents.document import Code, Document, Facts, Figure, Items, Note, Part, Section, Table, as_page
from ...errors import ConfigError, TestbedError
from ...files import read_file
from ...system.children import remedy
from ...units import counted, moment, si
from ...visible import shortened
from ..forms import known_facts
from ..pictures import sentence_plot
from ..records import EnvironmentRecord, RequirementRecord
from ..rejudge import confirmed
from ..run import RecordedRun, recorded_run
from ..run_files import MANIFEST_FILE, SIGNATURE, sha256_of
from ..summary import ExecutionSummary, RunSummary, summary, summary_of
from .signature import key_id, verify

BLANK = "_" * 20
"""A place to write by hand."""

WORDS = read_yaml(Path(__file__).with_name("words.yaml"))[0]
"""The words of the sheet that are no measurement's."""

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

    ``manifest``: the SHA-256 of manifest.json; "": the run was never closed. ``reasons``: why it cannot be signed off,
    without their subject; () unless it is a ``draft``.
    """

    run: RecordedRun
    summary: RunSummary
    environment: EnvironmentRecord
    about: About
    manifest: str
    made: datetime
    reasons: tuple[str, ...] = ()
    draft: bool = False
    key: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        """The words across every page."""
        return ("DRAFT",) * self.draft + ("SIMULATED",) * self.run.simulated


def make_sheet(folder: Path, now: datetime, about: Path | None = None, draft: bool = False) -> Sheet:
    """Return the sheet of the run in *folder*. *about*: the user's file. *now*: UTC.

    Raises ConfigError with one sentence where the run was altered, or its records come to another verdict, where the
    file is wrong, and, unless it is a *draft*, where the run cannot be signed off.
    """
    run = confirmed(recorded_run(verify(folder)[0]))
    told = _read_about(about, run.requirements, f"{now:%Y-%m-%d}") if about else About()
    of_run = summary_of(run)
    reasons = (*_reasons(run, of_run, told),)
    if reasons and not draft:
        briefly = ", ".join(re.split("[:,(]", reason)[0].strip() for reason in reasons)
        listed = briefly if len(reasons) > 1 else reasons[0]
        raise ConfigError(f"cannot be signed off: {listed}; '--draft' makes a sheet to look at", folder)
    manifest = sha256_of(folder / MANIFEST_FILE) if (folder / MANIFEST_FILE).is_file() else ""
    environment, made = run.environment, now.replace(microsecond=0)
    return Sheet(run, of_run, environment, told, manifest, made, reasons, draft)


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


# -- the sheet as a document: a page to print on A4, black on white ----------------------------------------------------


def sheet_document(sheet: Sheet) -> Document:
    """Return what the sheet says."""
    records, environment, told = sheet.run.requirements, sheet.environment, sheet.about.facts
    device = " ".join(filter(None, (told.get("manufacturer"), told.get("model"))))
    deviations = [*dict.fromkeys(text for record in records for text in record.deviations), *sheet.about.deviations]
    glossary = {name: meaning for record in records for name, meaning in record.requirement.quantity.glossary.items()}
    router = known_facts(environment.router_facts) if environment.router_facts else {}
    code = ", ".join(f"{name} {value}" for name, value in environment.code.items())
    settings = [
        f"{heading}: {line}"
        for name, heading in WORDS["settings"].items()
        for line in getattr(environment.router_configuration, name)
    ]
    known = summary(ExecutionSummary((sheet.summary,)))
    tables = [part for section in known.sections for part in section.parts if isinstance(part, Table)]
    sections = (
        Section("", list(_head(sheet))),
        Section("This traffic, a good trial, and what is forgiven", [Facts(_terms(sheet))]),
        Section("What was promised, and what was measured", tables),
        Section("Each promise", list(_promises(sheet))),
        Section(WORDS["testbed"], [Facts({**sheet.summary.facts, **_ports(environment)})]),
        Section("The router's settings, each with where it comes from", [Items(settings)] if settings else []),
        Section("How it was measured", [Note(WORDS["method"])]),
        Section("Deviations from the method", [Items(deviations or ["none was declared"])]),
        Section("Words", [Facts(WORDS["words"] | glossary)]),
        Section("The router, as it reports itself", [Facts(router)] if router else []),
        Section("Versions, as each reports it", [Facts({"Lineproof": code or "unknown", **environment.versions})]),
        Section("Evidence", list(_evidence(sheet))),
        Section("Signatures: who answers for what", list(_signatures(sheet))),
    )
    title = f"{'DRAFT: ' if sheet.draft else ''}Acceptance sheet: {device or sheet.summary.facts['router']}"
    return Document(title, [section for section in sections if section.parts], sheet.run.simulated)


def _head(sheet: Sheet) -> Iterator[Part]:
    environment = sheet.environment
    yield Note(WORDS["head"])
    if sheet.draft:
        yield Note(f"DRAFT, not to be signed{':' if sheet.reasons else '.'}", strong=True)
        yield Items(sheet.reasons)
    yield Note(f"Result: {result(sheet)}.", strong=True)
    yield Facts(
        {
            "begun": moment(environment.started),
            "ended": "not ended" if environment.ended is None else moment(environment.ended),
            "sheet made": f"{sheet.made:%Y-%m-%d %H:%M}",
        }
    )
    yield Note("As the parties say, from nameplate and papers:")
    blanks = dict.fromkeys([*WORDS["blanks"], *(f"cable {port}" for port in environment.interfaces)], BLANK)
    yield Facts({**blanks, **sheet.about.facts})


def result(sheet: Sheet) -> str:
    """Return the result in a line: ``8 of 9 promises kept, 1 not kept (FAIL), …``."""
    records, marks = sheet.run.requirements, "".join(f"{mark}: " for mark in sheet.marks)
    count, waived = Counter(record.verdict for record in records), sum(map(bool, map(sheet.about.waivers_of, records)))
    promises = counted(len(records), "judged promise" if sheet.summary.incomplete else "promise")
    kept = f"{marks}{count['PASS']} of {promises} kept, {count['FAIL']} not kept (FAIL)"
    counts = f"{kept}, {count['INCONCLUSIVE']} not decided (INCONCLUSIVE), {waived} waived"
    return "; ".join([counts, *sheet.summary.incomplete])


def _promises(sheet: Sheet) -> Iterator[Part]:
    """Yield of each promise its words, its verdict, what other runs judged before, who waives it, and its picture."""
    for row in sheet.summary.sentences:
        record = row.record
        first, *details = record.message.splitlines() or [record.verdict]
        tries = [
            f"try in run {one.run}, ended {moment(one.ended)}: {one.verdict}, evidence {odds_text(one.odds)}"
            + (f", apart: {one.apart}" if one.apart else "")
            for one in record.tries
        ]
        waivers = [
            f"waived by {waiver.author} until {waiver.expires}, which changes no verdict: {waiver.reason}"
            for waiver in sheet.about.waivers_of(record)
        ]
        yield Note(first, strong=True)
        yield Note(f"Promised: {_in_plain_words(record)}")
        yield Items([*map(str.strip, details), *(tries if len(tries) > 1 else ()), *waivers])
        title = f"{record.sentence}: {row.outcome}" if row.search else record.sentence
        plot = sentence_plot(record, row.trials, title, record.simulated, row.searched)
        yield Figure(plot, record.sentence)


def _ports(environment: EnvironmentRecord) -> dict[str, str]:
    """Return each port of the generator with its interface of the router."""
    cards = {str(port.index): f"{port.driver} {port.mac}, {si(port.speed_bps, 'bit/s')}" for port in environment.ports}
    cabled = environment.interfaces.items()
    return {f"port {port}": f"{cards.get(port, 'not read')}, to {interface}" for port, interface in cabled}


def _evidence(sheet: Sheet) -> Iterator[Part]:
    key, verify = sheet.key, "lineproof verify RUN"
    yield Facts(
        {
            "run": sheet.environment.run,
            f"SHA-256 of {MANIFEST_FILE}": sheet.manifest or "none: the run was never closed",
            "records judged again": f"{counted(len(sheet.run.requirements), 'promise')}, each with the same verdict",
            "electronic signature": f"key {key_id(key)}, public key {key}, in {SIGNATURE}" if key else "none",
        }
    )
    yield Note(f"{MANIFEST_FILE} lists the SHA-256 sum of every file of the run. To check the run's folder RUN:")
    yield Code(f"{verify} --public-key {key}\nminisign -V -m RUN/{MANIFEST_FILE} -P {key}" if key else verify)
    if key:
        yield Note("Compare the key with one that its owner gave you: a sheet alone does not prove whose it is.")


def _signatures(sheet: Sheet) -> Iterator[Part]:
    yield Note("Not to be signed: a draft." if sheet.draft else "Signed for what each party answers for:")
    for part, duty in WORDS["answers"].items():
        party = sheet.about.parties.get(part, {})
        who = ", ".join(detail for name, detail in party.items() if name != "signatory")
        if party or part != "witness":
            yield Note(f"{part.capitalize()}: {who or BLANK}; answers for {duty}")
            yield Code(f"name  {party.get('signatory', BLANK)}   place, date  {BLANK}\n\n\nsignature  {BLANK}\n")


# -- plain words -------------------------------------------------------------------------------------------------------


def _terms(sheet: Sheet) -> dict[str, str]:
    """Return what the promises mean: each traffic, and what the goals count and forgive."""
    facts, goals = {}, goals_of(sheet.run)
    for traffic in dict.fromkeys(record.requirement.traffic for record in sheet.run.requirements):
        parts = traffic.split()
        for pattern, meaning in WORDS["traffic"].items():
            parts = [re.sub(f"^{pattern}$", meaning, part) for part in parts]
        facts[f"traffic {traffic}"] = "; ".join(parts)
    for goal in goals:
        of = f" (goal {goal.goal})" if len(goals) > 1 else ""
        facts |= {f"{name}{of}": value for name, value in _goal_words(goal).items()}
    return facts


def _goal_words(goal: Goal) -> Mapping[str, str]:
    lossless = f"at most {100 * goal.loss_ratio:g} % of the frames are lost" if goal.loss_ratio else "no frame is lost"
    shares = goal.good_share or 0.0, goal.bad_share or 0.0, goal.risk, goal.forgiven
    terms = {
        **dict(zip(("good", "bad", "risk", "all"), (100 * share for share in shares), strict=True)),
        **{"seconds": goal.final_trial_duration, "budget": goal.budget, "lossless": lossless},
        "good_trials": counted(goal.fewest_trials, "good trial"),
    }
    phrases = {name: text.format_map(terms) for name, text in WORDS["goal"].items()}
    strict = phrases.pop("strict")
    return phrases | ({"forgiven": strict} if goal.is_strict or not all(shares[:2]) else {})


def _in_plain_words(record: RequirementRecord) -> str:
    demanded = record.requirement
    least, scope = "at least" if demanded.at_least else "at most", demanded.scope.value
    figure = f"{least} {demanded.text()}{f' {scope}' if scope else ''}"
    named = demanded.named_load(record.link_bps)
    load = f"offered {si(named.pps, 'pps')} at each port" if named else "offered as much as the generator can send"
    return demanded.quantity.plain(record.promise, figure, load)


# -- page and PDF ------------------------------------------------------------------------------------------------------


def html_sheet(sheet: Sheet) -> str:
    """Return the sheet as a page that prints on A4, with its run and sum below each page and its marks across it."""
    foot = [*sheet.marks, f"run {sheet.environment.run}", f"manifest {sheet.manifest or 'none'}"]
    style = (
        f"{Path(__file__).with_name('paper.css').read_text(encoding='utf-8')}"
        f"@page {{ @bottom-left {{ content: {_css_text(' · '.join(foot))} }} }}\n"
        f"body::before {{ content: {_css_text(chr(10).join(sheet.marks))} }}\n"
    )
    return as_page(sheet_document(sheet), style)


def _css_text(text: str) -> str:
    """Return *text* as a text of CSS, in which no character has a meaning."""
    return '"' + re.sub(r"[^ \w]", lambda sign: f"\\{ord(sign[0]):x} ", text, flags=re.ASCII) + '"'


def require_weasyprint() -> Any:
    """Return the package. Raises TestbedError with the way out where it, or its library, is missing."""
    try:
        return importlib.import_module("weasyprint")
    except ImportError:
        needs = f"the package weasyprint: {remedy('signoff')}"
    except OSError:  # it loads the library when it is imported
        needs = "the library Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0"
    raise TestbedError(f"the PDF needs {needs}; or leave the PDF out: --html-only")


def pdf_sheet(page: str, manifest: Path, about: Path | None) -> bytes:
    """Return *page* as PDF/A-3b with the fonts of the system, and the two files in it. Nothing is fetched."""
    weasyprint = require_weasyprint()
    attached = [
        weasyprint.Attachment(string=read_file(path), name=path.name, relationship=use)
        for path, use in ((manifest, "Source"), (about, "Supplement"))
        if path and path.exists()
    ]
    nothing = weasyprint.urls.URLFetcher(allowed_protocols=(), allow_redirects=False, fail_on_errors=True)
    printed = weasyprint.HTML(string=page, url_fetcher=nothing)
    options = {"pdf_variant": "pdf/a-3b", "pdf_tags": True, "finisher": _plain_metadata}
    return bytes(printed.write_pdf(attachments=attached, **options))


def _plain_metadata(_: Any, pdf: Any) -> None:
    """Leave the metadata uncompressed, for validators that ask it of every PDF/A, and programs that know no PDF."""
    for part in pdf.objects:
        if getattr(part, "extra", {}).get("Type") == "/Metadata":
            part.compress = False
