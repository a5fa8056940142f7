"""``lineproof signoff``: what the sheet says, what is refused, and that the signature holds it all together."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.rejudging import RejudgedSentence
from lineproof.evidence.run import RunFolder, read_run
from lineproof.evidence.signoff.pictures import testbed_drawing
from lineproof.evidence.signoff.sheet import make_sheet
from support.signoff_runs import (
    FORWARDS,
    LOSES,
    NOW,
    PASSWORD,
    THROUGHPUT,
    about,
    environment,
    key_file,
    left_run,
    page,
    told,
    waiver,
    waivers,
)

EVIL = "<script>alert(1)</script> {x} \x1b[2J ‮ </style> url(file:///etc/passwd)"


def test_the_sheet_says_what_was_promised_measured_and_who_answers_for_what(tmp_path: Path):
    told_of = about(
        tmp_path,
        "contract: 2026-117",
        "parties:",
        "  supplier: {name: Example Routers GmbH, signatory: Jane Doe}",
        "  witness: {name: Notary}",
        "device: {model: '6100', serial: NTG-0042, firmware: '4.20'}",
        "testbed: {cables: {'0': DAC no. 4711}}",
        "deviations: [27 °C in the room]",
    )
    run = left_run(tmp_path, "FAIL", "PASS", "INCONCLUSIVE")
    html = page(run, about=told_of, waivers=waivers(tmp_path, waiver(LOSES)))
    shown = told(html)
    read = "coreboot 4.19 read from the router Firmware as told 4.20"
    for words in (
        "Contract 2026-117",
        "Example Routers GmbH the router",
        "NTG-0042",
        read,
        "27 °C in the room",
        "Witness",
    ):
        assert words in shown, f"{words}: {shown}"
    assert (make_sheet(run, NOW, draft=True).manifest or "no manifest") in shown
    assert "DRAFT" not in shown and "SIMULATED" not in shown
    drawing = testbed_drawing(make_sheet(run, NOW, told_of, draft=True))
    assert all(words in drawing for words in ("port 1", "DAC no. 4711", "cable: ____", "10 Gbit/s", "NTG-0042"))


@pytest.mark.parametrize(
    ("verdicts", "changes", "words"),
    [
        ([], {"simulated": True}, "it is simulated, so that no router was measured"),
        (["INCONCLUSIVE"], {}, f"INCONCLUSIVE and not waived: '{THROUGHPUT}'"),
        ([], {"closed": False}, "it did not end, so that it has no manifest to sign"),
        ([], {"extra": {"interrupted": "imix ≥ 1 Mpps"}}, "it is incomplete (unfinished: 0 trials of 'imix"),
    ],
)
def test_what_cannot_be_signed_off(tmp_path: Path, verdicts: list[str], changes: dict[str, Any], words: str):
    run = left_run(tmp_path, *verdicts, **changes)
    with pytest.raises(ConfigError, match=re.escape(f"{run}: cannot be signed off: {words}")):
        main(["signoff", str(run), "--html-only"])
    assert not list(run.glob("signoff*"))
    assert main(["signoff", str(run), "--html-only", "--draft"]) == 0
    shown = told((run / "signoff-draft.html").read_text())
    assert shown.startswith("DRAFT") and words in shown and "Not to be signed: a draft." in shown
    assert ("SIMULATED: nothing on it is a measurement" in shown) == ("simulated" in changes)
    assert main(["verify", str(run)]) == 0, "the draft is derived"


def test_a_run_without_a_sentence_and_an_altered_one_are_refused(tmp_path: Path):
    empty = RunFolder.create(tmp_path, "empty")
    empty.close(environment(run="empty"))
    with pytest.raises(ConfigError, match="no sentence was judged"):
        make_sheet(empty.path, NOW)
    run = left_run(tmp_path)
    records = run / "requirements.jsonl"
    records.write_text(records.read_text().replace("PASS", "FAIL", 1))
    for draft in (False, True):
        with pytest.raises(ConfigError, match=r"requirements\.jsonl:1: was changed .*; what was altered"):
            make_sheet(run, NOW, draft=draft)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([waiver(THROUGHPUT, expires="2026-11-21")], r":2: the waiver of '.*' by Jane Doe expired on 2026-11-21"),
        ([waiver("imix ≥ 1 Mpps")], rf":2: no sentence of this run is 'imix.*waiver: {re.escape(THROUGHPUT)}; 6"),
        ([waiver(THROUGHPUT, test="Other")], r":2: no sentence of this run is '.*' of test 'Other'"),
        ([waiver(THROUGHPUT), waiver(THROUGHPUT.replace("≥", ">="))], r":6: a second waiver of sentence 1"),
        ([waiver(THROUGHPUT, expires="soon")], r":5: 'waivers\.0\.expires': expected a date as 2027-03-31"),
        ([waiver(THROUGHPUT, expires="20270331")], r":5: 'waivers\.0\.expires': expected a date as 2027-03-31"),
        ([waiver(THROUGHPUT)[:2]], r":2: the key 'waivers\.0\.reason' is missing"),
        ([waiver(THROUGHPUT, author="''")], r":3: 'waivers\.0\.author': "),
    ],
)
def test_a_wrong_waiver_is_named_with_its_line(tmp_path: Path, lines: list[list[str]], words: str):
    run = left_run(tmp_path, "INCONCLUSIVE", "FAIL")
    with pytest.raises(ConfigError, match=rf"waivers\.yaml{words}"):
        make_sheet(run, NOW, waivers=waivers(tmp_path, *lines))


def test_a_waiver_counts_on_its_last_day_and_changes_no_verdict(tmp_path: Path):
    run = left_run(tmp_path, "INCONCLUSIVE", "FAIL")
    given = [waiver(THROUGHPUT, expires="2026-11-22"), waiver(FORWARDS.replace("≥", ">="), author="Zoë")]
    shown = told(page(run, waivers=waivers(tmp_path, *given)))
    assert "INCONCLUSIVE, waived by Jane Doe until 2026-11-22" in shown and "FAIL, waived by Zoë" in shown
    assert "0 of 2 promises kept; 1 not kept (FAIL), waived; 1 not decided (INCONCLUSIVE), waived." in shown
    only = waivers(tmp_path, waiver(THROUGHPUT), waiver(FORWARDS))
    assert "waived" not in told(page(left_run(tmp_path / "kept", "PASS", "PASS"), waivers=only))


def test_a_wrong_key_of_the_parties_is_named_with_its_line(tmp_path: Path):
    wrong = about(tmp_path, "parties:", "  seller: {name: x}")
    with pytest.raises(ConfigError, match=r"about\.yaml:2: unknown key 'parties\.seller'"):
        make_sheet(left_run(tmp_path), NOW, wrong)


class Elements(HTMLParser):
    """The elements and addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.addresses: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add(tag)
        self.addresses |= {value for name, value in attrs if name in ("src", "href")}


