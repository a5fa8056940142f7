"""What the backend and its sending processes say to each other: streams as JSON, and a status in shared memory."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..backend import FieldVariable, StreamTraffic

STATUS = struct.Struct("=qqqd")
"""What a sender writes to shared memory: number of the last trial ended, frames, stalls, CPU seconds."""


def stream_to_json(stream: StreamTraffic) -> dict[str, Any]:
    """A stream as the commands carry it."""
    return {
        "stream_id": stream.stream_id,
        "frame": base64.b64encode(stream.frame).decode(),
        "pps": stream.pps,
        "variables": [asdict(row) for row in stream.variables],
        "count": stream.count,
        "fix_ipv4_checksum": stream.fix_ipv4_checksum,
        "isg_usec": stream.isg_usec,
    }


def stream_from_json(data: Mapping[str, Any]) -> StreamTraffic:
    """The inverse of :func:`stream_to_json`."""
    plain = {**data, "frame": base64.b64decode(data["frame"])}
    plain["variables"] = tuple(FieldVariable(**{**row, "values": tuple(row["values"])}) for row in data["variables"])
    return StreamTraffic(**plain)
