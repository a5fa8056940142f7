"""Bytes as a neighbour who means harm sends them to the TCP ports of ZeroMQ sockets."""

from __future__ import annotations

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
