"""The sheet as a document: a page to print on A4, black on white, and the same as PDF."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ...core.goal import Goal
from ...core.verdict import odds_text
from ...errors import TestbedError
from ...files import read_file
from ...system.installed import remedy
from ...units import counted, si
from ..document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Note,
    Part,
    Row,
    Section,
    Table,
    as_page,
    verdict_cell,
)
from ..forms import known_facts
from ..pictures import sentence_plot
from ..records import RequirementRecord
from ..run_files import MANIFEST_FILE, SIGNATURE
from ..sentence_rows import SentenceRow, figure_heading
from .sheet import KEPT, Sheet, goals_of

BLANK = "_" * 20
"""A place to write by hand."""

ANSWERS = {
    "supplier": "the router and its settings: for every promise that was not kept (FAIL)",
    "tester": "testbed, measurement and records: for every promise that could not be decided (INCONCLUSIVE)",
    "buyer": "acceptance; for a waiver answers who it names as its author",
    "witness": "having seen the measurement",
}
"""Party -> what it answers for."""


def sheet_document(sheet: Sheet) -> Document:
    """Return what the sheet says."""
    told = sheet.about.device
    device = " ".join(filter(None, (told.get("manufacturer"), told.get("model"))))
    device = device or sheet.summary.facts.get("router", sheet.environment.platform)
    sections = (
        _head(sheet),
        Section("This traffic, a good trial, and what is forgiven", [Facts(terms(sheet.rows))]),
        _parties(sheet),
        _promises(sheet),
        *_reasons(sheet),
        _device(sheet),
        _method(sheet),
        _evidence(sheet),
        _signatures(sheet),
        _plots(sheet),
        Section("Appendix B: words", [Facts(WORDS)]),
        *_versions(sheet),
    )
    title = f"{'DRAFT: ' if sheet.draft else ''}Acceptance sheet: {device}"
    return Document(title, sections, sheet.run.simulated)


def _head(sheet: Sheet) -> Section:
    told, environment = sheet.about, sheet.environment
    parts: list[Part] = [
        Note(
            "What the router was promised to do, what was measured, and who answers for what. Times are UTC, dates"
            " year-month-day."
        )
    ]
    if sheet.watermark:
        known = " SIMULATED: nothing on it is a measurement of a router." if sheet.run.simulated else ""
        parts.append(Note(f"DRAFT, not to be signed.{known}", strong=True))
    if sheet.reasons:
        parts += [Note("This run cannot be signed off:", strong=True), Items(sheet.reasons)]
    ended = moment(environment.ended) if environment.ended else "not ended"
    facts = {
        "Contract": told.contract or BLANK,
        "Measured": f"{moment(environment.started)} to {ended}",
        "Sheet made": f"{sheet.made:%Y-%m-%d %H:%M}",
        **{name.capitalize(): words for name, words in {"place": BLANK, **told.testbed}.items()},
        **({"Remarks": told.remarks} if told.remarks else {}),
    }
    return Section("", [*parts, Note(f"Result: {result_words(sheet)}.", strong=True), Facts(facts)])


def result_words(sheet: Sheet) -> str:
    """Return the result in a line: ``8 of 9 promises kept; 1 not kept (FAIL), waived``."""
    rows = sheet.rows
    if not rows:
        return "no promise was judged"
    kept = sum(row.record.verdict == KEPT for row in rows)
    marked = "".join(f"{word}: " for word in sheet.watermark)
    of = f"{kept} of " if kept < len(rows) else "" if sheet.summary.incomplete else "all "
    parts = [f"{marked}{of}{counted(len(rows), 'promise')} kept"]
    for verdict, words in (("FAIL", "not kept"), ("INCONCLUSIVE", "not decided")):
        mine = [row for row in rows if row.record.verdict == verdict]
        count = sum(sheet.waiver(row) is not None for row in mine)
        waived = "waived" if count == len(mine) else f"{count} of them waived" if count else "not waived"
        if mine:
            parts.append(f"{len(mine)} {words} ({verdict}), {waived}")
    return "; ".join([*parts, *sheet.summary.incomplete])


def _parties(sheet: Sheet) -> Section:
    rows = []
    for part, party in sheet.parties.items():
        who = ", ".join(words for name, words in party.items() if name != "signatory")
        rows.append((part.capitalize(), who or BLANK, ANSWERS[part]))
    return Section("Who answers for what", [_table(("party", "who", "answers for"), rows)])


def _promises(sheet: Sheet) -> Section:
    parts: list[Part] = [Note("A promise of the contract that is not listed here was not measured in this run.")]
    heads = ("no.", "promised", figure_heading(sheet.rows), "margin", "verdict")
    parts += [_table(heads, [_promise(sheet, row) for row in sheet.rows])] if sheet.rows else []
    return Section("What was promised, and what was measured", parts)


def _promise(sheet: Sheet, row: SentenceRow) -> tuple[Cell | str, ...]:
    record, waiver = row.record, sheet.waiver(row)
    trials = f"{counted(len(row.sample), 'trial')}{f', {row.set_aside} set aside' if row.set_aside else ''}"
    verdict = f"{record.verdict}{f', waived by {waiver.author} until {waiver.expires}' if waiver else ''}"
    return (
        str(sheet.number(row)),
        f"{record.sentence}: {in_plain_words(record)}",
        f"{row.carries}; {trials}",
        row.margin_text,
        replace(verdict_cell(record.verdict), text=verdict),
    )


def _reasons(sheet: Sheet) -> Iterator[Section]:
    """Yield why promises were not kept, the waivers, and every try."""
    unkept = [row for row in sheet.rows if row.record.verdict != KEPT]
    if unkept:
        yield Section("Why", [part for row in unkept for part in _why(sheet.number(row), row.record.message)])
    waivers = [
        (str(sheet.number(row)), row.record.sentence, waiver.author, waiver.reason, str(waiver.expires))
        for row in unkept
        if (waiver := sheet.waiver(row))
    ]
    if waivers:
        words = "A waiver accepts that a promise was not kept or not decided. It does not change the verdict."
        heads = ("no.", "promise", "author", "reason", "valid until")
        yield Section("Waivers", [Note(words), _table(heads, waivers)])
    # what other runs had judged before on the same router, in the same folder of results
    tries = [
        (str(sheet.number(row)), item.run, moment(item.ended), item.verdict, odds_text(item.odds))
        for row in sheet.rows
        if len(row.record.tries) > 1
        for item in row.record.tries
    ]
    if tries:
        words = "Each run began at 1; evidence for the router, and against it (1 to …)."
        yield Section("Every try", [Note(words), _table(("no.", "run", "ended", "verdict", "evidence"), tries)])


def _why(number: int, message: str) -> Iterator[Part]:
    first, *details = message.splitlines() or [""]
    yield Note(f"Promise {number}: {first}", strong=True)
    yield Items([line.strip() for line in details])


def _device(sheet: Sheet) -> Section:
    """Return the router, as its nameplate and as it reports itself, and each port with its cable."""
    facts, environment = sheet.summary.facts, sheet.environment
    told = {**dict.fromkeys(("manufacturer", "model", "serial", "hardware"), BLANK), **sheet.about.device}
    read = facts.get("firmware", "")
    rows = [
        *((name, words, "told by the parties: nameplate, papers") for name, words in told.items()),
        ("firmware", read, "read from the router") if read else ("firmware", BLANK, ""),
        ("platform", facts.get("router", ""), "platform file of the run"),
        ("software", facts.get("software", ""), "read from the router"),
        ("generator", facts.get("generator", ""), "read from the generator"),
    ]
    known = {str(port.index): port for port in environment.ports}
    ports = []
    for index, interface in environment.interfaces.items():
        port = known.get(index)
        card = (f"{port.driver} {port.mac}", f"{port.speed_bps / 1e9:g} Gbit/s") if port else ("", "")
        ports.append((index, *card, sheet.about.cables.get(index, BLANK), interface))
    heads = ("port", "generator's card", "speed", "cable", "router's interface")
    return Section("Router and testbed", [_table(("", "what", "known from"), rows), _table(heads, ports)])


def _method(sheet: Sheet) -> Section:
    declared = [*dict.fromkeys(words for row in sheet.rows for words in row.record.deviations), *sheet.about.deviations]
    return Section(
        "How it was measured",
        [
            Note(
                "Trials are repeated until the goal's rule decides. What the testbed did wrong widens a trial's figure,"
                " and each trial counts at both ends: for a PASS at the worse one, for a FAIL at the better one. Means"
                " are without trials of which any number of frames may be the testbed's: they are set aside. Terms are"
                " those of RFC 1242, RFC 2285, RFC 2544 and RFC 9971; the whole method is Lineproof's page"
                " 'methodology', of the version in appendix D."
            ),
            Note(f"Goal {sheet.summary.facts.get('goal', '')}"),
            Note(f"Deviations{' from the method' if declared else ': none was declared'}", strong=True),
            Items(declared),
        ],
    )


def _evidence(sheet: Sheet) -> Section:
    key = sheet.key
    facts = {
        "Run": sheet.environment.run,
        f"SHA-256 of {MANIFEST_FILE}": sheet.manifest or "none: the run was never closed",
        "Judged again": sheet.again,
        "Electronic signature": f"key {key.id}, public key {key.text}" if key else "none",
    }
    check = Note(f"{MANIFEST_FILE} lists the SHA-256 sum of every file of the run. To check the run's folder RUN:")
    if not key:
        return Section("Evidence", [Facts(facts), check, Code("lineproof verify RUN")])
    commands = f"lineproof verify RUN --public-key {key.text}\nminisign -V -m RUN/{MANIFEST_FILE} -P {key.text}"
    compare = Note(
        f"The signature is in {SIGNATURE}. Compare the public key with one that its owner gave you: a sheet alone does"
        " not prove whose it is."
    )
    return Section("Evidence", [Facts(facts), check, Code(commands), compare])


def _signatures(sheet: Sheet) -> Section:
    words = "Signed for what each party answers for, as above; the appendix is part of it."
    places = [
        Code(
            f"{part.capitalize()}: {party.get('name', BLANK)}\n"
            f"name         {party.get('signatory', BLANK)}\n\n"
            f"place, date  {BLANK}\n\n\n"
            f"signature    {BLANK}\n"
        )
        for part, party in sheet.parties.items()
    ]
    return Section("Signatures", [Note("Not to be signed: a draft." if sheet.draft else words), *places])


def _plots(sheet: Sheet) -> Section:
    plots = []
    for number, row in enumerate(sheet.rows, 1):
        record, title = row.record, f"{number}. {row.record.sentence}: {row.record.verdict}"
        trials = [each.trial for each in sheet.run.trials_by_number.get(record.number, ())]
        plots.append(Figure(sentence_plot(record, trials, title, record.simulated), record.sentence))
    return Section("Appendix A: every trial", plots)


def _versions(sheet: Sheet) -> Iterator[Section]:
    environment = sheet.environment
    if (facts := environment.router_facts) is not None:
        yield Section("Appendix C: the router, as it reports itself", [Facts(known_facts(facts))])
    code = ", ".join(f"{name} {value}" for name, value in environment.code.items())
    versions = {"Lineproof": code or "unknown", **dict(sorted(environment.versions.items()))}
    yield Section("Appendix D: versions, as each reports it", [Facts(versions)])


def _table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> Table:
    return Table([Column(head, left=True) for head in heads], [Row(cells) for cells in rows])


def moment(seconds: float) -> str:
    """Return Unix time as UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "unknown"


