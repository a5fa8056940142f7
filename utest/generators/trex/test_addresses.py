"""Ports without a destination address: both clients ask every next hop at once, or name who is silent."""

from __future__ import annotations

import base64
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.trial import Load
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.addresses import Question, find_next_hops
from lineproof.generators.trex.client.service import TRIES, TRY_SECONDS, NextHop, Refusal, search_limit
from lineproof.generators.trex.driver import CALL_LIMIT, TrexGenerator, TrexSettings
from lineproof.simulation import Habit
from lineproof_bench.server.loop import ServerMethods, TrexServer
from lineproof_bench.server.ports import ServerHabits
from lineproof_bench.server.rpc import refused
from support.catalogue import CATALOGUE
from support.patience import wait_until
from support.server_support import PEERS, Client, FakeBackend, serving

BOTH = (Direction(0, 1), Direction(1, 0, swapped=True))
OWN, GATEWAYS = ("100.65.1.2", "100.65.2.2"), ("100.65.1.1", "100.65.2.1")
ROUTER6 = "2001:db8:1::1"

pytestmark = pytest.mark.slow


class RouterBackend(FakeBackend):
    """Behind each port is a router that answers ARP for its own address, and for ROUTER6."""

    def answers(self, port: int, address: str) -> bool | None:
        return address in (GATEWAYS[port], ROUTER6)


@contextmanager
def served(*habits: Habit) -> Iterator[tuple[TrexServer, Client]]:
    """A server whose ports have *habits*, and a client that only looks."""
    rows = list(zip(OWN, GATEWAYS, strict=True))
    with serving(RouterBackend(), ServerHabits(habits, rows)) as server:
        client = Client(server)
        try:
            yield server, client
        finally:
            client.close()


def silent(*ports: int) -> list[Habit]:
    return [Habit(kind="silent gateway", port=port) for port in ports]


UNKNOWN = Habit(kind="gateway unknown at start")


def connected(server: TrexServer, client: str, **more: Any) -> closing[TrexGenerator]:
    return closing(TrexGenerator(TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=client, **more)))


def status(client: Client, port: int) -> dict[str, Any]:
    found: dict[str, Any] = client.call("get_port_status", port_id=port)
    return found


def configured(client: Client, method: str, **values: Any) -> None:
    """Port 0, as somebody has configured it before."""
    client.acquire(0)
    client.on(0, method, **values)
    client.on(0, "release")


def assert_nothing_is_left(client: Client) -> None:
    assert client.call("capture", command="status") == []
    for port in (0, 1):
        found = status(client, port)
        assert not found["service"] and not found["rx_info"]["queue"]["is_active"]


def test_unknown_gateways_are_asked_before_sending(client: str) -> None:
    with served(UNKNOWN) as (server, observer):
        before = status(observer, 0)["attr"]["layer_cfg"]
        assert (before["ipv4"]["state"], before["ether"]["state"]) == ("unresolved", "unconfigured")
        with connected(server, client) as generator:
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH)
            for port in (0, 1):
                layers = status(observer, port)["attr"]["layer_cfg"]
                assert layers["ipv4"] == {"src": OWN[port], "dst": GATEWAYS[port], "state": "resolved"}
                assert layers["ether"]["dst"] == PEERS[port]
            assert_nothing_is_left(observer)
            assert generator.measure(Load(1000), 0.1).directions[0].offered == 100


