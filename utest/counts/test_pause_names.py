"""Pause frames by the names of drivers' counters: DPDK's, Linux's, FreeBSD's."""

from __future__ import annotations

import pytest

from lineproof.counts.pause_names import Pauses, is_pause, is_received_pause, pauses_of


@pytest.mark.parametrize(
    ("name", "received"),
    [
        ("rx_xoff_packets", True),
        ("tx_xoff_packets", False),
        ("rx_flow_control_xoff_packets", True),
        ("tx_priority3_xoff_packets", False),
        ("rx_flow_control_xoff", True),
        ("port.rx_link_xoff", True),
        ("port.tx_link_xoff", False),
        ("tx_xoff.nic", False),
        ("rx_pause_ctrl_phy", True),
        ("rx_prio0_pause", True),
        ("tx_global_pause", False),
        ("rx_pause_frames", True),
        ("mac_stats.xoff_recvd", True),
        ("mac_stats.xoff_txd", False),
        ("stats.rx_pause", True),
    ],
)
def test_a_pause_frame_is_known_by_every_drivers_name(name: str, received: bool) -> None:
    assert is_pause(name) and is_received_pause(name) == received


@pytest.mark.parametrize(
    "name",
    [
        "rx_good_packets",
        "rx_xon_packets",
        "tx_priority0_xon_to_xoff_packets",
        "rx_prio0_pause_duration",
        "tx_pause_storm_warning_events",
        "rx_prio3_pause_transition",
        "tx_offset",
        "rx_crc_errors",
    ],
)
def test_what_counts_no_pause_frames_is_left_out(name: str) -> None:
    assert not is_pause(name)


def test_a_count_under_two_names_counts_once() -> None:
    found = pauses_of({"rx_xoff_packets": 7, "rx_flow_control_xoff_packets": 7, "tx_xoff_packets": 2, "rx_errors": 9})
    assert found == Pauses(7, 2)
    assert found.since(Pauses(5, 2)) == Pauses(2, 0)
    assert Pauses(1, 1).since(found) == Pauses()
