"""``lineproof init``: what a new project's tox installs, and what is refused. The rest: ``suites/test_wheel.py``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError
from lineproof.project import Project, listed


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "lineproof[bench]"),
        ({"url": "file:///srv/lineproof", "dir_info": {"editable": True}}, "lineproof[bench] @ file:///srv/lineproof"),
        (
            {"url": "https://example.org/lineproof-1-py3-none-any.whl", "archive_info": {}},
            "lineproof[bench] @ https://example.org/lineproof-1-py3-none-any.whl",
        ),
        (
            {"url": "https://example.org/lineproof.git", "vcs_info": {"vcs": "git", "commit_id": "0af3"}},
            "lineproof[bench] @ git+https://example.org/lineproof.git@0af3",
        ),
    ],
)
def test_tox_installs_what_is_installed_here(
    origin: dict[str, object] | None, requirement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda name: text)
    monkeypatch.setattr("lineproof.system.installed.distribution", lambda name: installed)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert f"deps =\n    {requirement}\n" in (tmp_path / "tox.ini").read_text(encoding="utf-8")


def test_init_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tox.ini").write_text("mine", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"tox\.ini exists already; nothing was written, expected a folder without$"):
        main(["init"])
    assert [path.name for path in tmp_path.iterdir()] == ["tox.ini"]


def test_a_second_box_in_a_project_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "mybox"]) == 0
    shared = r"variables/testbeds/lab\.yaml, tox\.ini, \.gitignore, robot\.toml exist already; nothing was written, .*"
    with pytest.raises(ConfigError, match=shared + "'netgate6100' without a copy: .*'Open Testbed For    netgate6100'"):
        main(["init", "--platform", "netgate6100"])
    # as it says: the project has the shipped box
    assert "netgate6100" in [path.stem for path in listed(Project(tmp_path).platforms, "*.yaml")]
    with pytest.raises(ConfigError, match=shared + r"write variables/platforms/second\.yaml and tests/second\.robot$"):
        main(["init", "second"])


@pytest.mark.parametrize("name", ["../evil", "My Box", "a/b"])
def test_a_name_that_files_cannot_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="cannot name a project's files"):
        main(["init", name])
    assert not list(tmp_path.iterdir())
