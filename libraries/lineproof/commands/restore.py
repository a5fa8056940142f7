"""``lineproof restore TESTBED --platform P``: undo what an earlier run has left on the router."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing

from ..project import Project
from ..session.plan import Plan
from ..session.session import Session
from ..testbed.lab import LabPlace
from .arguments import add_json, add_plan_arguments, print_lines, say
from .calibrate import GOAL


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Undo what a run that was killed, or was refused an undo, has left on a router of hardware, as its journal on"
        " this machine says. The next run on this router does the same. Nothing else is changed, and where no journal"
        " is left the router is not logged in to."
    )
    add_plan_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run none (status 1 if any)")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what was undone. Returns 1 if a dry run lists something, else 0. Raises LineproofError."""
    plan = Plan.read(Project.find(), arguments.platform, arguments.software, arguments.testbed, GOAL)
    lab = plan.testbed.lab
    with ExitStack() as stack:
        session = stack.enter_context(closing(Session.of_router(plan)))
        name = session.router.journal_name
        leftovers = session.router.leftovers()
        changes = [change for leftover in leftovers for change in leftover.changes]
        text = f"nothing: no run has left a change on {name or 'a router that nobody logs in to'}"
        if changes and arguments.dry_run:
            text = "; ".join(f"on the router at {leftover.occasion.router}, {leftover}" for leftover in leftovers)
        elif changes:
            if lab is not None:  # the router may be somebody else's now
                stack.enter_context(closing(LabPlace(lab, arguments.testbed, say)))
            session.router.connect()
            text = session.router.undo_leftover(asked=True) or text
    undos = [change.undo_text for change in reversed(changes)]
    data = {"router": name, "undone": not arguments.dry_run, "commands": undos, "result": text}
    print_lines([text], data, arguments.json)
    return 1 if changes and arguments.dry_run else 0
