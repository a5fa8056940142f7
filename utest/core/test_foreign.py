"""Frames that no trial sent: a router that says hello is judged all the same, and hides no loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.counter_names import group_frames, is_pause, is_received_pause, received_pauses
from lineproof.core.foreign import LATEST, ForeignFrames, Heard, LateFrames, copied_frames, origin, origins
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.telemetry import InterfaceCounters, Telemetry
from lineproof.core.trial import DRAIN, EXAMINED, LATE, DirectionCount, Fault, Load, Outcome, Trial
from lineproof.core.verdict import Verdict
from lineproof.simulation import parse_fault
from support.made_testbeds import router, verdict_on
from support.simulated_session import opened, owed

HELLO = ForeignFrames({0: 2, 1: 2}, 4.0)


def judged(foreign: ForeignFrames, stray: int, lost: int = 0, goal: str = "quick", counted: int = 0) -> Verdict:
    """The verdict where each trial loses *lost* frames and gets *stray* ones, *counted* of them by the card."""

    shown = {"card.1.rx_multicast_packets": float(counted)} if counted else {}
    testbed = router(forwarded=lambda frames: frames - lost + stray, readings={**shown, f"{EXAMINED}1": 1000.0})

    def measure(load: Load, duration: float) -> Outcome:
        return foreign.with_budgets(testbed(load, duration))

    return verdict_on("64b unidirectional ≥ 1 Mpps", measure, goal)


NOBODY, DEAF, HEARD = ForeignFrames(), ForeignFrames.of({1: Heard(0, group_frames=2)}), ForeignFrames.of({1: Heard(2)})
PASS, FAIL, OPEN = Ruling.PASS, Ruling.FAIL, Ruling.INCONCLUSIVE


@pytest.mark.parametrize(
    ("foreign", "stray", "lost", "counted", "ruling"),
    [
        (NOBODY, 1, 0, 0, OPEN),
        (HELLO, 1, 0, 0, PASS),
        # loss counts whatever else came
        (HELLO, 0, 1, 0, FAIL),
        (HELLO, 2, 300, 0, FAIL),
        (NOBODY, 3, 300, 3, FAIL),
        # as many strange frames as lost ones hide these, beyond ten in a million
        *((foreign, stray, lost, stray, OPEN) for foreign in (NOBODY, HELLO) for stray, lost in ((30, 30), (30, 20))),
        (NOBODY, 500, 500, 500, OPEN),
        (NOBODY, 10, 10, 10, PASS),
        # beside all that were sent they hide nothing
        (NOBODY, 30, 0, 30, PASS),
        # a card that counts frames which it drops is no witness
        (DEAF, 0, 0, 40, PASS),
        (HEARD, 0, 0, 40, OPEN),
        # multicast that was sent
        (NOBODY, 0, 0, 10**6, PASS),
    ],
)
def test_strange_frames_may_stand_for_lost_ones(
    foreign: ForeignFrames, stray: int, lost: int, counted: int, ruling: Ruling
) -> None:
    assert judged(foreign, stray, lost, counted=counted).ruling is ruling


@pytest.mark.parametrize(
    ("counters", "count"),
    [
        ({"rx_multicast_packets": 2, "rx_broadcast_packets": 3, "rx_multicast_bytes": 900}, 5),
        ({"rx_q0_multicast_packets": 2, "rx_q1_multicast_packets": 4, "tx_multicast_packets": 7}, 6),
        ({"rx_multicast_packets": 6, "rx_q0_multicast_packets": 2, "rx_q1_multicast_packets": 4}, 6),
        ({"rx_unicast_packets": 9, "rx_good_packets": 9}, 0),
    ],
)
def test_group_frames_by_every_drivers_names(counters: dict[str, float], count: int) -> None:
    assert group_frames(counters) == count


@given(st.floats(0.3, 3.9), st.floats(0, 20), st.floats(0, 20), st.floats(0.5, 60))
def test_the_budget_covers_any_period_that_was_seen(period: float, idle: float, begin: float, seconds: float) -> None:
    def came(since: float, until: float) -> int:
        return int(until / period) - int(since / period)

    seen = ForeignFrames({1: came(idle, idle + 4.0)}, 4.0)
    assert came(begin, begin + seconds) <= seen.budget(1, seconds)


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.floats(0, 10**7), st.integers(0, 24), st.floats(0, 1))
def test_hellos_between_trials_are_no_late_frames_and_no_more_hide_than_came(
    lost: int, forwarded: int, groups: float, hellos: int, pause: float
) -> None:
    late, row = LateFrames(), DirectionCount(0, 1, lost + forwarded, lost + forwarded, forwarded)
    foreign = ForeignFrames({1: 9}, 4.0)
    counters = {"before": {"0.opackets": 5, "1.ipackets": 5 + hellos}, "after": {"0.opackets": 5, "1.ipackets": 5}}
    readings = {"card.1.rx_multicast_packets": groups}
    for number in range(3):
        outcome = Outcome(Load(1e6), 1.0, 1.0, (1 + pause) * number, (row,), readings=readings, counters=counters)
        (shown,) = late.taken_off(foreign.with_budgets(outcome), foreign, 1.0).directions
        assert shown.foreign <= shown.forwarded
    assert not (late.come and lost + forwarded > 100_000)


class LateRouter:
    """Trials of 1 s with 10,000 frames, 1,000 of which come *hold* s late; *probed*: as lost probe frames show."""

    def __init__(self, hold: float, probed: bool) -> None:
        self.hold, self.probed, self.moment, self.begun = hold, probed, 0.0, list[float]()
        self.late = LateFrames()

    def came(self, moment: float) -> int:
        """Return how many frames came by *moment*."""
        shares = [(9000, moment - begun) for begun in self.begun]
        shares += [(1000, moment - begun - self.hold) for begun in self.begun]
        return sum(int(frames * min(1.0, max(0.0, share))) for frames, share in shares)

    def trial(self) -> Outcome:
        started, before = self.moment, self.came(self.moment)
        self.begun.append(started)
        times = [started + 1 + DRAIN * step / 100 for step in range(101)]
        ended = next((time for time in times if self.came(time) - before >= 10_000), times[-1])
        row = DirectionCount(0, 1, 10_000, 10_000, self.came(ended) - before)
        sent = 10_000 * len(self.begun)
        counters = {
            "before": {"0.opackets": sent - 10_000, "1.ipackets": before},
            "after": {"0.opackets": sent, "1.ipackets": self.came(ended)},
        }
        lost = min(100, int(100 * max(0.0, self.hold - DRAIN)))
        probes = (LatencyCount(0, 1, 100, 100 - lost // 10),) if self.probed else ()
        readings = {"drain": ended - started - 1}
        outcome = Outcome(Load(10_000), 1.0, 1.0, started, (row,), readings=readings, latency=probes, counters=counters)
        outcome = self.late.taken_off(outcome, NOBODY, 1.0)
        self.moment = ended
        if self.late.may_follow(outcome):
            self.moment += LATEST - DRAIN
            heard = Heard(self.came(self.moment) - self.came(ended))
            outcome = self.late.looked_for(outcome, {1: heard}, NOBODY)
        self.moment += 0.1
        return outcome


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("hold", [0.0, 1.5, 2.2, 2.5, 3.0, 3.5, 5.0, 8.0])
def test_late_frames_are_lost_and_those_of_an_earlier_trial_hide_none(hold: float, probed: bool) -> None:
    bench, in_time = LateRouter(hold, probed), 9000 + 1000 * min(1.0, max(0.0, 1 + DRAIN - hold))
    trials = [bench.trial() for _ in range(8)]
    rows = [trial.directions[0] for trial in trials]
    hidden = [row.forwarded - row.foreign > in_time + 1 for row in rows]
    # without a look at the first trial, lost probe frames of the second tell
    assert not any(hidden[3:]) and sum(hidden) <= 2 * probed
    late = [trial for trial in trials if trial.readings.get(f"{LATE}1")]
    assert bool(late) is (hold > DRAIN) and all(trial.problems[-1].fault is Fault.LATE for trial in late)


@pytest.mark.slow
def test_hellos_on_the_simulated_testbed(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.cause_fault(parse_fault("foreign frames", start=0))
        session.traffic.check_reachability()
        assert all(1 <= count <= 3 for count in session.traffic.foreign.received.values())
        found = owed(session, "64b bidirectional ≥ 100 kpps each way")
        assert found.ruling is Ruling.PASS, found.message
        assert any(row.foreign for trial in found.trials for row in trial.outcome.directions)


# -- frames that nobody asked for are named by their bytes, and odd sizes by their cause


SENDER = "02:00:00:00:00:fe"
FROM = bytes.fromhex(SENDER.replace(":", ""))
TO = b"\xff" * 6
IPV4 = bytes.fromhex("45000020000000004011 0000 c0000201 ffffffff")
IPV6 = bytes.fromhex("6000000000083aff") + bytes.fromhex("fe80000000000000000000000000000a") + bytes(16)


def ipv4(protocol: int, inner: bytes = b"") -> bytes:
    return IPV4[:9] + bytes([protocol]) + IPV4[10:] + inner


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        (bytes.fromhex("0180c2000000") + FROM + bytes.fromhex("0026424203") + bytes(43), "spanning tree"),
        (bytes.fromhex("0180c200000e") + FROM + b"\x88\xcc" + bytes(40), "LLDP"),
        (bytes.fromhex("0180c2000002") + FROM + b"\x88\x09" + bytes(40), "slow protocol (LACP, OAM)"),
        (bytes.fromhex("01000ccccccc") + FROM + b"\x00\x40" + bytes(60), "Cisco's CDP, VTP or UDLD"),
        (TO + FROM + b"\x81\x00\x00\x07\x08\x06" + bytes(28), "ARP"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x00\x44\x00\x43"), "DHCP of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x12\x34\x14\xe9"), "mDNS of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(17, b"\x12\x34\x00\x09"), "UDP to port 9 of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(2), "IGMP of 192.0.2.1"),
        (TO + FROM + b"\x08\x00" + ipv4(99), "IP protocol 99 of 192.0.2.1"),
        (TO + FROM + b"\x86\xdd" + IPV6 + b"\x86", "ICMPv6 (router advertisement) of fe80::a"),
        (TO + FROM + b"\x12\x34" + bytes(46), "type 0x1234"),
    ],
)
def test_a_frame_is_named_with_its_sender(frame: bytes, named: str) -> None:
    assert origin(frame) == f"{named} from {SENDER}"


@given(st.binary(max_size=80))
def test_every_frame_has_a_name(frame: bytes) -> None:
    assert origin(frame).isprintable()


def test_the_most_frequent_comes_first_with_its_period() -> None:
    arp, lldp = TO + FROM + b"\x08\x06" + bytes(28), TO + FROM + b"\x88\xcc" + bytes(40)
    found = origins([lldp, *[arp] * 10], 10.0)
    assert found == f"ARP from {SENDER}, every 1 s; LLDP from {SENDER}, once in 10 s"
    assert origins([arp] * 250, 10.0) == f"ARP from {SENDER}, 25 a second"
    assert origins([], 10.0) == ""


# -- pause frames by the names of drivers' counters: DPDK's, Linux's, FreeBSD's


RECEIVED = """
rx_xoff_packets rx_flow_control_xoff_packets rx_flow_control_xoff port.rx_link_xoff rx_pause_ctrl_phy rx_prio0_pause
rx_pause_frames mac_stats.xoff_recvd stats.rx_pause
"""
SENT = "tx_xoff_packets tx_priority3_xoff_packets port.tx_link_xoff tx_xoff.nic tx_global_pause mac_stats.xoff_txd"
OTHERS = """
rx_good_packets rx_xon_packets tx_priority0_xon_to_xoff_packets rx_prio0_pause_duration tx_pause_storm_warning_events
rx_prio3_pause_transition tx_offset rx_crc_errors
"""


@pytest.mark.parametrize(
    ("before", "after", "lost", "copies"),
    [
        (0, 900_000, 0, []),
        (2**32 - 7, 799_993, 0, [100_000]),
        # reset: of lost frames nobody knows whether others stood in for more of them
        (5_000_000, 100_000, 0, []),
        (5_000_000, 100_000, 1, [None]),
    ],
)
def test_copies_are_counted_by_what_the_router_sent(
    before: int, after: int, lost: int, copies: list[int | None]
) -> None:
    row = DirectionCount(0, 1, 900_000 + lost, 900_000 + lost, 900_000)
    trials = [Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, (row,)), (), Bounds(1.0, 1.0))]
    old, new = (Telemetry(1.0, {"eth2": InterfaceCounters(tx_packets=count)}) for count in (before, after))
    assert [frames for frames, _ in copied_frames(trials, old, new, {1: "eth2"}).values()] == copies


def test_pause_frames_are_known_by_every_drivers_names_and_count_once_under_two() -> None:
    assert [name for name in RECEIVED.split() if not (is_pause(name) and is_received_pause(name))] == []
    assert [name for name in SENT.split() if not is_pause(name) or is_received_pause(name)] == []
    assert [name for name in OTHERS.split() if is_pause(name)] == []
    counters = {"rx_xoff_packets": 7, "rx_flow_control_xoff_packets": 7, "tx_xoff_packets": 9, "rx_errors": 9}
    assert received_pauses(counters) == 7
