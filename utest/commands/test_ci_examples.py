"""The examples for CI servers: files that those accept, with commands that this program has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema.cli import main as check_jsonschema
from click.testing import CliRunner

from lineproof.commands.main import command_parser
from support.paths import ROOT

GITHUB, GITLAB = (ROOT / "docs" / "ci" / name for name in ("github-actions.yml", "gitlab-ci.yml"))


def commands(path: Path) -> list[str]:
    """The lines of shell in an example."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path == GITHUB:
        return [step["run"] for step in found["jobs"]["acceptance"]["steps"] if "run" in step]
    job: dict[str, Any] = found["acceptance"]
    return [*job["before_script"], *job["script"]]


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        (GITHUB, ["--builtin-schema", "vendor.github-workflows"]),
        (GITLAB, ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
)
def test_an_example_fits_the_schema_of_its_server(path: Path, arguments: list[str], tmp_path: Path):
    result = CliRunner().invoke(check_jsonschema, [*arguments, str(path)])
    assert result.exit_code == 0, result.output
    wrong = tmp_path / path.name
    wrong.write_text(path.read_text(encoding="utf-8").replace("timeout", "tmeout"), encoding="utf-8")
    assert CliRunner().invoke(check_jsonschema, [*arguments, str(wrong)]).exit_code == 1


@pytest.mark.parametrize("path", [GITHUB, GITLAB])
def test_its_commands_are_ours(path: Path):
    lines = [line for line in commands(path) if line.startswith("lineproof ")]
    assert sum(line.startswith("lineproof gate") for line in lines) == 2
    for line in lines:
        words = shlex.split(re.split(r" (?:\|\||>)", line)[0])[1:]
        arguments = command_parser(words[:1]).parse_args(words)
        if words[0] == "gate":
            assert (arguments.runs, arguments.baseline, arguments.allow) == (["out/results"], ["$BASELINE"], 0.01)
