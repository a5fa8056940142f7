"""Bytes as a neighbour who means harm sends them to the TCP ports of ZeroMQ sockets."""

from __future__ import annotations

import random
import struct

MAGIC = struct.pack(">I", 0xABE85CEA)

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
    """Return what a TCP connection may send in place of a greeting, or after one."""
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