# -- words -------------------------------------------------------------------------------------------------------------


def terms(rows: Sequence[SentenceRow]) -> dict[str, str]:
    """Return what the promises of *rows* mean: each traffic, and what the goals count and forgive."""
    traffics = dict.fromkeys(row.record.requirement.traffic for row in rows)
    goals = goals_of(rows)
    facts = {f"traffic {name}": _traffic_words(name) for name in traffics}
    for goal in goals:
        of = f" (goal {goal.goal})" if len(goals) > 1 else ""
        facts |= {f"{name}{of}": words for name, words in _goal_words(goal).items()}
    return facts


_TRAFFIC = (
    (r"(\d+)b", r"frames (pieces of data) of \1 bytes; small ones are the hardest"),
    (r"imix", "a mix of small, middle and large frames, as on the Internet"),
    (r"1-flow", "all frames belong to one connection, which one core of the processor has to carry"),
    (r"(\d+)-flows?", r"the frames belong to \1 connections"),
    (r"unidirectional", "sent in one direction"),
    (r"bidirectional", "sent in both directions at once"),
)


def _traffic_words(traffic: str) -> str:
    """Return *traffic* for somebody who knows no network; a word of the user's own profiles stays."""
    parts = []
    for word in traffic.split():
        known = (re.sub(pattern, words, word) for pattern, words in _TRAFFIC if re.fullmatch(pattern, word))
        parts.append(next(known, word))
    return "; ".join(parts)


