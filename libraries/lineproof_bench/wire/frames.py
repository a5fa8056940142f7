"""Frames of streams as arrays: the bytes of a stream's n-th frame, with its variables and checksum written."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lineproof.errors import TestbedError

from ..backend import FieldVariable, StreamTraffic
from .interleaving import Indexes

Bytes = NDArray[np.uint8]

RANDOM_PERIOD = 4096
"""Frames after which a ``random`` variable repeats, so that a ring holds them all and is written once."""

LONGEST_TABLE = 1 << 14
"""The longest period of a variable whose bytes are computed once for all frames."""

_IPV4_CHECKSUM = 10


class WireStream:
    """One stream's frames. ``length`` in bytes without FCS; ``period``: after how many frames the bytes repeat."""

    def __init__(self, traffic: StreamTraffic) -> None:
        self._frame = np.frombuffer(traffic.frame, np.uint8)
        self._header = traffic.fix_ipv4_checksum
        self.length = len(traffic.frame)
        periods = [variable.period(RANDOM_PERIOD) for variable in traffic.variables]
        self.period = math.lcm(*periods)
        for variable in traffic.variables:
            if variable.offset < 0 or variable.offset + variable.size > self.length:
                raise TestbedError(
                    f"stream {traffic.stream_id} writes {variable.size} bytes at offset {variable.offset},"
                    f" beyond its frame of {self.length} bytes; offset + size may be {self.length} at most"
                )
            if variable.maximum < variable.minimum:
                raise TestbedError(f"stream {traffic.stream_id} has a variable whose maximum is below its minimum")
        if self._header is not None and self._header + 20 > self.length:
            raise TestbedError(f"stream {traffic.stream_id} has no room for an IPv4 header at offset {self._header}")
        self._variables = [
            (variable, _values(variable, np.arange(period)) if period <= LONGEST_TABLE else None)
            for variable, period in zip(traffic.variables, periods, strict=True)
        ]

    def rows(self, numbers: Indexes) -> Bytes:
        """The frames of these numbers, shape (len(numbers), length)."""
        rows: Bytes = np.repeat(self._frame[np.newaxis, :], len(numbers), axis=0)
        for variable, table in self._variables:
            found = _values(variable, numbers) if table is None else table[numbers % len(table)]
            for place in range(variable.size):
                shift = np.uint64(8 * (variable.size - 1 - place))
                rows[:, variable.offset + place] = (found >> shift).astype(np.uint8)
        if self._header is not None:
            write_ipv4_checksum(rows, self._header)
        return rows


def _values(variable: FieldVariable, numbers: Indexes) -> NDArray[np.uint64]:
    """Return what *variable* writes into the frames of these *numbers*."""
    period = variable.period(RANDOM_PERIOD)
    return np.array([variable.written(number % period) for number in numbers.tolist()], np.uint64)


def write_ipv4_checksum(rows: Bytes, header: int) -> None:
    """Write the IPv4 header checksum (RFC 791, RFC 1071) of every row; *header*: the header's offset."""
    size = 4 * int(rows[0, header] & 0x0F) if len(rows) else 20
    rows[:, header + _IPV4_CHECKSUM : header + _IPV4_CHECKSUM + 2] = 0
    octets = rows[:, header : header + size].astype(np.uint32)
    total = (octets[:, 0::2] << 8).sum(axis=1, dtype=np.uint32) + octets[:, 1::2].sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    rows[:, header + _IPV4_CHECKSUM] = total >> 8
    rows[:, header + _IPV4_CHECKSUM + 1] = total & 0xFF
