"""An execution of Robot: where it leaves its evidence, and with which command it was started."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robot.api import TestSuite
from robot.libraries.BuiltIn import BuiltIn

from ..errors import LineproofError, in_words
from ..evidence.document import as_text
from ..evidence.run import new_run_id, seal_derived
from ..evidence.started_as import ROBOT, VARIABLE, StartedAs
from ..evidence.summary import RunSummary, execution_summary, one_at_a_time, summary, write_page
from ..files import write_whole
from .run_variables import NAMES
from .suite_sentences import plain

PABOT = "pabot_results"
"""Each process of pabot has a folder in this one as its output folder. pabot empties it when it starts."""

ID_FILE = "lineproof-run-id"


def output_folder() -> Path:
    """The ``--outputdir`` that Robot or pabot was given; the current folder if none was."""
    output = Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}")))
    shared = _pabot_folder(output)
    return output if shared is None else shared.parent


def execution_id() -> str:
    """A new run id; one for all processes of pabot."""
    new = new_run_id(datetime.now(UTC))
    shared = _pabot_folder(Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}"))))
    return new if shared is None else _agreed(shared / ID_FILE, new)


def beside_others() -> bool:
    """Return whether this is a process of pabot, which shares Allure's results and the summary with others."""
    return BuiltIn().get_variable_value("${PABOTQUEUEINDEX}") is not None


def _pabot_folder(output: Path) -> Path | None:
    if not beside_others():
        return None
    return next((folder for folder in output.parents if folder.name == PABOT), None)


def _agreed(path: Path, proposal: str) -> str:
    """Return what the first process wrote to *path*: its own *proposal*."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    write_whole(own, proposal)
    try:
        os.link(own, path)  # whole or not at all, and only once
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    finally:
        own.unlink(missing_ok=True)
    return proposal


def closing_words(execution: Path, known: Mapping[Path, RunSummary], alone: bool) -> str:
    """The last words on the console: each sentence of *execution*, its folders and its page.

    Leaves the same as a page. Empty if nothing was left. *known*: the runs of this process, which is the only one
    of the execution (*alone*), or one of pabot's.
    """
    with one_at_a_time(execution):
        found = execution_summary(execution, known)
        if not found.runs and not found.unread:
            lonely = any((execution / "allure").glob("*-result.json"))
            return "\nNothing was measured: no testbed's set-up was completed.\n" if lonely else ""
        try:
            write_page(execution, found)
            if alone:  # else others go on writing what is derived
                seal_derived(execution)
        except (LineproofError, OSError) as error:  # the records make them again
            found = replace(found, unread=(*found.unread, in_words(error)), page="")
    return f"\n{as_text(summary(found))}"


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


def options(argv: Sequence[str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The options of Robot's command line *argv* with one of *names*, short or long, each with its value."""
    for word, value in zip(argv, [*argv[1:], ""], strict=True):
        for name in names:
            if word == name:
                yield name, value
            elif word.startswith(f"{name}=") if name.startswith("--") else word.startswith(name):
                yield name, word[len(name) :].removeprefix("=" if name.startswith("--") else "")


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
