"""JSON that others wrote: a value or a ValueError in plain words, for bytes of any length, depth and numbers."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from .visible import shortened

DEEPEST = 64
"""Arrays and objects within each other; a TRex stream has 5."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a character: it can be read, and written to no file."""

_CONTAINERS = frozenset((dict, list))


class JsonError(ValueError):
    """A text is no JSON, or no JSON of Lineproof's."""


def parse_json(text: str | bytes, largest: int | None = None, *, strict: bool = True) -> Any:
    """Return the data in *text* (bytes: UTF-8) of at most *largest* bytes, :data:`DEEPEST` levels. Raises JsonError.

    A key that stands twice, NaN, infinities, numbers beyond a float's range (1e999), whole ones of more than 40 digits
    and halves of characters are no data. *strict*: False for what a device answers, where whoever takes a value checks
    it: keys may stand twice, NaN and infinities elsewhere, and whole numbers have up to 4300 digits.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if largest is not None and len(data) > largest:
        raise JsonError(f"{len(data)} bytes are too many; at most {largest}")
    try:
        text = text.decode() if isinstance(text, bytes) else text
        parsed = _DECODERS[strict].decode(text)
        if data.count(b"[") + data.count(b"{") > DEEPEST and isinstance(parsed, dict | list):
            _check_depth(parsed)
        if _HALF.search(text) or not text.isascii():
            json.dumps(parsed, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if "\n" in text.strip() else f"column {error.colno}"
        raise JsonError(f"it is not JSON ({error.msg}, {where})" if text.strip() else "it is empty") from None
    except UnicodeDecodeError as error:
        raise JsonError(f"it is not UTF-8 text (byte {error.start})") from None
    except UnicodeEncodeError:
        raise JsonError("it holds half a character (\\ud800 to \\udfff)") from None
    except RecursionError:
        raise JsonError(f"its arrays and objects are deeper than {DEEPEST}") from None
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(f"it holds a number that is too long ({error})") from None
    return parsed


def _check_depth(value: Any) -> None:
    """Raise RecursionError where *value* has more than DEEPEST lists and dictionaries within each other."""
    level, left = [value], DEEPEST
    # no isinstance: what the decoder makes has no other class, and a capture has 15 000 values
    while level := [
        inner for one in level for inner in (one.values() if type(one) is dict else one) if type(inner) in _CONTAINERS
    ]:
        left -= 1
        if not left:
            raise RecursionError


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise JsonError(f"the key '{shortened(twice, 60)}' stands twice in an object")
    return members


def _refuse(name: str) -> NoReturn:
    raise JsonError(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonError(f"the number {text[:20]} is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > 40:  # twice as many digits as any counter of 64 bits has
        raise JsonError(f"the number {text[:20]}… has {len(text)} digits")
    return int(text)


_DECODERS = {
    False: json.JSONDecoder(),
    True: json.JSONDecoder(parse_int=_whole, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite),
}
