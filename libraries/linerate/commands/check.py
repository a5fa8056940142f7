"""``linerate check [SUITE …]``: every file and sentence of a project read, without a testbed."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from ..ceilings.cards import read_cards
from ..errors import ConfigError, LinerateError, TestbedError, system_words
from ..generators.trex.profile_loader import TrexProfileLoader
from ..platforms import read_platform
from ..project import Project, listed
from ..session.plan import replaced_files
from ..sla.goals import read_goal
from ..system import children
from ..testbed.files import read_testbed
from ..traffic.catalogue import Catalogue
from .arguments import add_json, print_json

_NAMES_A_FILE = re.compile(r"/.*?: ")

LIMIT = 300.0
"""Seconds that Robot's dry run may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = (
        "Read every platform, testbed, goal, profile and generator card of the project, and every sentence of the"
        " suites, without a testbed."
    )
    parser.add_argument("suites", nargs="*", type=Path, metavar="SUITE", help="suite files or folders, as tests/")
    parser.add_argument("--project", type=Path, help="the folder with variables/ (found from here)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is wrong, each with file and line; returns 0, or 1 where something is wrong."""
    for path in arguments.suites:
        if not os.path.exists(path):  # noqa: PTH110  (no error for what cannot be a path)
            raise ConfigError("there is no such suite or folder", path)
    project = Project.find(arguments.project)
    problems = list(dict.fromkeys([*_files(project), *(_sentences(arguments.suites) if arguments.suites else ())]))
    warnings = _replaced(project)
    if arguments.json:
        print_json({"project": str(project.root), "problems": problems, "warnings": warnings})
    else:
        rows = [*(f"warning: {words}" for words in warnings), *problems]
        print("\n".join([*rows, f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"]))
    return 1 if problems else 0


def _files(project: Project) -> Iterator[str]:
    """What is wrong with the project's own files; packaged ones are right."""
    readers: dict[Path, Callable[[str], object]] = {
        project.platforms.own: lambda name: read_platform(project.platforms, name),
        project.testbeds.own: lambda name: read_testbed(project.testbeds, name),
        project.goals.own: lambda name: read_goal(project.goals, name),
    }
    for folder, read in readers.items():
        try:
            paths = listed(folder, "*.yaml")
        except ConfigError as error:
            yield str(error)
            continue
        for path in paths:
            yield from _problem(partial(read, path.stem))
    yield from _words(project)
    yield from _problem(lambda: read_cards(project.generators))


def _replaced(project: Project) -> list[str]:
    """Which of the project's files take the place of packaged ones."""
    found: list[str] = []
    with contextlib.suppress(ConfigError):  # a problem already
        found.extend(replaced_files(project))
    return found


def _words(project: Project) -> Iterator[str]:
    """What is wrong with the traffic words, and with the captures that they name."""
    try:
        catalogue = Catalogue.read(project.profiles, TrexProfileLoader(""))
    except LinerateError as error:
        yield str(error)
        return
    for word in catalogue.captures:
        yield from _problem(partial(catalogue.profile, [word]))


def _problem(read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except LinerateError as error:
        yield str(error)


def _sentences(suites: Sequence[Path]) -> Iterator[str]:
    """What a dry run finds wrong. Robot is a process here: only the room ``robot`` imports it."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="linerate-")
    except OSError as error:
        raise TestbedError(
            f"there is no folder for temporary files: {system_words(error)}; expected TMPDIR to name one that can be"
            " written"
        ) from error
    with temporary as folder:
        output = Path(folder) / "output.xml"
        options = ("--dryrun", "--output", str(output), "--log", "NONE", "--report", "NONE", "--console", "none")
        argv = children.python("robot", *options, *map(str, suites))
        try:
            ran = children.run(argv, LIMIT, env=children.users_environment(), cwd=Path.cwd())
        except children.TimeoutExpired:
            yield f"the dry run of {', '.join(map(str, suites))} did not end within {LIMIT:g} s"
            return
        if not output.is_file():
            yield (ran.stderr or ran.stdout).strip() or f"robot ended with status {ran.returncode}"
            return
        try:
            tree = ElementTree.parse(output)  # noqa: S314  (written by the process above)
        except ElementTree.ParseError as error:
            raise TestbedError(
                f"{output}: Robot's dry run could not write it to its end ({error}); free space there, or set TMPDIR to"
                " another folder"
            ) from error
    for suite in tree.iter("suite"):
        for test in suite.findall("test"):
            status = test.find("status")
            if status is None or status.get("status") != "FAIL":
                continue
            where = f"{suite.get('source')}:{test.get('line')}: test '{test.get('name')}': "
            lines = [line for line in (status.text or "").splitlines() if line.strip()]
            yield from (line if _NAMES_A_FILE.match(line) else where + line for line in lines)
    for message in tree.iterfind("./errors/msg"):
        if message.get("level") == "ERROR":
            yield message.text or ""
