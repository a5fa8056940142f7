"""Two runs of a suite compared: what is proven worse, and what is not."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema.cli import main as check_jsonschema
from click.testing import CliRunner

from lineproof.commands.main import command_parser, main
from lineproof.errors import ConfigError
from lineproof.evidence.run_files import sha256_of
from support.evidence_builders import written
from support.made_runs import FORWARDS, LATENCY, LOAD, LOSES, Sentence, around, made_run
from support.paths import ROOT


def compared(folder: Path, old: Sentence, new: Sentence, *options: str) -> int:
    """Return the exit status where runs of one sentence are compared."""
    runs = [str(made_run(folder, name, sentence)) for name, sentence in (("old", old), ("new", new))]
    return main(["compare", *runs, *options])


MEAN, LESS = Sentence(FORWARDS, around(5e6, 1)), Sentence(FORWARDS, around(4.97e6, 2))
NOISY = Sentence(FORWARDS, around(5e6, 1, 0.02)), Sentence(FORWARDS, around(4.99e6, 2, 0.02))
SINGLE = Sentence(FORWARDS, (5e6,))
AT_LEAST = Sentence(LOAD, margin=(1.1, None))
STRICT = ("--method", "pooled", "--confidence", "0.99", "--allow", "0")


@pytest.mark.parametrize(
    ("old", "new", "options", "status", "words"),
    [
        (AT_LEAST, AT_LEAST, (), 0, " in both; no difference proven  [PASS]"),
        (Sentence(LOAD, margin=(1.1, 1.11)), Sentence(LOAD), (), 0, "0 of 1 sentence proven worse; 1 not compared\n"),
        (*NOISY, STRICT, 0, "no difference proven"),
        (MEAN, LESS, (), 0, "a difference, not proven to be more than 1 %"),
        (MEAN, LESS, ("--allow", "0.1"), 1, "WORSE"),
        (SINGLE, SINGLE, (), 0, "1 and 1 figures, too few to compare"),
        # that of the reference may be none
        (Sentence(LOSES, [0.0] * 7), Sentence(LOSES, around(0.1, 1, 0.1, 7)), (), 1, "% of the threshold (+"),
    ],
)
def test_a_difference_counts_where_it_is_proven_and_more_than_is_allowed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: Sentence,
    new: Sentence,
    options: tuple[str, ...],
    status: int,
    words: str,
):
    assert compared(tmp_path, old, new, *options) == status
    assert words in capsys.readouterr().out


def test_a_sentence_that_only_one_run_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sentences = Sentence(FORWARDS, around(5e6, 1)), Sentence(LATENCY, around(40, 1))
    both, one = made_run(tmp_path, "both", *sentences), made_run(tmp_path, "one", sentences[0])
    assert main(["compare", str(both), str(one)]) == 0
    assert f"only in the reference: {LATENCY}" in capsys.readouterr().out
    assert main(["compare", "--json", str(one), str(both)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["only_reference"], found["only_candidate"]) == ([], [LATENCY])
    assert [row["state"] for row in found["sentences"]] == ["nothing proven"] and found["worse"] == 0
    assert found["not_comparable"] == [] and found["sentences"][0]["reference"]["median"] > 4.9e6


def test_without_any_spread_only_a_relevant_difference_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old, hair, less = (
        made_run(tmp_path, name, Sentence(FORWARDS, [rate] * 5))
        for name, rate in (("old", 5e6), ("hair", 4.9999e6), ("less", 4.9e6))
    )
    assert main(["compare", str(old), str(hair), "--allow", "0"]) == 0
    assert "-0.002 %; no spread in either run, so no test: counts from 0.1 % on" in capsys.readouterr().out
    assert main(["compare", str(old), str(less)]) == 1
    assert main(["compare", str(old), str(old)]) == 0
    assert "the reference is the run itself" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "status", "words"),
    [
        ("FAIL", "PASS", 0, "better  64b"),
        ("PASS", "INCONCLUSIVE", 0, "unsure  64b"),
        ("INCONCLUSIVE", "PASS", 0, "1 with a verdict that became, or was, INCONCLUSIVE"),
        ("PASS", "FAIL", 1, "WORSE   64b"),
    ],
)
def test_a_changed_verdict_is_shown(
    before: str, after: str, status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert compared(tmp_path, Sentence(LOAD, [1e7], before), Sentence(LOAD, [1e7], after)) == status
    printed = capsys.readouterr().out
    assert words in printed and f"[{before} → {after}]" in printed


WRONG = {"confidence": ("0,95", "95 %", "1.0", "nan", ""), "allow": ("-1", "1,5", "nan", "", "100", "1e2", "٣")}


@pytest.mark.parametrize(("option", "text"), [(option, text) for option, texts in WRONG.items() for text in texts])
def test_a_wrong_confidence_or_allowance_is_refused(tmp_path: Path, option: str, text: str):
    with pytest.raises(SystemExit) as ended:
        main(["compare", f"--{option}={text}", str(tmp_path), str(tmp_path)])
    assert ended.value.code == 2


# -- ``lineproof verify``: what it prints, and its exit status. What it finds is tested in evidence/test_integrity


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bad, open_ = written(tmp_path / "bad"), written(tmp_path / "open", closed=False)
    records = bad / "requirements.jsonl"
    records.write_text(records.read_text(encoding="utf-8").replace('"FAIL"', '"PASS"'), encoding="utf-8")
    assert main(["verify", "--json", str(bad), str(open_)]) == 1
    found = json.loads(capsys.readouterr().out)
    first, second = found["runs"]
    assert found["altered"] == 1 and first["run"] == str(bad)
    assert [(item["file"], item["line"]) for item in first["altered"]] == [("requirements.jsonl", 2)]
    assert (first["closed"], first["manifest_sha256"]) == (True, sha256_of(bad / "manifest.json"))
    assert (second["closed"], second["manifest_sha256"], second["altered"]) == (False, None, [])
    assert second["notes"] == ["manifest.json is missing: the run was never closed"]


def test_after_a_folder_without_a_run_the_others_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one, empty, two = written(tmp_path / "one"), tmp_path / "empty" / "allure", written(tmp_path / "two")
    empty.mkdir(parents=True)
    (empty / "a-result.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"empty: holds no run: nothing was measured.*nothing: is no folder"):
        main(["verify", str(one), str(empty.parent), str(tmp_path / "nothing"), str(two)])
    said = capsys.readouterr().out
    assert f"{one}: as the run left it" in said and f"{two}: as the run left it" in said


# -- the examples for CI servers: files that those accept, with commands that this program has


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
