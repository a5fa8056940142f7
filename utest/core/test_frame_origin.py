"""Frames that nobody asked for are named by their bytes, and odd sizes by their cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.frame_origin import origin, origins
from lineproof.core.frame_sizes import frame_sizes
from lineproof.core.trial import DirectionCount

SENDER = "02:00:00:00:00:fe"
FROM = bytes.fromhex(SENDER.replace(":", ""))
TO = b"\xff" * 6
IPV4 = bytes.fromhex("45000020000000004011 0000 c0000201 ffffffff")
IPV6 = bytes.fromhex("6000000000083aff") + bytes.fromhex("fe80000000000000000000000000000a") + bytes(16)


def ipv4(protocol: int, inner: bytes = b"") -> bytes:
    return IPV4[:9] + bytes([protocol]) + IPV4[10:] + inner


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (bytes.fromhex("0180c2000000") + FROM + bytes.fromhex("0026424203") + bytes(43), "spanning tree"),
        (bytes.fromhex("0180c200000e") + FROM + b"\x88\xcc" + bytes(40), "LLDP"),
        (bytes.fromhex("0180c2000002") + FROM + b"\x88\x09" + bytes(40), "slow protocol (LACP, OAM)"),
        (bytes.fromhex("01000ccccccc") + FROM + b"\x00\x40" + bytes(60), "Cisco's CDP, VTP or UDLD"),
        (TO + FROM + b"\x08\x06" + bytes(28), "ARP"),
        (TO + FROM + b"\x81\x00\x00\x07\x08\x06" + bytes(28), "ARP"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x00\x44\x00\x43"), "DHCP of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x12\x34\x14\xe9"), "mDNS of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x12\x34\x00\x09"), "UDP to port 9 of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(2), "IGMP of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(99), "IP protocol 99 of 192.0.2.1"),
        (TO + FROM + b"\x86\xdd" + IPV6 + b"\x86", "ICMPv6 (router advertisement) of fe80::a"),
        (TO + FROM + b"\x12\x34" + bytes(46), "type 0x1234"),
    ],
)
def test_a_frame_is_named_with_its_sender(frame: bytes, named: str) -> None:
    assert origin(frame) == f"{named} from {SENDER}"


@given(st.binary(max_size=80))
def test_every_frame_has_a_name(frame: bytes) -> None:
    assert origin(frame).isprintable()


def test_the_most_frequent_comes_first_with_its_period() -> None:
    arp, lldp = TO + FROM + b"\x08\x06" + bytes(28), TO + FROM + b"\x88\xcc" + bytes(40)
    found = origins([lldp, *[arp] * 10], 10.0)
    assert found == f"ARP from {SENDER}, every 1 s; LLDP from {SENDER}, once in 10 s"
    assert origins([arp] * 250, 10.0) == f"ARP from {SENDER}, 25 a second"
    assert origins([], 10.0) == ""


@pytest.mark.parametrize(
    ("forwarded", "size", "explained", "words"),
    [
        (100, 64.0, True, "which lost frames do not explain"),
        (90, 64.0, True, "which lost frames do not explain"),
        (100, 60.0, False, "4 fewer: the generator's card counts no FCS of what it receives (net_ixgbe does not)"),
        (90, 60.0, False, "4 fewer: the generator's card counts no FCS"),
        (100, 61.0, False, "which lost frames do not explain: other frames were counted too"),
        (100, 68.0, False, "which lost frames do not explain: other frames were counted too"),
    ],
)
def test_a_card_that_leaves_the_fcs_out_is_named(forwarded: int, size: float, explained: bool, words: str) -> None:
    counted = DirectionCount(0, 1, 100, 100, forwarded, 6400, int(forwarded * size))
    (found,) = frame_sizes((counted,), 64, 64)
    assert (found.explained, words in str(found)) == (explained, True)
