"""Arguments that several commands have, with what a shell can complete them to."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from ..errors import LineproofError
from ..project import KINDS, Project


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """``TESTBED --platform P [--software S]``."""
    complete_names(parser.add_argument("testbed", help="a file of variables/testbeds, without .yaml"), "testbeds")
    platform = parser.add_argument("--platform", required=True, help="a file of variables/platforms, without .yaml")
    complete_names(platform, "platforms")
    parser.add_argument("--software", help="one of the platform's; default its first")


def add_json(parser: argparse._ActionsContainer) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def add_variables(parser: argparse.ArgumentParser, whose: str) -> None:
    """``-v NAME:VALUE``: a variable of *whose*."""
    parser.add_argument(
        "-v",
        "--variable",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help=f"a variable of {whose}, as for robot: -v TESTBED:lab",
    )


def print_json(document: Mapping[str, Any]) -> None:
    """The object that ``--json`` asks for."""
    print(json.dumps(document, ensure_ascii=False, indent=1))


def complete_names(argument: argparse.Action, kind: str) -> None:
    """Let argcomplete offer the names of the project's files of *kind*, a folder of ``variables/``."""
    if kind not in KINDS:
        raise ValueError(f"'{kind}' is no folder of variables/; expected one of {', '.join(KINDS)}")

    def names(**_: Any) -> list[str]:
        try:
            return sorted(path.stem for path in getattr(Project.find(), kind).glob("*.yaml"))
        except LineproofError:
            return []

    argument.completer = names  # type: ignore[attr-defined]  # argcomplete's


def say(words: str) -> None:
    """Print what a command waits for."""
    print(f"lineproof: {words}", file=sys.stderr, flush=True)
