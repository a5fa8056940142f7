"""The installed package: how pip adds an extra, and how the bench's programs are started."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from ..errors import TestbedError
from .children import python


def requirement(extra: str) -> str:
    """Return what pip takes to install Lineproof with *extra*, for example ``lineproof[bench] @ file:///srv/lineproof``.

    The source is read from ``direct_url.json`` (PEP 610); an index leaves none, and the name alone is returned.
    """
    try:
        origin = json.loads(distribution("lineproof").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    name = f"lineproof[{extra}]"
    if "url" not in origin:
        return name
    repository = origin.get("vcs_info")
    prefix, suffix = (f"{repository['vcs']}+", f"@{repository['commit_id']}") if repository else ("", "")
    return f"{name} @ {prefix}{origin['url']}{suffix}"


def remedy(extra: str) -> str:
    """Return the command that brings the packages of *extra*."""
    return f"pip install '{requirement(extra)}'"


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
