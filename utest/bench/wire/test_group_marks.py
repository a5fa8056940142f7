"""How frames say which packet group they belong to, and what their latency and order tell."""

from __future__ import annotations

import mmap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof_bench.backend import StreamTraffic
from lineproof_bench.wire import group_marks
from lineproof_bench.wire.filters import Instruction, program
from lineproof_bench.wire.group_marks import FrameKind
from lineproof_bench.wire.interleaving import StreamTally, locate, phases
from lineproof_bench.wire.latency import LatencyTracker
from lineproof_bench.wire.protocol import KEPT_DELAYS, STATUS_BYTES, SendDelays, slots_of
from lineproof_bench.wire.schedule import SendSchedule

MACS = bytes(12)
TAG, OUTER, LABEL, LAST = bytes.fromhex("81000005"), bytes.fromhex("88a80006"), bytes(4), bytes.fromhex("00064140")
UDP = bytes.fromhex("0401000900000000") + bytes(24)


def ipv4(number: int = 7) -> bytes:
    header = bytearray(bytes.fromhex("4500003400070000401100001000000130000001"))
    header[4:6] = number.to_bytes(2, "big")
    header[10:12] = ipv4_checksum(bytes(header)).to_bytes(2, "big")
    return bytes(header) + UDP


IPV6 = bytes.fromhex("6ba1234500201140") + bytes(32) + UDP
FRAMES = {
    "IPv4": (MACS + b"\x08\x00" + ipv4(), 14, 4),
    "IPv6": (MACS + b"\x86\xdd" + IPV6, 14, 6),
    "VLAN": (MACS + TAG + b"\x08\x00" + ipv4(), 18, 4),
    "QinQ": (MACS + OUTER + TAG + b"\x86\xdd" + IPV6, 22, 6),
    "MPLS": (MACS + b"\x88\x47" + LAST + ipv4(), 18, 4),
    "labels": (MACS + TAG + b"\x88\x47" + 3 * LABEL + LAST + IPV6, 34, 6),
}


def answer(instructions: list[Instruction], frame: bytes, outgoing: bool = False) -> int:
    """Run the program as the kernel does: it takes the first VLAN tag out, and shows what is behind the EtherType."""
    kind, data = int.from_bytes(frame[12:14], "big"), frame[14:]
    if kind in group_marks.VLAN:
        kind, data = int.from_bytes(data[2:4], "big"), data[4:]
    a = x = memory = at = 0
    sizes = {0x20: 4, 0x28: 2, 0x30: 1, 0x40: 4, 0x50: 1}
    while True:
        code, true, false, constant = instructions[at]
        at += 1
        if code in sizes and constant < 0xF0000000:
            begin = constant + (x if code in (0x40, 0x50) else 0)
            if begin + sizes[code] > len(data):
                return 0
            a = int.from_bytes(data[begin : begin + sizes[code]], "big")
        elif code == 0x20:
            a = {0xFFFFF000: kind, 0xFFFFF004: 4 if outgoing else 0}[constant]
        elif code == 0x01:
            x = constant
        elif code == 0x07:
            x = a
        elif code == 0x87:
            a = x
        elif code == 0x04:
            a += constant
        elif code == 0x54:
            a &= constant
        elif code == 0x74:
            a >>= constant
        elif code == 0x02:
            memory = a
        elif code == 0x60:
            a = memory
        elif code == 0x05:
            at += constant
        elif code == 0x15:
            at += true if a == constant else false
        else:
            assert code == 0x06, "an instruction that is not of the language"
            return constant


@pytest.mark.parametrize("name", FRAMES)
def test_a_marked_frame_is_recognised_by_the_program(name: str) -> None:
    frame, offset, version = FRAMES[name]
    place = group_marks.header_of(frame)
    assert place is not None and (place.offset, place.version) == (offset, version)
    found = group_marks.with_mark(frame, place, 0xFC05)
    length = 52 if version == 4 else 32
    assert group_marks.kind_of(found, place) == FrameKind(version, 0xFC05, length)
    kinds = {
        FrameKind(4, 0xFC05, 52): 1,
        FrameKind(6, 0xFC05, 32): 2,
        FrameKind(4, 0xFC06, None): 3,
        FrameKind(6, 0xFC06, None): 4,
    }
    rules = program(kinds, 0)
    assert answer(rules, found) == (1 if version == 4 else 2)
    assert answer(rules, found, outgoing=True) == 0
    assert answer(rules, group_marks.with_mark(frame, place, 0xFC06)) == (3 if version == 4 else 4)
    assert answer(rules, frame) == answer(rules, group_marks.with_mark(frame, place, 0xFC07)) == 0
    assert answer(program({FrameKind(version, 0xFC05, length + 1): 1}, 0), found) == 0
    assert group_marks.payload_room(found, place) == 24
    assert group_marks.packet_end(found + bytes(9), place) == len(found), "padding is not of the packet"


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_a_right_checksum_stays_right(before: int, after: int) -> None:
    frame = MACS + b"\x08\x00" + ipv4(before)
    place = group_marks.header_of(frame)
    assert place is not None
    found = group_marks.with_mark(frame, place, after)
    expected = MACS + b"\x08\x00" + ipv4(after)
    assert found[:24] + found[26:] == expected[:24] + expected[26:] and ipv4_checksum(found[14:34]) == 0