def test_text_from_elsewhere_stays_text(tmp_path: Path):
    run = left_run(tmp_path, "FAIL", versions={"router.version": EVIL}, interfaces={"0": EVIL}, host={"name": EVIL})
    words = EVIL.replace("\x1b", "").replace("‮", "")
    file = about(tmp_path, f"contract: '{words}'", f"device: {{serial: '{words}'}}", f"remarks: '{words}'")
    html = page(run, about=file, waivers=waivers(tmp_path, waiver(THROUGHPUT, author=f"'{words}'")))
    found = Elements(html)
    assert "script" not in found.found and html.count("</style>") == 1
    assert all(address.startswith("data:image/svg+xml;base64,") for address in found.addresses)
    assert "\x1b" not in html and "‮" not in html


def test_a_signed_run_and_everything_that_was_changed_afterwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    run, (key, public) = left_run(tmp_path), key_file(tmp_path, PASSWORD)
    monkeypatch.setenv("KEY_PASSWORD", PASSWORD)
    words = ["signoff", str(run), "--key", str(key), "--password-from", "KEY_PASSWORD", "--html-only"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert public in shown.out and PASSWORD not in shown.out + shown.err
    assert public in (run / "signoff.html").read_text()
    assert main(["verify", str(run), "--public-key", public]) == 0
    assert "verdicts:3 PASS, 0 FAIL, 0 INCONCLUSIVE" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"manifest\.json\.minisig: is a signature already"):
        main(words)
    assert main([*words, "--output", str(tmp_path / "buyer")]) == 0
    other = str(tmp_path / "buyer" / "manifest.json.minisig")
    assert main(["verify", str(run), "--public-key", public, "--signature", other]) == 0
    capsys.readouterr()
    sheet = run / "signoff.html"
    content = sheet.read_text()
    sheet.write_text(content.replace("3 promises", "4 promises"))
    assert main(["verify", str(run)]) == 1
    assert "signoff.html was changed since it was signed" in capsys.readouterr().out
    sheet.unlink()
    assert main(["verify", str(run), "--public-key", public]) == 1
    assert "signoff.html is missing" in capsys.readouterr().out


