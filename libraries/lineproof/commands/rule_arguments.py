"""Arguments of the commands that compare runs: by which rule, and in which form the answer is printed."""

from __future__ import annotations

import argparse
import re

from ..evidence.compared_runs import ALLOWED
from ..visible import shortened
from .arguments import add_json

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%?")


def add_forms(parser: argparse.ArgumentParser) -> None:
    """``--markdown`` and ``--json``."""
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="print Markdown instead of text, for a merge request")
    add_json(forms)


def add_rule(parser: argparse.ArgumentParser) -> None:
    """``--allow``, ``--confidence`` and ``--method``: when something is proven worse."""
    words = f"by how much something may be worse, in per cent of the earlier run ({100 * ALLOWED:g})"
    parser.add_argument("--allow", type=_allowed, default=ALLOWED, metavar="PERCENT", help=words)
    words = "of all sentences together, between 0 and 1 (0.95)"
    parser.add_argument("--confidence", type=_confidence, default=0.95, help=words)
    parser.add_argument("--method", choices=("welch", "pooled"), default="welch", help="pooled is ministat's (welch)")


def _allowed(text: str) -> float:
    found = _PERCENT.fullmatch(text)
    if found is None or float(found[1]) >= 100:
        raise argparse.ArgumentTypeError(
            f"'{shortened(text)}' is not what may be allowed; expected per cent from 0 to less than 100, as '1%'"
        )
    return float(found[1]) / 100


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"'{shortened(text)}' is no confidence; expected a number between 0 and 1 with a decimal point, as 0.95"
        )
    return value