@given(st.binary(max_size=80), st.sampled_from([frame[:n] for frame, _, _ in FRAMES.values() for n in (14, 18, 30)]))
def test_any_frame_can_be_examined(tail: bytes, head: bytes) -> None:
    frame = head + tail
    place = group_marks.header_of(frame)
    kind = None if place is None else group_marks.kind_of(frame, place)
    found = answer(program({} if kind is None else {kind: 9}, 0), frame)
    assert found == (0 if kind is None else 9)
    assert len(group_marks.without_mark(frame)) == len(frame)
    if place is not None:
        assert group_marks.packet_end(frame, place) <= len(frame)
        assert group_marks.kind_of(group_marks.without_mark(frame), place).identification < group_marks.BASE


def test_many_kinds_fit_a_program() -> None:
    kinds = {
        FrameKind(version, number, length): 5 for version in (4, 6) for number in range(60) for length in (60, None)
    }
    rules = program(kinds, 0)
    assert all(true < 256 and false < 256 for _, true, false, _ in rules)
    assert answer(rules, FRAMES["VLAN"][0]) == 5
    with pytest.raises(ValueError, match="kernel takes 4096"):
        program({FrameKind(4, number, 1): 1 for number in range(3000)}, 0)


def test_missing_late_and_repeated_frames_are_counted() -> None:
    tracker = LatencyTracker()
    tracker.begin(1)
    for number in (0, 1, 1, 2, 6, 4, 4, 7, 9):
        tracker.add(1, number, 20.0, 0.0)
    found = tracker.counters()
    # 3, 5 and 8 are missing; 4 came late, then again
    assert (found.lost, found.out_of_order, found.duplicates) == (3, 1, 2)
    tracker.begin(2)
    tracker.add(1, 8, 20.0, 0.0)
    tracker.add(2, 0, 20.0, 0.0)
    assert (tracker.counters().lost, tracker.counters().duplicates) == (3, 2), "an older start has no order any more"
    assert tracker.counters().histogram == {20: 11}


@given(st.permutations(range(40)), st.lists(st.integers(0, 39), max_size=10), st.integers(0, 2**32 - 1))
def test_no_frame_is_lost_whatever_the_order(order: list[int], again: list[int], first: int) -> None:
    tracker = LatencyTracker()
    tracker.begin(1, first)
    for number in [*order, *again]:
        tracker.add(1, (first + number) % 2**32, 1.0, 0.0)
    found = tracker.counters()
    assert (found.lost, found.duplicates) == (0, len(again))


def test_latency_figures() -> None:
    tracker = LatencyTracker()
    tracker.begin(1)
    for number, usec in enumerate((5.0, 12.0, 19.0, 250.0, -3.0)):
        tracker.add(1, number, usec, 100.0 + number)
    found = tracker.counters()
    assert found.histogram == {0: 1, 5: 1, 12: 1, 19: 1, 250: 1}
    assert (found.total_min, found.total_max, found.last_max) == (0.0, 250.0, 0.0)
    assert found.average == pytest.approx(286 / 5)
    jitter = 0.0
    for change in (7.0, 7.0, 231.0, 250.0):
        jitter += (change - jitter) / 16
    assert found.jitter == pytest.approx(jitter)


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.none() | st.integers(1, 30), st.sampled_from([0.0, 0.1, 0.25])),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 400),
    st.integers(1, 4),
)
def test_a_tally_agrees_with_the_order(rows: list[tuple[int, int | None, float]], sent: int, shares: int) -> None:
    traffic = [
        StreamTraffic(n, bytes(60), pps, (), count, isg_usec=isg * 1e6) for n, (pps, count, isg) in enumerate(rows)
    ]
    plan = phases(traffic)
    total = SendSchedule(plan, None).frames
    for share in range(shares):
        own = np.arange(share, (sent if total is None else min(sent, total)), shares, dtype=np.int64)
        streams, _ = locate(plan, own)
        expected = np.bincount(streams, minlength=len(traffic)).tolist()
        assert StreamTally(plan, len(traffic), share, shares).counts(len(own)) == expected


def test_send_delays_are_kept_for_a_while() -> None:
    status = mmap.mmap(-1, STATUS_BYTES)
    later = SendDelays(status)
    assert later.of(0, 1, 0) is None
    for group in range(128):
        later.keep(group, 255, 2**32 - 1, 1000 + group)
    assert [later.of(group, 255, 2**32 - 1) for group in range(128)] == list(range(1000, 1128))
    assert later.of(3, 254, 2**32 - 1) is later.of(3, 255, 5) is None
    later.keep(3, 1, 7, 10**12)
    assert later.of(3, 1, 7) == 2**24 - 1, "what is out of all proportion"
    later.keep(3, 1, 7 + KEPT_DELAYS, 5)
    assert later.of(3, 1, 7) is None
    assert not any(slots_of(status)), "counts are elsewhere"


def test_when_a_frame_is_due() -> None:
    plan = phases([StreamTraffic(1, bytes(60), 10.0, (), 5), StreamTraffic(2, bytes(60), 20.0, (), 4, isg_usec=1e6)])
    schedule = SendSchedule(plan, None)
    for number in range(1, 10):
        moment = schedule.moment(number)
        assert schedule.due(moment + 1e-9) >= number > schedule.due(moment - 1e-6)
    assert schedule.moment(10) == float("inf")
