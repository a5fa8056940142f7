"""Frames of streams as arrays: the bytes of a stream's n-th frame, with its variables and checksum written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lineproof.errors import TestbedError

from ..backend import SPLITMIX_STEP, FieldVariable, StreamTraffic, splitmix
from .interleaving import Indexes

Bytes = NDArray[np.uint8]

RANDOM_PERIOD = 4096
"""Frames after which a ``random`` variable repeats, so that a ring holds them all and is written once."""

_IPV4_CHECKSUM = 10


class WireStream:
    """One stream's frames. ``length`` in bytes without FCS; ``period``: after how many frames the bytes repeat."""

    def __init__(self, traffic: StreamTraffic) -> None:
        self._frame = np.frombuffer(traffic.frame, np.uint8)
        self._variables = traffic.variables
        self._header = traffic.fix_ipv4_checksum
        self.length = len(traffic.frame)
        self.period = math.lcm(*(variable.period(RANDOM_PERIOD) for variable in self._variables))
        for variable in self._variables:
            if variable.offset < 0 or variable.offset + variable.size > self.length:
                raise TestbedError(
                    f"stream {traffic.stream_id} writes {variable.size} bytes at offset {variable.offset},"
                    f" beyond its frame of {self.length} bytes; offset + size may be {self.length} at most"
                )
            if variable.maximum < variable.minimum:
                raise TestbedError(f"stream {traffic.stream_id} has a variable whose maximum is below its minimum")
        if self._header is not None and self._header + 20 > self.length:
            raise TestbedError(f"stream {traffic.stream_id} has no room for an IPv4 header at offset {self._header}")

    def rows(self, numbers: Indexes) -> Bytes:
        """The frames of these numbers, shape (len(numbers), length)."""
        rows: Bytes = np.repeat(self._frame[np.newaxis, :], len(numbers), axis=0)
        for variable in self._variables:
            found = _written_values(variable, values(variable, numbers), self._frame)
            for place in range(variable.size):
                shift = np.uint64(8 * (variable.size - 1 - place))
                rows[:, variable.offset + place] = (found >> shift).astype(np.uint8)
        if self._header is not None:
            write_ipv4_checksum(rows, self._header)
        return rows


def _written_values(variable: FieldVariable, found: NDArray[np.uint64], frame: Bytes) -> NDArray[np.uint64]:
    """Return what the frames hold after these numbers were written over the bytes of *frame*."""
    if not (variable.values or variable.mask or variable.shift):
        return found
    before = int.from_bytes(frame[variable.offset : variable.offset + variable.size].tobytes(), "big")
    distinct, places = np.unique(found, return_inverse=True)
    return np.array([variable.bits(int(value), before) for value in distinct], np.uint64)[places]


def values(variable: FieldVariable, numbers: Indexes) -> NDArray[np.uint64]:
    """The number of *variable* in the frames of these *numbers*: ``initial ± turn * step``, wrapped to its range."""
    span = variable.maximum - variable.minimum + 1
    numbers = (numbers % variable.limit if variable.limit else numbers) // variable.every
    if variable.operation == "random":
        mixed = (numbers % RANDOM_PERIOD).astype(np.uint64) + np.uint64(variable.offset << 16)
        mixed = splitmix(mixed * np.uint64(SPLITMIX_STEP))
        found = mixed % np.uint64(span) if span < 1 << 64 else mixed
        return found + np.uint64(variable.minimum % (1 << 64))
    step = variable.step if variable.operation == "inc" else -variable.step
    begin = (variable.initial - variable.minimum) % span
    if span <= 1 << 31:
        inside = (begin + (numbers % (span // math.gcd(span, variable.step))) * (step % span)) % span
        return inside.astype(np.uint64) + np.uint64(variable.minimum % (1 << 64))
    # products would overflow 64 bits: Python's integers are slow here but right
    wide = [variable.minimum + (begin + int(number) * step) % span for number in numbers]
    return np.array([value % (1 << 64) for value in wide], np.uint64)


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


def streams(traffic: Sequence[StreamTraffic]) -> tuple[WireStream, ...]:
    """The frames of each stream of a port."""
    return tuple(WireStream(stream) for stream in traffic)