def _goal_words(goal: Goal) -> Mapping[str, str]:
    lossless = f"at most {100 * goal.loss_ratio:g} % of the frames are lost" if goal.loss_ratio else "no frame is lost"
    forgiven = "nothing: one lost frame in its one trial is a FAIL"
    if not goal.is_strict and goal.good_share and goal.bad_share:
        forgiven = (
            f"single bad trials: a router that misses its promise in {100 * goal.good_share:g} % of its trials passes"
            f" as a rule, one that misses it in {100 * goal.bad_share:g} % passes by chance in at most"
            f" {100 * goal.risk:g} % of tests. Of all frames of a load without loss {100 * goal.forgiven:g} % may be"
            " lost. What happens more rarely is seen only by a promise 'for' a longer time."
        )
    return {
        "trial": f"traffic through the router for {goal.final_trial_duration:g} s or longer; every frame is counted",
        "good trial": f"one that keeps the promise: the load was sent, and {lossless}, or the figure is as promised",
        "kept (PASS)": f"{counted(goal.fewest_trials, 'good trial')}, more where some are not; {goal.budget} at most",
        "forgiven": forgiven,
    }


def in_plain_words(record: RequirementRecord) -> str:
    """Return what the sentence of *record* promises."""
    demanded = record.requirement
    least, scope = "at least" if demanded.at_least else "at most", demanded.scope.value
    figure = f"{least} {demanded.text()}{f' {scope}' if scope else ''}"
    load = "offered as much as the generator can send"
    if named := demanded.named_load(record.link_bps):
        load = f"offered {si(named.pps, 'pps')} at each port"
    return demanded.quantity.plain(record.promise, figure, load)


