"""The commands as a caller sees them: help, JSON, exit status and first words of each call; all keywords of suites."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from robot.libdoc import LibraryDocumentation

from lineproof import __version__
from lineproof.commands.main import finish, main
from lineproof.evidence.rejudge import rejudge
from lineproof_bench.serve import main as bench
from support.made_runs import Sentence, around, as_recorded, made_run
from support.paths import ROOT
from support.surface import LIBRARIES

CALLS = Path(__file__).parent / "recorded" / "calls.txt"
PROJECT = Path(__file__).parent / "recorded" / "project.yaml"


def texts() -> Mapping[str, str]:
    """Return the help of each command, the outcome of each call, and the keywords."""
    files, rows = {"keywords.txt": _keywords()}, []
    with _project() as folder:
        for line in CALLS.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                status, output, errors = _call(line.split(), folder)
                if line.endswith("--help"):
                    files[f"help/{line.replace(' ', '-').replace('---help', '').strip('-')}.txt"] = output + errors
                if "--json" in line:
                    files[f"json/{line.replace(' ', '-')}.json"] = output
                elif "markdown" in line:
                    files[f"markdown/{line.replace(' ', '-')}.md"] = output
                rows.append(f"{line} -> {status} | {_first(output)} | {_first(errors)}".rstrip(" |"))
    return {**files, "calls.txt": "".join(f"{row}\n" for row in rows)}


@contextmanager
def _project() -> Iterator[Path]:
    """Make the folder in which the calls are, and go into it."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        homes = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"), name)
        with mock.patch.dict(os.environ, {"PATH": os.environ["PATH"], "COLUMNS": "80", **homes}, clear=True):
            _call(["init"], folder)
            project = yaml.safe_load(PROJECT.read_text(encoding="utf-8"))
            for run, fields in project["runs"].items():
                kind = fields.pop("kind", "")
                inputs = {"variables/testbeds/lab.yaml": f"kind: {kind}\n".encode()} if kind else {}
                made_run(folder, run, *map(_sentence, fields.pop("sentences")), inputs=inputs, **fields)
            records = folder / "altered" / "requirements.jsonl"
            records.write_text(records.read_text(encoding="utf-8").replace('"FAIL"', '"PASS"'), encoding="utf-8")
            for file, content in project["files"].items():
                (folder / file).write_text(content, encoding="utf-8")
            (folder / "empty").mkdir()
            yield folder


def _sentence(fields: Mapping[str, Any]) -> Sentence:
    """Return a sentence of the project's file: its ``figures``, or some ``around`` a mean."""
    figures = around(*fields["around"]) if "around" in fields else fields["figures"]
    return Sentence(figures=figures, **{name: fields[name] for name in fields.keys() - {"around", "figures"}})


def _call(words: list[str], folder: Path) -> tuple[int | str | None, str, str]:
    """Return exit status, output and errors of a call, without what differs from machine to machine."""
    output, errors = io.StringIO(), io.StringIO()
    # the bench is a process of its own for a user
    own_process = mock.patch("lineproof.commands.main.run_bench", lambda argv: bench(argv[1:]))
    again = rejudge if words[:1] == ["rejudge"] else as_recorded
    not_again = mock.patch("lineproof.evidence.rejudge.rejudge", again)
    with own_process, not_again, redirect_stdout(output), redirect_stderr(errors), pytest.raises(SystemExit) as end:
        finish(lambda: main(words))
    return end.value.code, _common(output.getvalue(), folder), _common(errors.getvalue(), folder)


def _common(text: str, folder: Path) -> str:
    for own, name in ((str(folder), "FOLDER"), (str(ROOT), "ROOT"), (__version__, "VERSION")):
        text = text.replace(own, name).replace(own.replace("_", r"\_"), name)  # as Markdown has it
    text = re.sub(r"\b[0-9a-f]{64}\b", "SUM", text)
    text = re.sub(r"\d+\.\d{6,}", lambda figure: f"{float(figure[0]):.9g}", text)
    return re.sub(r"bytes \d+ to \d+", "bytes N to N", text)


def _first(text: str) -> str:
    """Return the first line that says something; of wrong arguments it is below the usage."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.match(r"[a-z_ -]+: error: ", line)), lines[0] if lines else "")


def _keywords() -> str:
    """Return each keyword with its arguments and tags, by resource."""
    sources = [*map(str, sorted((ROOT / "resources").glob("*.resource"))), *LIBRARIES]
    lines = []
    for source in sources:
        for keyword in sorted(LibraryDocumentation(source).keywords):
            lines.append(f"{Path(source).name}: {keyword.name} | {keyword.args} | {', '.join(keyword.tags)}\n")
    return "".join(lines)
