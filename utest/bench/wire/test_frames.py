"""Frames' bytes: field-engine variables and the IPv4 checksum, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof_bench.backend import FieldVariable, StreamTraffic
from lineproof_bench.model.flows import internet_checksum
from lineproof_bench.wire.frames import WireStream, values
from lineproof_bench.wire.ring import LARGEST_RING, PAGE, slots_for, stride_for

SOURCE, CHECKSUM = 26, 24
FRAME = bytes.fromhex(
    "026c72000200026c720001000800" + "4500002e0000000040110000" + "10000001" + "30000001" + "04010009001a0000"
).ljust(60, b"\0")


def numbers(*found: int) -> np.ndarray:
    return np.array(found, np.int64)


def test_addresses_count_up_and_the_checksum_follows() -> None:
    variable = FieldVariable(SOURCE, 4, 0x10000001, 0x100000FB, 0x10000001)
    stream = WireStream(StreamTraffic(1, FRAME, 1.0, (variable,), fix_ipv4_checksum=14))
    assert stream.period == 251
    rows = stream.rows(np.arange(600, dtype=np.int64))
    for number, row in enumerate(rows):
        data = row.tobytes()
        assert int.from_bytes(data[SOURCE : SOURCE + 4], "big") == 0x10000001 + number % 251
        assert internet_checksum(data[14:34]) == b"\0\0"
        assert data[:CHECKSUM] + data[30:] == FRAME[:CHECKSUM] + FRAME[30:]


def test_the_widest_variable_wraps_at_64_bits() -> None:
    variable = FieldVariable(0, 8, 0, 2**64 - 1, 2**64 - 2, 3)
    assert values(variable, numbers(0, 1, 2)).tolist() == [2**64 - 2, 1, 4]


def test_a_random_variable_stays_in_range_repeats_and_is_spread() -> None:
    variable = FieldVariable(SOURCE, 4, 100, 199, 100, 1, "random")
    found = values(variable, np.arange(4096, dtype=np.int64))
    assert found.min() >= 100 and found.max() <= 199 and len(set(found.tolist())) == 100
    assert np.array_equal(found, values(variable, np.arange(4096, 8192, dtype=np.int64)))


def test_a_variable_beyond_its_frame_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TestbedError, match=r"4 bytes at offset 58.*60 at most"):
        WireStream(StreamTraffic(1, FRAME, 1.0, (FieldVariable(58, 4, 0, 9, 0),)))


@given(st.integers(1, 100_000), st.integers(14, 9018))
def test_a_ring_holds_whole_periods_in_whole_pages(period: int, longest: int) -> None:
    stride, slots = stride_for(longest), slots_for(period, longest)
    assert stride >= longest + 42 and stride & (stride - 1) == 0
    if slots is not None:
        assert slots % period == 0 and slots * stride % PAGE == 0 and 1024 <= slots <= LARGEST_RING // stride