def test_a_sheet_that_no_signature_is_over_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run, (key, public) = left_run(tmp_path), key_file(tmp_path)
    assert main(["signoff", str(run), "--html-only"]) == 0
    assert main(["verify", str(run)]) == 0
    assert "note: signoff.html: not checked, as no signature is over it" in capsys.readouterr().out
    assert main(["signoff", str(run), "--html-only", "--key", str(key)]) == 0
    assert main(["verify", str(run), "--public-key", public]) == 0
    assert "not checked" not in capsys.readouterr().out
    (run / "signoff.pdf").write_bytes(b"%PDF-1.7 another result")
    assert main(["verify", str(run), "--public-key", public]) == 1
    assert "signoff.pdf was added since it was signed: the signature is not over it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "words", "reason"),
    [
        ("same", "all 1 promise come to the same verdict from the records", ""),
        ("UNKNOWN", "0 of 1 promise come to the same verdict from the records; the records are not enough for", ""),
        ("DIFFERS", "0 of 1 promise", "is FAIL from the records, which say PASS"),
        ("SUSPECT", "0 of 1 promise", "which say PASS and contradict themselves: trial 1 says"),
    ],
)
def test_records_that_lead_to_another_verdict_are_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, words: str, reason: str
):
    run = left_run(tmp_path, "PASS")
    (record,) = read_run(run).requirements
    ruling = SimpleNamespace(value="FAIL" if state == "DIFFERS" else "PASS")
    verdict: Any = None if state == "UNKNOWN" else SimpleNamespace(ruling=ruling)
    item = RejudgedSentence(record, verdict, ("trial 1 says that",) if state == "SUSPECT" else ())
    assert item.state == state
    found = SimpleNamespace(sentences=(item,), changed=())
    monkeypatch.setattr("lineproof.evidence.signoff.sheet.rejudge", lambda folder: found)
    shown = told(page(run, draft=True))
    assert words in shown and reason in shown
    if reason:
        with pytest.raises(ConfigError, match=reason):
            make_sheet(run, NOW)


def test_a_password_is_never_guessed_and_a_draft_never_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run, (key, _) = left_run(tmp_path), key_file(tmp_path, PASSWORD)
    signing = ["signoff", str(run), "--html-only", "--key", str(key)]
    monkeypatch.delenv("KEY_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin", None)
    for more, found in (
        ([], "needs a password, and there is no terminal"),
        (["--password-from", "KEY_PASSWORD"], "the variable KEY_PASSWORD, which --password-from names, is not set"),
        (["--draft"], "a draft is never signed"),
    ):
        with pytest.raises(ConfigError, match=found):
            main([*signing, *more])
    monkeypatch.setenv("KEY_PASSWORD", "wrong")
    with pytest.raises(ConfigError, match="wrong password"):
        main([*signing, "--password-from", "KEY_PASSWORD"])
    with pytest.raises(ConfigError, match="expected --key too"):
        main(["signoff", str(run), "--password-from", "KEY_PASSWORD"])
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
