"""``lineproof compare BASELINE RUN``: what two runs of a suite measured, by the rule of ``gate``."""

from __future__ import annotations

import argparse

from ..evidence.baselines import find_runs
from ..evidence.compared_runs import ComparisonRule, Proven, RunComparison, compare_runs
from ..evidence.document import Document
from ..evidence.run import read_run
from ..evidence.sentence_rows import figure_heading
from ..units import counted
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
    add_forms(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison. 0: nothing proven worse, 1: something is, 2: not comparable. Raises LineproofError."""
    later = find_runs(arguments.later)
    earlier = find_runs(arguments.earlier, later[0].resolve().parent)
    before, after = ([read_run(path) for path in paths] for paths in (earlier, later))
    compared = compare_runs(before, after, ComparisonRule(arguments.confidence, arguments.allow))
    document = comparison(compared)
    print_document(document, arguments)
    return 2 if compared.problems else int(bool(document.data["worse"]))


def comparison(compared: RunComparison) -> Document:
    """Return each sentence of runs beside the same of earlier ones."""
    states = [sentence.state for sentence in compared.sentences]
    worse, unsure, left = map(states.count, (Proven.WORSE, Proven.UNSURE, Proven.NOT_COMPARED))
    more = f"; {unsure} with a verdict that became, or was, INCONCLUSIVE" if unsure else ""
    more += f"; {left} not compared" if left else ""
    sentences = sorted(compared.sentences, key=lambda sentence: list(Proven).index(sentence.state))
    heading = figure_heading(sentence.after for sentence in sentences)
    return compared.document(
        f"{worse} of {counted(len(sentences), 'sentence')} proven worse{more}",
        [f"NOT COMPARABLE: {problem}" for problem in compared.problems],
        [f"only in the baseline: {row.record.sentence}" for pair in compared.pairs for row in pair.only_before],
        [sentence.cells(heading) for sentence in sentences],
        {
            "not_comparable": list(compared.problems),
            "worse": worse,
            "sentences": [sentence.data for sentence in sentences],
        },
    )
