"""Nothing of the current folder becomes code, whatever lies there: in no process of a run, and in none of the bench."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from support import robot_run
from support.paths import LIBRARIES
from support.trex_profile_support import ours, project_with

PROGRAMS = (
    *("ip", "sysctl", "sshd", "ssh", "ssh-keygen", "setpriv", "sudo", "sh", "bash", "env", "git", "python", "python3"),
    *("mkdir", "rm", "id", "setsid", "mktemp", "ethtool", "tcpdump", "ldconfig", "gcc", "cc", "ld", "objdump", "uname"),
    *("fc-list", "lscpu", "robot", "lineproof", "t-rex-64"),
)

MODULE = """\
import os
os.makedirs({marks!r}, exist_ok=True)
with open(os.path.join({marks!r}, __name__), "a") as file:
    with open("/proc/self/cmdline") as words:
        file.write(words.read().replace(chr(0), " ") + "\\n")
raise ImportError("from the current folder")
"""

PROGRAM = '#!/bin/sh\n/bin/mkdir -p "{marks}"\necho "$0 $@" >> "{marks}/program-${{0##*/}}"\nexit 1\n'


class HostileFolder:
    """Modules of every name of the standard library and of every installed package, and :data:`PROGRAMS`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._marks = folder.parent / f"{folder.name}.marks"
        folder.mkdir()
        names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", "evil", "imp"}
        # this product's own packages too, but for what the parent of all is started as
        for name in sorted(name for name in names if name.isidentifier()):
            (folder / f"{name}.py").write_text(MODULE.format(marks=str(self._marks)), encoding="utf-8")
        for name in PROGRAMS:
            (folder / name).write_text(PROGRAM.format(marks=self._marks), encoding="utf-8")
            (folder / name).chmod(0o755)
        (folder / ".pdbrc").write_text("import evil\n", encoding="utf-8")

    @property
    def marks(self) -> dict[str, str]:
        """Return what was run: name -> the command lines of the processes that ran it."""
        found = sorted(self._marks.iterdir()) if self._marks.is_dir() else []
        return {path.name: path.read_text(encoding="utf-8") for path in found}


# The parent finds its own modules as an installed program does. What it starts inherits the worst environment.
PARENT = """\
import os, runpy, sys
libraries, module, *words = sys.argv[1:]
sys.path.insert(0, libraries)
sys.argv = [module, *words]
import robot
os.environ.update(PYTHONPATH=":.", PYTHONHOME=".", PYTHONSTARTUP="evil.py", PYTHONINSPECT="x", BASH_ENV="evil.py")
os.environ.update(PATH=":.:" + os.environ["PATH"], LD_LIBRARY_PATH=":.", PYTHONUSERBASE=".")
runpy.run_module(module, run_name="__main__")
"""


@pytest.mark.slow
def test_a_run_takes_nothing_from_the_current_folder(tmp_path: Path) -> None:
    """Robot, the simulated bench, and a profile of the user's own in that folder, which imports a module beside it."""
    hostile = HostileFolder(tmp_path / "here")
    folder = hostile.folder
    body = "import random, yaml, xdrlib_of_ours\nreturn stream(64, direction)"
    project_with(folder, ours=ours(body))
    (folder / "xdrlib_of_ours.py").write_text("")
    goal = folder / "variables" / "goals" / "quick.yaml"
    goal.write_text(goal.read_text(encoding="utf-8").replace("duration_sum: 10\n", "duration_sum: 2\n"))
    suite = robot_run.write_suite(folder, "ours unidirectional ≥ 1 Mpps", "Ramp    64b unidirectional")
    words = ("-v", f"PROJECT:{folder}", "-v", "GOAL:quick", "-v", "MARGIN:off", "--outputdir", "out", suite.name)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PARENT, str(LIBRARIES), "robot", "--exitonerror", *words],
        cwd=folder,
        env={**robot_run.environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert hostile.marks == {}


@pytest.mark.slow
def test_python_m_forgets_the_current_folder_as_soon_as_this_package_begins(tmp_path: Path) -> None:
    """Imports of Python itself before that are beyond it: ``importlib``, ``warnings``."""
    for name in ("argparse", "random", "json", "yaml", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the current folder')")
    command = [sys.executable, "-m", "lineproof", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(LIBRARIES)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
