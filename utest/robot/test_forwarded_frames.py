"""Only frames of the profile are judged, and a port without any is the testbed's fault, not the router's."""

from __future__ import annotations

import ipaddress

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.robot.forwarded_frames import FrameKeywords, frames_of
from lineproof.robot.shared import Shared
from lineproof.traffic.catalogue import Catalogue
from lineproof.traffic.profiles import Profile
from support.paths import ROOT


@pytest.fixture(scope="module")
def profile() -> Profile:
    return Catalogue.read(Project(ROOT).profiles).profile(["64b"])


def frame(source: str, destination: str, kind: str = "0800", ttl: int = 63) -> bytes:
    header = bytearray(bytes.fromhex("4500002e00000000") + bytes([ttl, 17, 0, 0]))
    header += ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 20, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (0xFFFF - total).to_bytes(2, "big")
    return bytes(12) + bytes.fromhex(kind) + bytes(header) + bytes(26)


FORTH, BACK = frame("16.0.0.4", "48.0.0.4"), frame("48.0.0.254", "16.0.0.254")


def test_both_directions_of_the_profile_are_kept_and_nothing_else(profile: Profile):
    others = [
        frame("16.0.0.4", "48.0.0.4", kind="86dd"),
        frame("16.0.0.4", "48.0.1.4"),
        frame("48.0.0.4", "48.0.0.5"),
        frame("10.0.0.1", "224.0.0.5"),
        bytes.fromhex("ffffffffffff0200000000010806") + bytes(28),
        FORTH[:30],
        b"",
    ]
    assert frames_of(profile, [others[0], FORTH, *others[1:], BACK]) == (FORTH, BACK)


def test_a_wrong_time_to_live_fails():
    library = FrameKeywords(Shared())
    library.time_to_live_should_be({0: (BACK,), 1: (FORTH,)}, 63)
    with pytest.raises(AssertionError, match="FAIL: port 1: time to live 64, expected 63"):
        library.time_to_live_should_be({0: (BACK,), 1: (frame("16.0.0.4", "48.0.0.4", ttl=64),)}, 63)


@pytest.mark.parametrize("frames", [{}, {0: (), 1: (FORTH,)}])
def test_a_port_without_frames_is_no_failure_of_the_router(frames: dict[int, tuple[bytes, ...]]):
    with pytest.raises(TestbedError, match="no frame was captured"):
        FrameKeywords(Shared()).time_to_live_should_be(frames, 63)
