"""Where a project keeps its files: platforms, testbeds, goals, profiles, generator cards, results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigError

KINDS = ("platforms", "testbeds", "goals", "profiles", "generators")
"""The folders of ``variables/``."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A folder of a project over the folder of the same kind that comes with Linerate: its own files win, by name."""

    own: Path
    packaged: Path

    def __truediv__(self, name: str) -> Path:
        """The file *name*: the project's, else the packaged one; the project's path if there is none."""
        own, packaged = self.own / name, self.packaged / name
        return packaged if packaged.exists() and not own.exists() else own

    def glob(self, pattern: str) -> Iterator[Path]:
        """The files of both that match, each name once."""
        return iter({path.name: path for layer in (self.packaged, self.own) for path in layer.glob(pattern)}.values())

    def __str__(self) -> str:
        """The project's folder."""
        return str(self.own)


Folder = Path | Layers
"""What files are read from by name."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder: its ``variables/`` lies over the packaged one, ``results/`` is what runs leave.

    ``packaged``: in place of the ``variables/`` that come with Linerate (None: those).
    """

    root: Path
    packaged: Path | None = None

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project that *start* (default: the current folder) lies in: the nearest folder with ``variables/``.

        Without one *start* itself is the project, and all files are packaged ones. Raises ConfigError if there is no
        such folder.
        """
        here = (start or Path.cwd()).resolve()
        if not here.is_dir():
            raise ConfigError("there is no such folder; expected that of a project", here)
        for folder in (here, *here.parents):
            if any((folder / "variables" / kind).is_dir() for kind in KINDS):
                return cls(folder)
        return cls(here)

    @property
    def platforms(self) -> Layers:
        """``variables/platforms``."""
        return self._layers("platforms")

    @property
    def testbeds(self) -> Layers:
        """``variables/testbeds``."""
        return self._layers("testbeds")

    @property
    def goals(self) -> Layers:
        """``variables/goals``."""
        return self._layers("goals")

    @property
    def generators(self) -> Layers:
        """``variables/generators``."""
        return self._layers("generators")

    @property
    def profiles(self) -> Layers:
        """``variables/profiles``."""
        return self._layers("profiles")

    @property
    def results(self) -> Path:
        """``results``."""
        return self.root / "results"

    def _layers(self, kind: str) -> Layers:
        return Layers(self.root / "variables" / kind, (self.packaged or packaged_variables()) / kind)


def packaged_variables() -> Path:
    """``variables/`` as installed beside this module, or at the top of a clone."""
    return _installed("variables", "variables")


def packaged_suites() -> Path:
    """The shipped suites: ``suites/`` as installed beside this module, or ``tests/`` at the top of a clone."""
    return _installed("suites", "tests")


def _installed(name: str, in_clone: str) -> Path:
    installed = Path(__file__).parent / name
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / in_clone
