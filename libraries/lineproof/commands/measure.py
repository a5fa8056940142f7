"""``lineproof measure TESTBED``: how much a router carries, without any threshold."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from ..project import Project
from ..session.plan import Plan
from ..system.children import become, python
from ..testbed.settings import PoolSettings, read_testbed_or_pool
from .arguments import add_plan_arguments

SUITE = Path(__file__).with_name("measure.robot")

VARIABLES = {
    "frames": "sizes and mixes, in quotes (64b imix 1518b)",
    "flows": "as words of traffic (1-flow 10k-flows)",
    "directions": "of traffic (unidirectional bidirectional)",
    "more": "words that all traffic has, as ipv6",
    "deadline": "time of traffic in s, or as '10 min', which all searches share alike; default none",
}
"""Arguments that are variables of the suite."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Search the highest loads without loss (NDR) and with half a per cent at most (PDR), of all frames with all"
        " flows in all directions, as one matrix. Robot Framework runs it, and leaves a run's folder, report and"
        " records; the exit status is Robot's: 0, or 1 where something was refused or proved nothing."
    )
    add_plan_arguments(parser)
    parser.add_argument("--goal", default="quick", help="a file of variables/goals: how long trials take (quick)")
    for name, meaning in VARIABLES.items():
        parser.add_argument(f"--{name}", metavar="WORDS", help=meaning)
    parser.add_argument("--project", type=Path, help="the folder with variables/ (found from here)")
    parser.add_argument("--results", type=Path, help="folder for runs (results/ of the project)")


def run(arguments: argparse.Namespace) -> NoReturn:
    """Become Robot, which runs the suite. Raises ConfigError without a project."""
    project = Project.find(arguments.project)
    if not isinstance(read_testbed_or_pool(project.testbeds, arguments.testbed), PoolSettings):
        # Robot would report a wrong file as a failed test
        Plan.read(project, arguments.platform, arguments.software, arguments.testbed, arguments.goal)
    given = {**vars(arguments), "project": project.root}
    names = ("testbed", "platform", "software", "goal", "project", *VARIABLES)
    variables = [word for name in names if given[name] for word in ("-v", f"{name.upper()}:{given[name]}")]
    sys.stdout.flush()
    folder = str(arguments.results or project.results)
    # Robot's own files of a run of sentences, in the same folder, stay
    own = ("--output", "measure.xml", "--log", "measure-log.html", "--report", "NONE")
    become(python("robot", "--outputdir", folder, *own, "--console", "dotted", *variables, str(SUITE)))
