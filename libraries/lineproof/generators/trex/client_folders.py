"""Folders of the clients that TRex ships: in an installation, or in the user's cache."""

from __future__ import annotations

import re
from pathlib import Path

CLIENT_PATH = Path("automation/trex_control_plane/interactive")
"""The client's folder in an installation."""

CLIENT_FILE = Path("trex/stl/trex_stl_client.py")
"""The file that identifies a client."""

_API = re.compile(r"api_ver\s*=\s*\{[^}]*'major'\s*:\s*(\d+)\s*,\s*'minor'\s*:\s*(\d+)")


def client_folder(folder: Path) -> Path | None:
    """The client's folder in *folder* (an installation or the client's folder itself), or None."""
    for place in (folder, folder / CLIENT_PATH, folder / "scripts" / CLIENT_PATH):
        if (place / CLIENT_FILE).is_file():
            return place
    return None


def client_api(folder: Path) -> tuple[int, int] | None:
    """(major, minor) of the API of the client in *folder*, from its source; None if unknown."""
    home = client_folder(folder)
    if home is None:
        return None
    try:
        found = _API.search((home / CLIENT_FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (int(found[1]), int(found[2])) if found else None
