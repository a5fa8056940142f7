"""A secret that somebody put where a testbed file takes its name or its path is shown and kept nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.system.private_key import load_key
from support import robot_run

SECRET = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
FORMS = {
    "a block": "|\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    {0}\n    -----END OPENSSH PRIVATE KEY-----",
    "folded lines": "-----BEGIN OPENSSH PRIVATE KEY-----\n    {0}\n    -----END OPENSSH PRIVATE KEY-----",
    "text": "{0}",
    "a list": "[{0}]",
    "a mapping": "{{{0}: {0}}}",
    "quoted": '"{0}"',
}
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
@pytest.mark.parametrize("form", FORMS)
def test_no_file_of_a_run_and_no_line_of_it_has_a_pasted_key(form: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "variables" / "testbeds").mkdir(parents=True)
    testbed = TESTBED.format(field="key", value=FORMS[form].format(SECRET))
    (project / "variables" / "testbeds" / "lab.yaml").write_text(testbed, encoding="utf-8")
    ended = robot_run.run(
        tmp_path, robot_run.ROOT / "tests" / "netgate6100.robot", "-v", "TESTBED:lab", "-v", f"PROJECT:{project}"
    )
    assert ended.status and re.search(r"'router.key'|the key|TRex", ended.console)
    assert SECRET not in ended.console
    written = [path for path in tmp_path.rglob("*") if path.is_file() and project not in path.parents]
    assert written and not [path for path in written if SECRET.encode() in path.read_bytes()]
