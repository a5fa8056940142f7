"""``lineproof verify``: what it prints, and its exit status. What it finds is tested in evidence/test_integrity.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from lineproof.evidence.run_files import sha256_of
from support.evidence_builders import written


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
