"""Pause frames by the names of drivers' counters: DPDK's, Linux's, FreeBSD's."""

from __future__ import annotations

from lineproof.core.pause_names import Pauses, is_pause, is_received_pause, pauses_of

RECEIVED = """
rx_xoff_packets rx_flow_control_xoff_packets rx_flow_control_xoff port.rx_link_xoff rx_pause_ctrl_phy rx_prio0_pause
rx_pause_frames mac_stats.xoff_recvd stats.rx_pause
"""
SENT = "tx_xoff_packets tx_priority3_xoff_packets port.tx_link_xoff tx_xoff.nic tx_global_pause mac_stats.xoff_txd"
OTHERS = """
rx_good_packets rx_xon_packets tx_priority0_xon_to_xoff_packets rx_prio0_pause_duration tx_pause_storm_warning_events
rx_prio3_pause_transition tx_offset rx_crc_errors
"""


def test_pause_frames_are_known_by_every_drivers_names() -> None:
    assert [name for name in RECEIVED.split() if not (is_pause(name) and is_received_pause(name))] == []
    assert [name for name in SENT.split() if not is_pause(name) or is_received_pause(name)] == []
    assert [name for name in OTHERS.split() if is_pause(name)] == []


def test_a_count_under_two_names_counts_once() -> None:
    found = pauses_of({"rx_xoff_packets": 7, "rx_flow_control_xoff_packets": 7, "tx_xoff_packets": 2, "rx_errors": 9})
    assert found == Pauses(7, 2)
    assert found.since(Pauses(5, 2)) == Pauses(2, 0)
    assert Pauses(1, 1).since(found) == Pauses()
