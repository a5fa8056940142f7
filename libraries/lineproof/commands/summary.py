"""``lineproof summary RUN…``: each sentence of a run, as the run itself shows it at its end."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..documents.document import as_csv, as_markdown, as_text
from ..errors import ConfigError
from ..evidence.rejudge import confirmed
from ..evidence.report import report, write_report
from ..evidence.run import RecordedRun, read_run
from ..evidence.run_files import PAGE
from ..evidence.summary import ExecutionSummary, RunSummary, page_name, summary, summary_of
from .arguments import add_run, refuse_one_run_twice, runs_of

FORMATS: Mapping[str, Callable[[ExecutionSummary], str]] = {
    "text": lambda execution: as_text(summary(execution)),
    "html": report,
    "csv": lambda execution: as_csv(summary(execution)),
    "markdown": lambda execution: as_markdown(summary(execution)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Print each sentence of runs: what was promised, what is carried, its margin and verdict. A run that was"
        " killed, or whose disk was full, is shown up to its last finished sentence and marked as incomplete; its"
        f" folder then gets its {PAGE}, if it lacks it."
    )
    add_run(parser, several=True)
    parser.add_argument("--format", choices=FORMATS, default="text", help="of what is printed; default text")


def run(arguments: argparse.Namespace) -> int:
    """Print the summary; returns 0. Raises ConfigError for what is no run or was altered."""
    named = [(name, read_run(folder)) for name in arguments.run_names for folder in runs_of(name)]
    refuse_one_run_twice(named)
    runs, first = tuple(_judged_again(run) for _, run in named), named[0][1].path
    page = page_name(first) if (first / PAGE).is_file() else ""
    execution = ExecutionSummary(runs, page=page)
    print(FORMATS[arguments.format](execution), end="")
    if len(runs) == 1 and runs[0].incomplete and not (first / PAGE).exists():
        write_report(first, execution)
        print(f"lineproof: this summary is in {first / PAGE} now, too", file=sys.stderr)
    return 0


def _judged_again(run: RecordedRun) -> RunSummary:
    try:
        return summary_of(confirmed(run))
    except ConfigError as error:
        return replace(summary_of(run), doubt=str(error))
