"""Commands of the bench without hardware, which is a program of its own: ``linerate serve``, ``linerate study``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..simulation.processes import bench_command


def run(argv: Sequence[str]) -> int:
    """Replace this process by the bench's own program, with the words *argv*. Raises TestbedError if not installed."""
    words = [*bench_command(""), *argv]
    sys.stdout.flush()
    os.execv(words[0], words)  # noqa: S606  (no shell: this interpreter, a module of ours)
