"""Programs as generators, without a network: their frames, their reports, and what their counts prove."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lineproof.core.doubts import AT_THE_LOAD, Conditions, with_doubts
from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.core.traffic.profiles import FrameClass, Profile
from lineproof.core.trial import (
    HOST_COUNTS,
    DirectionCount,
    Fault,
    Load,
    Outcome,
    Tolerance,
    Trial,
    read_trial,
)
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction, directions_of
from lineproof.generators.programs.agent import STOPPED, Agent, AgentPlace, Launch, Ran, start_together
from lineproof.generators.programs.counters import Span, read_facts
from lineproof.generators.programs.driver import ProgramGenerator
from lineproof.generators.programs.iperf3 import Iperf3, read_reports
from lineproof.generators.programs.outcome import Sent, outcome_of
from lineproof.generators.programs.pktgen import read_report as pktgen_report
from lineproof.generators.programs.trafgen import check_discipline, config_line, listed_frames
from lineproof.generators.streams import profile_streams
from lineproof.generators.switch.checked import switch_reader, with_switch
from lineproof.generators.switch.settings import SwitchSettings
from lineproof.system.login import ENVIRONMENT
from lineproof.units import FCS
from support.catalogue import CATALOGUE
from support.paths import ROOT

OUT, BACK = directions_of((0, 1), bidirectional=True)
OWN, ROUTER = "02:00:00:00:00:01", "02:00:00:00:00:02"
NAMES = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors")

# FreeBSD's tools/tools/netmap/pkt-gen.c prints it in tx_output(); made-up figures
PKT_GEN = """\
123.456789 main [2552] interface is ix0
125.471235 main_thread [2639] 14.880 Mpps (14.894 Mpkts 7.142 Gbps in 1001000 usec) 512.00 avg_batch 0 min_space
Sent 14880000 packets 892800000 bytes 29063 events 60 bytes each in 1.00 seconds.
Speed: 14.880 Mpps Bandwidth: 7.142 Gbps (raw 9.999 Gbps). Average batch: 512.00 pkts
"""


def frames(words: str, direction: Direction = OUT) -> list[bytes]:
    return listed_frames(profile_streams(CATALOGUE.profile(words.split()), direction), OWN, ROUTER)


def test_every_flow_is_listed_with_its_checksum() -> None:
    found = frames("64b")
    assert len(found) == 251 and {len(frame) for frame in found} == {60}
    assert {frame[:14].hex() for frame in found} == {"020000000002" + "020000000001" + "0800"}
    assert [frame[29] for frame in found] == [frame[33] for frame in found] == list(range(4, 255))
    assert all(
        ipv4_checksum(frame[14:24] + b"\0\0" + frame[26:34]) == int.from_bytes(frame[24:26], "big") for frame in found
    )


def test_sizes_keep_their_shares_and_are_spread() -> None:
    found = [len(frame) for frame in frames("imix 1-flow")]
    shares = {round(size): share for size, share in ((f.size - 4, s) for f, s in CATALOGUE.profile(["imix"]).shares())}
    assert {size: found.count(size) / len(found) for size in set(found)} == pytest.approx(shares)
    longest = max(found)
    assert not any(first == second == longest for first, second in pairwise(found))


@given(st.integers(1, 20_000), st.integers(1, 3))
def test_a_rare_size_is_sent_as_often_as_it_should_or_refused(often: int, rare: int) -> None:
    flow = CATALOGUE.profile(["64b", "1-flow"]).flows
    profile = Profile("mix", (FrameClass(64, often), FrameClass(9018, rare)), flow)
    try:
        found = [len(frame) + FCS for frame in listed_frames(profile_streams(profile, OUT), OWN, ROUTER)]
    except ValueError as error:
        assert re.search("has no place in a list|too many for a list", str(error)) and often > 1000
    else:
        assert sum(found) / len(found) == pytest.approx(profile.mean_size, rel=1e-6)


@pytest.mark.parametrize("shown", ["", "qdisc noqueue 0: root refcnt 2 \n", "qdisc mq 0: root\n"])
def test_a_discipline_that_comes_back_by_itself_may_be_replaced(shown: str) -> None:
    agent: Any = SimpleNamespace(place=AgentPlace("eth1"), ask=lambda command: shown)
    check_discipline(agent)


def test_a_discipline_that_somebody_set_is_not_lost() -> None:
    agent: Any = SimpleNamespace(place=AgentPlace("eth1"), ask=lambda command: "qdisc pfifo 7: root refcnt 2 limit 9p")
    with pytest.raises(
        TestbedError, match=r"^eth1 on this machine has a queueing discipline of its own \(pfifo 7: root"
    ):
        check_discipline(agent)


def test_too_many_frames_for_a_list_are_refused() -> None:
    with pytest.raises(ValueError, match=r"different frames are too many for a list; expected at most 4096"):
        frames("64b 100k-flows")


@given(st.binary(min_size=14, max_size=200))
def test_a_line_of_trafgen_is_the_frame(frame: bytes) -> None:
    found = bytearray()
    for item in config_line(frame).strip("{} ").replace("fill(", "fill ").split(", "):
        if item.startswith("fill"):
            octet = item.split()[1]
            continue
        if item.endswith(")"):
            found += bytes([int(octet, 16)]) * int(item[:-1])
        else:
            found.append(int(item, 16))
    assert bytes(found) == frame


# -- ports ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_interface_that_is_not_there_is_one_sentence() -> None:
    agent = Agent(AgentPlace("eth7none"), "the generator's port 0")
    try:
        with pytest.raises(
            TestbedError, match=r"^there is no interface 'eth7none' on this machine; there are: "
        ) as found:
            read_facts(agent)
        assert "lo" in str(found.value).split("there are: ")[1] and "status" not in str(found.value)
    finally:
        agent.close()


# -- reports -----------------------------------------------------------------------------------------------------------


def test_pkt_gens_last_line_is_its_report() -> None:
    assert pktgen_report(Ran(0, PKT_GEN, None), "Sent", "host") == (14880000, 892800000, 1.0)
    assert pktgen_report(Ran(STOPPED, PKT_GEN, None), "Sent", "host")[0] == 14880000
    assert pktgen_report(Ran(0, "Received nothing.\n", None), "Received", "host") == (0, 0, 0.0)


@pytest.mark.parametrize("text", ["", "Sent", "Received 5 packets", PKT_GEN.replace("Sent", "sent"), "Sent -5 packets"])
def test_pkt_gen_without_a_report_counts_nothing(text: str) -> None:
    with pytest.raises(TestbedError, match="pkt-gen on host gave no report"):
        pktgen_report(Ran(0, text, None), "Sent", "host")
    with pytest.raises(TestbedError, match="status 1"):
        pktgen_report(Ran(1, PKT_GEN, None), "Sent", "host")


def test_iperf3s_report_may_follow_a_warning() -> None:
    text = 'warning: UDP block size\n{"end": {"sum_sent": {"packets": 500, "seconds": 0.5}}}'
    assert read_reports(text, "host", 0) == [(500, 0.5)]


def test_each_stream_of_iperf3_has_a_report() -> None:
    one = 'warning {\n{"end": {"sum_sent": {"packets": %d, "seconds": 0.5}}}\n'.replace("{\n", "\n", 1)
    assert read_reports(one % 5 + one % 6, "host", 0, 2) == [(5, 0.5), (6, 0.5)]
    with pytest.raises(TestbedError, match="iperf3 on host gave no report"):
        read_reports(one % 5, "host", 0, 2)


@given(
    st.text() | st.just('{"end": {"sum_sent": {"packets": null}}}') | st.just('{"error": "no route"}') | st.just("{}")
)
def test_any_other_answer_of_iperf3_is_one_error(text: str) -> None:
    with pytest.raises(TestbedError, match="iperf3 on host"):
        read_reports(text, "host", 0)


@pytest.mark.parametrize(
    ("words", "mtu", "says"),
    [
        ("64b", "1500", "expected '1-flow' or '16-flows'"),
        ("64b 17-flows", "1500", "expected '1-flow' or '16-flows'"),
        ("imix 1-flow", "1500", "datagrams of one length"),
        ("1514b 1-flow", "1400", "does not fit the MTU of 1400 bytes of p0: it would be sent in fragments"),
        ("1522b 1-flow", "1500", "a datagram of 1476 bytes does not fit the MTU of 1500 bytes"),
    ],
)
def test_iperf3_refuses_what_would_not_be_these_frames(
    words: str, mtu: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lineproof.generators.programs.iperf3.read_facts", lambda agent: {"mtu": mtu})
    port: Any = SimpleNamespace(agent=SimpleNamespace(place=SimpleNamespace(text="p0")))
    site: Any = None
    with pytest.raises(TestbedError, match=says):
        Iperf3({0: port, 1: port}, site, False).check(CATALOGUE.profile(words.split()), (OUT,))


# -- counts ------------------------------------------------------------------------------------------------------------


def counted(**counts: int) -> dict[int, Mapping[str, int]]:
    """Counters of two ports, as ``p0_opackets=5``; the rest is 0."""
    return {port: {name: counts.get(f"p{port}_{name}", 0) for name in NAMES} for port in (0, 1)}


def outcome(sent: Sent, asked: int = 1000, before: dict[int, Mapping[str, int]] | None = None, **after: int) -> Outcome:
    return outcome_of(Load(1000.0), 1.0, {OUT: asked}, {OUT: sent}, before or counted(), counted(**after))


def doubted(found: Outcome) -> Trial:
    """The trial at 1000 frames/s, with what the time and the frames of its sending make doubtful."""
    conditions = Conditions(load_pps=1000.0, resolution=0.001, unseen=1e-5, risk=0.05)
    return with_doubts(read_trial(1, found, Tolerance()), conditions, AT_THE_LOAD)


def certainly_lost(found: Outcome) -> float:
    trial = read_trial(1, found, Tolerance())
    return sum(trial.lost_frames(row).low for row in found.directions)


def test_what_the_interfaces_count_is_offered_and_forwarded() -> None:
    found = outcome(Sent(1000, 0.99, 1.01), p0_opackets=1000, p0_obytes=64000, p1_ipackets=990, p1_ibytes=63360)
    assert found.directions == (DirectionCount(0, 1, 1000, 1000, 990, 64000, 63360),)
    assert (found.problems, found.elapsed) == ((), pytest.approx(1.0))


def test_a_program_that_sent_less_is_not_the_routers_loss() -> None:
    found = outcome(Sent(700, 1.0, 1.0), p0_opackets=700, p1_ipackets=700)
    trial = doubted(found)
    assert [problem.fault for problem in trial.problems] == [Fault.UNDER_OFFERED] and not trial.lost


def test_a_program_that_took_longer_sent_less_than_the_load() -> None:
    found = outcome(Sent(1000, 1.386, 1.386), p0_opackets=1000, p1_ipackets=1000)
    (problem,) = doubted(found).problems
    assert problem.fault is Fault.UNDER_OFFERED
    assert "1000 frames in up to 1.386 s, expected 1386" in str(problem)


@pytest.mark.parametrize("counts", [999, 1001, 0])
def test_a_report_that_differs_from_the_counter_proves_nothing(counts: int) -> None:
    found = outcome(Sent(1000, 1.0, 1.0), p0_opackets=counts, p1_ipackets=1000)
    assert [problem.fault for problem in found.problems] == [Fault.MISCOUNTED]
    assert f"port 0 sent {counts} frames by its counters, 1000 by its program" in str(found.problems[0])
    assert certainly_lost(found) == 0


def test_frames_that_control_a_program_are_neither_load_nor_forgiven() -> None:
    found = outcome(Sent(1000, 1.0, 1.0, others=20), p0_opackets=1014, p1_ipackets=1010, p1_opackets=12)
    (row,) = found.directions
    assert (row.offered, row.forwarded, row.lost) == (1000, 996, 4)
    assert not found.problems


def test_another_program_on_the_second_port_is_named() -> None:
    found = outcome(Sent(1000, 1.0, 1.0), p0_opackets=1000, p1_ipackets=1000, p1_opackets=3)
    assert "port 1 sent 3 frames that nobody asked it for" in str(found.problems[0])


def test_counters_that_fell_prove_nothing() -> None:
    found = outcome(Sent(1000, 1.0, 1.0), before=counted(p1_ipackets=7), p0_opackets=1000)
    assert "ipackets of generator port 1 fell by 7" in str(found.problems[0])


def test_frames_that_the_card_missed_may_be_all_that_is_lost() -> None:
    found = outcome(Sent(1000, 1.0, 1.0), p0_opackets=1000, p1_ipackets=980, p1_ierrors=20)
    assert certainly_lost(found) == 0


def both(first: Span, second: Span) -> Outcome:
    sent = {
        row: Sent(1000, span.least, span.most, span=span)
        for row, span in zip((OUT, BACK), (first, second), strict=True)
    }
    counts = counted(p0_opackets=1000, p1_ipackets=1000, p1_opackets=1000, p0_ipackets=1000)
    return outcome_of(Load(1000.0), 1.0, dict.fromkeys(sent, 1000), sent, counted(), counts)


def test_directions_that_began_apart_did_not_send_together() -> None:
    """A router has less to do while only one of them sends: the time is that from the first frame to the last."""
    found = both(Span((5.0, 5.001), (6.0, 6.001)), Span((5.3, 5.301), (6.3, 6.301)))
    assert found.elapsed == pytest.approx(1.3)
    trial = doubted(found)
    assert {problem.fault for problem in trial.problems} == {Fault.UNDER_OFFERED}
    assert "1000 frames in up to 1.301 s, expected 1301" in str(trial.problems[0])
    together = both(Span((5.0, 5.001), (6.0, 6.001)), Span((5.0005, 5.0015), (6.0, 6.001)))
    assert not doubted(together).problems


def test_a_hosts_clock_that_is_ahead_does_not_set_directions_apart() -> None:
    there = Span((105.0, 105.001), (106.0, 106.001)).here((99.9, 100.1))
    assert (there.first, there.last) == (pytest.approx((4.9, 5.101)), pytest.approx((5.9, 6.101)))
    found = both(Span((5.0, 5.001), (6.0, 6.001)), there)
    assert found.readings["elapsed_uncertainty"] > 0.09


def test_all_programs_are_asked_to_start_before_the_first_has_answered() -> None:
    said = list[str]()

    def agent(name: str) -> Any:
        return SimpleNamespace(
            _order=lambda command: said.append(f"{name} {command}") or name,
            _checked=lambda command, mark, limit: said.append(f"{mark} answered"),
        )

    start_together([Launch(agent("a"), ("x", "y z"), 1.5), Launch(agent("b"), ("x",), 1.5)])
    assert said == ["a run 1.500 x 'y z'", "b run 1.500 x", "a answered", "b answered"]


# -- a switch beside it ------------------------------------------------------------------------------------------------


def switched(sent: int, received: int, tolerance: float = 0.0) -> Outcome:
    found = outcome(Sent(1000, 1.0, 1.0), p0_opackets=1000, p1_ipackets=900)
    before = {"0.in": 5, "0.out": 6, "1.in": 7, "1.out": 8}
    after = {**before, "0.in": 5 + sent, "1.out": 8 + received}
    return with_switch(found, before, after, tolerance)


def test_a_switch_that_counts_the_same_gives_the_label() -> None:
    found = switched(1000, 901)
    assert not found.problems and found.readings[HOST_COUNTS] == 0
    assert found.counters["after"]["switch.0.in"] == 1005


@pytest.mark.parametrize(
    ("sent", "received", "words"), [(990, 900, "sent by port 0"), (1000, 850, "received by port 1")]
)
def test_a_switch_that_counts_otherwise_makes_a_trial_inconclusive(sent: int, received: int, words: str) -> None:
    found = switched(sent, received)
    (problem,) = found.problems
    assert problem.fault is Fault.MISCOUNTED and words in str(problem)
    assert certainly_lost(found) == 0
    assert not switched(sent, received, tolerance=0.1).problems


def test_a_switch_whose_counter_fell_proves_nothing() -> None:
    assert "fell" in str(switched(-1, 900).problems[0])


@pytest.mark.slow
def test_the_documents_show_a_switch_that_is_read_by_snmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "generators.md").read_text("utf-8")
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "snmpget" in block)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SWITCH_COMMUNITY", "c0mmunity")
    # as Net-SNMP 5.9 prints it with -Oqn: each object identifier, and its value
    stand_in = tmp_path / "snmpget"
    stand_in.write_text('#!/bin/sh\ntest "$3" = c0mmunity || exit 1\nshift 5\nfor oid; do echo ".$oid 100"; done\n')
    stand_in.chmod(0o755)
    settings = SwitchSettings.model_validate(yaml.safe_load(text)["switch"])
    counts = switch_reader(settings, (0, 1), ENVIRONMENT)()
    assert counts == {"0.in": 300, "0.out": 300, "1.in": 300, "1.out": 300}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "expected one of 'pattern' and 'json_paths'"),
        ({"json_paths": {"received": "a", "sent": "a["}}, "is not a path"),
        ({"pattern": {"received": "a", "sent": "(a)"}}, "needs a group"),
        ({"json_paths": {"received": "a", "sent": "b"}, "address": "192.0.2.1"}, "belong together"),
    ],
)
def test_wrong_keys_of_a_switch_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SwitchSettings.model_validate({"run": "x", "ports": [1, 2], **keys})


@pytest.mark.slow
def test_what_a_switch_prints_in_place_of_a_count_is_shown() -> None:
    places = {"received": "a", "sent": "b"}
    settings = SwitchSettings.model_validate({"run": "echo '{\"a\": -1}'", "json_paths": places, "ports": [1]})
    with pytest.raises(TestbedError, match=r"^the switch, of port 1: '-1' is no count of frames \('received'\)$"):
        switch_reader(settings, (0,), ENVIRONMENT)()


def test_what_a_program_cannot_is_one_sentence() -> None:
    program: Any = SimpleNamespace(name="trafgen")
    generator = ProgramGenerator(program, (), {}, lambda: (program, ()))
    for call in (generator.live, lambda: generator.burst(5, 1.0), lambda: generator.capture(Load(1.0), 1.0, 1)):
        with pytest.raises(TestbedError, match=r"^the generator 'trafgen' .*; expected TRex for it$"):
            call()


@pytest.mark.parametrize(("flows", "cores", "used"), [(1, (), 1), (16, (0, 1), 2), (2, (0, 1, 2), 2)])
def test_streams_of_iperf3_use_no_more_cores_than_there_are(
    monkeypatch: pytest.MonkeyPatch, flows: int, cores: tuple[int, ...], used: int
) -> None:
    report = '{"end": {"sum_sent": {"packets": 100, "seconds": 1.0}}}'
    agent = SimpleNamespace(await_end=lambda limit: Ran(0, report * flows, 2.0), place=SimpleNamespace(text="host"))
    port: Any = SimpleNamespace(index=0, agent=agent)
    site: Any = None
    iperf3 = Iperf3({0: port}, site, passes_by=True)
    iperf3._flows, iperf3._cores = {0: (None,) * flows}, {0: cores}  # type: ignore[dict-item]
    span = Span((5.0, 5.0), (6.0, 6.0))
    monkeypatch.setattr("lineproof.generators.programs.iperf3.watched_span", lambda agent: span)
    found = iperf3.finish(OUT, 5.0)
    assert (found.frames, found.cores) == (100 * flows, used)
