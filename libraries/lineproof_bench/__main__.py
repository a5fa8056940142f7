"""The command ``lineproof serve …``."""

from __future__ import annotations

import sys

from lineproof.commands.ending import finish

from .serve import main as serve


def main(argv: list[str]) -> int:
    """Run ``serve`` with the words after it; returns its exit status. Raises LineproofError."""
    return serve(argv[1:])


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
