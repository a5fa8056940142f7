"""The sheet as a document: a page to print on A4, black on white, and the same as PDF."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

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
from ..forms import known_rows
from ..pictures import sheet_plot
from ..records import RequirementRecord
from ..run_files import MANIFEST_FILE, SIGNATURE
from ..sentence_rows import SentenceRow
from ..summary import NOT_READ, confidence_words, interval_text, margin_text, measured_text
from .sheet import KEPT, Sheet
from .testbed_drawing import testbed_drawing

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
    device = " ".join(filter(None, (told.manufacturer, told.model)))
    device = device or sheet.summary.facts.get("router", sheet.environment.platform)
    sections = (
        _head(sheet),
        _parties(sheet),
        _promises(sheet),
        *_reasons(sheet),
        _device(sheet),
        _method(sheet),
        _evidence(sheet),
        _signatures(sheet),
        _plots(sheet),
        Section("Appendix B: words", [Facts(dict(glossary([row.record for row in sheet.rows])))]),
        *_versions(sheet),
    )
    title = f"{'DRAFT: ' if sheet.draft else ''}Acceptance sheet: {device}"
    return Document(title, sections, sheet.run.simulated)


def _head(sheet: Sheet) -> Section:
    told, environment = sheet.about, sheet.environment
    parts: list[Part] = [
        Note(
            "What the router was promised to do, what was measured, and who answers for what. Times are UTC, dates"
            " year-month-day. Words are explained in appendix B."
        )
    ]
    if sheet.watermark:
        known = " SIMULATED: nothing on it is a measurement of a router." if sheet.run.simulated else ""
        parts.append(Note(f"DRAFT, not to be signed.{known}", strong=True))
    if sheet.reasons:
        parts += [Note("This run cannot be signed off:", strong=True), Items(sheet.reasons)]
    measured = f"{moment(environment.started)} to {moment(environment.ended) if environment.ended else 'not ended'}"
    facts = {
        "Contract": told.contract or BLANK,
        "Measured": measured,
        "Place": told.testbed.place or BLANK,
        "Sheet made": f"{sheet.made:%Y-%m-%d %H:%M}",
    }
    remarks = {"Remarks": told.remarks} if told.remarks else {}
    return Section("", [*parts, Note(f"Result: {result_words(sheet)}.", strong=True), Facts(facts | remarks)])


def result_words(sheet: Sheet) -> str:
    """The result in a line: ``8 of 9 promises kept; 1 not kept (FAIL), waived``."""
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
    rows = [
        (name.capitalize(), ", ".join(filter(None, (party.name, party.address, party.contact))) or BLANK, ANSWERS[name])
        for name, party in sheet.parties.items()
    ]
    waived: dict[str, list[str]] = {}
    for row, waiver in sheet.used_waivers:
        waived.setdefault(waiver.author, []).append(str(sheet.number(row)))
    rows += [("Who waives", name, f"the waiver of promise {', '.join(numbers)}") for name, numbers in waived.items()]
    return Section("Who answers for what", [_table(("party", "who", "answers for"), rows)])


def _promises(sheet: Sheet) -> Section:
    first = Note("A promise of the contract that is not listed here was not measured in this run.")
    if not sheet.rows:
        return Section(_PROMISES, [first, Note("No sentence was judged.")])
    heads = ("no.", "promised", "measured", confidence_words(sheet.rows), "margin", "verdict")
    return Section(_PROMISES, [first, _table(heads, [_promise(sheet, row) for row in sheet.rows])])


_PROMISES = "What was promised, and what was measured"


def _promise(sheet: Sheet, row: SentenceRow) -> tuple[Cell | str, ...]:
    record, waiver = row.record, sheet.waiver(row)
    trials = f"{counted(len(row.sample), 'trial')}{f', {row.set_aside} set aside' if row.set_aside else ''}"
    verdict = f"{record.verdict}{f', waived by {waiver.author} until {waiver.expires}' if waiver else ''}"
    return (
        str(sheet.number(row)),
        f"{record.sentence}: {in_plain_words(record)}",
        f"{measured_text(row)}; {trials}",
        interval_text(row),
        margin_text(row),
        replace(verdict_cell(record.verdict), text=verdict),
    )


def _reasons(sheet: Sheet) -> Iterator[Section]:
    """Yield why promises were not kept, the waivers, and every try."""
    unkept = [row for row in sheet.rows if row.record.verdict != KEPT]
    if unkept:
        yield Section("Why", [part for row in unkept for part in _why(sheet.number(row), row.record.message)])
    if sheet.used_waivers:
        words = "A waiver accepts that a promise was not kept or not decided. It does not change the verdict."
        waivers = [
            (
                *(str(sheet.number(row)), row.record.sentence, row.record.verdict),
                *(waiver.author, waiver.reason, str(waiver.expires)),
            )
            for row, waiver in sheet.used_waivers
        ]
        heads = ("no.", "promise", "verdict", "author", "reason", "valid until")
        yield Section("Waivers", [Note(words), _table(heads, waivers)])
    if others := [str(sheet.number(row)) for row in unkept if sheet.waiver(row) is None]:
        yield Section("", [Note(f"Not kept and not waived: promise {', '.join(others)}.", strong=True)])
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
    if details:
        yield Items([line.strip() for line in details])


def _device(sheet: Sheet) -> Section:
    told, facts = sheet.about.device, sheet.summary.facts
    read = facts.get("firmware", NOT_READ)
    rows = [
        ("Manufacturer, model", f"{told.manufacturer or BLANK} {told.model or BLANK}", "nameplate"),
        ("Serial number, hardware", f"{told.serial or BLANK} {told.hardware or BLANK}", "nameplate"),
        ("Firmware", BLANK, "") if read == NOT_READ else ("Firmware", read, "read from the router"),
        *([("Firmware as told", told.firmware, "told by the parties")] if told.firmware else []),
        ("Platform", facts.get("router", ""), "platform file of the run"),
        ("Software", facts.get("software", ""), "read from the router"),
    ]
    drawing = Figure(testbed_drawing(sheet), "testbed")
    return Section("Router and testbed", [_table(("", "what", "known from"), rows), drawing])


def _method(sheet: Sheet) -> Section:
    declared = [*dict.fromkeys(words for row in sheet.rows for words in row.record.deviations), *sheet.about.deviations]
    return Section(
        "How it was measured",
        [
            Note(
                "The generator sends frames through the router at the load that a promise names, and counts what comes"
                " back at the other port, frame by frame, for the time of a trial. Trials are repeated until the goal's"
                " rule decides. What the testbed did wrong widens a trial's figure, and each trial counts at both ends:"
                " for a PASS at the worse one, for a FAIL at the better one. Means are without trials of which any"
                " number of frames may be the testbed's: they are set aside. Terms are those of RFC 1242, RFC 2285,"
                " RFC 2544 and RFC 9971; the whole method is Lineproof's page 'methodology', of the version in"
                " appendix C."
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
    check = Note(
        f"{MANIFEST_FILE} lists the SHA-256 sum of every file of the run. To check the run's folder RUN"
        f"{', with Lineproof or without it' if key else ''}:"
    )
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
            f"{name.capitalize()}{f': {party.name}' if party.name else ''}\n"
            f"name         {party.signatory or BLANK}\n\n"
            f"place, date  {BLANK}\n\n\n"
            f"signature    {BLANK}\n"
        )
        for name, party in sheet.parties.items()
    ]
    return Section("Signatures", [Note("Not to be signed: a draft." if sheet.draft else words), *places])


def _plots(sheet: Sheet) -> Section:
    shown = [row for row in sheet.rows if row.sample or row.losses or row.aside]
    parts: list[Part] = [Figure(sheet_plot(row, sheet.number(row)), row.record.sentence) for row in shown]
    if others := [str(sheet.number(row)) for row in sheet.rows if row not in shown]:
        parts.append(Note(f"No trial says something of promise {', '.join(others)}."))
    return Section("Appendix A: every trial", parts)


def _versions(sheet: Sheet) -> Iterator[Section]:
    environment = sheet.environment
    yield Section("Appendix C: router, programs, sums", ())
    if (facts := environment.router_facts) is not None:
        yield Section("The router, as it reports itself", [Facts(dict(known_rows(facts)))])
    yield Section("Versions, as each reports it", [Facts(dict(sorted(environment.versions.items())))])
    code = ", ".join(f"{name} {value}" for name, value in environment.code.items())
    host = {name: str(value) for name, value in environment.host.items()}
    yield Section("", [Facts({"Lineproof": code or "unknown", **host})])
    fingerprints = environment.extra.get("fingerprints")
    if isinstance(fingerprints, dict) and fingerprints:
        sums = {str(name): str(value) for name, value in sorted(fingerprints.items())}
        yield Section("SHA-256 of the files that define the run", [Facts(sums)])


def _table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]]) -> Table:
    return Table([Column(head, left=True) for head in heads], [Row(cells) for cells in rows])


def moment(seconds: float) -> str:
    """Unix time as UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "unknown"


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
.lineproof > svg {{ max-width: 49%; height: auto; }}
.lineproof > svg:first-of-type {{ max-width: 100%; }}
"""
"""CSS for paper, in black and white. The first picture is the testbed, the others are a plot of each promise."""


def html_sheet(sheet: Sheet) -> str:
    """Return the sheet as a page that prints on A4, with its run and sum below each page and its marks across it."""
    marks = [*sheet.watermark, f"run {sheet.environment.run}", f"manifest {sheet.manifest or 'none'}"]
    style = _PAPER.format(foot=_css_text(" · ".join(marks)), watermark=_css_text("\n".join(sheet.watermark)))
    made = f'<meta name="dcterms.created" content="{sheet.made:%Y-%m-%dT%H:%M:%SZ}">'
    return as_page(sheet_document(sheet)).replace("</head>", f"{made}<style>{style}</style></head>", 1)


def _css_text(words: str) -> str:
    """Return *words* as a text of CSS, in which no character has a meaning."""
    return '"' + re.sub(r"[^ \w]", lambda found: f"\\{ord(found[0]):x} ", words, flags=re.ASCII) + '"'


_NEEDS = "the PDF needs the package weasyprint: {remedy}; or leave the PDF out: --html-only"
_PANGO = "the PDF needs the library Pango, on Debian and Ubuntu: apt install libpango-1.0-0 libpangoft2-1.0-0"


def require_weasyprint() -> Any:
    """The package. Raises TestbedError with the way out where it, or its library, is missing."""
    try:
        return importlib.import_module("weasyprint")
    except ImportError:
        raise TestbedError(_NEEDS.format(remedy=remedy("signoff"))) from None
    except OSError:  # it loads the library when it is imported
        raise TestbedError(f"{_PANGO}; or leave the PDF out: --html-only") from None


def pdf_sheet(page: str, sheet: Sheet) -> bytes:
    """*page*, that of *sheet*, as PDF/A-3b with the fonts of the system. Nothing is fetched."""
    weasyprint = require_weasyprint()
    manifest = sheet.run.path / MANIFEST_FILE
    attached = [
        weasyprint.Attachment(string=read_file(path), name=path.name, relationship=relationship)
        for path, relationship in (
            *([(manifest, "Source")] if sheet.manifest else []),
            *((path, "Supplement") for path in sheet.attached),
        )
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


# -- words -------------------------------------------------------------------------------------------------------------


def in_plain_words(record: RequirementRecord) -> str:
    """Return what the sentence of *record* promises."""
    demanded = record.requirement
    least, scope = "at least" if demanded.at_least else "at most", demanded.scope.value
    figure = f"{least} {demanded.text()}{f' {scope}' if scope else ''}"
    load = "offered as much as the generator can send"
    if named := demanded.named_load(record.link_bps):
        load = f"offered {si(named.pps, 'pps')} at each port"
    return demanded.quantity.plain(record.promise, figure, load)


_WORDS = (
    (r"\b(\d+)b\b", "frames (pieces of data) of so many bytes, as 64b of 64; small ones are the hardest"),
    (r"\bimix", "a mix of small, middle and large frames, as on the Internet"),
    (r"\b1-flow\b", "all frames belong to one connection, which one core of the processor has to carry"),
    (r"\bunidirectional\b", "in one direction"),
    (r"\bbidirectional\b", "in both directions at once"),
    (r"\beach way\b", "the figure is that of the worse direction"),
    (r"\bin total\b", "the figure is the sum of the directions; two full directions are 200 %"),
    (r"\bline rate\b", "as many frames as the cable can carry; 100 % is a full cable in one direction"),
    (r"\b[MkG]?pps\b", "frames per second; kpps: thousands, Mpps: millions of them"),
    (r"\b[GMk]bps L1\b", "bits per second on the cable, with the gaps between frames"),
    (r"\b[GMk]bps L2\b", "bits per second of frames, without the gaps between them"),
    (r"\b[µm]s\b", "µs: millionths of a second, ms: thousandths"),
    (r"\bcycles/packet\b", "steps of the processor for a frame"),
    (r"\bforwards\b", "what is delivered while more is offered than the router can carry"),
    (r"\bpdv\b", "how much longer frames take than the fastest one"),
)

FIXED = {
    "PASS": "the promise was kept, and the testbed really put the load on the cable",
    "FAIL": "the promise was not kept; the router is the reason",
    "INCONCLUSIVE": "nothing is proven, neither for nor against the router; the testbed is the reason",
    "trial": "one period of traffic whose frames are counted: sent and received",
    "goal": "the rule that says how many trials a verdict takes, and how much a trial may lose",
    "interval": "within it the mean lies with the confidence that the column's head says",
    "margin": "by how much the figure is better (+) or worse (−) than promised",
}
"""The sheet's own words."""


def glossary(records: Sequence[RequirementRecord]) -> Iterator[tuple[str, str]]:
    """Word and meaning: of the sentences those that occur, then the sheet's own."""
    sentences = " \n ".join(record.sentence for record in records)
    for pattern, meaning in _WORDS:
        found = list(dict.fromkeys(match[0] for match in re.finditer(pattern, sentences)))
        if found:
            yield ", ".join(found[:6]), meaning
    yield from FIXED.items()
