"""Reading the parameters of a call, with TRex's error codes when one is missing or of the wrong kind."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any


class RpcError(Exception):
    """A JSON-RPC error reply: *code*, *message*, and the sentence that clients show if there is one."""

    def __init__(self, code: int, message: str, specific: str | None = None) -> None:
        super().__init__(specific or message)
        self.code, self.message, self.specific = code, message, specific

    def as_dict(self) -> dict[str, Any]:
        """The ``error`` member of a reply."""
        found: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.specific is not None:
            found["specific_err"] = self.specific
        return found


def refused(sentence: str) -> RpcError:
    """The call was understood and cannot be done (-32000)."""
    return RpcError(-32000, "Failed To Execute Method", sentence)


def bad_parameter(sentence: str) -> RpcError:
    """A parameter is missing or wrong (-32602)."""
    return RpcError(-32602, "Bad parameters for method", sentence)


_REQUIRED: Any = object()

LONGEST_TEXT = 1000
"""Characters of names, addresses and words of a call; the server keeps some of them."""


class Params:
    """An object of a request. Readers raise RpcError -32602 unless the field fits, or is absent and has a *default*."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def _read(self, name: str, default: Any, fits: Callable[[Any], bool], expected: str) -> Any:
        found = self.data.get(name)
        if found is None:
            if default is _REQUIRED:
                raise bad_parameter(f"field '{name}' value is null")
            return default
        if not fits(found):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected {expected}")
        return found

    def integer(self, name: str, default: int = _REQUIRED, least: int = 0, most: int = 2**64 - 1) -> int:
        """An integer within *least*…*most*."""

        def fits(found: Any) -> bool:
            return _is_number(found) and least <= found <= most and found == int(found)

        return int(self._read(name, default, fits, f"an integer from {least} to {most}"))

    def number(self, name: str, default: float = _REQUIRED, least: float = -math.inf) -> float:
        """A finite number, at least *least*."""
        expected = "a number" if least == -math.inf else f"a number not below {least:g}"
        return float(self._read(name, default, lambda found: _is_number(found) and found >= least, expected))

    def boolean(self, name: str, default: bool = _REQUIRED) -> bool:
        """True or false."""
        return bool(self._read(name, default, lambda found: isinstance(found, bool), "true or false"))

    def text(self, name: str, default: str = _REQUIRED, longest: int = LONGEST_TEXT) -> str:
        """A string of at most *longest* characters."""

        def fits(found: Any) -> bool:
            return isinstance(found, str) and len(found) <= longest

        return str(self._read(name, default, fits, f"a string of at most {longest} characters"))

    def choice(self, name: str, choices: tuple[str, ...], default: str = _REQUIRED) -> str:
        """One of *choices*."""
        return str(self._read(name, default, choices.__contains__, f"one of: {', '.join(choices)}"))

    def object(self, name: str) -> Params:
        """An object."""
        return Params(self._read(name, _REQUIRED, lambda found: isinstance(found, dict), "an object"))

    def objects(self, name: str) -> list[Params]:
        """An array of objects."""

        def fits(found: Any) -> bool:
            return isinstance(found, list) and all(isinstance(item, dict) for item in found)

        return [Params(item) for item in self._read(name, _REQUIRED, fits, "an array of objects")]

    def integers(self, name: str) -> list[int]:
        """An array of integers; empty when it is missing."""

        def fits(found: Any) -> bool:
            return isinstance(found, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in found)

        return list(self._read(name, [], fits, "an array of integers"))


def _is_number(found: Any) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and abs(found) <= sys.float_info.max
