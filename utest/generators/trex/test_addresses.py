"""Ports without a destination address: the shipped client uses ARP, or names what is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from linerate.counts.trial import Load
from linerate.errors import TestbedError
from linerate.generators.base import Direction
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.traffic.catalogue import Catalogue
from linerate_bench.backend import PortDescription
from linerate_bench.server.loop import TrexServer
from support.paths import VARIABLES
from support.server_support import PEERS, Client, FakeBackend, serving

HOME = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"
CATALOGUE = Catalogue.read(VARIABLES / "profiles")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOME, reason=NEEDED)]


class UnresolvedBackend(FakeBackend):
    """Its neighbour answers ARP requests."""

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        return tuple(replace(port, peer_ipv4="100.65.9.9") for port in super().ports)

    def answers(self, port: int, address: str) -> bool | None:
        return address == f"100.65.{port + 1}.1"


@pytest.fixture
def server() -> Iterator[TrexServer]:
    with serving(UnresolvedBackend()) as found:
        yield found


def layers(client: Client, **set_l3: str) -> None:
    """Leave port 0 with addresses that are not resolved."""
    client.acquire(0)
    client.on(0, "service", enabled=True)
    client.on(0, "set_l3", block=False, **set_l3)
    client.on(0, "service", enabled=False)
    client.on(0, "release")


def settings(server: TrexServer) -> TrexSettings:
    return TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=HOME)


def test_an_unresolved_address_is_resolved_by_arp_before_sending(server: TrexServer) -> None:
    client = Client(server)
    layers(client, src_addr="100.65.1.2", dst_addr="100.65.1.1")
    status = client.call("get_port_status", port_id=0)
    assert status["attr"]["layer_cfg"]["ipv4"]["state"] == "unresolved"
    with TrexGenerator(settings(server)) as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (Direction(0, 1),))
        status = client.call("get_port_status", port_id=0)
        assert status["attr"]["layer_cfg"]["ipv4"]["state"] == "resolved" and not status["service"]
        assert status["attr"]["layer_cfg"]["ether"]["dst"] == PEERS[0]
        assert generator.measure(Load(1000), 0.1).directions[0].offered == 100
    client.close()


def test_an_address_without_an_arp_reply_is_named(server: TrexServer) -> None:
    client = Client(server)
    layers(client, src_addr="100.65.1.2", dst_addr="100.65.1.99")
    with (
        TrexGenerator(settings(server)) as generator,
        pytest.raises(TestbedError, match=r"nobody answers ARP requests for 100\.65\.1\.99 \(asked by 100\.65\.1\.2\)"),
    ):
        generator.prepare(CATALOGUE.profile(["64b"]), (Direction(0, 1),))
    client.close()
