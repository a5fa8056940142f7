"""A folder whose modules and programs have the names of those that Lineproof's processes use, and leave a mark."""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

PROGRAMS = (
    *("ip", "sysctl", "sshd", "ssh", "ssh-keygen", "setpriv", "sudo", "sh", "bash", "env", "git", "python", "python3"),
    *("mkdir", "rm", "id", "setsid", "mktemp", "ethtool", "tcpdump", "ldconfig", "gcc", "cc", "ld", "objdump", "uname"),
    *("latex", "dvisvgm", "fc-list", "lscpu", "robot", "lineproof", "t-rex-64"),
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

# the module 'matplotlibrc' is no Python: it is matplotlib's settings, one of which runs a program
SETTINGS = "text.usetex: True\nbackend: module://evil\nfont.size: 99\n"


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
        (folder / "matplotlibrc").write_text(SETTINGS, encoding="utf-8")
        (folder / ".pdbrc").write_text("import evil\n", encoding="utf-8")

    @property
    def marks(self) -> dict[str, str]:
        """Return what was run: name -> the command lines of the processes that ran it."""
        found = sorted(self._marks.iterdir()) if self._marks.is_dir() else []
        return {path.name: path.read_text(encoding="utf-8") for path in found}
