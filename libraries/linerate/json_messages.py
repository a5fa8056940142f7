"""JSON that another process wrote. Any bytes give a value or ValueError, whatever their length, depth and numbers."""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any

DEEPEST = 64
"""Arrays and objects within each other; a TRex stream has 5."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def read_json(data: bytes, largest: int, deepest: int = DEEPEST, finite: bool = True) -> Any:
    """The value that *data* holds. Raises ValueError unless it is JSON in UTF-8, within *largest* bytes and *deepest*.

    *finite*: NaN, infinities and numbers beyond the largest float (1e999) are refused too.
    """
    if len(data) > largest:
        raise ValueError(f"{len(data)} bytes are too many; at most {largest}")
    check_depth(data, deepest)
    if not finite:
        return json.loads(data.decode())
    return json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)


def check_depth(data: bytes, deepest: int = DEEPEST) -> None:
    """Raise ValueError where *data*, if it is JSON, is deeper than *deepest*. The time grows with its length only."""
    if data.count(b"[") + data.count(b"{") <= deepest:
        return
    # one step down or up for each bracket outside of strings; those that do not match are json's to find
    steps = memoryview(_STRING.sub(b"", data).translate(_STEPS, _ALL_BUT_BRACKETS)).cast("b")
    if max(accumulate(steps), default=0) > deepest:
        raise ValueError(f"its arrays and objects are deeper than {deepest}")


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text[:20]} is no number that this machine has")
    return found
