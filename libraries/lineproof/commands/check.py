"""``lineproof check [SUITE …]``: every file and sentence of a project read, without a testbed."""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from ..ceilings import read_cards
from ..core.goal import read_goal
from ..core.traffic.catalogue import Catalogue
from ..errors import ConfigError, LineproofError, TestbedError
from ..files import exists, is_folder, place
from ..generators.kinds import generator_kind
from ..generators.trex.profile_loader import TrexProfileLoader
from ..project import KINDS, Project, listed
from ..routers.description import read_description
from ..session.plan import misfits_of, read_checked_platform, replaced_files
from ..studies.study import check_study
from ..system import children
from ..testbed.settings import read_testbed, read_testbed_or_pool
from ..units import counted
from ..visible import shortened
from .arguments import add_json, add_variables, print_lines

_NAMES_A_FILE = re.compile(r"/.*?: ")

_ROBOTS_ERROR = re.compile(r"Error in file '(?P<file>.*)' on line (?P<line>\d+): (?P<text>.*)", re.DOTALL)
_SUITE_SETUP = "Parent suite setup failed:"
_HEADINGS = (_SUITE_SETUP, "Setup failed:", "Several failures occurred:")
_MEANT = "\n    "  # in Robot's messages before each name that is like a wrong one
_NO_KEYWORD = re.compile(r"(?:\d+\) )?No keyword with name '.*' found\.")

LIMIT = 300.0
"""Seconds that Robot's dry run may take."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Read every platform, testbed, goal, profile, shell and generator card of the project, and every sentence of"
        " the suites, without a testbed."
    )
    parser.add_argument(
        "suites",
        nargs="*",
        type=Path,
        metavar="SUITE",
        help="suite files or folders (default: the project's tests/)",
    )
    add_variables(parser, "the suites")
    parser.add_argument("--project", type=Path, help="the folder with variables/ (found from here)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is wrong, each with file and line; returns 0, or 1 where something is wrong."""
    require_suites(arguments.suites)
    project = Project.find(arguments.project)
    usual = project.root / "tests"
    suites = arguments.suites or ([usual] if is_folder(usual) and _has_suite(usual) else [])
    of_suites, said_by_suites, suite_count = _sentences(suites, arguments.variable) if suites else ([], [], 0)
    of_traffic, traffic_warnings = _traffic_findings(project)
    of_files = [*_files(project), *of_traffic]
    # a suite that reads a wrong file has a message of its own, which ends with the file's problem
    of_suites = [message for message in of_suites if not message.endswith(tuple(of_files))]
    problems = list(dict.fromkeys([*of_files, *of_suites]))
    file_count = sum(len(_own(project, kind)) for kind in KINDS)
    if not suites:
        problems.append(f"{usual}: there is no suite; expected a project with suites here, or their names as arguments")
    places = tuple(place[0] for problem in problems if (place := _NAMES_A_FILE.match(problem)))
    warnings = _warnings(project)
    # a line with a problem needs no warning as well
    others = dict.fromkeys([*said_by_suites, *traffic_warnings])
    warnings += [warning for warning in others if not warning.startswith(places)]
    more = "; more may show once these files are right" if of_files else ""
    read = f"{counted(file_count, 'file')} and {counted(suite_count, 'suite')}"
    counts = f"{counted(len(problems), 'problem')} in {read}{more}"
    lines = [*(f"warning: {warning}" for warning in warnings), *problems, counts]
    fields = {
        "project": str(project.root),
        "problems": problems,
        "warnings": warnings,
        "files": file_count,
        "suites": suite_count,
    }
    print_lines(lines, fields, arguments.json)
    return 1 if problems else 0


def require_suites(paths: Iterable[Path]) -> None:
    """Raise ConfigError unless each of *paths* is a suite, or a folder with some."""
    for path in paths:
        if not exists(path):
            raise ConfigError("there is no such suite or folder", path)
        if not _has_suite(path):
            raise ConfigError("holds no suite; expected a file *.robot, or a folder with some", path)


def _has_suite(path: Path) -> bool:
    """Return whether *path* may hold a suite: of a file that Robot does not take, Robot says so itself."""
    return not is_folder(path) or any(path.rglob("*.robot*"))


def _own(project: Project, kind: str, pattern: str = "*.yaml") -> list[Path]:
    """Return the project's own files of *kind*; none of a folder that cannot be read."""
    with contextlib.suppress(ConfigError):
        return listed(getattr(project, kind).own, pattern)
    return []


def _files(project: Project) -> Iterator[str]:
    """Yield what is wrong with the project's own files; packaged ones are right."""
    readers: dict[str, Callable[[str], object]] = {
        "platforms": lambda name: read_checked_platform(project, name),
        "testbeds": lambda name: read_testbed_or_pool(project.testbeds, name),
        "goals": lambda name: read_goal(project.goals, name),
        "shells": lambda name: read_description(project.shells, name),
        "programs": lambda name: generator_kind(name, project.programs),
        "studies": lambda name: check_study(project, name),
    }
    for kind, read in readers.items():
        try:
            paths = listed(getattr(project, kind).own, "*.yaml")
        except ConfigError as error:
            yield str(error)
            continue
        for path in paths:
            yield from _problem(partial(read, path.stem))
    yield from _models(_own(project, "platforms"))
    yield from _problem(lambda: read_cards(project.generators))


