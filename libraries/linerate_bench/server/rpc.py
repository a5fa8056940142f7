"""JSON-RPC 2.0 as TRex speaks it: one ZeroMQ frame per request and reply, zipped or not, one call or a batch of them.

A frame may be compressed: magic and uncompressed length as two big-endian words, then a zlib stream. A reply is zipped
if and only if its request was. The reply to a batch of one call is a bare object, of none ``null``.
"""

from __future__ import annotations

import json
import logging
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from .params import Params, RpcError

MAGIC = 0xABE85CEA
LARGEST_REQUEST = 999_999
"""Bytes of the largest request (TRex's MAX_RPC_MSG_LEN)."""
ZIP_ABOVE = 256
"""Published messages longer than this many bytes are zipped."""
NO_HANDLE_NEEDED = frozenset({"api_sync", "api_sync_v2", "get_version", "ping"})
"""Methods that may be called without ``api_h``."""

Method = Callable[[Params], Any]
log = logging.getLogger("linerate.server")


def is_zipped(data: bytes) -> bool:
    """Whether *data* begins with the compression header."""
    return len(data) >= 8 and struct.unpack(">I", data[:4])[0] == MAGIC


def zip_message(data: bytes) -> bytes:
    """*data* behind its compression header."""
    return struct.pack(">II", MAGIC, len(data)) + zlib.compress(data, 1)


def unzip_message(data: bytes, maximum: int = LARGEST_REQUEST) -> bytes:
    """The inverse of :func:`zip_message`. Raises RpcError when it is damaged or larger than *maximum* bytes."""
    length = struct.unpack(">I", data[4:8])[0]
    if length > maximum:
        raise too_large(length)
    stream = zlib.decompressobj()
    try:
        # at most one byte beyond the announced length: a small frame must not fill the memory
        plain = stream.decompress(data[8:], length + 1)
    except zlib.error as error:
        raise RpcError(-32700, "Bad JSON Format", f"the compressed request is damaged: {error}") from None
    if len(plain) != length:
        raise RpcError(-32700, "Bad JSON Format", "the compressed request has not the length that its header says")
    return plain


def too_large(size: int) -> RpcError:
    """The refusal of a request of *size* bytes."""
    return RpcError(-32600, f"Request is too large ({size} bytes). Maximum size is {LARGEST_REQUEST} bytes.")


def encode(data: Any) -> bytes:
    """*data* as compact JSON. NaN and infinities are not JSON and raise ValueError."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


class Dispatcher:
    """Answers requests by calling *methods*. ``api_h`` is this run's API handle, which most calls must repeat."""

    def __init__(self, methods: Mapping[str, Method], api_h: str) -> None:
        self._methods = methods
        self._api_h = api_h

    def handle(self, request: bytes) -> bytes:
        """The reply to one frame. Never raises: every error becomes an error reply."""
        zipped = is_zipped(request)
        try:
            if len(request) > LARGEST_REQUEST:
                raise too_large(len(request))
            answer = self._answer(unzip_message(request) if zipped else request)
        except RpcError as error:
            answer = {"jsonrpc": "2.0", "id": None, "error": error.as_dict()}
        reply = encode(answer)
        return zip_message(reply) if zipped else reply

    def _answer(self, request: bytes) -> Any:
        try:
            calls = json.loads(request, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise RpcError(-32700, "Bad JSON Format") from None
        if not isinstance(calls, list):
            return self._one(calls)
        answers = [self._one(call) for call in calls]
        if not answers:
            return None
        return answers[0] if len(answers) == 1 else answers

    def _one(self, call: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": None}
        try:
            if not isinstance(call, dict):
                raise RpcError(-32600, "Bad Request", "a call is a JSON object")
            if isinstance(call.get("id"), str | int | float):
                answer["id"] = call["id"]
            answer["result"] = self._call(call)
            # a result that is not JSON must not break the other answers of the batch
            encode(answer["result"])
        except RpcError as error:
            answer.pop("result", None)
            answer["error"] = error.as_dict()
        except Exception as error:
            log.exception("%s failed", call.get("method") if isinstance(call, dict) else call)
            answer.pop("result", None)
            answer["error"] = RpcError(-32603, "Internal error", f"{type(error).__name__}: {error}").as_dict()
        return answer

    def _call(self, call: dict[str, Any]) -> Any:
        name = call.get("method")
        if not isinstance(name, str):
            raise RpcError(-32600, "Missing Method Name")
        method = self._methods.get(name)
        if method is None:
            raise RpcError(-32601, f"Method {name} not registered")
        given = call.get("params")
        if given is not None and not isinstance(given, dict):
            raise RpcError(-32602, "Bad parameters for method", "'params' is not an object")
        params = Params(given or {})
        if name not in NO_HANDLE_NEEDED and params.text("api_h") != self._api_h:
            text = "API verification failed - API handler provided mismatch for class: 'core'"
            raise RpcError(-32000, "Failed To Execute Method", text)
        return method(params)
