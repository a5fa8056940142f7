"""Where a project keeps its files: a folder of each kind of :data:`KINDS`, and the results."""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from .errors import ConfigError
from .files import is_folder, require_folder

KINDS = ("platforms", "testbeds", "goals", "profiles", "generators", "programs", "shells", "studies")
"""The folders of ``variables/``."""


PACKAGED_ROUTERS = Path(__file__).parent / "routers"
"""The routers that come with Lineproof, each a folder with its description: over them lie a project's ``shells``."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A folder of a project over the folder of the same kind that comes with Lineproof: its own files win, by name.

    A packaged file may lie in a folder of its name, beside its Python.
    """

    own: Path
    packaged: Path

    def __truediv__(self, name: str) -> Path:
        """Return the file *name*: the project's, else the packaged one; the project's path if there is none."""
        own, packaged = self.own / name, self._packaged(name)
        # a link to nothing is the project's too: its reader refuses it
        return packaged if packaged.exists() and not os.path.lexists(own) else own

    def glob(self, pattern: str) -> Iterator[Path]:
        """Return the files of both that match, each name once. Raises ConfigError for a folder that cannot be read."""
        beside = [path for path in self.packaged.glob(f"*/{pattern}") if path.stem == path.parent.name]
        paths = (*beside, *listed(self.packaged, pattern), *listed(self.own, pattern))
        return iter({path.name: path for path in paths}.values())

    def replaced(self, names: Iterable[str] | None = None) -> list[Path]:
        """Return the project's files that take the place of different packaged ones. *names*: among these (all)."""
        others = []
        for path in listed(self.own, "*.yaml") if names is None else [self.own / name for name in names]:
            with contextlib.suppress(OSError):  # there is only one
                if not filecmp.cmp(path, self._packaged(path.name), shallow=False):
                    others.append(path)
        return others

    def _packaged(self, name: str) -> Path:
        path = self.packaged / name.removesuffix(".yaml") / name
        return path if path.exists() else self.packaged / name

    def beside(self, kind: str) -> Layers:
        """Return the folder of another *kind* of the same project."""
        return Layers(self.own.parent / kind, self.packaged.parent / kind)

    def __str__(self) -> str:
        """Return the project's folder."""
        return str(self.own)


Folder = Path | Layers
"""Where files are read from by name."""


def listed(folder: Folder, pattern: str) -> list[Path]:
    """Return the paths in *folder* that match *pattern*, by name, no hidden ones; none if there is no such folder.

    Raises ConfigError for what is no folder or cannot be read: as empty, packaged files would take its place.
    """
    if isinstance(folder, Layers):
        return sorted(folder.glob(pattern), key=lambda path: path.name)
    try:
        entries = list(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}; expected a folder", folder) from None
    return sorted(path for path in entries if fnmatchcase(path.name, pattern) and not path.name.startswith("."))


class _Kind:
    """The folder of ``variables/`` that is called as the attribute of :class:`Project`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, project: Project, owner: type) -> Layers:
        packaged = (project.packaged or packaged_variables()) / self._name
        if self._name == "shells" and project.packaged is None:
            packaged = PACKAGED_ROUTERS
        return Layers(project.root / "variables" / self._name, packaged)


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder: its ``variables/`` lies over the packaged one, ``results/`` is what runs leave.

    ``packaged``: in place of the ``variables/`` that come with Lineproof (None: those).
    """

    root: Path
    packaged: Path | None = None

    platforms = _Kind()
    testbeds = _Kind()
    goals = _Kind()
    profiles = _Kind()
    generators = _Kind()
    programs = _Kind()
    shells = _Kind()
    studies = _Kind()

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """Return the project of *start* (default: the current folder): the nearest folder with ``variables/``.

        Without one *start* itself is the project, and all files are packaged ones. Raises ConfigError if there is no
        such folder.
        """
        here = require_folder(Path(os.path.realpath(start or Path.cwd())), "the project's folder")
        for folder in (here, *here.parents):
            if any(is_folder(folder / "variables" / kind) for kind in KINDS):
                return cls(folder)
        return cls(here)

    @property
    def results(self) -> Path:
        """``results``."""
        return self.root / "results"


def packaged_variables() -> Path:
    """Return ``variables/`` as installed beside this module, or at the top of a clone."""
    return _installed("variables", "variables")


def packaged_suites() -> Path:
    """Return the shipped suites: ``suites/`` as installed beside this module, or ``tests/`` at the top of a clone."""
    return _installed("suites", "tests")


def _installed(name: str, in_clone: str) -> Path:
    installed = Path(__file__).parent / name
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / in_clone
