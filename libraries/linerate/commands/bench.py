"""Commands of the bench without hardware, which is a program of its own: ``linerate serve``, ``linerate study``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..simulation.processes import command


def main(argv: Sequence[str]) -> int:
    """Become the bench's own program, with the words *argv*. Raises TestbedError where it is not installed."""
    words = [*command(""), *argv]
    sys.stdout.flush()
    os.execv(words[0], words)  # noqa: S606  (no shell: this interpreter, a module of ours)
