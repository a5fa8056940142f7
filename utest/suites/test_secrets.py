"""Secrets, in variables of Robot and where a testbed file takes a name or a path, are shown and kept nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.system.private_key import load_key
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


SECRET = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
TESTBED = """
testbed: lab
kind: hardware
generator: {{type: trex, address: 127.0.0.1}}
router:
  address: 127.0.0.1
  user: admin
  {field}: {value}
"""


def test_what_is_no_file_is_not_shown_as_the_path_of_a_key() -> None:
    with pytest.raises(TestbedError, match="the key cannot be read") as caught:
        load_key(Path(SECRET), None)
    assert SECRET not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["{0}", "|\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    {0}"], ids=["text", "a block"]
)
def test_no_file_of_a_run_and_no_line_of_it_has_a_pasted_key(form: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "variables" / "testbeds").mkdir(parents=True)
    testbed = TESTBED.format(field="key", value=form.format(SECRET))
    (project / "variables" / "testbeds" / "lab.yaml").write_text(testbed, encoding="utf-8")
    ended = robot_run.run(
        tmp_path, robot_run.ROOT / "tests" / "netgate6100.robot", "-v", "TESTBED:lab", "-v", f"PROJECT:{project}"
    )
    assert ended.status and re.search(r"'router.key'|the key|TRex", ended.console)
    assert SECRET not in ended.console
    written = [path for path in tmp_path.rglob("*") if path.is_file() and project not in path.parents]
    assert written and not [path for path in written if SECRET.encode() in path.read_bytes()]