WORDS = {
    "PASS": "the promise was kept, and the testbed really put the load on the cable",
    "FAIL": "the promise was not kept; the router is the reason",
    "INCONCLUSIVE": "nothing is proven, neither for nor against the router; the testbed is the reason",
    "margin": "by how much the figure is better (+) or worse (−) than promised; at the goal's risk between the ends",
    "each way, in total": "the figure of the worse direction; the sum of all (two full directions are 200 %)",
    "line rate": "as many frames as the cable can carry; 100 % is a full cable in one direction",
    "kpps, Mpps": "thousands, millions of frames per second",
    "L1, L2": "bits on the cable with the gaps between frames; without them",
    "µs, ms": "millionths, thousandths of a second",
    "cycles/packet": "steps of the processor for a frame",
}
"""The sheet's own words, and units."""


# -- page and PDF ------------------------------------------------------------------------------------------------------

_PAPER = """
@page {{ size: A4; margin: 18mm 15mm; font: 7pt "DejaVu Sans", sans-serif;
        @bottom-left {{ content: {foot}; width: 150mm; }}
        @bottom-right {{ content: "page " counter(page) " of " counter(pages); }} }}
body::before {{ content: {watermark}; white-space: pre; position: fixed; top: 80mm; left: 0; width: 100%; opacity: 0.13;
               text-align: center; transform: rotate(-35deg); font: 700 64pt/1.3 "DejaVu Sans", sans-serif;
               pointer-events: none; z-index: 9; }}
body .lineproof {{ font: 8.6pt/1.38 "DejaVu Sans", sans-serif; max-width: 190mm; margin: auto; }}
.lineproof * {{ color: #000 !important; background: none !important; }}
body .lineproof table {{ width: 100%; font-size: 7.6pt; }}
body .lineproof td {{ white-space: normal; overflow-wrap: anywhere; }}
body .lineproof td:first-child, body .lineproof thead ~ tbody td:last-child {{ overflow-wrap: normal; }}
body .lineproof pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: 8pt "DejaVu Sans Mono", monospace; }}
.lineproof tr, .lineproof svg, .lineproof pre {{ break-inside: avoid; }}
.lineproof h2 {{ break-after: avoid; }}
.lineproof > svg {{ max-width: 100%; height: auto; }}
"""
"""CSS for paper, in black and white."""


