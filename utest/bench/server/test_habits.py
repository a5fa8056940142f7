"""Habits of hardware on the embedded server: unknown and silent gateways, promiscuous and service mode."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import pytest

from lineproof.generators.trex.next_hops import Question, link_local
from lineproof.simulation.habits import Habit
from lineproof_bench.server.habits import ServerHabits
from lineproof_bench.server.packet_push import reply_to
from support.server_support import MACS, PEERS, Client, FakeBackend, serving

HOPS = [("100.65.1.2", "100.65.1.1"), ("100.65.2.2", "100.65.2.1")]
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gateway unknown at start", "silent gateway"])
def test_a_gateway_is_unknown_on_the_port_that_has_the_habit(kind: Any) -> None:
    with serving(FakeBackend(), ServerHabits([Habit(kind=kind, port=1)], HOPS)) as server:
        client = Client(server)
        layers = [client.call("get_port_status", port_id=port)["attr"]["layer_cfg"] for port in (0, 1)]
        assert [row["ether"]["state"] for row in layers] == ["configured", "unconfigured"]
        assert layers[1]["ipv4"] == {"src": HOPS[1][0], "dst": HOPS[1][1], "state": "unresolved"}
        client.acquire(1)
        # without a MAC address of somebody who has asked, it stays unknown
        client.on(1, "set_l3", src_addr=HOPS[1][0], dst_addr=HOPS[1][1])
        assert client.call("get_port_status", port_id=1)["attr"]["layer_cfg"]["ether"]["state"] == "unconfigured"
        client.close()


@pytest.mark.slow
def test_service_mode_stays_while_a_capture_looks_at_the_port() -> None:
    with serving(FakeBackend()) as server:
        client = Client(server)
        client.acquire(0)
        client.on(0, "service", enabled=True)
        number = client.call("capture", command="start", limit=5, mode="fixed", rx=[0], tx=[])["capture_id"]
        assert "unable to disable service mode" in client.on(0, "service", enabled=False)["specific_err"]
        assert client.call("get_port_status", port_id=0)["service"]
        client.call("capture", command="stop", capture_id=number)
        assert client.on(0, "service", enabled=False) == {}
        client.close()


@pytest.mark.slow
def test_promiscuous_goes_off_at_acquire_where_the_port_has_the_habit() -> None:
    with serving(FakeBackend(), ServerHabits([Habit(kind="promiscuous off at acquire", port=0)])) as server:
        client = Client(server)
        for port in (0, 1):
            client.acquire(port)
            client.on(port, "set_port_attr", attr={"promiscuous": {"enabled": True}})
            client.on(port, "release")
            client.acquire(port)
        found = [client.call("get_port_status", port_id=port)["attr"]["promiscuous"]["enabled"] for port in (0, 1)]
        assert found == [False, True]
        client.close()


@pytest.mark.slow
def test_a_silent_gateway_answers_no_request() -> None:
    with serving(FakeBackend(), ServerHabits([Habit(kind="silent gateway", port=0)], HOPS)) as server:
        client = Client(server)
        for port in (0, 1):
            client.acquire(port)
            number = client.call("capture", command="start", limit=50, mode="fixed", rx=[port], tx=[])["capture_id"]
            question = Question(port, MACS[port], *HOPS[port])
            pushed = [{"binary": base64.b64encode(question.frame).decode()}]
            client.on(port, "push_pkts", pkts=pushed)
            rows = client.call("capture", command="fetch", capture_id=number, pkt_limit=50)["pkts"]
            answers = {question.answer(base64.b64decode(row["binary"])) for row in rows}
            assert (PEERS[port] in answers) is (port == 1)
        client.close()
