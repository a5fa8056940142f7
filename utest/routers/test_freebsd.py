"""Reading and configuring FreeBSD and pfSense."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.base import Result
from lineproof.routers.configured_output import parse_inet
from lineproof.routers.freebsd import FreeBsd, parse_boottime, parse_netstat
from lineproof_bench.shells.freebsd import interface_table
from lineproof_bench.state import InterfaceState, RouterConfiguration
from support.fake_router import SIDES, router_state, shell_of, simulated

COUNT = st.integers(0, 2**64 - 1)
NETSTAT = """\
Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop
ix0    1500 <Link#1>      00:08:a2:11:22:33 123456789012 1 2 12345678901234 40000 3 24000000 0 4
ix0       - 100.65.1.0/24 100.65.1.1               0     -     -          0        0     -          0     -     -
ix1*   1500 <Link#2>      00:08:a2:11:22:34        0     0     0          0        0     0          0     0     0
lo0   16384 <Link#3>      lo0                     42     0     0       4242       42     0       4242     0     0
enc0   1536 <Link#4>                               7     0     0         70        8     0         80     0     0
"""


def test_netstat_columns_are_found_by_their_titles() -> None:
    found = parse_netstat(NETSTAT)
    assert set(found) == {"ix0", "ix1", "lo0", "enc0"}
    ix0 = found["ix0"]
    assert (ix0.rx_packets, ix0.rx_errors, ix0.rx_drops, ix0.rx_bytes) == (123456789012, 1, 2, 12345678901234)
    assert (ix0.tx_packets, ix0.tx_errors, ix0.tx_bytes, ix0.tx_drops) == (40000, 3, 24000000, 4)
    # a link without an address shifts no columns
    assert (found["enc0"].rx_packets, found["enc0"].tx_bytes) == (7, 80)


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


def test_boottime_and_inet_addresses_are_read() -> None:
    assert parse_boottime("{ sec = 1637000000, usec = 12 } Mon Nov 15 18:13:20 2021", "1637000060\n") == 60.0
    with pytest.raises(TestbedError, match="boottime"):
        parse_boottime("", "1")
    text = "\tinet 100.65.1.1 netmask 0xffffff00 broadcast 100.65.1.255\n\tinet 10.0.0.1/8 broadcast 10.255.255.255\n"
    assert parse_inet(text) == {("100.65.1.1", 24), ("10.0.0.1", 8)}


def test_read_returns_the_counts_of_the_model() -> None:
    machine, _ = simulated("freebsd")
    router = make_router("freebsd", shell_of(machine), ("eth1", "eth2"))
    telemetry = router.read()
    assert 1233 <= telemetry.uptime <= 1235
    eth1 = telemetry.interfaces["eth1"]
    assert (eth1.rx_packets, eth1.rx_bytes, eth1.rx_drops, eth1.tx_drops) == (2**40, 2**46, 11, 13)
    assert telemetry.drops["ip packets not forwardable"] == 12
    facts = router.identify()
    assert (facts["software"], facts["version"]) == ("pfSense", "21.05-SIMULATED")
    assert facts["operating system"].startswith("FreeBSD 12.2")


def test_configure_and_restore_leave_nothing_behind() -> None:
    machine, model = simulated("freebsd")
    before = model.state().configuration
    router = FreeBsd(shell_of(machine), interfaces=("eth1", "eth2"))
    router.configure(SIDES)
    done = model.state().configuration
    assert set(done.up) == {"eth1", "eth2"}
    assert done.addresses == (("eth1", "100.65.1.1/24"), ("eth2", "100.65.2.1/24"))
    assert done.neighbours[1] == ("eth2", "100.65.2.2", "02:00:00:00:02:02")
    assert done.routes == (("16.0.0.0/8", "100.65.1.2"), ("48.0.0.0/8", "100.65.2.2"))
    assert not machine.memory.packet_filter
    assert any("pfctl -d" in note for note in router.notes)
    second = FreeBsd(shell_of(machine))
    second.configure(SIDES)
    assert second.notes == ()
    second.restore()
    assert model.state().configuration == done
    router.restore()
    assert machine.memory.packet_filter
    assert model.state().configuration.routes == before.routes
    assert model.state().configuration.addresses == before.addresses
    assert model.state().configuration.neighbours == before.neighbours


def test_an_existing_address_stays_after_restore() -> None:
    machine, model = simulated("freebsd")
    machine.run("ifconfig eth1 inet 10.9.9.9/24 alias")
    machine.run("ifconfig eth1 inet 100.65.1.1/24 alias")
    router = FreeBsd(shell_of(machine))
    router.configure(SIDES)
    router.restore()
    addresses = model.state().configuration.addresses
    assert set(addresses) == {("eth1", "10.9.9.9/24"), ("eth1", "100.65.1.1/24")}


def test_a_failed_undo_is_named_and_the_rest_is_restored() -> None:
    machine, model = simulated("freebsd")
    whole = shell_of(machine)

    def shell(command: str, limit: float) -> Result:
        if command.startswith("arp -d 100.65.2.2"):
            return Result("", "arp: no", 1, 0.0)
        return whole(command, limit)

    router = FreeBsd(shell)
    router.configure(SIDES)
    with pytest.raises(TestbedError, match=r"could not be restored in full; .* in this order: 'arp -d 100\.65\.2\.2'"):
        router.restore()
    assert model.state().configuration.routes == ()