def _models(platforms: Sequence[Path]) -> Iterator[str]:
    """Yield what is wrong with the ``model:`` of platform files; the bench, a process, knows its keys."""
    if not platforms:
        return
    try:
        ran = children.run((*children.bench_command("model.check"), *map(str, platforms)), LIMIT)
    except TestbedError:  # without the extra 'bench' nothing is simulated, and nothing of it is read
        return
    except children.TimeoutExpired:
        yield f"the models of platforms were not read within {LIMIT:g} s"
        return
    yield from ran.stdout.splitlines() if not ran.returncode else [shortened(ran.stderr)]


def _warnings(project: Project) -> list[str]:
    """Return a warning for each file that replaces a packaged one, or that nothing reads."""
    warnings: list[str] = []
    with contextlib.suppress(ConfigError):  # a problem already
        warnings.extend(replaced_files(project))
    for path in _own(project, "shells"):
        with contextlib.suppress(LineproofError):
            warnings += [f"{path}: {text}" for text in read_description(project.shells, path.stem).warnings()]
    ignored = (path for kind in KINDS for path in _own(project, kind, "*.yml"))
    return warnings + [f"{path}: is not read; a file's name must end in .yaml" for path in ignored]


def _problem(read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except ConfigError as error:
        yield from map(str, (error, *error.others))
    except LineproofError as error:
        yield str(error)


def _sentences(suites: Sequence[Path], variables: Sequence[str]) -> tuple[list[str], list[str], int]:
    """Return what a dry run finds wrong, what it warns of, and the number of suites."""
    with tempfile.TemporaryDirectory(prefix="lineproof-") as folder:
        tree = dry_run(suites, variables, Path(folder))
    if isinstance(tree, str):
        return [tree], [], 0
    problems = list(failed(tree))
    messages = [message.text or "" for message in tree.iterfind("./errors/msg") if message.get("level") == "WARN"]
    # Robot has warnings of its own
    warned = [text for text in messages if _NAMES_A_FILE.match(text)]
    return problems, warned, sum(suite.find("test") is not None for suite in tree.iter("suite"))


def dry_run(
    suites: Sequence[Path], variables: Sequence[str], folder: Path, *more: str
) -> ElementTree.ElementTree[ElementTree.Element] | str:
    """Return Robot's output of a dry run of *suites*, or why there is none. It is written in *folder*.

    *more*: options of Robot.

    Robot is a process: only the room ``robot`` imports it.
    """
    output = folder / "output.xml"
    options = ["--dryrun", "--output", str(output), "--log", "NONE", "--report", "NONE", "--console", "quiet", *more]
    options += [word for variable in variables for word in ("-v", variable)]
    argv = children.python("robot", *options, *map(str, suites))
    named = ", ".join(map(str, suites))
    try:
        ran = children.run(argv, LIMIT, env=children.users_environment(), cwd=Path.cwd())
    except children.TimeoutExpired:
        return f"the dry run of {named} did not end within {LIMIT:g} s"
    if not output.is_file():
        errors = [line for line in (ran.stderr or ran.stdout).splitlines() if line.startswith("[ ERROR ] ")]
        why = errors[-1].removeprefix("[ ERROR ] ") if errors else f"robot ended with status {ran.returncode}"
        return f"{named}: {why}"
    return ElementTree.parse(output)  # noqa: S314  (written by the process above)


def failed(tree: ElementTree.ElementTree[ElementTree.Element]) -> Iterator[str]:
    """Yield the problems in a dry run's output, with file and line: of reading it, then of its tests."""
    broken = set[str]()
    for message in tree.iterfind("./errors/msg"):
        if message.get("level") == "ERROR":
            text = (message.text or "").replace(_MEANT, " ")
            if named := _ROBOTS_ERROR.fullmatch(text):
                broken.add(named["file"])
                text = f"{place(named['file'], int(named['line']))}: {named['text']}"
            yield text
    for suite in tree.iter("suite"):
        source = suite.get("source") or ""
        for test in suite.findall("test"):
            status = test.find("status")
            if status is None or status.get("status") != "FAIL":
                continue
            where = f"{place(source, int(test.get('line') or 0))}: test '{test.get('name')}': "
            text = (status.text or "").replace(_MEANT, " ")
            if text.startswith(_SUITE_SETUP):  # it fails every test of the suite
                where = f"{source}: suite setup: "
            lines = [line for line in text.splitlines() if line.strip() and line not in _HEADINGS]
            # a keyword is not there because its resource could not be read
            lines = [line for line in lines if source not in broken or not _NO_KEYWORD.match(line)]
            yield from (line if _NAMES_A_FILE.match(line) else where + line for line in lines)


def _traffic_findings(project: Project) -> tuple[list[str], list[str]]:
    """Return problems of traffic words, their files and the testbeds' addresses; and warnings."""
    try:
        catalogue = Catalogue.read(project.profiles, TrexProfileLoader(""))
    except LineproofError as error:
        return [str(error)], []
    problems = [problem for word in catalogue.files for problem in _problem(partial(catalogue.profile, [word]))]
    warnings: list[str] = []
    for path in _own(project, "testbeds"):
        with contextlib.suppress(LineproofError):  # one that cannot be read is a problem already
            for misfit in misfits_of(read_testbed(project.testbeds, path.stem), catalogue):
                (problems if misfit.certain else warnings).append(str(misfit.located(project.testbeds, path.stem)))
    return problems, warnings
