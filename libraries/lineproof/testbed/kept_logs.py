"""Logs of a testbed's processes: what a message quotes of one, and the copy that stays when the testbed has gone."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

FOLDER = "logs"
"""The folder of the copies, in the runtime folder."""

MOST_COPIES = 50

LENGTH = 1 << 20
"""Bytes from the end of a log that are kept."""

LOG_TAIL = 600
"""Characters of a log that an error quotes."""

LOG_LINES = 6
"""Lines of a log that an error quotes."""

_HAS_WORD = re.compile(r"[A-Za-z]{3}")


def log_end(log: Path) -> str:
    """Return the last lines of *log* in one line; "" without any."""
    # without lines of dashes and the like
    lines = read_log(log).splitlines()
    shown = [words for line in lines if _HAS_WORD.search(words := " ".join(line.split()))]
    quoted = "; ".join(shown[-LOG_LINES:])
    return quoted if len(quoted) <= LOG_TAIL else "…" + quoted[-LOG_TAIL:]


def read_log(log: Path) -> str:
    """The last MB of *log*; "" where it cannot be read."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LENGTH))
        return file.read(LENGTH).decode(errors="replace")
    return ""


def keep_log(log: Path) -> Path | None:
    """Copy *log* of a testbed that does not begin to where it stays: its folder is removed.

    Returns None where it is empty, or if that fails, which is no error beside the one to be reported.
    """
    if not (text := read_log(log)):
        return None
    folder = log.parent.parent / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        copy = folder / f"{log.parent.name}-{log.name}"
        with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(text)
        known = sorted(folder.iterdir(), key=lambda path: path.lstat().st_mtime)
        for old in known[:-MOST_COPIES]:
            old.unlink(missing_ok=True)
        return copy
    return None
