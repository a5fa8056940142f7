"""``lineproof study list``, ``run NAME``, ``report RUN``: studies of routers."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..documents.document import Document, Facts, Section, as_csv, as_markdown, as_text
from ..errors import ConfigError
from ..evidence.run_files import STUDY_PAGE
from ..project import Project, listed
from ..studies.study import Study, load_study, steps_of
from ..units import counted
from .arguments import add_run, number, run_of

# what runs a study, and what reads its results, is imported by the functions that need it: both take a second

if TYPE_CHECKING:
    from ..studies.results import StudyResults


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Studies of routers: variants measured in blocks of random order, compared with a baseline and with published"
        " figures. They are files of variables/studies; 'lineproof study' lists them."
    )
    parser.set_defaults(act=_list)
    whats = parser.add_subparsers(metavar="WHAT", title="what")
    whats.add_parser("list", help="which studies there are, and how much each measures")
    run_ = whats.add_parser("run", help="run a study")
    run_.set_defaults(act=_run)
    run_.add_argument("name", metavar="NAME", help="a file of variables/studies, without its ending")
    run_.add_argument("--testbed", help="a file of variables/testbeds (default: the study's, or simulated)")
    run_.add_argument("--goal", default="standard", help="a file of variables/goals (default: standard)")
    blocks = "blocks, in place of the study's own number"
    run_.add_argument("--repeats", type=number(1, 100, int), metavar="N", help=blocks)
    run_.add_argument(
        "--wait", type=float, default=60.0, metavar="MIN", help="limit of a step by hand (default: 60 min)"
    )
    run_.add_argument("--results", type=Path, help="folder for runs (default: results/ of the project)")
    run_.add_argument("--plan", action="store_true", help="say what would be measured and how long it takes; no more")
    report = whats.add_parser("report", help="make the results of a run again: its page, and what is printed")
    report.set_defaults(act=_report)
    add_run(report)
    report.add_argument("--table", metavar="TITLE", help="only this table of the study's source, ours beside theirs")
    report.add_argument(
        "--format", choices=("text", "csv", "markdown"), default="text", help="of what is printed; default text"
    )


def run(arguments: argparse.Namespace) -> int:
    """List, run or report studies. Raises TestbedError.

    Returns 0; 1 if more than 5 % of the published figures are not met, or figures are missing.
    """
    return int(arguments.act(arguments))


def _list(arguments: argparse.Namespace) -> int:
    sizes, wrong = dict[str, str](), list[ConfigError]()
    for path in listed(Project.find().studies, "*.yaml"):
        try:
            study = load_study(path)
            sizes[study.study] = f"{study.title} ({_size(study)})"
        except ConfigError as error:
            wrong.append(error)
    print(
        as_text(Document("Studies of routers, each by 'lineproof study run NAME':", [Section("", [Facts(sizes)])])),
        end="",
    )
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 2 if wrong else 0


def _size(study: Study) -> str:
    sizes = (len(study.measures), "row"), (len(study.variants), "variant"), (len(steps_of(study)), "measurement")
    return ", ".join(counted(number, noun) for number, noun in sizes)


def _run(arguments: argparse.Namespace) -> int:
    from ..studies.results import read_results
    from ..studies.runner import StudyRun

    project, asked = Project.find(), arguments
    results: Path = (asked.results or project.results).absolute()
    say = partial(print, flush=True)
    study_run = StudyRun(project, asked.name, asked.testbed, asked.goal, asked.repeats, say=say)
    if asked.plan:
        for line in study_run.foreword():
            print(line)
        return 0
    return _show(read_results(study_run.run(results, wait=60 * asked.wait)))


def _report(arguments: argparse.Namespace) -> int:
    from ..studies.results import read_results

    results = read_results(run_of(arguments.run_name, Project.find().results, STUDY_PAGE))
    return _show(results, arguments.format, arguments.table)


def _show(results: StudyResults, form: str = "text", table: str | None = None) -> int:
    from ..studies.forms import COLUMNS, document, headline, write_page

    path, shown, tables = write_page(results), document(results), results.study.tables
    if table is not None:
        if table not in tables:
            known = ", ".join(tables) or "none"
            raise ConfigError(f"no table '{table}' in study '{results.study.study}'; known: {known}")
        shown = replace(shown, sections=[section for section in shown.sections if section.title == table])
    if form == "text":
        print(as_text(shown, COLUMNS), end="" if table else f"\n{headline(results)}\n{path}\n")
    else:
        print((as_csv if form == "csv" else as_markdown)(shown), end="")
    return 0 if results.close_enough and results.complete and not results.failures else 1
