"""Say how pip installs this package again with an extra: from the folder, archive or repository that it came from."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution


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
