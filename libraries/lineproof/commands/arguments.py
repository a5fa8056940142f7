"""Arguments that several commands have, and what a shell completes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..documents.document import Code, Document, Section, as_json, as_markdown, as_text
from ..errors import ConfigError, LineproofError
from ..evidence.run import RecordedRun, find_one_run, find_runs
from ..evidence.run_files import REQUIREMENTS
from ..project import Project
from ..visible import shortened


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``TESTBED --platform P [--software S]``."""
    testbed = "a file of variables/testbeds, without .yaml; 'simulated', which every project has, needs no hardware"
    complete_names(parser.add_argument("testbed", help=testbed), "testbeds")
    platform = parser.add_argument("--platform", required=True, help="a file of variables/platforms, without .yaml")
    complete_names(platform, "platforms")
    parser.add_argument("--software", help="one of the platform's; default its first")


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


RUN = "a run: its folder, a folder of results (its newest execution that ended), the beginning of its id, or a tag"


def add_run(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Add ``RUN``, or *several* of them, each by any of its names."""
    if several:
        parser.add_argument("run_names", metavar="RUN", nargs="+", help=RUN)
    else:
        parser.add_argument("run_name", metavar="RUN", help=RUN)


def runs_of(name: str, beside: Path | None = None) -> tuple[Path, ...]:
    """Return the runs of *name*; of a folder of results print which these are. Raises ConfigError."""
    runs = find_runs(name, beside)
    _say_newest(name, runs)
    return runs


def run_of(name: str, beside: Path | None = None, having: str = REQUIREMENTS) -> Path:
    """Return the one run that *name* stands for, as :func:`runs_of`. *having*: as of :func:`.find_runs`."""
    run = find_one_run(name, beside, having)
    _say_newest(name, [run])
    return run


def refuse_one_run_twice(runs: Iterable[tuple[str, RecordedRun]]) -> None:
    """Raise ConfigError if two names stand for one run, or a copy of it: it would count twice.

    *runs*: each with the name that it was asked for by.
    """
    names: dict[str, str] = {}
    for name, run in runs:
        run_id = run.environment.run
        if run_id in names:
            raise ConfigError(f"'{names[run_id]}' and '{name}' are one run, {run_id}; expected each run once")
        names[run_id] = name


def _say_newest(name: str, runs: Sequence[Path]) -> None:
    if (folder := runs[0].parent) == Path(name):
        newer = sorted(path.name for path in folder.glob("2*Z-*") if path.name > runs[-1].name and path not in runs)
        left_out = f" (newer, but killed or without a sentence: {', '.join(newer)})" if newer else ""
        say(f"{name}: the newest run that ended is {', '.join(run.name for run in runs)}{left_out}")


def add_variables(parser: argparse.ArgumentParser, whose: str) -> None:
    """Add ``-v NAME:VALUE``: a variable of *whose*, as of the suites."""
    parser.add_argument(
        "-v",
        "--variable",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help=f"a variable of {whose}, as for robot: -v TESTBED:lab",
    )


def print_lines(lines: Sequence[str], data: Mapping[str, Any], json: bool = False, simulated: bool = False) -> None:
    """Print each of *lines* as it is, or one object with the last of them as its title and *data* for ``--json``."""
    document = Document("", [Section("", list(map(Code, lines)))], data=data)
    print(as_json(Document(lines[-1], [], simulated, data)) if json else as_text(document).rstrip("\n"), flush=True)


def print_document(document: Document, arguments: argparse.Namespace) -> None:
    """Print *document* as ``--json`` or ``--markdown`` ask for it, or as text."""
    form = as_json if arguments.json else as_markdown if getattr(arguments, "markdown", False) else as_text
    print(form(document).rstrip("\n"))


def complete_names(argument: argparse.Action, kind: str) -> None:
    """Let argcomplete offer the names of the project's files of *kind*, a folder of ``variables/``."""

    def names(**_: Any) -> list[str]:
        try:
            return sorted(path.stem for path in getattr(Project.find(), kind).glob("*.yaml"))
        except LineproofError:
            return []

    argument.completer = names  # type: ignore[attr-defined]  # argcomplete's


def say(message: str) -> None:
    """Print *message* about what a command does or waits for, to standard error."""
    print(f"lineproof: {message}", file=sys.stderr, flush=True)


def add_forms(parser: argparse.ArgumentParser) -> None:
    """Add ``--markdown`` and ``--json``."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="print Markdown instead of text, for a merge request")
    add_json(forms)


def number(low: float, high: float, kind: type[float] = float) -> Callable[[str], float]:
    """Return the type of an argument that is a number from *low* to *high*; *kind* int: a whole one."""

    def read(text: str) -> float:
        value = kind(text)  # ValueError: argparse says so
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{shortened(text)} is not between {low:g} and {high:g}")
        return value

    read.__name__ = "number"
    return read
