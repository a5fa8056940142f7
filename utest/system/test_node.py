"""Which Node and npm are taken, and what is said where there is none. Stand-ins are shell scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence import allure_program
from lineproof.system import children, node
from lineproof.system.node import Node, find_node

pytestmark = pytest.mark.slow


def program(folder: Path, name: str, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(node, "WHEEL", "no-such-distribution")
    monkeypatch.setattr(children, "SBIN_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "does not run"),
        (("echo v18.20.0",), "is 18.20.0"),
        (("echo v22.1.0", "exit 3"), "does not run"),
        (None, "there is no 'node' on PATH"),
    ],
)
def test_without_a_fit_node_the_error_says_how_to_get_one(
    tmp_path: Path, no_wheel: None, lines: tuple[str, ...] | None, words: str
) -> None:
    if lines is not None:
        program(tmp_path / "bin", "node", *lines)
    with pytest.raises(ConfigError, match=rf"Node 20 or later: .*{words}.*extra 'report'"):
        find_node()


def test_the_systems_node_is_taken_with_npm_behind_its_link(tmp_path: Path, no_wheel: None) -> None:
    found = program(tmp_path / "bin", "node", "echo v22.1.0")
    script = program(tmp_path / "npm", "npm-cli.js", "exit 0")
    (tmp_path / "bin" / "npm").symlink_to(script)
    got = find_node()
    assert got == Node(found, script, "22.1.0")
    assert got.npm_command("ci") == [str(found), str(script), "ci"]
    assert got.environment["PATH"].split(":")[0] == str(tmp_path / "bin")


def test_a_password_of_the_registry_goes_to_npm_alone(
    tmp_path: Path, no_wheel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config__auth", "secret")
    found = Node(tmp_path / "node", None, "22.1.0")
    assert "secret" not in found.environment.values() and found.npm_environment["npm_config__auth"] == "secret"
    with pytest.raises(ConfigError, match="has no npm beside it"):
        found.npm_command("ci")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ("echo ENOTFOUND >&2", "exit 1"),
            "ENOTFOUND.*needed once.*copy the folder .*/lineproof/allure3-",
        ),
        (("exit 0",), "npm cannot fetch Allure"),
        (("/bin/sleep 60",), "within 1 s"),
    ],
)
def test_what_npm_cannot_fetch_is_an_error_and_nothing_stays(
    tmp_path: Path, no_wheel: None, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], words: str
) -> None:
    monkeypatch.setattr(allure_program, "FETCH_LIMIT", 1.0)
    npm = program(tmp_path / "bin", "npm", *lines)
    with pytest.raises(TestbedError, match=words):
        allure_program.fetch_allure(Node(tmp_path / "bin" / "node", npm, "22.1.0"))
    assert not list((tmp_path / "cache" / "lineproof").iterdir()) and not allure_program.is_fetched()


def test_what_npm_fetched_is_kept_for_the_next_time(tmp_path: Path, no_wheel: None) -> None:
    made = ("/bin/mkdir -p node_modules/allure", "echo > node_modules/allure/cli.js")
    npm = program(tmp_path / "bin", "npm", *made)
    allure_program.fetch_allure(Node(tmp_path / "bin" / "node", npm, "22.1.0"))
    assert allure_program.is_fetched()


def test_allures_own_error_is_shown(tmp_path: Path, no_wheel: None) -> None:
    found = Node(program(tmp_path / "bin", "node", "echo broken >&2", "exit 1"), None, "22.1.0")
    with pytest.raises(TestbedError, match=r"exit status 1.*broken.*fetched again"):
        allure_program.run_allure(found, tmp_path / "results", tmp_path / "rc.json", tmp_path / "out")
