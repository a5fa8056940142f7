"""What the sheet to sign looks like: its plots, its numbers, its pages, its PDF."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.evidence.run import RunFolder
from lineproof.evidence.signoff.pictures import sentence_plot, testbed_drawing
from lineproof.evidence.signoff.sheet import make_sheet
from support.evidence_builders import requirement_record
from support.signoff_runs import LOSES, NOW, about, environment, left_run, page, told, waiver, waivers


def test_every_plot_is_black_on_white(tmp_path: Path):
    sheet = make_sheet(left_run(tmp_path, "FAIL", "FAIL", "PASS"), NOW)
    pictures = [testbed_drawing(sheet), *(sentence_plot(row, sheet.number(row)) for row in sheet.rows)]
    for svg in pictures:
        colours = set(re.findall(r"#[0-9a-fA-F]{6}", svg)) | set(re.findall(r'fill="(\w+)"', svg))
        assert colours <= {"#000000", "#ffffff", "#9a9a9a", "white"}, "a grey is of a hatch only"
    lost, forwards, loses = pictures[1:]
    assert "% of the frames lost" in lost and "Mpps" in forwards and "promised ≤ 1%" in loses


def test_promises_are_numbered_one_by_one_though_searches_are_between_them(tmp_path: Path):
    run = RunFolder.create(tmp_path, "20261121T040000Z-abc123")
    with_end = replace(environment(), run=run.run_id)
    for number in (2, 5, 9):
        run.add_requirement(requirement_record(run=run.run_id, simulated=False, number=number, verdict="FAIL"))
    run.close(with_end)
    shown = told(page(run.path))
    assert re.findall(r" (\d) 64b unidirectional ≥", shown.partition("Appendix")[0]) == ["1", "2", "3"]
    assert "Promise 3: " in shown and "waived: promise 1, 2, 3." in shown and "Promise 9" not in shown


def test_every_try_of_a_promise_is_listed(tmp_path: Path):
    run = RunFolder.create(tmp_path, "20261121T040000Z-abc123")
    before = {"run": "20261120T040000Z-abc123", "verdict": "FAIL", "ended": 1_794_900_000.0, "odds": 0.025}
    extra = {"tries": [before], "evidence": {"odds": 30.0, "needed": 20.0}}
    run.add_requirement(requirement_record(run=run.run_id, simulated=False, verdict="PASS", extra=extra))
    run.close(replace(environment(), run=run.run_id))
    shown = told(page(run.path)).partition("Every try")[2]
    assert re.search(r"1 20261120T040000Z-abc123 2026-11-17 \S+ FAIL 1 to 40 1 20261121\S+ .* PASS 30 to 1", shown), (
        shown
    )


def streams(pdf: bytes) -> bytes:
    """Everything in *pdf*, uncompressed."""
    found = [pdf]
    for each in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        with contextlib.suppress(zlib.error):
            found.append(zlib.decompress(each))
    return b"\n".join(found)


MANY = ["PASS"] * 20 + ["FAIL", "INCONCLUSIVE"] * 3 + ["PASS"] * 25 + ["FAIL"]


def test_of_many_promises_the_sheet_has_short_rows_and_the_appendix_all_of_them(tmp_path: Path):
    author = "Jane Doe"
    lines = [waiver(LOSES, author, test=f"Test {number}") for number in (24,)]
    shown = told(page(left_run(tmp_path, *MANY), draft=True, waivers=waivers(tmp_path, *lines)))
    sheet, _, rest = shown.partition("Appendix A: every trial")
    full = rest.partition("Appendix D: every promise")[2]
    assert "32 FAIL" not in sheet
    table = sheet.partition("What was promised")[2].partition("Router and testbed")[0]
    numbers = [int(found) for found in re.findall(r" (\d+) (?:64b|imix) unidirectional", table)]
    assert numbers == [*range(1, 42), 52, 24], "those that were not kept, then the first; and the waiver"
    assert "10 further promises, all kept: appendix D." in table
    assert "INCONCLUSIVE, waived" in table and "Who waives Jane Doe the waiver of promise 24" in sheet
    assert "Of those that were not kept, why: appendix D." in table
    assert "Not kept and not waived: promise 21, 22, 23, 25, 26, 52." in table
    assert "carries at least" not in sheet and full.count("carries at least") == 18
    assert "Promise 52: FAIL: as measured" in full and "Promise 52" not in sheet
    assert "ticket 4711" in sheet and "waived by Jane Doe until 2027-03-31" in full


@pytest.mark.parametrize("count", [1, 10])
def test_few_promises_are_on_the_sheet_in_full(tmp_path: Path, count: int):
    shown = told(page(left_run(tmp_path, *["FAIL"] * count), draft=True))
    assert ("Appendix D" in shown) == (count > 5), "the reasons of many go into the appendix"
    sheet = shown.partition("Appendix A: every trial")[0]
    assert sheet.count("of this traffic, in a good trial") == (count + 2) // 3
    assert ("Promise 1: FAIL" in sheet) == (count <= 5)


def test_trials_that_are_set_aside_are_hatched_in_their_place_and_out_of_the_scale(tmp_path: Path):
    plain, spoilt = left_run(tmp_path / "a", "FAIL", "FAIL"), left_run(tmp_path / "b", "FAIL", "FAIL", spoilt=(2,))
    for before, after in zip(*(make_sheet(run, NOW, draft=True).rows for run in (plain, spoilt)), strict=True):
        first, second = sentence_plot(before, 1), sentence_plot(after, 1)
        columns = re.findall(r'<rect x="([\d.]+)" y="46.00" width="([\d.]+)" height="120.00" fill="url\(#back-', second)
        assert len(columns) == 1 and "back-" not in first
        # between the marks of the first and the third
        marks = [float(x) for x in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="7.00"', second)][:-1]
        left, width = map(float, columns[0])
        assert marks[0] < left < left + width < marks[1]
        assert "1 trial set aside: any number of frames may be the testbed" in second and "one of 2 trials" in second
    everything = left_run(tmp_path / "c", "INCONCLUSIVE", spoilt=(1, 2, 3))
    (row,) = make_sheet(everything, NOW, draft=True).rows
    assert "3 trials set aside" in sentence_plot(row, 1) and "url(#back-" in sentence_plot(row, 1)
    assert "No trial says something" not in told(page(everything, draft=True))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of many promises whose sheet was printed as a draft."""
    folder = tmp_path_factory.mktemp("printed")
    run = left_run(folder, *MANY[9:], simulated=True, spoilt=(2,))
    file = about(folder, "contract: '2026-117'")
    assert main(["signoff", str(run), "--draft", "--about", str(file)]) == 0
    return run


