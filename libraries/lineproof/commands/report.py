"""``lineproof report RUN…``: the runs as one HTML file that opens by a double click."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ..errors import ConfigError
from ..evidence.allure_program import fetch_allure, is_fetched
from ..evidence.derived import seal_forms
from ..evidence.report import LARGEST, make_report, newest, read_executions
from ..evidence.run_files import PAGE, REQUIREMENTS
from ..project import Project
from ..system.node import find_node


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = (
        "Write the report of runs: one HTML file that opens by a double click and asks nothing of the network. Of"
        " several runs of a suite the newest is shown, the others are its history. Allure 3 makes it, in Node 20 or"
        " later: the system's, or the extra 'report'. Allure is fetched once, by npm."
    )
    words = "folder of a run: results/<run id>; default: the newest in the project's results/"
    parser.add_argument("run_folders", metavar="RUN", type=Path, nargs="*", help=words)
    parser.add_argument("--output", metavar="FILE", type=Path, help=f"default: {PAGE} in the newest run's folder")


def run(arguments: argparse.Namespace) -> int:
    """Write it. Raises ConfigError for what is no run, or without Node, TestbedError if Allure cannot make it."""
    began = time.monotonic()
    executions = read_executions(arguments.run_folders or [_newest_folder(Project.find().results)])
    output: Path = arguments.output or newest(executions)[-1].execution / PAGE
    node = find_node()
    if not is_fetched():
        print("lineproof: npm fetches Allure, which makes the report; this is needed once", file=sys.stderr)
        fetch_allure(node)
    size = make_report(executions, node, output)
    if output.name == PAGE and (output.parent / REQUIREMENTS).is_file():
        seal_forms(output.parent, (PAGE,))
    print(f"{output}: {size / 1e6:.1f} MB, made in {time.monotonic() - began:.1f} s; open it with a browser")
    if size > LARGEST:
        print(f"lineproof: {output} is larger than {LARGEST >> 20} MiB: report fewer runs at once", file=sys.stderr)
    return 0


def _newest_folder(results: Path) -> Path:
    # ids of runs sort by time
    found = sorted(path.parent for path in results.glob(f"[0-9]*/{REQUIREMENTS}"))
    if not found:
        raise ConfigError("has no run; expected the folder of one: lineproof report RUN", results)
    return found[-1]
