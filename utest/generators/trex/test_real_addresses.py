"""A real TRex asks for its next hops, and works with cards that drop frames for other MAC addresses (TREX_HOME)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.calibrate import _check_bypassed
from lineproof.core.trial import Load
from lineproof.errors import TestbedError
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.next_hops import NextHop, search_limit
from lineproof.generators.trex.port_claims import _handshake
from lineproof.generators.trex.server_facts import call_server
from lineproof.session.session import Session
from lineproof.system.network_namespace import inside
from support import mac_filter as mac_filter_program
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


@contextmanager
def mac_filter(namespace: str, interface: str, mac: str) -> Iterator[None]:
    """Let *interface* receive only frames to *mac*."""
    program = (sys.executable, str(Path(mac_filter_program.__file__)))
    process = subprocess.Popen(
        [*inside(namespace), *program, interface, mac],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        if not process.stdout.readline():
            pytest.skip(f"this kernel has no MAC filter: {process.stderr.read().decode()[-300:]}")
        yield
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
        process.stderr.close()


def test_a_cable_whose_cards_filter_is_measured_whatever_the_server_is_configured_for(tmp_path: Path) -> None:
    with started(tmp_path, WORDS, bypass=True) as session:
        session.generator.connect()
        (namespace,) = session.testbed.facts.namespaces
        links = subprocess.run([*inside(namespace), "ip", "-j", "link"], check=True, capture_output=True).stdout
        names = {row["address"]: row["ifname"] for row in json.loads(links)}
        macs = {port.index: port.card_mac for port in session.generator.ports}
        filters = contextlib.ExitStack()
        for mac in macs.values():
            filters.enter_context(mac_filter(namespace, names[mac], mac))
        with filters:
            # what a trex_cfg.yaml for the run with the router has: that router's addresses
            with generator(session, force=True) as thief:
                for port, handler in thief._handlers.items():
                    words = {"port_id": int(port), "handler": handler}
                    asked(session, "set_l2", **words, dst_mac=f"02:00:00:00:77:0{port}", block=True)
            session.generator.reconnect()
            session.traffic.forget()
            assert {port.destination for port in session.generator.ports} == {"02:00:00:00:77:00", "02:00:00:00:77:01"}
            profile = session.plan.catalogue.profile(["64b"])
            plain = tuple(replace(row, destination="") for row in session.traffic.directions(True))
            session.generator.driver.prepare(profile, plain)
            lost = session.traffic.measure(Load(2000.0), 0.5).directions
            assert [row.forwarded for row in lost] == [0, 0] and all(row.offered for row in lost)
            _check_bypassed(session)
            session.traffic.put(profile, True)
            found = session.traffic.measure(Load(2000.0), 0.5).directions
            assert all(row.offered == row.forwarded > 0 for row in found)
