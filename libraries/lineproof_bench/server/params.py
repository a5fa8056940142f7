"""Reading the parameters of a call, with TRex's error codes when one is missing or of the wrong kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
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

    def _get(self, name: str, default: Any) -> Any:
        found = self.data.get(name)
        if found is None:
            if default is _REQUIRED:
                raise bad_parameter(f"field '{name}' value is null")
            return default
        return found

    def integer(self, name: str, default: int = _REQUIRED, least: int = 0, most: int = 2**64 - 1) -> int:
        """An integer within *least*…*most*."""
        found = self._get(name, default)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected an integer from {least} to {most}")
        return found

    def number(self, name: str, default: float = _REQUIRED, least: float = -math.inf) -> float:
        """A finite number, at least *least*."""
        found = self._get(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected a number")
        try:
            value = float(found)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value) or value < least:
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected a number not below {least:g}")
        return value

    def boolean(self, name: str, default: bool = _REQUIRED) -> bool:
        """True or false."""
        found = self._get(name, default)
        if not isinstance(found, bool):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected true or false")
        return found

    def text(self, name: str, default: str = _REQUIRED, longest: int = LONGEST_TEXT) -> str:
        """A string of at most *longest* characters."""
        found = self._get(name, default)
        if not isinstance(found, str) or len(found) > longest:
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected a string of at most {longest} characters")
        return found

    def choice(self, name: str, choices: tuple[str, ...], default: str = _REQUIRED) -> str:
        """One of *choices*."""
        found = self.text(name, default)
        if found not in choices:
            raise bad_parameter(f"field '{name}' is '{found:.40}'; expected one of: {', '.join(choices)}")
        return found

    def object(self, name: str) -> Params:
        """An object."""
        found = self._get(name, _REQUIRED)
        if not isinstance(found, dict):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected an object")
        return Params(found)

    def objects(self, name: str) -> list[Params]:
        """An array of objects."""
        found = self._get(name, _REQUIRED)
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected an array of objects")
        return [Params(item) for item in found]

    def integers(self, name: str) -> list[int]:
        """An array of integers; empty when it is missing."""
        found = self._get(name, [])
        if not isinstance(found, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in found):
            raise bad_parameter(f"field '{name}' is {found!r:.40}; expected an array of integers")
        return list(found)
