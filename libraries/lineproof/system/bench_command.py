"""How the bench without hardware is started: as processes, never imported."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import TestbedError
from .children import python
from .installed import remedy

PACKAGE = "lineproof_bench"

REQUIRED_PACKAGES = (PACKAGE, "asyncssh")
"""Packages of the extra ``bench``."""


def bench_command(part: str = "") -> tuple[str, ...]:
    """Return the command that starts the bench, or another program of it (``serve``, ``model.check``).

    Raises TestbedError where the extra ``bench`` is not installed.
    """
    missing = [name for name in REQUIRED_PACKAGES if find_spec(name) is None]
    if missing:
        raise TestbedError(
            f"this needs the bench without hardware, and {' and '.join(missing)} is not installed; install it with:"
            f" {remedy('bench')}"
        )
    return python(f"{PACKAGE}.{part}" if part else PACKAGE)
