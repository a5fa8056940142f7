"""Reading and configuring FreeBSD and pfSense."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.routers.configured_output import parse_inet
from lineproof.routers.freebsd import FreeBsd, parse_boottime, parse_netstat
from lineproof_bench.shells.freebsd import interface_table
from lineproof_bench.state import InterfaceState, RouterConfiguration
from support.fake_router import SIDES, router_state, shell_of, simulated

COUNT = st.integers(0, 2**64 - 1)
NETSTAT = "Name Mtu Network Address Ipkts Ierrs Idrop Ibytes Opkts Oerrs Obytes Coll Drop\n"


INTERFACES = st.builds(
    InterfaceState,
    name=st.sampled_from(["ix0", "vtnet10", "igb1.100"]),
    mac=st.just("02:00:00:00:01:01"),
    speed_bps=st.just(1e10),
    link_up=st.booleans(),
    **dict.fromkeys(("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "no_route", "tx_dropped"), COUNT),
)


@given(INTERFACES, st.booleans())
def test_a_rendered_netstat_table_is_read_back(one: InterfaceState, up: bool) -> None:
    configuration = RouterConfiguration(up=(one.name,) if up else (), addresses=((one.name, "100.65.1.1/24"),))
    state = replace(router_state("freebsd"), interfaces=(one,), configuration=configuration)
    read = parse_netstat(interface_table(state, [one], True, True))[one.name]
    assert (read.rx_packets, read.rx_bytes, read.rx_drops) == (one.rx_packets, one.rx_bytes, one.rx_missed)
    assert (read.tx_packets, read.tx_bytes, read.tx_drops) == (one.tx_packets, one.tx_bytes, one.tx_dropped)


@pytest.mark.parametrize("text", ["", "netstat: illegal option", NETSTAT.replace("Ibytes", "Iwords", 1)])
def test_text_that_is_not_netstat_is_an_error(text: str) -> None:
    with pytest.raises(TestbedError, match="netstat -ibnd"):
        parse_netstat(text)


def test_a_boottime_that_is_not_shown_is_an_error() -> None:
    with pytest.raises(TestbedError, match="boottime"):
        parse_boottime("", "1")


def test_masks_of_both_forms_are_read() -> None:
    text = "\tinet 100.65.1.1 netmask 0xffffff00 broadcast 100.65.1.255\n\tinet 10.0.0.1/8 broadcast 10.255.255.255\n"
    assert parse_inet(text) == {("100.65.1.1", 24), ("10.0.0.1", 8)}


def test_an_existing_address_stays_after_restore() -> None:
    machine, model = simulated("freebsd")
    machine.run("ifconfig eth1 inet 10.9.9.9/24 alias")
    machine.run("ifconfig eth1 inet 100.65.1.1/24 alias")
    router = FreeBsd(shell_of(machine))
    router.configure(SIDES)
    router.restore()
    addresses = model.state().configuration.addresses
    assert set(addresses) == {("eth1", "10.9.9.9/24"), ("eth1", "100.65.1.1/24")}
