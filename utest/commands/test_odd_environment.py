"""A command in an environment that lacks something: it does its work, or says in one sentence what is missing."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from support.command_line import PROGRAM, environment

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        (f"env -u HOME -u USER -u LOGNAME XDG_RUNTIME_DIR=/none TMPDIR=/none {CALL} check", 0, "0 problems"),
        (f"LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii {CALL} compare none ≥", 2, "is no run"),
        (f"ulimit -n 8; {CALL} doctor simulated --platform netgate6100", 1, "Too many open files; raise the limit"),
        (f"ulimit -f 0; {CALL} init mybox 2>&1 | cat", 0, "raise the limit of a file's size ('ulimit -f')"),
        (f"mkfifo run; {CALL} rejudge run", 2, "run: is no folder"),
        (f"mkdir run; mkfifo run/trials.jsonl; {CALL} compare run run", 2, "run/trials.jsonl: is no regular file"),
    ],
)
def test_a_command_in_an_odd_environment(script: str, status: int, says: str, tmp_path: Path) -> None:
    found, text = shell(tmp_path, script)
    assert says in text
    assert found == status


@pytest.mark.parametrize("words", ["check", "rejudge a", "init mybox"])
def test_a_current_folder_that_was_removed(words: str, tmp_path: Path) -> None:
    status, text = shell(tmp_path, f"mkdir gone; cd gone; rmdir ../gone; {CALL} {words}")
    assert (status, text) == (2, "lineproof: the current folder: it was removed; change to a folder that exists\n")
