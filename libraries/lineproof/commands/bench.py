"""Commands of the bench without hardware, which is a program of its own: ``lineproof serve``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..system.bench_command import bench_command
from ..system.children import become


def run(argv: Sequence[str]) -> int:
    """Replace this process by the bench's own program, with the words *argv*. Raises TestbedError if not installed."""
    words = [*bench_command(argv[0]), *argv[1:]]
    sys.stdout.flush()
    become(words)
