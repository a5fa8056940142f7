"""``lineproof signoff``: what is refused, that its signature holds, and that the PDF can be archived."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.core.router_facts import RouterSetUp
from lineproof.core.verdict import Try
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.records import EnvironmentRecord
from lineproof.evidence.run import RunFolder
from lineproof.evidence.signoff.sheet import WORDS, html_sheet, make_sheet
from support.evidence_builders import Elements, requirement_record
from support.signoff_runs import (
    FIELDS,
    FORWARDS,
    NOW,
    PASSWORD,
    THROUGHPUT,
    about,
    key_file,
    left_run,
    page,
    told,
    waiver,
)

pytestmark = pytest.mark.usefixtures("as_recorded")

EVIL = "<script>alert(1)</script> {x} \x1b[2J ‮ </style> url(file:///etc/passwd)"


def test_a_waiver_counts_on_its_last_day_and_changes_no_verdict(tmp_path: Path):
    run = left_run(tmp_path, "INCONCLUSIVE", "FAIL")
    file = about(
        tmp_path,
        "waivers:",
        *waiver(THROUGHPUT, expires="2026-11-22"),
        *waiver(FORWARDS.replace("≥", ">="), author="Zoë"),
    )
    shown = told(page(run, about=file))
    assert "waived by Jane Doe until 2026-11-22" in shown and "waived by Zoë" in shown
    assert "waived by" not in told(page(left_run(tmp_path / "kept", "PASS", "PASS"), about=file))


def test_text_from_elsewhere_stays_text(tmp_path: Path):
    """In pictures and in the style sheet, too."""
    sheet = make_sheet(left_run(tmp_path, "FAIL", interfaces={"0": EVIL}, host={"name": EVIL}), NOW)
    html = html_sheet(replace(sheet, environment=replace(sheet.environment, run=EVIL)))
    assert "script" not in Elements(html).found and html.count("</style>") == html.count("<style>")
    assert 'content: "run \\3c script' in html and "\x1b" not in html and "‮" not in html


def test_a_signed_run_and_everything_that_was_changed_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def verified(*words: str) -> str:
        status = main(["verify", str(run), "--public-key", public, *words])
        return f"{status}: {' '.join(capsys.readouterr().out.split())}"

    run, (key, public) = left_run(tmp_path), key_file(tmp_path, PASSWORD)
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    assert main(["signoff", str(run), "--html-only"]) == 0 and main(["verify", str(run)]) == 0
    assert "note: signoff.html: not checked" in capsys.readouterr().out
    words = ["signoff", str(run), "--key", str(key), "--password-from", "KEY_PASSWORD", "--html-only"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert public in shown.out and PASSWORD not in shown.out + shown.err
    sheet = run / "signoff.html"
    content = sheet.read_text()
    assert public in content
    assert re.match("0: .*result:3 of 3 promises kept", verified())
    with pytest.raises(ConfigError, match=r"manifest\.json\.minisig: is a signature already"):
        main(words)
    assert main([*words, "--output", str(tmp_path / "buyer")]) == 0
    assert verified("--signature", str(tmp_path / "buyer" / "manifest.json.minisig")).startswith("0: ")
    sheet.write_text(content.replace("3 promises", "4 promises"))
    assert re.match("1: .*signoff.html was changed since it was signed", verified())
    sheet.unlink()
    assert re.match("1: .*signoff.html is missing", verified())
    sheet.write_text(content)
    (run / "signoff.pdf").write_bytes(b"%PDF-1.7 another result")
    assert re.match("1: .*signoff.pdf was added since it was signed", verified())


def test_a_password_is_never_guessed_and_a_draft_never_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run, (key, _) = left_run(tmp_path), key_file(tmp_path, PASSWORD)
    signing = ["signoff", str(run), "--html-only", "--key", str(key)]
    monkeypatch.delenv("KEY_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", None)
    for more, words in (
        ([], "needs a password, and there is no terminal"),
        (["--password-from", "KEY_PASSWORD"], "KEY_PASSWORD, which --password-from names, is not set"),
    ):
        with pytest.raises(ConfigError, match=words):
            main([*signing, *more])
    assert not list(run.glob("signoff*")) and not list(run.glob("*.minisig"))


@pytest.mark.parametrize(
    ("error", "words"), [(ImportError("no"), r"pip install 'lineproof\[signoff\]"), (OSError("no"), "libpango-1.0-0")]
)
def test_without_weasyprint_or_pango_html_alone_is_made(tmp_path: Path, monkeypatch, error: Exception, words: str):
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "weasyprint":
                raise error

    for name in [name for name in sys.modules if name.partition(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    run = left_run(tmp_path)
    with pytest.raises(TestbedError, match=rf"{words}.*--html-only"):
        main(["signoff", str(run)])
    assert not list(run.glob("signoff*"))
    assert main(["signoff", str(run), "--html-only"]) == 0


def test_each_line_about_the_router_says_where_it_comes_from(tmp_path: Path):
    lines: dict[str, Any] = {each.name: (f"line {number}",) for number, each in enumerate(fields(RouterSetUp))}
    configuration = RouterSetUp(**{**lines, "prepare": "configure"})
    shown = told(page(left_run(tmp_path, router_configuration=configuration)))
    _, _, settings = shown.partition("The router's settings, each with where it comes from")
    for name, words in WORDS["settings"].items():
        assert f"{words}: {lines[name][0]}" in settings
    assert {*WORDS["settings"]} == {*lines} - {"prepare"}


def test_every_try_of_a_promise_is_listed(tmp_path: Path):
    run = RunFolder.create(tmp_path, "20261121T040000Z-abc123")
    before = Try("20261120T040000Z-abc123", "FAIL", 1_794_900_000.0, 0.025)
    tries = {"other_tries": (before,), "evidence": (30.0, 20.0)}
    run.add(requirement_record(run=run.run_id, simulated=False, verdict="PASS", **tries))
    run.close(EnvironmentRecord(run.run_id, False, **FIELDS))
    shown = told(page(run.path, draft=True))
    assert "run 20261120T040000Z-abc123, ended 2026-11-17 07:20: FAIL, evidence 1 to 40" in shown
    assert re.search(r"run 20261121\S+, ended \S+ \S+ PASS, evidence 30 to 1", shown)


def streams(pdf: bytes) -> bytes:
    """Everything in *pdf*, uncompressed."""
    plain = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        with contextlib.suppress(zlib.error):
            plain.append(zlib.decompress(stream))
    return b"\n".join(plain)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of many promises whose sheet was printed as a draft."""
    folder = tmp_path_factory.mktemp("printed")
    run = left_run(folder, *["FAIL", "INCONCLUSIVE", "PASS"] * 14, simulated=True, spoilt=(2,))
    file = about(folder, "facts: {contract: '2026-117'}")
    assert main(["signoff", str(run), "--draft", "--about", str(file)]) == 0
    return run


