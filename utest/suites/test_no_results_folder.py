"""A folder of results that cannot be made: the first line says so, and promises no verdicts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import robot_run


@pytest.mark.slow
@pytest.mark.parametrize("where", ["/proc/x", "file", "file/below"])
def test_the_first_line_is_that_no_results_can_be_kept(tmp_path: Path, where: str) -> None:
    suite = robot_run.write_suite(tmp_path, "64b unidirectional ≥ 1 Mpps")
    (tmp_path / "file").write_text("")
    words = ["-d", "out", "-v", f"RESULTS:{where}", "-v", "GOAL:quick", "-v", f"PROJECT:{robot_run.ROOT}", str(suite)]
    done = subprocess.run(
        [sys.executable, "-m", "robot", *words],
        cwd=tmp_path,
        env=robot_run.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    said = done.stdout + done.stderr
    warnings = [line for line in said.splitlines() if line.startswith("[ WARN ]")]
    assert done.returncode == 1 and warnings, said
    assert warnings[0].startswith("[ WARN ] no results can be kept; expected a folder that can be made and written")
    assert "the verdicts and the records are" not in said
    assert "setup failed:" in said
