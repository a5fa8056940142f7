"""Text of a remote shell, cleaned."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    """*text* with LF line ends and without ANSI escapes."""
    return _ANSI.sub("", re.sub(r"\r+\n", "\n", text)).replace("\r", "")


def first_line(text: str) -> str:
    """The first line that says something, for an error sentence."""
    return next((line.strip() for line in plain(text).splitlines() if line.strip()), "")
