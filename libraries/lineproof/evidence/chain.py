"""The chain of a file of records: each line carries the SHA-256 of itself and that of the line before.

A line ends with ``, "previous": "…", "sha256": "…"}``. ``sha256`` is that of the line's bytes up to ``, "sha256"``, so
that it covers ``previous``, which is the ``sha256`` of the line before; of the first line, the SHA-256 of the run's id.
A line that was edited is found by itself; one that was removed, added or moved by the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

_OWN = b', "sha256": "'
_END = b'"}'
_TAIL = len(_OWN) + 64 + len(_END)


def first_link(run: str) -> str:
    """Return what the first line of each file of *run* carries as ``previous``."""
    return hashlib.sha256(run.encode(errors="surrogatepass")).hexdigest()


def sealed(data: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """Return *data* as a line that follows one with the sum *previous*, and its own sum.

    Raises ValueError if a number is not finite. Half a character, as of a file's name that is not UTF-8, becomes a
    question mark.
    """
    text = json.dumps({**data, "previous": previous}, ensure_ascii=False, allow_nan=False)
    body = text.encode(errors="replace")[:-1]
    own = hashlib.sha256(body).hexdigest()
    return body + _OWN + own.encode() + _END + b"\n", own


def breaks(lines: Sequence[bytes], run: str) -> list[tuple[int, str]]:
    """Return which *lines* of a file of *run*, without their newlines, are not as they were written, and why.

    They are counted from 1. Of the line after one that was changed, nothing shows what it followed. Takes linear time.
    """
    broken: list[tuple[int, str]] = []
    before: str | None = first_link(run)
    start = 0
    for number, line in enumerate(lines, 1):
        own = _own_sum(line)
        if own is None:
            broken.append((number, f"was changed (bytes {start + 1} to {start + len(line)} of the file)"))
        elif before is not None and not line[:-_TAIL].endswith(f', "previous": "{before}"'.encode()):
            place = f"line {number - 1}" if number > 1 else "the beginning of this run"
            broken.append((number, f"does not follow {place}: lines were removed, added or moved here"))
        before = own
        start += len(line) + 1
    return broken


def _own_sum(line: bytes) -> str | None:
    """The sum of *line*; None if it says another one, or none."""
    own = hashlib.sha256(line[:-_TAIL]).hexdigest()
    return own if line[-_TAIL:] == _OWN + own.encode() + _END else None
