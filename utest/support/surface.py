"""Write a page with everything that a user can write: keywords, commands, variables, keys of YAML files.

``tox -e docs`` puts it into the site.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from robot.libdoc import LibraryDocumentation

from lineproof.ceilings import Card
from lineproof.commands.main import BENCH_COMMANDS, COMMANDS
from lineproof.config import _models_in
from lineproof.core.goal import Goal
from lineproof.core.traffic.profile_schema import ProfileFile
from lineproof.evidence.signoff.sheet import About
from lineproof.generators.programs.description import Description
from lineproof.platforms import Platform
from lineproof.robot.shared import VARIABLES
from lineproof.routers.description import RouterDescription
from lineproof.studies.study import Study
from lineproof.testbed.settings import KINDS, TrexGeneratorSettings
from lineproof.units import counted

FILES: dict[str, type[BaseModel]] = {
    "variables/platforms": Platform,
    **{f"variables/testbeds, `kind: {kind}`": model for kind, model in KINDS.items()},
    "the `generator` of a testbed, TRex": TrexGeneratorSettings,
    "variables/goals": Goal,
    "variables/profiles": ProfileFile,
    "variables/shells": RouterDescription,
    "variables/programs": Description,
    "variables/generators": Card,
    "variables/studies": Study,
    "signoff --about": About,
}

LIBRARIES = "lineproof.robot.Lineproof", "lineproof.robot.Faults"


def surface() -> Iterator[str]:
    yield "# Everything that can be written"
    for library in LIBRARIES:
        keywords = LibraryDocumentation(library).keywords
        yield from ("", f"## {counted(len(keywords), 'keyword')} of `{library}`", "")
        yield from (f"- `{keyword.name}` {keyword.short_doc}" for keyword in keywords)
    yield from ("", f"## {len(COMMANDS) + len(BENCH_COMMANDS)} commands", "")
    yield from (f"- `lineproof {name}`: {summary}" for name, summary in (COMMANDS | BENCH_COMMANDS).items())
    yield from ("", f"## {len(VARIABLES)} [variables](docs/command-line.md#variables-of-a-run) of a run", "")
    yield from (f"- `{name}`" for name in VARIABLES)
    for file, model in FILES.items():
        yield from ("", f"## {file}", "")
        yield from _keys(model, ())


def _keys(model: type[BaseModel], above: tuple[type[BaseModel], ...]) -> Iterator[str]:
    """Yield each key of *model*, and of the models in it below their key."""
    for name, field in model.model_fields.items():
        needed = " (needed)" if field.is_required() else ""
        yield f"{'    ' * len(above)}- `{field.alias or name}`{needed}"
        for inner in dict.fromkeys(_models_in(field.annotation)):
            if inner is not model and inner not in above:
                yield from _keys(inner, (*above, model))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(surface()) + "\n", encoding="utf-8")