@pytest.mark.slow
def test_the_pdf_carries_fonts_colours_and_files_along(printed: Path):
    pdf = (printed / "signoff-draft.pdf").read_bytes()
    whole = streams(pdf)
    assert b"<pdfaid:part>3</pdfaid:part>" in re.sub(rb"\s", b"", whole) or b'pdfaid:part="3"' in whole
    assert b"sRGB" in whole and b"/FontFile2" in whole + pdf
    for name in (b"manifest.json", b"about.yaml"):
        assert name in whole
    assert (printed / "manifest.json").read_bytes() in whole and b"/EmbeddedFile" in whole
    assert b"<x:xmpmeta" in pdf, "the metadata are not compressed"


UNDECIDABLE = "PDFA3B-STREAM-LENGTH-001"
"""The validator takes a carriage return at the end of compressed data for a part of the line's end; veraPDF not."""


@pytest.mark.slow
def test_the_pdf_is_an_archivable_one(printed: Path):
    """By a validator that knows nothing of what made it: ISO 19005-3, level B."""
    validator = pytest.importorskip("page", reason="needs page-validation")
    found = validator.validate_pdf_bytes((printed / "signoff-draft.pdf").read_bytes(), profile="3b")
    assert found.rules.total > 100
    assert [str(item.message) for item in found.failures if item.rule_id != UNDECIDABLE] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext (Debian: poppler-utils)")
def test_the_pdf_is_marked_on_every_page_and_has_an_appendix_after_three(printed: Path):
    text = subprocess.run(["pdftotext", "-layout", printed / "signoff-draft.pdf", "-"], capture_output=True, timeout=30)
    pages = text.stdout.decode().rstrip("\f").split("\f")
    (appendix,) = (number for number, each in enumerate(pages, 1) if "Appendix A" in each)
    assert appendix <= 4, "one to three pages, then the appendix"
    assert len(pages) >= 3 and all("DRAFT" in each and "SIMULATED" in each for each in pages)
    assert all(f"page {number} of {len(pages)}" in each for number, each in enumerate(pages, 1))
