"""Questions for a next hop's MAC address: what is asked, and which frames answer it."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.generators.streams import Stream
from lineproof.generators.trex.client.addresses import find_next_hops
from lineproof.generators.trex.client.service import Refusal
from lineproof.generators.trex.client.stream_objects import program_data
from lineproof.generators.trex.next_hops import Question

OWN, ROUTER, OTHER = "02:00:00:00:00:01", "02:00:00:00:01:01", "02:00:00:00:01:02"
ARP = Question(0, OWN, "100.65.1.2", "100.65.1.1")
NEIGHBOUR = Question(0, OWN, "100.65.1.2", "2001:db8:1::1")


def raw(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def arp_reply(mac: str = ROUTER, tags: bytes = b"") -> bytes:
    body = (
        bytes.fromhex("0806 0001 0800 06 04 0002")
        + raw(mac)
        + bytes([100, 65, 1, 1])
        + raw(OWN)
        + bytes([100, 65, 1, 2])
    )
    return raw(OWN) + raw(mac) + tags + body


def test_an_arp_request_is_as_rfc_826_has_it() -> None:
    assert ARP.frame[:42] == bytes.fromhex(
        "ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 64410102 000000000000 64410101"
    )
    assert len(ARP.frame) == 60


def test_a_solicitation_is_as_rfc_4861_has_it() -> None:
    frame = NEIGHBOUR.frame
    assert frame[:14] == bytes.fromhex("3333ff000001 020000000001 86dd") and frame[20:22] == b"\x3a\xff"
    assert frame[22:38] == bytes.fromhex("fe80000000000000 000000fffe000001")
    pseudo = frame[22:54] + (32).to_bytes(4, "big") + (58).to_bytes(4, "big")
    assert ipv4_checksum(pseudo + frame[54:]) == 0
    assert frame[54:] == b"\x87\0" + frame[56:58] + bytes(4) + bytes.fromhex(
        "20010db8000100000000000000000001 0101"
    ) + raw(OWN)


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        (arp_reply(), ROUTER),
        (arp_reply("ff:ff:ff:ff:ff:ff"), ""),
        (arp_reply("00:00:00:00:00:00"), ""),
        (raw(OTHER) + arp_reply()[6:], ""),
        (arp_reply()[:21] + b"\1" + arp_reply()[22:], ""),  # a request
        (arp_reply()[:-1] + b"\x09", ""),  # an answer to somebody else
        (arp_reply()[:40], ""),
    ],
)
def test_only_an_answer_to_this_question_counts(frame: bytes, found: str) -> None:
    assert ARP.answer(frame) == found


def test_an_answer_counts_with_the_ports_own_tags_only() -> None:
    tagged = bytes.fromhex("8100 0007")
    assert ARP.answer(arp_reply(tags=tagged)) == "" and replace(ARP, tags=(7,)).answer(arp_reply(tags=tagged)) == ROUTER
    assert replace(ARP, tags=(7,)).answer(arp_reply()) == ""
    # priority alone (VLAN 0) is no VLAN, and stays out of the comparison
    assert ARP.answer(arp_reply(tags=bytes.fromhex("8100 e000"))) == ROUTER


@given(st.binary(max_size=120), st.sampled_from([ARP, NEIGHBOUR, replace(ARP, tags=(7,))]))
def test_no_frame_breaks_the_reading(data: bytes, question: Question) -> None:
    assert question.answer(data) == "" or len(question.answer(data)) == 17
    assert len(question.answer(raw(OWN) + data)) in (0, 17)


def test_two_machines_with_one_address_are_refused() -> None:
    rows = [{"port": 0, "binary": base64.b64encode(arp_reply(mac)).decode()} for mac in (ROUTER, OTHER)]

    def ask(method: str, **_: Any) -> Any:
        return {"pkts": rows} if method == "capture" else {}

    with pytest.raises(Refusal, match=f"{ROUTER} and {OTHER} both answer for 100.65.1.1"):
        find_next_hops(ask, 1, [ARP], lambda: None)


def test_streams_of_a_users_file_carry_the_destination_of_their_direction() -> None:
    frame = raw(ROUTER) + raw(OWN) + bytes(48)
    program = {"flags": 5, "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""}, "mode": {}, "vm": {}}
    item = Stream(frame.hex(), 1.0, program=json.dumps(program)).to_json()
    assert program_data(item)["packet"] == program["packet"]
    found = program_data({**item, "destination": OTHER})
    assert base64.b64decode(found["packet"]["binary"]) == raw(OTHER) + frame[6:]
    assert found["flags"] == 3  # source and destination from the packet
