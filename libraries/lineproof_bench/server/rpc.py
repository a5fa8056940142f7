"""JSON-RPC 2.0 as TRex speaks it: one ZeroMQ frame per request and reply, zipped or not, one call or a batch of them.

A frame may be compressed: magic and uncompressed length as two big-endian words, then a zlib stream. A reply is zipped
if its request was, unless that is damaged. The reply to a batch of one call is a bare object, of none ``null``.
"""

from __future__ import annotations

import logging
import math
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic_core import to_json

from lineproof.generators.trex.client.sockets import MAGIC, plain_bytes
from lineproof.json_text import parse_json


class RpcError(Exception):
    """A JSON-RPC error reply: *code*, *message*, and the sentence that clients show if there is one."""

    def __init__(self, code: int, message: str, specific: str | None = None) -> None:
        super().__init__(specific or message)
        self.code, self.message, self.specific = code, message, specific


def refused(sentence: str) -> RpcError:
    """Return the error of a call that was understood and cannot be done (-32000)."""
    return RpcError(-32000, "Failed To Execute Method", sentence)


def bad_parameter(sentence: str) -> RpcError:
    """Return the error of a parameter that is missing or wrong (-32602)."""
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

    def _read(self, name: str, default: Any, fits: Callable[[Any], bool], expected: Callable[[], str]) -> Any:
        value = self.data.get(name)
        if value is None:
            if default is _REQUIRED:
                raise bad_parameter(f"field '{name}' value is null")
            return default
        if not fits(value):
            raise bad_parameter(f"field '{name}' is {value!r:.40}; expected {expected()}")
        return value

    def integer(self, name: str, default: int = _REQUIRED, least: int = 0, most: int = 2**64 - 1) -> int:
        """Return an integer within *least*…*most*."""

        def fits(value: Any) -> bool:
            return _is_number(value) and least <= value <= most and value == int(value)

        return int(self._read(name, default, fits, lambda: f"an integer from {least} to {most}"))

    def number(self, name: str, default: float = _REQUIRED, least: float = -math.inf) -> float:
        """Return a finite number, at least *least*."""

        def fits(value: Any) -> bool:
            return _is_number(value) and value >= least

        return float(self._read(name, default, fits, lambda: f"a number not below {least:g}"))

    def boolean(self, name: str, default: bool = _REQUIRED) -> bool:
        """Return true or false."""
        return bool(self._read(name, default, lambda value: isinstance(value, bool), lambda: "true or false"))

    def text(self, name: str, default: str = _REQUIRED, longest: int = LONGEST_TEXT) -> str:
        """Return a string of at most *longest* characters."""

        def fits(value: Any) -> bool:
            return isinstance(value, str) and len(value) <= longest

        return str(self._read(name, default, fits, lambda: f"a string of at most {longest} characters"))

    def choice(self, name: str, choices: tuple[str, ...], default: str = _REQUIRED) -> str:
        """Return one of *choices*."""
        return str(self._read(name, default, choices.__contains__, lambda: f"one of: {', '.join(choices)}"))

    def object(self, name: str) -> Params:
        """Return an object."""
        return Params(self._read(name, _REQUIRED, lambda value: isinstance(value, dict), lambda: "an object"))

    def objects(self, name: str) -> list[Params]:
        """Return the parameter *name*, an array of objects."""
        return [Params(value) for value in self._array(name, _REQUIRED, dict, "objects")]

    def integers(self, name: str) -> list[int]:
        """Return the parameter *name*, an array of integers; empty when it is missing."""
        return self._array(name, [], int, "integers")

    def _array(self, name: str, default: Any, kind: type, plural: str) -> list[Any]:
        def fits(values: Any) -> bool:
            return isinstance(values, list) and all(isinstance(n, kind) and not isinstance(n, bool) for n in values)

        return list(self._read(name, default, fits, lambda: f"an array of {plural}"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


LARGEST_REQUEST = 999_999
"""Bytes of the largest request (TRex's MAX_RPC_MSG_LEN)."""
ZIP_ABOVE = 256
"""Published messages longer than this many bytes are zipped."""
NO_HANDLE_NEEDED = frozenset({"api_sync", "api_sync_v2", "get_version", "ping"})
"""Methods that may be called without ``api_h``."""
READING = ("ping", "get_", "publish_now")
"""Beginnings of methods that change nothing. A batch of them shows one moment: on a fast clock two ports' counts would
else be ms apart."""

Method = Callable[[Params], Any]
log = logging.getLogger("lineproof.server")


def zip_message(data: bytes) -> bytes:
    """Return *data* behind its compression header: the inverse of ``plain_bytes`` of the client."""
    return struct.pack(">II", MAGIC, len(data)) + zlib.compress(data, 1)


def encode(data: Any) -> bytes:
    """Return *data* as compact JSON, in which NaN and infinities are null."""
    return to_json(data, inf_nan_mode="null")


def _error_reply(error: RpcError, number: str | int | None = None) -> dict[str, Any]:
    reported: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.specific is not None:
        reported["specific_err"] = error.specific
    return {"jsonrpc": "2.0", "id": number, "error": reported}


class Dispatcher:
    """Answers requests by calling *methods*. ``api_h`` is this run's API handle, which most calls must repeat.

    While a context of *one_moment* is open, the bench's clock stands still.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        api_h: str,
        one_moment: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._methods = methods
        self._api_h = api_h
        self._one_moment = one_moment

    def handle(self, request: bytes) -> bytes:
        """Return the reply to *request*. Never raises: every error becomes an error reply."""
        plain = request
        try:
            if len(request) > LARGEST_REQUEST:
                text = f"Request is too large ({len(request)} bytes). Maximum size is {LARGEST_REQUEST} bytes."
                raise RpcError(-32600, text)
            plain = plain_bytes(request, LARGEST_REQUEST)
            reply = encode(self._answer(plain))
        except RpcError as error:
            reply = encode(_error_reply(error))
        except ValueError as error:
            reply = encode(_error_reply(RpcError(-32700, "Bad JSON Format", str(error))))
        return reply if plain is request else zip_message(reply)

    def _answer(self, request: bytes) -> Any:
        try:
            calls = parse_json(request, LARGEST_REQUEST, strict=False)
        except ValueError:
            raise RpcError(-32700, "Bad JSON Format") from None
        if not isinstance(calls, list):
            return self._one(calls)
        reading = all(isinstance(call, dict) and str(call.get("method")).startswith(READING) for call in calls)
        with self._one_moment() if reading else nullcontext():
            answers = [self._one(call) for call in calls]
        return answers if len(answers) > 1 else answers[0] if answers else None

    def _one(self, call: Any) -> dict[str, Any]:
        number: str | int | None = None
        try:
            if not isinstance(call, dict):
                raise RpcError(-32600, "Bad Request", "a call is a JSON object")
            if isinstance(given := call.get("id"), str | int) and len(str(given)) <= LONGEST_TEXT:
                number = given
            return {"jsonrpc": "2.0", "id": number, "result": self._call(call)}
        except RpcError as error:
            return _error_reply(error, number)
        except Exception as error:
            log.exception("%.40s failed", call.get("method"))
            text = f"{type(error).__name__}: {error}"
            return _error_reply(RpcError(-32603, "Internal error", text[:LONGEST_TEXT]), number)

    def _call(self, call: dict[str, Any]) -> Any:
        name = call.get("method")
        if not isinstance(name, str):
            raise RpcError(-32600, "Missing Method Name")
        method = self._methods.get(name)
        if method is None:
            text = f"the method '{name:.80}' is not supported by the embedded server"
            raise RpcError(-32601, f"Method {name:.80} not registered", text)
        given = call.get("params")
        if given is not None and not isinstance(given, dict):
            raise RpcError(-32602, "Bad parameters for method", "'params' is not an object")
        params = Params(given or {})
        if params.data.get("api_h") != self._api_h and name not in NO_HANDLE_NEEDED:
            params.text("api_h")
            text = "API verification failed - API handler provided mismatch for class: 'core'"
            raise RpcError(-32000, "Failed To Execute Method", text)
        return method(params)
