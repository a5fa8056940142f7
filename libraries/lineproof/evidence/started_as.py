"""With which command a run was started: what is given again to go on with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

STARTED_AS = "started_as"
"""Key of :meth:`StartedAs.record` in the environment record's extra data."""

ROBOT = "robot"
VARIABLE = "-v RESULTS:"
"""The option of a suite for the folder of results."""


@dataclass(frozen=True)
class StartedAs:
    """``command``: its words, without those of the results and of an earlier run. ``folder``: where it was given.

    ``results``: the option for the folder of results that was given (``-d``, ``-v RESULTS:``, ``--results``); "": none.
    """

    command: tuple[str, ...]
    folder: Path
    results: str = ""

    def record(self) -> dict[str, object]:
        """Return it as the environment's extra data have it."""
        return {"command": list(self.command), "folder": str(self.folder), "results": self.results}

    @classmethod
    def of(cls, extra: Mapping[str, Any]) -> Self | None:
        """Return that of a run with the *extra* data; None where nobody wrote it down."""
        match extra.get(STARTED_AS):
            case {"command": [str(), *_] as words, "folder": str(folder), "results": str(results)}:
                return cls(tuple(map(str, words)), Path(folder), results)
        return None

    def going_on(self, run: Path) -> str:
        """The command that goes on with this run, whose folder is *run* now."""
        parent, here = run.absolute().parent, self.folder
        short = str(parent.relative_to(here)) if parent.is_relative_to(here) else str(parent)
        found = [*self.results.split()[:-1], f"RESULTS:{short}"] if self.results == VARIABLE else [self.results, short]
        found = found if self.results else []
        if self.command[0] == ROBOT:
            words = [ROBOT, *found, "-v", f"RESUME:{run.name}", *self.command[1:]]
        else:
            words = [*self.command, *found, "--resume", run.name]
        change = "" if here == Path.cwd() else f"cd {shlex.quote(str(here))} && "
        return f"{change}{shlex.join(words)}"
