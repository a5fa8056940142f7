"""Limits of what a TRex server may send: JSON of bounded length and depth, zipped or not. Both processes need them."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from ...json_text import parse_json

LARGEST_ANSWER = 64 << 20
"""Bytes of a message, also once unzipped. The largest of a TRex, 50 captured jumbo frames, have less than 1 MB."""

MAGIC = 0xABE85CEA
"""Begins a zipped message; its unzipped length and a zlib stream follow."""


def plain_bytes(data: bytes, largest: int = LARGEST_ANSWER) -> bytes:
    """*data*, unzipped where it is zipped. Raises ValueError where that is damaged or more than *largest* bytes."""
    if len(data) < 8 or struct.unpack(">I", data[:4])[0] != MAGIC:
        return data
    length = struct.unpack(">I", data[4:8])[0]
    if length > largest:
        raise ValueError(f"{length} bytes, zipped, are too many; at most {largest}")
    try:
        # at most one byte more than announced: a small message must not fill the memory
        found = zlib.decompressobj().decompress(data[8:], length + 1)
    except zlib.error as error:
        raise ValueError(f"it is zipped and damaged: {error}") from None
    if len(found) != length:
        raise ValueError("it is zipped and has not the length that its header announces")
    return found


def read_answer(parts: list[bytes], largest: int = LARGEST_ANSWER) -> tuple[bytes, Any]:
    """A message of the server, unzipped, and its value. Raises ValueError for what no TRex sends."""
    if len(parts) != 1:
        raise ValueError(f"it has {len(parts)} frames; expected 1")
    data = plain_bytes(parts[0], largest)
    # a TRex writes infinity (1e+9999) into rates that nobody reads here; whoever reads a number checks it
    return data, parse_json(data, largest, strict=False)


def check_calls(found: Any, ids: list[Any]) -> None:
    """Raise ValueError unless *found* answers the calls with *ids*, in their order: a result or an error for each."""
    answers = found if isinstance(found, list) else [found]
    if len(answers) != len(ids) and not (len(answers) == 1 and _is_error(answers[0])):
        raise ValueError(f"it has {len(answers)} answers to {len(ids)} calls")
    for answer, number in zip(answers, ids, strict=False):
        if not isinstance(answer, dict) or not ("result" in answer or _is_error(answer)):
            raise ValueError("it is neither a result nor an error of JSON-RPC")
        if "result" in answer and answer.get("id", number) != number:
            raise ValueError(f"it answers call {str(answer['id'])[:40]}; expected {str(number)[:40]}")


def _is_error(answer: Any) -> bool:
    error = answer.get("error") if isinstance(answer, dict) else None
    # the ticket of a busy server is a number
    return (
        isinstance(error, dict)
        and isinstance(error.get("message", ""), str)
        and isinstance(error.get("specific_err", ""), str | int)
    )
