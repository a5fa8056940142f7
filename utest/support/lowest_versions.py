"""Write the lowest version that pyproject.toml allows of each package, as constraints of pip, to the named file."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lowest_versions() -> Iterator[str]:
    """Yield ``name==version`` for each requirement that has a lower bound; those for development are left out."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *(text for extra in extras if extra != "dev" for text in extras[extra])]
    for requirement in map(Requirement, named):
        for bound in requirement.specifier:
            if bound.operator in (">=", "=="):
                yield f"{requirement.name}=={bound.version}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(lowest_versions()) + "\n", encoding="utf-8")
