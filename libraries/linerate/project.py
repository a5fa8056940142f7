"""Where a project keeps its files: platforms, testbeds, goals, profiles, results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import ConfigError


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder, which contains ``variables/``."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project around *start* (default: current folder), else around this package. Raises ConfigError."""
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents, Path(__file__).resolve().parents[2]):
            if (folder / "variables" / "platforms").is_dir():
                return cls(folder)
        raise ConfigError("no project here: there is no folder 'variables/platforms' here or above", here)

    @property
    def platforms(self) -> Path:
        """``variables/platforms``."""
        return self.root / "variables" / "platforms"

    @property
    def testbeds(self) -> Path:
        """``variables/testbeds``."""
        return self.root / "variables" / "testbeds"

    @property
    def goals(self) -> Path:
        """``variables/goals``."""
        return self.root / "variables" / "goals"

    @property
    def generators(self) -> Path:
        """``variables/generators``."""
        return self.root / "variables" / "generators"

    @property
    def profiles(self) -> Path:
        """``variables/profiles``."""
        return self.root / "variables" / "profiles"

    @property
    def results(self) -> Path:
        """``results``."""
        return self.root / "results"
