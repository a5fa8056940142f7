"""Damaged captures: refused in one paragraph, whatever their lengths say, in little time and memory."""

from __future__ import annotations

import struct
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.captures import MAX_FILE_BYTES, read_capture
from lineproof.errors import ConfigError
from support import hostile

IP = bytes.fromhex("45000020000100004011 0000 10000001 30000001 0401000c000c0000 00000000".replace(" ", ""))
FRAME = bytes(12) + b"\x08\x00" + IP
LENGTHS = (0, 1, 3, 8, 11, 12, 16, 28, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def pcap(magic: int = 0xA1B2C3D4, order: str = "<", frames: int = 3, snaplen: int = 65535) -> bytes:
    header = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, 1)
    return header + frames * (struct.pack(f"{order}IIII", 0, 0, len(FRAME), len(FRAME)) + FRAME)


def pcapng(tmp_path: Path) -> bytes:
    with (tmp_path / "written").open("wb") as file:
        writer = dpkt.pcapng.Writer(file)
        for _ in range(3):
            writer.writepkt(FRAME, ts=1)
    return (tmp_path / "written").read_bytes()


def refused(path: Path, content: bytes) -> str:
    """Return what the refusal says; "" if *content* is accepted."""
    path.write_bytes(content)
    with hostile.bounded():
        try:
            read_capture(path)
        except ConfigError as error:
            assert str(error).startswith(str(path)) and str(error).isprintable() and len(str(error)) < 600
            return str(error)
    return ""


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_microseconds_and_nanoseconds_of_both_byte_orders_are_read(tmp_path: Path, magic: int, order: str):
    (tmp_path / "x.pcap").write_bytes(pcap(magic, order, snaplen=0xFFFFFFFF))
    ((frame, count),) = read_capture(tmp_path / "x.pcap").frames
    assert (frame[: len(FRAME)], count) == (FRAME, 3)


def test_simple_packet_blocks_are_frames_too(tmp_path: Path):
    block = struct.pack("<III", 3, 64, len(FRAME)) + FRAME + bytes(2) + struct.pack("<I", 64)
    (tmp_path / "x.pcapng").write_bytes(pcapng(tmp_path)[:48] + block)
    ((frame, count),) = read_capture(tmp_path / "x.pcapng").frames
    assert (frame[: len(FRAME)], count) == (FRAME, 1)


@hostile.of(100)
@given(data=st.data())
def test_a_mutated_capture_is_read_or_refused(tmp_path: Path, data: st.DataObject):
    content = bytearray(pcapng(tmp_path) if data.draw(st.booleans()) else pcap())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        change = data.draw(st.sampled_from(("length", "bytes", "cut", "drop", "double")))
        if change == "length":
            content[at & ~3 : (at & ~3) + 4] = struct.pack("<I", data.draw(st.sampled_from(LENGTHS)))
        elif change == "bytes":
            content[at : at + 4] = data.draw(st.binary(max_size=8))
        elif change == "cut":
            del content[at:]
        elif change == "drop":
            del content[at : at + data.draw(st.integers(1, 40))]
        else:
            content += content[at:]
    refused(tmp_path / "x.pcap", bytes(content))


@pytest.mark.parametrize("length", LENGTHS)
def test_no_length_is_followed_unchecked(tmp_path: Path, length: int):
    whole = pcapng(tmp_path)
    block, captured = (whole[:at] + struct.pack("<I", length) + whole[at + 4 :] for at in (52, 68))
    assert "damaged capture" in refused(tmp_path / "x", block)
    assert refused(tmp_path / "x", captured)
    assert refused(tmp_path / "x", pcap(frames=0) + struct.pack("<IIII", 0, 0, length, length))


@pytest.mark.parametrize("cut", [1, 15, 17, 40])
def test_a_capture_that_ends_within_a_frame_is_refused(tmp_path: Path, cut: int):
    assert "damaged capture" in refused(tmp_path / "x", pcap()[:-cut])


@pytest.mark.parametrize(
    "content",
    [
        pcap(frames=110_000),
        pcap(frames=0) + bytes(MAX_FILE_BYTES - 64),
        bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 01000000 ffffffffffffffff 1c000000".replace(" ", ""))
        + struct.pack("<III", 9, 12, 12) * ((MAX_FILE_BYTES - 64) // 12),
        bytes(MAX_FILE_BYTES + 1),
    ],
    ids=["many frames", "zeros", "many blocks", "too large"],
)
def test_the_largest_files_take_seconds(tmp_path: Path, content: bytes):
    refused(tmp_path / "x", content)


def test_labels_and_tags_without_end_are_no_ip(tmp_path: Path):
    for kind in (b"\x81\x00\x00\x01", b"\x88\x47\x00\x00"):
        frame = bytes(12) + kind * 2000
        header = struct.pack("<IIII", 0, 0, len(frame), len(frame))
        assert "frame 1 is not IP" in refused(tmp_path / "x", pcap(frames=0) + header + frame)
