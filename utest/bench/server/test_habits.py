"""A router behind the embedded server answers for its own addresses; habits: generators/trex/test_addresses.py."""

from __future__ import annotations

import ipaddress

import pytest

from lineproof.generators.trex.next_hops import Question, link_local
from lineproof_bench.server.packet_push import reply_to
from support.server_support import MACS, PEERS

ROUTER6 = "2001:db8::1"


def owns(address: str) -> bool:
    return address in ("100.65.1.1", ROUTER6)


@pytest.mark.parametrize("tags", [(), (7,), (7, 8)])
@pytest.mark.parametrize("address", ["100.65.1.1", ROUTER6])
def test_a_router_answers_whoever_asks_for_its_address(address: str, tags: tuple[int, ...]) -> None:
    question = Question(0, MACS[0], "100.65.1.2", address, tags)
    reply = reply_to(question.frame, PEERS[0], owns)
    assert reply is not None and question.answer(reply) == PEERS[0]


def test_a_router_answers_for_its_link_local_address_and_for_no_others() -> None:
    own = str(ipaddress.IPv6Address(link_local(bytes.fromhex(PEERS[0].replace(":", "")))))
    question = Question(0, MACS[0], "100.65.1.2", own)
    reply = reply_to(question.frame, PEERS[0], owns)
    assert reply is not None and question.answer(reply) == PEERS[0]
    for other in ("100.65.1.9", "2001:db8::9", "fe80::9"):
        assert reply_to(Question(0, MACS[0], "100.65.1.2", other).frame, PEERS[0], owns) is None
