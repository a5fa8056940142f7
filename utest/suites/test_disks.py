"""Disks that are full or read-only, when a run starts or in the middle of it: finished work stays, and messages help.

Each disk is a tmpfs of a mount namespace of the test's own.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import MANIFEST_FILE, partial
from support import robot_run
from support.paths import LIBRARIES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare: it mounts disks of its own"
    ),
]

RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b|listener '")
DISKS = ("results", "runtime", "cache", "tmp")
# a mount with open files cannot become read-only, but one over it can be
SPOIL = {
    "full": "dd if=/dev/zero of={0}/filler bs=4k 2>/dev/null || true",
    "read-only": "mount --bind {0} {0}; mount -o remount,bind,ro {0}",
}
STATES = {"full": errno.ENOSPC, "read-only": errno.EROFS}
EACH = bool(os.environ.get("LINEPROOF_DISKS"))
"""Each disk is tried in each state, not in one of them."""
SENTENCE = "64b 1-flow unidirectional ≥ 1 Mpps"


def spoil(how: str, *folders: Path) -> str:
    return "; ".join(SPOIL[how].format(shlex.quote(str(folder))) for folder in folders)


def on_disks(folder: Path, command: list[str], before: str) -> str:
    """Run *command* with a small disk for each of :data:`DISKS` below *folder*; *before* it the shell's words.

    What is on the disks is in ``kept/`` afterwards. Returns all output, with the exit status as its last word.
    """
    for name in DISKS:
        (folder / name).mkdir()
    mounts = "; ".join(f"mount -t tmpfs -o size=2m,mode=0700 none {folder / name}" for name in DISKS)
    keep = "; ".join(f"cp -r {folder / name} {folder / 'kept'}" for name in DISKS)
    call = shlex.join(command)
    script = f"set -e; {mounts}; mkdir {folder / 'kept'}; {before}; set +e; {call}; s=$?; {keep}; echo $s"
    environment = {
        **os.environ,
        "PYTHONPATH": str(LIBRARIES),
        "XDG_RUNTIME_DIR": str(folder / "runtime"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TMPDIR": str(folder / "tmp"),
    }
    output, errors = subprocess.PIPE, subprocess.STDOUT
    argv = ["unshare", "-m", "sh", "-c", script]
    return subprocess.run(
        argv, cwd=folder, env=environment, stdout=output, stderr=errors, text=True, timeout=100
    ).stdout


def robot(folder: Path, *steps: str, before: str = "true") -> tuple[str, dict[str, tuple[str, str]]]:
    """A run of a suite with a test of each of *steps*; returns what it printed, and each test's status and message."""
    suite = robot_run.write_suite(folder, steps[0])
    more = "".join(f"Test {number}\n    {step}\n" for number, step in enumerate(steps[1:], 2))
    suite.write_text(suite.read_text() + more)
    text = on_disks(folder, robot_run.command(folder, suite, *robot_run.short_goal(folder), "-v", "GOAL:quick"), before)
    assert (folder / "out" / "output.xml").exists(), text
    result = ExecutionResult(folder / "out" / "output.xml")
    tests = {test.name: (test.status, test.message) for test in result.suite.all_tests}
    assert not RAW.search(text), text
    assert not [message for _, message in tests.values() if RAW.search(message)]
    assert robot_run.processes_of(folder) == []
    # the manifest's says that the run was being closed: without it, the manifest would seem removed
    closing = partial(Path(MANIFEST_FILE)).name
    found = [path for path in (folder / "kept").rglob("*") if path.name != closing]
    temporary = [path for path in found if path.name.endswith((".part", ".new", ".tmp"))]
    assert temporary == []
    return text, tests


def step(command: str) -> str:
    return f"Evaluate    subprocess.run({['sh', '-c', command]!r}, check=True)    modules=subprocess"


@pytest.mark.parametrize("how", STATES if EACH else ["full"])
def test_verdicts_stay_when_disks_take_nothing_more(how: str, tmp_path: Path) -> None:
    """Cache and temporary folder take nothing from the start, the runtime folder and then the results in mid-run."""
    results, runtime, cache, temporary = (tmp_path / name for name in DISKS)
    text, tests = robot(
        tmp_path,
        SENTENCE,
        step(spoil(how, runtime)),
        SENTENCE,
        step(spoil(how, results)),
        SENTENCE,
        before=spoil(how, cache, temporary),
    )
    statuses = [status for status, _ in tests.values()]
    assert statuses == ["PASS", "PASS", "PASS", "PASS", "FAIL"], tests
    message = tests["Test 5"][1]
    assert os.strerror(STATES[how]) in message
    assert str(results) in message
    assert "--outputdir" in message
    assert "the run's folder is not complete, the verdicts above stay" in text
    (folder,) = [path.parent for path in (tmp_path / "kept").glob("results/*/trials.jsonl")]
    found = read_run(folder)
    verdicts = [record.verdict for record in found.requirements]
    assert verdicts[:2] == ["PASS", "PASS"]
    assert verdicts[2:] in ([], ["INCONCLUSIVE"])  # the little that is left may do for one
    assert {record.requirement for record in found.trials} >= {1, 2}
