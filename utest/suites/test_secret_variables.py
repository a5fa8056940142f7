"""Robot's variables of type Secret as logins: a run at TRACE leaves nothing of them anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import robot_run
from support.served_bench import served

pytestmark = pytest.mark.slow


def test_a_key_that_is_a_secret_variable_logs_in_and_is_in_no_file(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    with served(tmp_path / "bench") as bench:
        home = bench.project(tmp_path)
        file = home / "variables" / "testbeds" / "lab.yaml"
        key = bench.router.key_path
        assert key is not None
        file.write_text(file.read_text().replace(f"key: {key}", "key_from: LAB_KEY"))
        text = key.read_text()
        held = tmp_path / "held.py"
        held.write_text(
            "from pathlib import Path\nfrom robot.api.types import Secret\n"
            f"def get_variables():\n    return {{'lab key': Secret(Path({str(key)!r}).read_text())}}\n"
        )
        suite = robot_run.write_suite(
            tmp_path, "Run On Router    vppctl show version", "Run On Router    vppctl show bogus"
        )
        options = ("-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick", "--loglevel", "TRACE")
        done = robot_run.run(tmp_path, suite, *options, "-V", str(held), "--debugfile", "debug.txt")
        assert "VPP refused 'vppctl show bogus': show: unknown input `bogus'" in done.message, done.console
        plain = robot_run.run(tmp_path, suite, *options, "-v", "LAB_KEY:hunter2")
        assert "'LAB_KEY', and ${LAB_KEY} is a variable that Robot writes into its logs" in plain.message
    lines = [line for line in text.splitlines() if not line.startswith("-----")]
    files = [path for name in ("out", "results") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {"output.xml", "log.html", "debug.txt"} <= {path.name for path in files}
    for path in files:
        data = path.read_text(errors="replace")
        assert not [line for line in lines if line in data], path
