"""A real TRex asks for its next hops (TREX_HOME)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.next_hops import NextHop, search_limit
from lineproof.generators.trex.port_claims import _handshake
from lineproof.generators.trex.server_facts import call_server
from lineproof.session.session import Session
from support.real_trex import REASON, WORDS
from support.simulated_session import started

pytestmark = [pytest.mark.netns, pytest.mark.skipif(REASON != "", reason=REASON)]
OWN, NOBODY = ("100.65.1.2", "100.65.2.2"), ("100.65.1.99", "100.65.2.99")


def generator(session: Session, **more: Any) -> TrexGenerator:
    access = session.testbed.facts.generator
    return TrexGenerator(TrexSettings(access.host, access.sync_port, access.async_port, client=access.client, **more))


def asked(session: Session, method: str, **parameters: Any) -> Any:
    access = session.testbed.facts.generator
    handle = _handshake(access.host, access.sync_port)
    return call_server(access.host, access.sync_port, method, {**handle, **parameters})["result"]


def test_two_silent_gateways_are_named_in_time_and_nothing_is_left(tmp_path: Path) -> None:
    hops = {port: NextHop(OWN[port], NOBODY[port], explicit=True) for port in (0, 1)}
    with started(tmp_path, WORDS, bypass=True) as session:
        with generator(session, next_hops=hops) as found:
            began = time.monotonic()
            with pytest.raises(TestbedError) as caught:
                found.prepare(session.plan.catalogue.profile(["64b"]), session.traffic.directions(True))
            assert time.monotonic() - began < search_limit(2) + 5
            assert all(
                f"{NOBODY[port]} (asked by {OWN[port]} on port {port}; 'next_hop' of the testbed file)"
                in str(caught.value)
                for port in (0, 1)
            )
            for port in (0, 1):
                assert not asked(session, "get_port_status", port_id=port)["service"]
            assert asked(session, "capture", command="status") == []
        assert [asked(session, "get_port_status", port_id=port)["owner"] for port in (0, 1)] == ["", ""]


@pytest.mark.parametrize("kind", ["ARP", "neighbour discovery"])
def test_a_real_router_is_asked(tmp_path: Path, kind: str) -> None:
    with started(tmp_path, WORDS) as session:
        session.generator.connect()
        expected = [port.destination for port in session.generator.ports]
        session.router.connect()
        session.router.configure()
        addresses = ["100.65.1.1", "100.65.2.1"]
        if kind != "ARP":
            addresses = ["2001:db8:1::1", "2001:db8:2::1"]
            for side, address in zip(session.testbed.facts.sides, addresses, strict=True):
                name = side.interface
                ip6 = f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=0 && ip link set dev {name} multicast on"
                done = session.router.shell(f"{ip6} && ip -6 address add {address}/64 dev {name} nodad", 5)
                assert done.status == 0, done
        session.generator.release()
        hops = {port: NextHop(OWN[port], addresses[port], explicit=True) for port in (0, 1)}
        with generator(session, next_hops=hops) as found:
            found.prepare(session.plan.catalogue.profile(["64b"]), session.traffic.directions(True))
            assert [port.destination for port in found.ports] == expected
            for port in (0, 1):
                assert not asked(session, "get_port_status", port_id=port)["service"]
