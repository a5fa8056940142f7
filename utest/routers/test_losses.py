"""Counters of lost frames of each router, and their roles."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.counts.causes import Cause, Role, Stage
from lineproof.counts.telemetry import InterfaceCounters
from lineproof.errors import TestbedError
from lineproof.routers import RouterKind, make_router
from lineproof.routers.freebsd_losses import parse_device, parse_expired, parse_ip, sysctl_subtree
from lineproof.routers.linux_losses import (
    interface_counters,
    linux_causes,
    parse_ethtool,
    parse_links,
    parse_qdiscs,
)
from lineproof.routers.vpp_losses import vpp_causes
from lineproof.routers.vpp_output import parse_errors, parse_interface_rows
from lineproof_bench.shells import vpp_render
from lineproof_bench.shells.machine import Machine
from support.fake_router import FakeModel, router_state, sample, shell_of, simulated

LINKS = """\
[{"ifindex":2,"link_index":7,"ifname":"eth0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"mq",\
"operstate":"UP","linkmode":"DEFAULT","group":"default","txqlen":1000,"link_type":"ether","address":"02:00:00:00:01:01",\
"broadcast":"ff:ff:ff:ff:ff:ff","stats64":{"rx":{"bytes":18446744073709551615,"packets":2896911,"errors":1,"dropped":2,\
"over_errors":0,"multicast":0,"length_errors":0,"crc_errors":1,"frame_errors":0,"fifo_errors":0,"missed_errors":1234567},\
"tx":{"bytes":598638672,"packets":2896900,"errors":3,"dropped":4,"carrier_errors":0,"collisions":0,"aborted_errors":0,\
"fifo_errors":0,"window_errors":0,"heartbeat_errors":0,"carrier_changes":2}}}]
"""
"""The format of iproute2 6.1; synthetic figures."""

QDISCS = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc mq 0: dev eth0 root
 Sent 9000 bytes 90 pkt (dropped 77, overlimits 0 requeues 1)
 backlog 0b 0p requeues 1
qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024
 Sent 9000 bytes 90 pkt (dropped 77, overlimits 0 requeues 1)
 backlog 0b 0p requeues 1
  maxpacket 0 drop_overlimit 0 new_flow_count 0
"""
ETHTOOL = """\
NIC statistics:
     rx_packets: 2896911
     rx_no_dma_resources: 12
     rx_queue_0_drops: 5
     port.rx_dropped: 6
     tx_bytes: 77
     tx_timeout_count: 0
"""


def named(causes: Iterable[Cause]) -> dict[str, tuple[int, Role, Stage]]:
    return {cause.label: (cause.count, cause.role, cause.stage) for cause in causes if cause.count}


def test_ip_separates_missed_and_dropped() -> None:
    link = parse_links(LINKS)["eth0"]
    assert (link["rx_missed"], link["rx_dropped"], link["rx_errors"]) == (1234567, 2, 1)
    counters = InterfaceCounters(2896911, 2**64 - 1, 2896900, 598638672, 1234569, 4, 1, 3)
    assert interface_counters(link) == counters


@pytest.mark.parametrize(
    "text", ["", 'Option "-j" is unknown', "[{}]", LINKS.replace("missed", "x"), LINKS.replace(":3,", ":-3,")]
)
def test_what_is_not_the_json_of_ip_is_an_error(text: str) -> None:
    with pytest.raises(TestbedError, match="'ip -j -s -s link show' was not understood"):
        parse_links(text)


@given(st.text(max_size=200))
def test_unrelated_text_gives_no_counters(text: str) -> None:
    for parse in (parse_qdiscs, parse_ethtool, parse_ip):
        assert not parse(text)
    assert parse_expired(text) == 0 and parse_device(text, "ix0") == {}


@pytest.mark.slow
def test_ip_of_this_machine_is_read() -> None:
    ip = shutil.which("ip")
    if ip is None:
        pytest.skip("this machine has no 'ip'")
    text = subprocess.run([ip, "-j", "-s", "-s", "link", "show"], capture_output=True, text=True, check=True)
    assert interface_counters(parse_links(text.stdout)["lo"]).rx_errors == 0


def test_linux_counts_each_lost_frame_once() -> None:
    found = linux_causes(
        parse_links(LINKS),
        {"InHdrErrors": 9, "InNoRoutes": 8, "OutDiscards": 4},
        2,
        parse_qdiscs(QDISCS),
        {"eth0": parse_ethtool(ETHTOOL)},
    )
    assert named(found) == {
        "rx_missed at eth0": (1234567, Role.LOSS, Stage.ARRIVING),
        "rx_errors at eth0": (1, Role.LOSS, Stage.ARRIVING),
        "rx_dropped at eth0": (2, Role.LOSS, Stage.PASSING),
        "softnet backlog full": (2, Role.REASON, Stage.PASSING),
        "ip InHdrErrors": (9, Role.LOSS, Stage.PASSING),
        "ip InNoRoutes": (8, Role.LOSS, Stage.PASSING),
        "ip OutDiscards": (4, Role.OVERLAPPING, Stage.LEAVING),
        "tx_dropped at eth0": (4, Role.LOSS, Stage.LEAVING),
        "tx_errors at eth0": (3, Role.LOSS, Stage.LEAVING),
        "qdisc drops at eth0": (77, Role.LOSS, Stage.LEAVING),
        "ethtool rx_no_dma_resources at eth0": (12, Role.REASON, Stage.ARRIVING),
        "ethtool rx_queue_0_drops at eth0": (5, Role.REASON, Stage.ARRIVING),
        "ethtool port.rx_dropped at eth0": (6, Role.REASON, Stage.ARRIVING),
    }


def test_vpp_counts_each_lost_frame_once() -> None:
    rows = {
        "xxv0": {"rx packets": 100, "rx-miss": 11, "rx-no-buf": 3, "drops": 12, "punts": 1},
        "xxv1": {"tx packets": 90, "tx-error": 13},
    }
    errors = {
        "null-node: blackholed packets": 12,
        "xxv1-tx: Tx packet drops (dpdk tx failure)": 13,
        "xxv1-tx: tx sendto temporary failure": 2,
        "ip4-icmp-error: hop limit exceeded response sent": 5,
    }
    assert named(vpp_causes(rows, errors)) == {
        "rx-miss at xxv0": (11, Role.LOSS, Stage.ARRIVING),
        "rx-no-buf at xxv0": (3, Role.REASON, Stage.ARRIVING),
        "drops at xxv0": (12, Role.LOSS, Stage.PASSING),
        "punts at xxv0": (1, Role.LOSS, Stage.PASSING),
        "null-node: blackholed packets": (12, Role.REASON, Stage.PASSING),
        "ip4-icmp-error: hop limit exceeded response sent": (5, Role.LOSS, Stage.PASSING),
        "tx-error at xxv1": (13, Role.LOSS, Stage.LEAVING),
        "xxv1-tx: Tx packet drops (dpdk tx failure) at xxv1": (13, Role.OVERLAPPING, Stage.LEAVING),
        "xxv1-tx: tx sendto temporary failure at xxv1": (2, Role.REASON, Stage.LEAVING),
    }


def test_a_recorded_vpp_without_drops_has_no_causes() -> None:
    for folder in ("w0_polling_max", "w1_polling_max"):
        rows = parse_interface_rows(sample(f"vpp/{folder}/show_interface.txt"))
        assert named(vpp_causes(rows, parse_errors(sample(f"vpp/{folder}/show_errors.txt")))) == {}


def test_a_frame_answered_with_an_icmp_error_counts_as_lost() -> None:
    head = sample("vpp/w1_polling_max/show_errors.txt").splitlines()[0]
    rows = [
        "        12           ip4-icmp-error           hop limit exceeded response sent      info   ",
        "        13             arp-reply                      ARP replies sent              info   ",
    ]
    assert parse_errors("\n".join([head, *rows]) + "\n") == {"ip4-icmp-error: hop limit exceeded response sent": 12}


@pytest.mark.parametrize("driver", ["dpdk-input", "rdma-input"])
def test_frames_that_vpp_failed_to_send_are_subtracted_from_tx_packets(driver: str) -> None:
    state = router_state("vpp")
    (thread,) = state.threads
    nodes = (replace(thread.nodes[0], name=driver), *thread.nodes[1:])
    state = replace(state, threads=(replace(thread, nodes=nodes),))
    assert f"{7 + 13}" in vpp_render.interfaces(state)
    machine, _ = simulated("vpp")
    machine = Machine(machine.software, FakeModel(state), machine.memory)
    telemetry = make_router("vpp", shell_of(machine), ("eth1", "eth2")).read()
    assert telemetry.interfaces["eth1"].tx_packets == 7
    assert "Ethernet address" in telemetry.raw["vppctl show hardware-interfaces"]


IP = """\
ip:
\t1000 total packets received
\t7 packets not forwardable
\t4 output packets dropped due to no bufs, etc.
\t5 output packets discarded due to no route
"""
ICMP = """\
icmp:
\t9 calls to icmp_error
\tOutput histogram:
\t\techo reply: 5
\t\ttime exceeded: 3
\t0 messages with bad code fields
\tInput histogram:
\t\ttime exceeded: 8
"""
SYSCTL = """\
dev.ix.0.mac_stats.rx_missed_packets: 12
dev.ix.0.mac_stats.good_pkts_rcvd: 99
dev.ix.0.queue0.rx_discarded: 2
dev.ix.0.%desc: Intel(R) X553
dev.ix.00.errors: 4
"""


def test_freebsd_loss_counters_are_read() -> None:
    assert parse_ip(IP) == {
        "packets not forwardable": 7,
        "output packets dropped due to no bufs, etc": 4,
        "output packets discarded due to no route": 5,
    }
    assert parse_expired(ICMP) == 3
    assert parse_device(SYSCTL, "ix0") == {"mac_stats.rx_missed_packets": 12, "queue0.rx_discarded": 2}
    assert (
        sysctl_subtree("ix0") == "dev.ix.0" and sysctl_subtree("vlan") is None and sysctl_subtree("em10") == "dev.em.10"
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("vpp", {"rx-miss at eth1": 11, "drops at eth1": 12, "tx-error at eth1": 13}),
        ("linux", {"rx_missed at eth1": 11, "ip InNoRoutes": 12, "tx_dropped at eth1": 13}),
        ("freebsd", {"Idrop at eth1": 11, "ip packets not forwardable": 12, "Drop at eth1": 13}),
    ],
)
def test_each_simulated_router_reports_its_causes(kind: RouterKind, expected: dict[str, int]) -> None:
    machine, _ = simulated(kind)
    telemetry = make_router(kind, shell_of(machine), ("eth1", "eth2")).read()
    assert {place: row[0] for place, row in named(telemetry.causes).items() if row[1] is Role.LOSS} == expected