def test_silent_gateways_are_asked_together_and_named(client: str) -> None:
    """TRex's own ``resolve`` takes 3 s a try, port by port: 36 s for six tries and two ports."""
    with served(*silent(0, 1)) as (server, observer), connected(server, client) as generator:
        began = time.monotonic()
        with pytest.raises(TestbedError) as caught:
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH)
        assert time.monotonic() - began < CALL_LIMIT and search_limit(2) < CALL_LIMIT
        for port in (0, 1):
            named = f"{GATEWAYS[port]} (asked by {OWN[port]} on port {port}; the server's 'default_gw')"
            assert named in str(caught.value)
        assert str(caught.value).count("nobody answers for ") == 1
        assert f"asked {TRIES} times in {TRIES * TRY_SECONDS:g} s; expected " in str(caught.value)
        assert_nothing_is_left(observer)
        assert len(generator.ports) == 2  # the process lives and holds its ports
    with served(UNKNOWN, *silent(1)) as (server, observer), connected(server, client) as generator:
        with pytest.raises(TestbedError, match=r"for 100\.65\.2\.1 \(asked by 100\.65\.2\.2 on port 1; [^)]*\),"):
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH)
        assert status(observer, 0)["attr"]["layer_cfg"]["ether"]["dst"] == PEERS[0]


@pytest.mark.parametrize("how", ["stopped", "terminated", "killed"])
def test_every_end_of_a_search_leaves_service_mode_and_releases_the_ports(client: str, how: str) -> None:
    with served(*silent(0, 1)) as (server, observer), connected(server, client) as generator:
        process = generator._process
        assert process is not None

        def end() -> None:
            wait_until(lambda: status(observer, 1)["service"])
            time.sleep(0.2)
            if how == "stopped":
                process.send('{"id": 9999, "command": "stop"}')
            else:
                os.kill(process.pid, signal.SIGTERM if how == "terminated" else signal.SIGKILL)

        ender = threading.Thread(target=end)
        ender.start()
        began = time.monotonic()
        with pytest.raises(TestbedError):
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH)
        assert time.monotonic() - began < TRIES * TRY_SECONDS  # it does not go on
        ender.join()
        generator.close()
        assert_nothing_is_left(observer)
        assert [status(observer, port)["owner"] for port in (0, 1)] == ["", ""]


def test_what_a_killed_client_left_does_not_keep_the_next_one_out(client: str, runtime: Path) -> None:
    with served() as (server, observer):
        observer.acquire(0)
        observer.on(0, "service", enabled=True)
        observer.call("capture", command="start", limit=10, mode="fixed", rx=[0], tx=[])
        observer.on(0, "set_rx_feature", type="queue", enabled=True, size=10)
        assert "unable to disable service mode" in str(observer.on(0, "service", enabled=False))
        elsewhere = observer.call("capture", command="start", limit=10, mode="fixed", rx=[0, 1], tx=[])["capture_id"]
        observer.on(0, "release")
        observer.call("capture", command="stop", capture_id=elsewhere)
        with connected(server, client, ports=(0,)):
            # a capture of other ports too is somebody else's
            assert [row["id"] for row in observer.call("capture", command="status")] == [elsewhere]
            assert not status(observer, 0)["service"]


@pytest.mark.parametrize("address", [ROUTER6, "fe80::ff:fe00:101"])
def test_an_ipv6_next_hop_is_asked_by_neighbour_discovery(client: str, address: str) -> None:
    with served() as (server, observer):
        hops = {0: NextHop(OWN[0], address, explicit=True)}
        configured(observer, "set_l2", dst_mac="02:00:00:00:99:99")
        with connected(server, client, next_hops=hops) as generator:
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH[:1])
            assert status(observer, 0)["attr"]["layer_cfg"]["ether"]["dst"] == PEERS[0]
            assert_nothing_is_left(observer)


def test_a_server_without_any_destination_asks_what_the_testbed_file_names(client: str) -> None:
    with served() as (server, observer):
        configured(observer, "set_l2", dst_mac="00:00:00:00:00:00")
        with connected(server, client) as generator, pytest.raises(TestbedError, match="'default_gw'"):
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH[:1])
        with connected(server, client, next_hops={0: NextHop(OWN[0], GATEWAYS[0])}) as generator:
            generator.prepare(CATALOGUE.profile(["64b"]), BOTH[:1])
            assert generator.ports[0].destination == PEERS[0]


