"""Clean text from the output of a remote shell."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain_text(text: str) -> str:
    """*text* with LF line ends and without ANSI escapes."""
    return _ANSI.sub("", re.sub(r"\r+\n", "\n", text)).replace("\r", "")


def first_line(text: str) -> str:
    """The first line that is not blank, for a message."""
    return next((line.strip() for line in plain_text(text).splitlines() if line.strip()), "")
