from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from lineproof.system import children

SHOW = "import json, os, sys; print(json.dumps([dict(os.environ), sys.path, os.getcwd()]))"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["ROUTER_PASSWORD", "TREX_PASSWORD", "LINEPROOF_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_what_is_not_known_to_be_harmless_is_not_handed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "not for everybody")
    assert name not in children.environment()
    assert children.environment({name: "needed"})[name] == "needed"


@pytest.mark.parametrize("name", ["PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONWARNINGS"])
@pytest.mark.parametrize("made", [children.environment, children.users_environment])
def test_python_is_not_told_to_read_the_current_folder(made, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "here/now")
    assert name not in made()


@pytest.mark.parametrize("name", ["PATH", "LD_LIBRARY_PATH"])
@pytest.mark.parametrize("given", ["", ".", ":", "::/usr/bin", "/usr/bin:", ".:/usr/bin", "bin:/usr/bin:../x"])
def test_lists_of_folders_lose_their_relative_entries(name: str, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, given)
    assert children.environment().get(name) == ("/usr/bin" if "/usr/bin" in given else None)


@pytest.mark.parametrize("given", ["", ".", ":", "libraries", "{here}", ".:{here}", "{here}:"])
def test_a_python_child_finds_this_package_and_nothing_of_the_current_folder(
    here: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", given.format(here=here))
    monkeypatch.syspath_prepend(str(here))
    found = children.environment().get("PYTHONPATH", "").split(os.pathsep)
    assert found == [str(children.LIBRARIES)]


def test_a_folder_with_installed_packages_is_handed_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "site" / "numpy-2.0.dist-info").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", f"{here}:{here / 'site'}:site")
    assert children.environment()["PYTHONPATH"] == f"{children.LIBRARIES}:{here / 'site'}"


def test_an_installed_package_does_not_come_before_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(children.LIBRARIES))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "PYTHONPATH" not in children.environment()


def test_programs_of_the_current_folder_are_not_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (here, here / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "ls").write_text("#!/bin/sh\necho mine\n")
        (folder / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", ":.:bin:/usr/bin:/bin")
    assert children.find_program("ls") in ("/usr/bin/ls", "/bin/ls")


@pytest.mark.slow
def test_a_program_starts_outside_of_the_current_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "ls").write_text("#!/bin/sh\necho mine\n")
    (here / "ls").chmod(0o755)
    (here / "random.py").write_text("raise SystemExit('mine')")
    monkeypatch.setenv("PATH", ".:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", ".")
    assert children.run(["ls", "-d", "/"], 20).stdout == "/\n"
    done = children.run([*children.python("timeit"), "-n1", "-r1", f"import random; {SHOW}"], 20)
    variables, path, folder = json.loads(done.stdout.splitlines()[0])
    assert folder == "/" and str(here) not in path and "" not in path and variables["PATH"] == "/usr/bin:/bin"


def test_the_command_of_a_module_is_this_interpreters() -> None:
    assert children.python("lineproof", "check") == (sys.executable, "-P", "-m", "lineproof", "check")
