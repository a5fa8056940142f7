"""Bytes as a neighbour who means harm sends them: to ZeroMQ sockets, and to their TCP ports."""

from __future__ import annotations

import json
import random
import struct
import zlib
from typing import Any

MAGIC = struct.pack(">I", 0xABE85CEA)

METHODS = (
    *("ping", "api_sync", "api_sync_v2", "get_version", "get_system_info", "get_supported_cmds", "publish_now"),
    *("get_async_events", "get_global_stats", "get_port_stats", "get_port_xstats_values", "get_utilization"),
    *("get_active_pgids", "get_pgid_stats", "get_port_status", "push_pkts", "acquire", "release", "add_stream"),
    *("remove_all_streams", "get_all_streams", "validate", "start_traffic", "update_traffic", "stop_traffic"),
    *("pause_traffic", "set_port_attr", "set_rx_feature", "service", "set_l3", "capture", "shutdown", "no such"),
)
FIELDS = (
    *("port_id", "handler", "user", "session_id", "profile_id", "stream_id", "stream", "mul", "duration", "pgids"),
    *("key", "baseline", "command", "capture_id", "limit", "filter", "api_vers", "name", "major", "minor"),
)
SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 2**31, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", "_", "*", "x", "\0", "é", "\ud800", "../../etc/passwd", "x" * 3000, "STL", "core", "start", "remove"),
    *([], {}, [[]], [{}], {"a": {}}),
)
ENDINGS = (b"1e999", b"NaN", b"-Infinity", b"1" * 5000, b"[" * 500, b'{"a":' * 300, b'"' + b"\\u0000" * 50, b"\xff\xfe")
"""In place of a value: what json does not write."""


def message(chance: random.Random, api_h: str = "") -> list[bytes]:
    """The frames of one message: noise, nonsense, or calls that are nearly right. No call takes a port by force."""
    kind = chance.randrange(10)
    if kind == 0:
        return [chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(1, 6))]
    if kind == 1:
        return [b""] * chance.randrange(1, 4)
    calls = [_call(chance, api_h) for _ in range(chance.choice((1, 1, 1, 2, 20)))]
    data = json.dumps(calls[0] if len(calls) == 1 else calls).encode()
    if kind == 2:
        place = chance.randrange(len(data))
        data = data[:place] + chance.choice(ENDINGS) + data[place:]
    elif kind == 3:
        data = data[: chance.randrange(len(data))]
    elif kind == 4:
        data = data.replace(b"null", chance.choice(ENDINGS))
    elif kind == 5:
        packed = MAGIC + struct.pack(">I", chance.choice((len(data), 0, 2**32 - 1, 100))) + zlib.compress(data)
        data = packed[: chance.choice((len(packed), 4, 8, 20))]
    return [data] if kind < 9 else [data, data]


def _call(chance: random.Random, api_h: str) -> Any:
    if chance.random() < 0.1:
        return chance.choice(SCALARS)
    names = chance.sample(FIELDS, chance.randrange(6))
    params: dict[str, Any] = {"api_h": api_h, **{name: chance.choice(SCALARS) for name in names}, "force": False}
    call = {"jsonrpc": "2.0", "id": chance.choice(SCALARS), "method": chance.choice(METHODS), "params": params}
    if chance.random() < 0.1:
        del call[chance.choice(list(call))]
    return call


GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00NULL" + b"\0" * 48
"""ZMTP 3.0 without authentication."""


def ready(kind: bytes) -> bytes:
    """The command after the greeting. *kind*: REQ, SUB, ..."""
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    return b"\x04" + bytes([len(body)]) + body


def frame(data: bytes, more: bool = False) -> bytes:
    """A frame of a message."""
    return bytes([2 | more]) + struct.pack(">Q", len(data)) + data


def noise(chance: random.Random) -> bytes:
    """What a TCP connection may send in place of a greeting, or after one."""
    return chance.choice(
        (
            b"",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            GREETING[: chance.randrange(64)],
            GREETING + chance.randbytes(60),
            GREETING + ready(b"SUB"),
            GREETING + ready(b"REQ") + frame(b"", True) + chance.randbytes(40),
            GREETING + ready(b"DEALER") + b"\x03" + b"\xff" * 8,
            b"\x01\x00" * 40,
            b"\xff" * 100,
            chance.randbytes(300),
        )
    )