def html_sheet(sheet: Sheet) -> str:
    """Return the sheet as a page that prints on A4, with its run and sum below each page and its marks across it."""
    marks = [*sheet.watermark, f"run {sheet.environment.run}", f"manifest {sheet.manifest or 'none'}"]
    style = _PAPER.format(foot=_css_text(" · ".join(marks)), watermark=_css_text("\n".join(sheet.watermark)))
    made = f'<meta name="dcterms.created" content="{sheet.made:%Y-%m-%dT%H:%M:%SZ}">'
    return as_page(sheet_document(sheet)).replace("</head>", f"{made}<style>{style}</style></head>", 1)


def _css_text(words: str) -> str:
    """Return *words* as a text of CSS, in which no character has a meaning."""
    return '"' + re.sub(r"[^ \w]", lambda found: f"\\{ord(found[0]):x} ", words, flags=re.ASCII) + '"'


def require_weasyprint() -> Any:
    """Return the package. Raises TestbedError with the way out where it, or its library, is missing."""
    try:
        return importlib.import_module("weasyprint")
    except ImportError:
        needs = f"the package weasyprint: {remedy('signoff')}"
    except OSError:  # it loads the library when it is imported
        needs = "the library Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0"
    raise TestbedError(f"the PDF needs {needs}; or leave the PDF out: --html-only")


def pdf_sheet(page: str, sheet: Sheet) -> bytes:
    """Return *page*, that of *sheet*, as PDF/A-3b with the fonts of the system. Nothing is fetched."""
    weasyprint = require_weasyprint()
    files = dict.fromkeys(sheet.attached, "Supplement")
    files |= {sheet.run.path / MANIFEST_FILE: "Source"} if sheet.manifest else {}
    attached = [
        weasyprint.Attachment(string=read_file(path), name=path.name, relationship=relationship)
        for path, relationship in files.items()
    ]
    nothing = weasyprint.urls.URLFetcher(allowed_protocols=(), allow_redirects=False, fail_on_errors=True)
    made: bytes = weasyprint.HTML(string=page, url_fetcher=nothing).write_pdf(
        attachments=attached, pdf_variant="pdf/a-3b", pdf_tags=True, finisher=_plain_metadata
    )
    return made


def _plain_metadata(_: Any, pdf: Any) -> None:
    """Leave the metadata uncompressed: for validators that ask it of every PDF/A, and programs that know no PDF."""
    for item in pdf.objects:
        if getattr(item, "extra", {}).get("Type") == "/Metadata":
            item.compress = False
