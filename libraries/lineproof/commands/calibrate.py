"""``lineproof calibrate TESTBED``: what the generator itself sends and receives, the router bypassed."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..ceilings import FOLDER
from ..core.traffic.profiles import PAIRS
from ..procedures.calibrate import calibrate
from ..project import Project
from ..session.plan import Plan
from .arguments import add_plan_arguments, number, say

TRAFFIC = ("64b", "64b 1-flow", "imix", "1514b")
"""Measured by default: the smallest frames, the largest, a mix, and a single flow."""

GOAL = "standard"
"""The default goal: its risk and the length of its trials say how long the generator is watched."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Measure what the traffic generator itself sends and receives, with the router bypassed. A verdict near or"
        " above that is INCONCLUSIVE, not FAIL."
    )
    add_plan_arguments(parser)
    parser.add_argument(
        "--traffic", nargs="+", metavar="WORDS", help=f"as sentences name it, each in quotes ({', '.join(TRAFFIC)})"
    )
    parser.add_argument("--unidirectional", action="store_true", help="measure only this (both)")
    parser.add_argument("--bidirectional", action="store_true", help="measure only this (both)")
    parser.add_argument(
        "--pairs", type=int, choices=range(1, PAIRS + 1), metavar="N", default=1, help="so many pairs of ports at once"
    )
    parser.add_argument("--duration", type=number(0.1, 600), default=1.0, help="seconds of each trial (1)")
    parser.add_argument(
        "--goal", default=GOAL, help=f"watch the generator's own loss for 1 / risk trials of this goal ({GOAL})"
    )
    parser.add_argument("--calibrations", type=Path, help=f"folder to write to (results/{FOLDER})")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a line for each ceiling and write the file; returns 0.

    Raises LineproofError for problems with the files, the words or the testbed.
    """
    project = Project.find()
    # an earlier file is read too: one that is wrong would be found only when this one is to be written
    kept_in = arguments.calibrations or project.results / FOLDER
    plan = Plan.read(project, arguments.platform, arguments.software, arguments.testbed, arguments.goal, kept_in)
    profiles = [plan.catalogue.profile(traffic.split()) for traffic in arguments.traffic or TRAFFIC]
    chosen = [both for both, only in ((False, arguments.unidirectional), (True, arguments.bidirectional)) if only]
    calibrate(plan, profiles, chosen or [False, True], arguments.pairs, arguments.duration, kept_in, say)
    return 0
