"""The command line as a shell and other programs use it, also where an environment lacks something."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lineproof.commands.main import BENCH_COMMANDS, COMMANDS
from support import robot_run
from support.command_line import PROGRAM, environment, lineproof
from support.paths import ROOT

DOCS = ROOT / "docs" / "command-line.md"


def test_the_document_has_every_command() -> None:
    rows = re.findall(r"^\| `lineproof (\w+)", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*COMMANDS, *BENCH_COMMANDS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["--help"], ["check", "--help"], ["check"], ["study"], ["doctor", "simulated", "--platform", "netgate6100"]],
)
def test_nobody_reads_the_output(words: list[str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=tmp_path, env=environment(tmp_path), stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    _, errors = process.communicate(timeout=90)
    # argparse itself ignores that nobody reads its help, unless Python keeps it in a buffer
    assert process.returncode in ((0, 141) if "--help" in words else (141,)) and errors == ""
    assert robot_run.processes_of(tmp_path) == []


@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for shell, status, errors in (
        (">/dev/full", 2, "lineproof: the output cannot be written: No space left on device\n"),
        (">&-", 0, ""),
    ):
        found = subprocess.run(
            f"{shlex.join(PROGRAM)} check {shell}",
            shell=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert (found.returncode, found.stderr) == (status, errors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lineproof d", {"doctor"}),
        ("lineproof doctor simulated --platform netg", {"netgate6100"}),
        ("lineproof init --platform exam", {"examplebox"}),
    ],
)
def test_completion(line: str, offered: set[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    completing = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    found = lineproof(tmp_path, variables=completing)
    assert found.stderr == ""
    assert {word.strip() for word in answer.read_text().split("\013")} == offered


@pytest.mark.slow
def test_measure_leaves_a_matrix_of_what_is_carried(tmp_path: Path) -> None:
    words = ("--frames", "64b imix", "--flows", "1-flow", "--directions", "unidirectional")
    project = "--project", str(ROOT), "--results", str(tmp_path / "results")
    found = lineproof(tmp_path, "measure", "simulated", "--platform", "netgate6100", *words, *project)
    assert found.returncode == 0, found.stdout + found.stderr
    rows = re.findall(
        r"^(64b|imix) 1-flow unidirectional +(?:≥ )?([\d.]+) +([\d.]+) +([\d.]+) ", found.stdout, re.MULTILINE
    )
    (small, *of_small), (mix, *of_mix) = rows
    assert (small, mix) == ("64b", "imix") and float(of_small[0]) > float(of_mix[0]) > 1
    mpps, gigabits, percent = map(float, of_small)
    assert gigabits == pytest.approx(mpps * 0.672, rel=1e-3) == pytest.approx(percent / 10, rel=1e-2)
    assert "SIMULATED" in found.stdout
    (kept,) = (tmp_path / "results").glob("*/results.jsonl")
    assert json.loads(kept.read_text().partition("\n")[0])["method"] == "matrix"


RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")
CALL = shlex.join(PROGRAM)


def shell(folder: Path, script: str) -> tuple[int, str]:
    found = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
    )
    text = found.stdout.decode(errors="replace")
    assert not RAW.search(text), text
    return found.returncode, text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        (f"env -u HOME -u USER -u LOGNAME XDG_RUNTIME_DIR=/none TMPDIR=/none {CALL} check", 0, "0 problems"),
        (f"LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii {CALL} gate ≥", 2, "is no run"),
        (f"ulimit -n 8; {CALL} doctor simulated --platform netgate6100", 1, "Too many open files; raise the limit"),
        (f"ulimit -f 0; {CALL} init mybox 2>&1 | cat", 0, "raise the limit of a file's size ('ulimit -f')"),
        (f"mkfifo run; {CALL} rejudge run", 2, "'run' is no run"),
        (f"mkdir run; mkfifo run/trials.jsonl; {CALL} gate run", 2, "run/trials.jsonl: is no regular file"),
    ],
)
def test_a_command_in_an_odd_environment(script: str, status: int, says: str, tmp_path: Path) -> None:
    found, text = shell(tmp_path, script)
    assert says in text
    assert found == status


@pytest.mark.slow
def test_python_m_forgets_the_current_folder_as_soon_as_this_package_begins(tmp_path: Path) -> None:
    """Imports of Python itself before that are beyond it: ``importlib``, ``warnings``."""
    for name in ("argparse", "random", "json", "yaml", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the current folder')")
    assert shell(tmp_path, f"{CALL} --version")[0] == 0
