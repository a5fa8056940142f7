"""Counters of lost frames of each router, and their roles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.causes import Role, Stage
from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.freebsd_losses import parse_device, parse_expired, parse_ip, sysctl_subtree
from lineproof.routers.linux_losses import parse_ethtool, parse_links, parse_qdiscs
from lineproof.routers.vpp_losses import vpp_causes
from lineproof_bench.shells import vpp_render
from lineproof_bench.shells.machine import Machine
from support.fake_router import FakeModel, first_output, router_state, shell_of, simulated

LINKS = first_output("linux-card.txt", "ip -j -s -s link show")


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


def test_punts_of_vpp_are_lost_and_a_send_that_is_tried_again_is_a_reason() -> None:
    errors = {"xxv1-tx: tx sendto temporary failure": 2}
    causes = vpp_causes({"xxv0": {"punts": 1}, "xxv1": {"tx packets": 90}}, errors)
    assert {cause.label: (cause.count, cause.role, cause.stage) for cause in causes if cause.count} == {
        "punts at xxv0": (1, Role.LOSS, Stage.PASSING),
        "xxv1-tx: tx sendto temporary failure at xxv1": (2, Role.REASON, Stage.LEAVING),
    }


def test_counters_of_freebsds_device_are_those_of_its_driver_and_unit() -> None:
    assert parse_device("dev.ix.00.errors: 4\ndev.ix.0.rx_discarded: 2\n", "ix0") == {"rx_discarded": 2}
    assert [sysctl_subtree(name) for name in ("ix0", "vlan", "em10")] == ["dev.ix.0", None, "dev.em.10"]


@pytest.mark.parametrize("driver", ["dpdk-input", "rdma-input"])
def test_frames_that_vpp_failed_to_send_are_subtracted_from_tx_packets(driver: str) -> None:
    state = router_state("vpp")
    (thread,) = state.threads
    nodes = (replace(thread.nodes[0], name=driver), *thread.nodes[1:])
    state = replace(state, threads=(replace(thread, nodes=nodes),))
    assert f"{7 + 13}" in vpp_render.interfaces(state)
    machine, _ = simulated("vpp")
    machine = Machine(machine.software, lambda: FakeModel(state), machine.memory)
    telemetry = make_router("vpp", shell_of(machine), ("eth1", "eth2")).read()
    assert telemetry.interfaces["eth1"].tx_packets == 7
    assert "Ethernet address" in telemetry.raw["vppctl show hardware-interfaces"]