@pytest.mark.parametrize("wanted", [True, False])
def test_promiscuous_is_as_the_testbed_says_until_the_release(client: str, wanted: bool) -> None:
    with served(Habit(kind="promiscuous off at acquire")) as (server, observer):
        configured(observer, "set_port_attr", attr={"promiscuous": {"enabled": True}})
        with connected(server, client, promiscuous=wanted) as generator:
            for port in (0, 1):
                assert status(observer, port)["attr"]["promiscuous"]["enabled"] is wanted
            assert generator.versions["promiscuous"] == ("2 of 2 ports" if wanted else "0 of 2 ports")
        assert not status(observer, 0)["attr"]["promiscuous"]["enabled"]


def test_a_card_that_cannot_be_promiscuous_is_named(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused("Error applying promiscuous: operation is not supported for this NIC.")
    with served() as (server, observer):
        monkeypatch.setattr(ServerMethods, "_set_promiscuous", Mock(side_effect=error))
        with connected(server, client):
            pass  # nobody asks for it
        with pytest.raises(TestbedError, match=r"port 0 does not become promiscuous; .*'promiscuous: false'"):
            connected(server, client, promiscuous=True)
        assert [status(observer, port)["owner"] for port in (0, 1)] == ["", ""]


PORT, ROUTER, OTHER = "02:00:00:00:00:01", "02:00:00:00:01:01", "02:00:00:00:01:02"
OURS = bytes([100, 65, 1, 2])
ARP = Question(0, PORT, "100.65.1.2", "100.65.1.1")
NEIGHBOUR = Question(0, PORT, "100.65.1.2", "2001:db8:1::1")


def raw(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def arp_reply(mac: str = ROUTER, tags: str = "") -> bytes:
    shown = mac.replace(":", "")
    return raw(PORT) + bytes.fromhex(f"{shown} {tags} 0806 0001 0800 06 04 0002 {shown} 64410101") + raw(PORT) + OURS


IN_VLAN = replace(ARP, tags=(7,))


@pytest.mark.parametrize(
    ("question", "frame", "mac"),
    [
        (ARP, arp_reply(), ROUTER),
        (ARP, arp_reply("ff:ff:ff:ff:ff:ff"), ""),
        (ARP, arp_reply("00:00:00:00:00:00"), ""),
        (ARP, raw(OTHER) + arp_reply()[6:], ""),
        (ARP, arp_reply()[:21] + b"\1" + arp_reply()[22:], ""),  # a request
        (ARP, arp_reply()[:-1] + b"\x09", ""),  # an answer to somebody else
        (ARP, arp_reply()[:40], ""),
        (ARP, arp_reply(tags="8100 0007"), ""),
        (ARP, arp_reply(tags="8100 e000"), ROUTER),  # priority alone (VLAN 0) is no VLAN
        (IN_VLAN, arp_reply(tags="8100 0007"), ROUTER),
        (IN_VLAN, arp_reply(), ""),
    ],
)
def test_only_an_answer_to_this_question_counts(question: Question, frame: bytes, mac: str) -> None:
    assert question.answer(frame) == mac


@given(st.binary(max_size=120), st.sampled_from([ARP, NEIGHBOUR, IN_VLAN]))
def test_no_frame_breaks_the_reading(data: bytes, question: Question) -> None:
    assert question.answer(data) == "" or len(question.answer(data)) == 17
    assert len(question.answer(raw(PORT) + data)) in (0, 17)


def test_two_machines_with_one_address_are_refused() -> None:
    frames = [(0, base64.b64encode(arp_reply(mac)).decode()) for mac in (ROUTER, OTHER)]
    with pytest.raises(Refusal, match=f"{ROUTER} and {OTHER} both answer for 100.65.1.1"):
        find_next_hops(lambda *_, **__: {}, lambda: frames, [ARP], lambda: None)
