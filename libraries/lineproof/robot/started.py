"""With which command Robot was started, as far as it decides what a suite does: to go on with an interrupted run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robot.api import TestSuite
from robot.libraries.BuiltIn import BuiltIn

from ..evidence.started_as import ROBOT, VARIABLE, StartedAs
from .execution import beside_others, output_folder
from .run_variables import NAMES, options
from .suite_sentences import plain

DEFAULTS: Mapping[str, str] = {
    "TESTBED": "simulated",
    "GOAL": "standard",
    "CHARACTERISE": "never",
    "TELEMETRY": "on failure",
    "SEARCH_DEADLINE": "300",
    "MARGIN": "off",
    "MARGIN_DEADLINE": "60",
    "SOAK": "part",
    "CALIBRATIONS": "",
    "REPEATS": "None",
    "PROJECT": "",
}
"""What the resources give the variables that are given again."""

_SELECTIONS = {
    **dict.fromkeys(("-t", "--test", "--task"), "-t"),
    **dict.fromkeys(("-i", "--include"), "-i"),
    **dict.fromkeys(("-e", "--exclude"), "-e"),
    **dict.fromkeys(("-A", "--argumentfile"), "-A"),
    **dict.fromkeys(("-P", "--pythonpath"), "-P"),
}
"""Options of Robot that decide what is run -> their short form."""


def started_as(suite: TestSuite | None, testbed: str = "") -> StartedAs:
    """The command of the running *suite*. *testbed*: that which it has, lent from a pool perhaps."""
    here, own = Path(BuiltIn().get_variable_value("${EXECDIR}")), BuiltIn().get_variable_value
    values = {name: str(own(f"${{{name}}}", default)) for name, default in DEFAULTS.items()}
    if testbed and values["TESTBED"] != DEFAULTS["TESTBED"]:
        values["TESTBED"] = testbed
    words = [ROBOT]
    for name, value in values.items():
        if value != DEFAULTS[name]:
            words += ["-v", f"{name}:{value}"]
    words += [] if beside_others() else _of_user(sys.argv)
    given = "-d" if output_folder() != here else ""
    return StartedAs((*words, *_suite(suite, here)), here, VARIABLE if own("${RESULTS}") else given)


def _of_user(argv: Sequence[str]) -> Iterator[str]:
    """Options of the command line *argv* that are Robot's or the suite's own; a variable may hold a secret."""
    ours = {plain(name) for name in NAMES}
    if Path(argv[0]).name not in ("robot", "run.py", "__main__.py"):
        return
    for option, value in options(argv, _SELECTIONS):
        yield from (_SELECTIONS[option], value)
    for _, value in options(argv, ("-v", "--variable")):
        name, colon, _ = value.partition(":")
        if colon and plain(name) not in ours:
            yield from ("-v", f"{name}:…")


def _suite(suite: Any, here: Path) -> list[str]:
    """The words that select *suite*, and those that name the files it is in."""
    source = Path(str(BuiltIn().get_variable_value("${SUITE SOURCE}")))
    if suite is None or suite.source != source:
        return [_short(source, here)]
    top = suite
    while top.parent is not None:
        top = top.parent
    sources = [top.source] if top.source else [each.source for each in top.suites]
    usual = TestSuite.name_from_source(top.source) if top.source else top.name
    named = [] if top.name == usual else ["-N", top.name]
    selected = [] if top is suite else ["-s", str(suite.longname)]
    return [*named, *selected, *(_short(Path(each), here) for each in sources if each)]


def _short(path: Path, here: Path) -> str:
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
