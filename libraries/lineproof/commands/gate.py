"""``lineproof gate RUN``: may this be released? One exit status for CI, from verdicts and a baseline."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..core.rule import Ruling
from ..errors import ConfigError, LineproofError
from ..evidence.gate import ALLOWED, EXIT_STATUS, ComparisonRule, RunComparison, gate, gate_document, junit
from ..evidence.rejudge import confirmed
from ..evidence.run import check_tag, read_run, tag_runs
from ..files import write_whole
from .arguments import add_forms, add_run, number, print_document, refuse_one_run_twice, runs_of

STATUS = (
    "Exit status 0: every sentence passed, and none is proven worse than the baseline. 1: a FAIL, or proven worse."
    " 2: INCONCLUSIVE, not comparable, or not done; the output says why."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = f"May this be released? {STATUS}"
    add_run(parser, several=True)
    parser.add_argument("--baseline", metavar="RUN", action="append", default=[], help="the same, of what was good")
    allowed = f"by how much something may be worse, in per cent of the baseline ({100 * ALLOWED:g})"
    parser.add_argument("--allow", type=percent, default=ALLOWED, metavar="PERCENT", help=allowed)
    confidence = "of all sentences together, between 0 and 1 (0.95)"
    parser.add_argument("--confidence", type=number(0.01, 0.9999), default=0.95, help=confidence)
    parser.add_argument("--tag", metavar="NAME", help="where the exit status is 0: give RUN this name, as a baseline")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML as well")
    add_forms(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer; returns its exit status, as :data:`.gate.EXIT_STATUS`. Raises LineproofError."""
    try:
        if arguments.tag is not None:
            check_tag(arguments.tag)
        compared = _gate(arguments)
    except LineproofError as error:
        if arguments.junit is not None:  # a report of an earlier job must not stand for this one
            write_whole(arguments.junit, junit(RunComparison(problems=[str(error)])))
        raise
    if arguments.junit is not None:
        write_whole(arguments.junit, junit(compared))
    tagged = ""
    if arguments.tag is not None:
        tagged = f"not tagged '{arguments.tag}': only what passes becomes a baseline"
        if compared.answer is Ruling.PASS:
            tagged = f"tagged: {tag_runs(arguments.tag, [pair.after.path for pair in compared.pairs])}"
    print_document(gate_document(compared, tagged), arguments)
    return EXIT_STATUS[compared.answer]


def _gate(arguments: argparse.Namespace) -> RunComparison:
    runs = [(name, confirmed(read_run(path))) for name in arguments.run_names for path in runs_of(name)]
    results = runs[0][1].path.resolve().parent
    baseline = [(name, confirmed(read_run(path))) for name in arguments.baseline for path in runs_of(name, results)]
    refuse_one_run_twice([*runs, *baseline])
    # two margins of one router may be so far apart
    searched = [run for _, run in (*runs, *baseline) if run.margins]
    known_to = max((record.goal.width for run in searched for record in run.requirements), default=0.0)
    if baseline and arguments.allow < known_to:
        text = f"--allow {100 * arguments.allow:g} is less than the margins of these runs are known to"
        raise ConfigError(f"{text}; expected at least {100 * known_to:g} (the 'width' of their goal, in per cent)")
    rule = ComparisonRule(arguments.confidence, arguments.allow)
    return gate([run for _, run in runs], [run for _, run in baseline], rule)


def percent(text: str) -> float:
    """Return *text*, which is in per cent, as a ratio."""
    return number(0.1, 99.9)(text.removesuffix("%")) / 100
