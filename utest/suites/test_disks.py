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

    What is on the disks is in ``kept/`` afterwards. Returns all output.
    """
    for name in (*DISKS, "kept"):
        (folder / name).mkdir()
    mounts = "; ".join(f"mount -t tmpfs -o size=2m,mode=0700 none {folder / name}" for name in DISKS)
    keep = "; ".join(f"cp -r {folder / name} {folder / 'kept'}" for name in DISKS)
    script = f"set -e; {mounts}; {before}; set +e; {shlex.join(command)}; {keep}"
    folders = {"XDG_RUNTIME_DIR": "runtime", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    named = {variable: str(folder / name) for variable, name in folders.items()}
    environment = {**os.environ, "PYTHONPATH": str(LIBRARIES), **named}
    argv = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    return done.stdout + done.stderr


@pytest.mark.parametrize("how", STATES if EACH else ["full"])
def test_verdicts_stay_when_disks_take_nothing_more(how: str, tmp_path: Path) -> None:
    """Cache and temporary folder take nothing from the start, the runtime folder and then the results in mid-run."""
    results, runtime, cache, temporary = (tmp_path / name for name in DISKS)
    commands = (["sh", "-c", spoil(how, disk)] for disk in (runtime, results))
    first, second = (f"Evaluate    subprocess.run({command!r}, check=True)" for command in commands)
    steps = enumerate((SENTENCE, first, SENTENCE, second, SENTENCE))
    suite = robot_run.write_tests(tmp_path, "".join(f"Test {number}\n    {step}\n" for number, step in steps))
    options = (*robot_run.short_goal(tmp_path), "-v", "GOAL:quick")
    text = on_disks(tmp_path, robot_run.command(tmp_path, suite, *options), spoil(how, cache, temporary))
    assert (tmp_path / "out" / "output.xml").exists(), text
    shown = ExecutionResult(tmp_path / "out" / "output.xml").suite.all_tests
    statuses, messages = zip(*((test.status, test.message) for test in shown), strict=True)
    assert statuses == ("PASS", "PASS", "PASS", "PASS", "FAIL"), messages
    assert not [words for words in (text, *messages) if RAW.search(words)]
    assert all(words in messages[-1] for words in (os.strerror(STATES[how]), str(results), "--outputdir")), messages
    assert "the run's folder is not complete, the verdicts above stay" in text
    assert robot_run.processes_of(tmp_path) == []
    # the manifest's says that the run was being closed: without it, the manifest would seem removed
    closing = partial(Path(MANIFEST_FILE)).name
    left = [path for path in (tmp_path / "kept").rglob("*") if path.suffix in (".part", ".new", ".tmp")]
    assert [path for path in left if path.name != closing] == []
    (folder,) = [path.parent for path in (tmp_path / "kept").glob("results/*/trials.jsonl")]
    found = read_run(folder)
    verdicts = [record.verdict for record in found.requirements]
    # the little that is left may do for one more
    assert verdicts[:2] == ["PASS", "PASS"] and verdicts[2:] in ([], ["INCONCLUSIVE"])
    assert {record.requirement for record in found.trials} >= {1, 2}
