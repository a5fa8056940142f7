"""``lineproof compare BASELINE RUN``: what two runs of a suite measured, by the rule of ``gate``."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ..evidence.baselines import find_runs
from ..evidence.compared_runs import ComparisonRule, Proven, compare_runs, comparison, ministat_text, pair_runs
from ..evidence.document import Code, Section
from ..evidence.run import read_run
from .arguments import add_forms, add_rule, print_document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "What two runs of a suite measured, sentence by sentence, and what is proven worse. Exit status 0: nothing is,"
        " 1: something is, 2: the runs are not comparable, or it was not done."
    )
    parser.add_argument(
        "earlier", metavar="BASELINE", help="the earlier run: its folder, the beginning of its id, or a tag"
    )
    parser.add_argument("later", metavar="RUN", help="the later run")
    add_rule(parser)
    parser.add_argument("--ministat", action="store_true", help="add ministat's own picture, table and answer")
    add_forms(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison. 0: nothing proven worse, 1: something is, 2: not comparable. Raises LineproofError."""
    later = find_runs(arguments.later)
    earlier = find_runs(arguments.earlier, later[0].resolve().parent)
    rule = ComparisonRule(arguments.confidence, arguments.allow)
    pairs, problems = pair_runs(*([read_run(path) for path in paths] for paths in (earlier, later)))
    compared = compare_runs(pairs, rule)
    document = comparison(compared, problems, rule)
    if arguments.ministat:
        shown = Section("ministat", [Code(ministat_text(compared, arguments.confidence))])
        document = replace(document, sections=[*document.sections, shown])
    print_document(document, arguments)
    if problems or any(pair.reasons for pair in compared):
        return 2
    return int(any(pair.count(Proven.WORSE) for pair in compared))
