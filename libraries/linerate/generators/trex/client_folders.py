"""Where the clients that TRex ships are: in an installation, or copied into the user's cache. Imports none of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...errors import TestbedError

INSIDE = Path("automation/trex_control_plane/interactive")
"""Where an installation holds its client."""

CLIENT = Path("trex/stl/trex_stl_client.py")
"""The file by which a client is recognised."""

_API = re.compile(r"api_ver\s*=\s*\{[^}]*'major'\s*:\s*(\d+)\s*,\s*'minor'\s*:\s*(\d+)")


def interactive(folder: Path) -> Path | None:
    """The client's folder in *folder*, which is an installation or that folder itself; None where there is none."""
    for place in (folder, folder / INSIDE, folder / "scripts" / INSIDE):
        if (place / CLIENT).is_file():
            return place
    return None


def client_api(folder: Path) -> tuple[int, int] | None:
    """(major, minor) of the API that the client in *folder* speaks, as its source says; None where it does not."""
    home = interactive(folder)
    if home is None:
        return None
    try:
        found = _API.search((home / CLIENT).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def cache() -> Path:
    """The user's cache folder of this product (XDG Base Directory Specification). Raises TestbedError."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "linerate"
    except RuntimeError:
        raise TestbedError(
            "this user has no home folder, so there is no place for a copy of TRex's client; expected a folder"
            " named by the environment variable XDG_CACHE_HOME"
        ) from None


def bytecode() -> Path:
    """Where Python keeps what it compiled of such clients."""
    return cache() / "bytecode"
