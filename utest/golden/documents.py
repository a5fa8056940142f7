"""The documents about runs as plain text: what the commands print and write, and the tables of Robot's log.

Simulated runs: one without a failure, one with PASS, FAIL and INCONCLUSIVE, the same on a worse testbed, one of
characterisations, one of a study. Made runs, as no simulated figure spreads: comparison, trend, sheet to sign.
Left out: what :data:`VARYING` and :data:`MOMENT` name; pictures; cycles per packet, recovery and the router under
load, which depend on real time; the report, whose page Allure makes.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

from golden import studies
from golden.runs import run_of, scratch
from lineproof.commands.main import main
from lineproof.core.sentence import parse
from support import made_runs, signoff_runs
from support.catalogue import CATALOGUE
from support.command_line import lineproof as command
from support.paths import ROOT

SUITES = Path(__file__).parent / "suites"
"""Suites, with ROOT for the folder of the project, and what a sheet to sign says about a contract."""

VARYING = (
    (r"distance: \S+ ms (.*): \S+ s of", r"distance: N ms \1: N s of"),
    (r"/[^\s'\"]*/\d{8}T\d{6}Z-[0-9a-f]{6}(-\d+)?|\d{8}T\d{6}Z-[0-9a-f]{6}(-\d+)?", "<run>"),
    (r"/[^\s'\"]*/golden-\w+", "<folder>"),
    (re.escape(str(ROOT)), "<project>"),
    (r"\b[0-9a-f]{64}\b", "<sum>"),
    (r"20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z| UTC)?", "<time>"),
    (r"bytes \d+ to \d+ of", "bytes <from> to <to> of"),
    (r"127\.0\.0\.1:\d+", "<address>"),
    (r"(?<!make )up for [^;\n]*", "up for <duration>"),
    (r"\btime=\"[^\"]*\"", 'time="<duration>"'),
    (r"(?m)\| \d+\.\d{3} (?=\| [^|\n]*$)", "| <duration> "),
    (r"(?i)lineproof( \d+\.\d+\.\d+)?( \(commit [^)]*\))?", "<program>"),
    (r"\| (<program>|generator\.(client python|pyzmq|scapy)) \| .*", r"| \1 | <version>"),
    (r"(?m)^\*\*this machine was busy, [^\n]*\n\n", ""),
    (r"(?m)^this machine was busy, [^\n]*\n([^\n]*(began|\(steal\))\n)?", ""),
    (r"Machine of the run: [\s\S]*?\.\n", "Machine of the run: <host>\n"),
    (r"\| name \| .*(\n\| .*)*?\n\| python_implementation \| .*", "| <host>"),
)
"""Text that differs from run to run, host to host or release to release, and the word in its place."""

MOMENT = (
    (r"\| [^\n]*(\| a link was down)", r"| <figures> \1"),
    (r"(\d\.\d{4})\d+", r"\1"),
    (r"((?:\d[, \u00a0\u202f]?){3,})\d\d\b", r"\1.."),
)
"""Digits that the moment of sending decides: of a trial with a fault, after the fourth decimal, the last two."""


def texts() -> dict[str, str]:
    simulated = {name: _stable(text, *VARYING, *MOMENT) for name, text in _of_suites()}
    return simulated | {name: _stable(text, *VARYING) for name, text in (*_of_made_runs(), *_of_project())}


def _suite(name: str) -> Path:
    """Return the suite *name* in the scratch folder. Kept as a text, for its resource has no fixed place."""
    path = scratch() / f"{name}.robot"
    path.write_text((SUITES / f"{name}.txt").read_text(encoding="utf-8").replace("ROOT", str(ROOT)), encoding="utf-8")
    return path


def _of_suites() -> Iterator[tuple[str, str]]:
    passed = run_of(ROOT / "tests" / "netgate6100.robot")
    searched = run_of(ROOT / "tests" / "characterise_netgate6100.robot")
    suite, options = _suite("mixed"), ("-v", "MARGIN:on", "-v", "TELEMETRY:never")
    mixed, worse = run_of(suite, *options), run_of(suite, *options, "-v", "LOST:0.05")
    altered, other, store = scratch() / mixed.name, _suite("other"), str(scratch() / "history.db")
    shutil.copytree(mixed, altered)
    verdicts = altered / "requirements.jsonl"
    verdicts.write_text(verdicts.read_text(encoding="utf-8").replace("FAIL", "PASS"), encoding="utf-8")
    for name, run in (("passed", passed), ("searched", searched), ("mixed", mixed)):
        yield f"summary-{name}.txt", _printed("summary", run)
        yield f"log-{name}.txt", _log_tables(run)
    for form in ("csv", "markdown"):
        yield f"summary-{form}.txt", _printed("summary", mixed, "--format", form)
    yield "summary-html.txt", _plain(_printed("summary", mixed, "--format", "html"))
    yield "gate-passed.txt", _printed("gate", passed)
    yield "gate-mixed.txt", _printed("gate", mixed)
    junit = scratch() / "junit.xml"
    yield "gate-other.txt", _printed("gate", worse, "--baseline", passed)
    yield "gate-worse.txt", _printed("gate", worse, "--baseline", mixed, "--junit", junit)
    yield "gate-junit.txt", junit.read_text(encoding="utf-8")
    yield "gate-markdown.txt", _printed("gate", worse, "--baseline", mixed, "--markdown")
    yield "verify.txt", _printed("verify", mixed, altered)
    yield "rejudge.txt", _printed("rejudge", mixed)
    yield "rejudge-goal.txt", _printed("rejudge", mixed, "--goal", "standard")
    yield "rejudge-suite.txt", _printed("rejudge", passed, "--suite", other)
    yield "signoff-refused.txt", _printed("signoff", passed, "--html-only", "--output", scratch())
    for name, run in (("passed", passed), ("mixed", mixed)):
        folder = scratch() / f"sheet-{name}"
        told = _printed("signoff", run, "--draft", "--html-only", "--output", folder)
        yield f"signoff-{name}.txt", f"{told}\n{_file(folder / 'signoff-draft.html')}"
    yield "history-import.txt", _printed("history", "import", passed, mixed, "--store", store)
    yield "history-trend.txt", _printed("history", "trend", "--store", store)
    yield "study.txt", _printed("study", "report", studies.run_of(studies.SHORTEST))


def _of_made_runs() -> Iterator[tuple[str, str]]:
    made, store = scratch() / "made", str(scratch() / "made.db")
    for number, (name, mean) in enumerate((("before", 1.0), ("after", 0.95))):
        sentences = [made_runs.Sentence(words, _figures(words, mean, number)) for words in made_runs.EACH_KIND]
        made_runs.made_run(made, name, *sentences)
    yield "gate-made.txt", _as_recorded("gate", made / "after", "--baseline", made / "before")
    runs = made_runs.two_releases(scratch() / "releases")
    _as_recorded("history", "import", *runs, "--store", store)
    yield "history-made.txt", _printed("history", "trend", "--store", store)
    yield "history-releases.txt", _printed("history", "trend", "--by", "release", "--store", store)
    run = signoff_runs.left_run(scratch() / "signed", "PASS", "FAIL", "INCONCLUSIVE")
    about_lines = (SUITES / "about.yaml").read_text(encoding="utf-8").splitlines()
    about = signoff_runs.about(scratch(), *about_lines, *signoff_runs.waiver(signoff_runs.LOSES))
    told = _as_recorded("signoff", run, "--html-only", "--about", about, "--output", made)
    yield "signoff-made.txt", f"{told}\n{_file(made / 'signoff.html')}"


def _figures(words: str, mean: float, seed: int) -> list[float]:
    """Return figures about a share *mean* of what a sentence asks for, or where less is better its inverse."""
    requirement = parse(words, CATALOGUE)
    return made_runs.around(requirement.threshold.number * (mean if requirement.at_least else 1 / mean), seed)


def _of_project() -> Iterator[tuple[str, str]]:
    yield "check.txt", _printed("check", "--project", ROOT)
    wrong = _wrong_project()
    yield "check-wrong.txt", _printed("check", "--project", wrong, *sorted((wrong / "tests").iterdir()))
    bench = ("simulated", "--platform", "netgate6100", "--listen", "0")
    yield "doctor.txt", _printed("doctor", *bench, "--traffic")
    yield "doctor-dry-run.txt", _printed("doctor", *bench, "--dry-run")


def _wrong_project() -> Path:
    """Return a project with the files of ``suites/wrong.txt``."""
    text = (SUITES / "wrong.txt").read_text(encoding="utf-8").replace("ROOT", str(ROOT))
    for part in text.split("\n=== ")[1:]:
        name, _, content = part.partition("\n")
        file = scratch() / "wrong" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content.rstrip()}\n", encoding="utf-8")
    return scratch() / "wrong"


def _printed(*words: str | Path) -> str:
    """Return what a command prints, its errors and its exit status."""
    done = command(scratch(), *map(str, words), cwd=ROOT, variables={"COLUMNS": "100"})
    return f"{done.stdout}{done.stderr}exit status {done.returncode}\n"


def _as_recorded(*words: str | Path) -> str:
    """Return what a command prints in this process, which does not judge the made runs again."""
    printed = io.StringIO()
    with (
        mock.patch("lineproof.evidence.rejudge.rejudge", made_runs.as_recorded),
        mock.patch.dict(os.environ, COLUMNS="100"),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        status = main(list(map(str, words)))
    return f"{printed.getvalue()}exit status {status}\n"


def _file(path: Path) -> str:
    return _plain(path.read_text(encoding="utf-8"))


def _log_tables(run: Path) -> str:
    """Return the tables that the run wrote into Robot's log, in their order."""
    messages = ElementTree.parse(run.parents[1] / "out" / "output.xml").iter("msg")
    return "\n".join(_plain(message.text or "") for message in messages if "<table" in (message.text or ""))


_SEPARATORS = {"tr": "\n", "td": " | ", "th": " | ", "br": " ", "span": "", "b": "", "a": "", "code": ""}
"""The text before a tag's own; of other tags: a new line."""


class _Text(HTMLParser):
    """Collects the text outside of styles and pictures: a line for each row of a table, its cells with bars between."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self._hidden = "", 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in ("style", "svg", "script", "title")
        self.text += _SEPARATORS.get(tag, "\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "svg", "script", "title")

    def handle_data(self, data: str) -> None:
        self.text += "" if self._hidden else " ".join(data.split())


def _plain(html: str) -> str:
    """Return the text of an HTML page, without empty lines."""
    parser = _Text()
    parser.feed(html)
    return "".join(f"{line.strip()}\n" for line in parser.text.splitlines() if line.strip(" |"))


def _stable(text: str, *replacements: tuple[str, str]) -> str:
    for pattern, replacement in replacements:
        text = re.sub(pattern, replacement, text)
    return text