@pytest.mark.slow
def test_the_pdf_is_an_archivable_one_that_carries_its_files_along(printed: Path):
    """By a validator that knows nothing of what made it: ISO 19005-3, level B."""
    whole = streams((printed / "signoff-draft.pdf").read_bytes())
    assert all(part in whole for part in (b"/EmbeddedFile", b"manifest.json", b"about.yaml"))
    assert (printed / "manifest.json").read_bytes() in whole
    validator = pytest.importorskip("page", reason="needs page-validation")
    validation = validator.validate_pdf_bytes((printed / "signoff-draft.pdf").read_bytes(), profile="3b")
    assert validation.rules.total > 100
    # this one, not veraPDF, takes a last carriage return of compressed data for the line's end
    undecidable = "PDFA3B-STREAM-LENGTH-001"
    assert [str(failure.message) for failure in validation.failures if failure.rule_id != undecidable] == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext (Debian: poppler-utils)")
def test_the_pdf_is_marked_on_every_page(printed: Path):
    text = subprocess.run(["pdftotext", "-layout", printed / "signoff-draft.pdf", "-"], capture_output=True, timeout=30)
    pages = text.stdout.decode().rstrip("\f").split("\f")
    assert len(pages) >= 3 and all("DRAFT" in each and "SIMULATED" in each for each in pages)
    assert all(f"page {number} of {len(pages)}" in each for number, each in enumerate(pages, 1))
