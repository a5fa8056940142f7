"""Programs as generators, without a network: descriptions, frames, reports, and what their counts prove."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lineproof.config import load_config
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
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.base import Direction, directions_of
from lineproof.generators.programs import driver, kinds
from lineproof.generators.programs.driver import (
    Description,
    ProgramGenerator,
    config_line,
    filled,
    listed_frames,
    read_report,
)
from lineproof.generators.programs.port import (
    COUNTERS,
    FUNCTIONS,
    STOPPED,
    Place,
    Port,
    Ran,
    Sent,
    Span,
    order_together,
    outcome_of,
)
from lineproof.generators.site import SiteSide
from lineproof.generators.streams import profile_streams
from lineproof.generators.switch.checked import SwitchSettings, switch_reader, with_switch
from lineproof.system.login import ENVIRONMENT
from lineproof.units import FCS
from support.catalogue import CATALOGUE
from support.paths import ROOT

OUT, BACK = directions_of((0, 1), bidirectional=True)
OWN, ROUTER = "02:00:00:00:00:01", "02:00:00:00:00:02"
FOLDER = Path(kinds.__file__).parent
PROGRAMS = {name: load_config(FOLDER / f"{name}.yaml", Description) for name in ("trafgen", "iperf3", "pktgen")}

# FreeBSD's tools/tools/netmap/pkt-gen.c prints it in tx_output(); made-up figures
PKT_GEN = """\
123.456789 main [2552] interface is ix0
125.471235 main_thread [2639] 14.880 Mpps (14.894 Mpkts 7.142 Gbps in 1001000 usec) 512.00 avg_batch 0 min_space
Sent 14880000 packets 892800000 bytes 29063 events 60 bytes each in 1.00 seconds.
Speed: 14.880 Mpps Bandwidth: 7.142 Gbps (raw 9.999 Gbps). Average batch: 512.00 pkts
"""
# iperf 3.12 --json prints them after a warning, with more keys
IPERF3 = """warning: UDP block size
{ "end": { "sum": { "seconds": 0.9, "packets": 7 }, "sum_sent": {
  "start": 0, "end": 1.0, "seconds": 1.25, "bytes": 18000, "jitter_ms": 0, "packets": 1000, "sender": true },
  "sum_received": { "seconds": 1.3, "packets": 8 } } }
"""
TRAFGEN = "   1000 packets to schedule\n\n   1000 packets outgoing\n  60000 bytes outgoing\n"
OUTPUTS = {"trafgen": TRAFGEN, "iperf3": IPERF3, "pktgen": PKT_GEN.replace("14880000 packets", "1000 packets")}


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


# -- descriptions ------------------------------------------------------------------------------------------------------


@dataclass
class StandIn:
    """A port without a host: it keeps what it was asked, and its programs print what they print."""

    index: int
    output: str
    said: list[str] = field(default_factory=list)
    mtu: str = "1500"
    counts: int = 0
    mac: str = OWN
    place: Place = field(default_factory=lambda: Place("p0", router_mac=ROUTER))

    def ask(self, command: str, limit: float = 0.0) -> str:
        self.said.append(command)
        return "0\n1" if command == "cores" else ""

    def order(self, command: str) -> Callable[[], str]:
        self.ask(command)
        return lambda: ""

    def undo(self, command: str) -> None:
        self.said.append(f"undo {command}")

    def facts(self) -> dict[str, str]:
        return {"address": OWN, "carrier": "1", "speed": "", "mtu": self.mtu, "driver": ""}

    def await_end(self, name: str, limit: float) -> Ran:
        return Ran(0, self.output.replace("Sent", "Received") if "receive" in name else self.output, 2.0)

    def watched_span(self) -> Span:
        return Span((5.0, 5.0), (6.0, 6.0))

    def counters(self) -> dict[str, int]:
        self.counts += 1000
        return dict.fromkeys(COUNTERS, self.counts) | {"ierrors": 0, "oerrors": 0}

    def close(self) -> None: ...


def generator(name: str, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> tuple[ProgramGenerator, StandIn]:
    """The program *name* on two stand-ins, and the first of them."""
    monkeypatch.setattr(driver, "DRAIN", 0.0)
    monkeypatch.setattr(driver, "OPENING", 0.0)
    ports: Any = [StandIn(index, OUTPUTS[name], **keys) for index in (0, 1)]
    side = SiteSide("198.18.0.1/24", "198.18.0.2", "16.0.0.0/8")
    site: Any = SimpleNamespace(
        endpoint=SimpleNamespace(ports=(0, 1), places=(), type=PROGRAMS[name].program), sides=(side, side)
    )
    return ProgramGenerator(PROGRAMS[name], site, PROGRAMS[name].program, 0, lambda: tuple(ports)), ports[0]


@pytest.mark.parametrize(
    ("name", "send"),
    [
        ("trafgen", "--dev p0 --conf frames.cfg --jumbo-support --no-sock-mem --cpus 1 --qdisc-path"),
        ("iperf3", "-c 48.0.0.1 -B 16.0.0.1 --cport 1025 -p 12 -u -l 18 -k 1000 -b 144000 --pacing-timer 200"),
        ("pktgen", f"-i p0 -f tx -w 0 -n 1000 -R 1000 -l 60 -s 16.0.0.1:1025 -d 48.0.0.1:12 -S {OWN} -D {ROUTER}"),
    ],
)
def test_a_trial_starts_the_program_and_counts_its_frames(
    name: str, send: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, port = generator(name, monkeypatch)
    program.prepare(CATALOGUE.profile(["64b", "1-flow"]), (OUT,))
    found = program.measure(Load(1000.0), 1.0)
    assert shlex.split(port.said[-1])[:3] == ["start", "send0", "2.100"]
    assert shlex.split(port.said[-1])[3].startswith(f"{PROGRAMS[name].program} {send}")
    assert [row.offered for row in found.directions] == [1000] and HOST_COUNTS in found.readings
    assert (found.readings["sender_cpu_seconds"], found.readings["sender_cores"]) == (2.0, 1.0)
    changes = [*PROGRAMS[name].prepare, *PROGRAMS[name].pace]
    assert len([line for line in port.said if line.startswith("undo ")]) == len(changes)


def test_two_programs_count_where_no_interface_does(monkeypatch: pytest.MonkeyPatch) -> None:
    program, port = generator("pktgen", monkeypatch)
    program.prepare(CATALOGUE.profile(["64b", "1-flow"]), (OUT,))
    port.output = port.output.replace("1000 packets 892800000", "1040 packets 62400")
    found = program.measure(Load(1040.0), 1.0)
    (row,) = found.directions
    assert (row.intended, row.offered, row.forwarded, row.offered_bytes) == (1040, 1040, 1000, 66_560)
    assert not found.problems and found.readings["elapsed_uncertainty"] == pytest.approx(0.005)
    assert [heard.frames for heard in program.idle(0.0).values()] == [1040, 1000]


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("trafgen", "64b 100k-flows", "at most 4096 different frames in turn; expected one that can: trex"),
        ("iperf3", "64b", "sends one flow, or a few; expected one that can: trafgen or trex"),
        ("iperf3", "64b 17-flows", "sends one flow, or a few; expected one that can: trafgen or trex"),
        ("iperf3", "imix 1-flow", "sends no frames of several sizes; expected one that can: trafgen or trex"),
        ("iperf3", "1522b 1-flow", "a datagram of 1476 bytes does not fit the MTU of 1500 bytes of p0"),
        ("pktgen", "64b vlan 1-flow", "sends plain IPv4 and UDP only; expected one that can: trafgen or trex"),
    ],
)
def test_what_it_cannot_send_is_refused_before_any_command(
    name: str, words: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, port = generator(name, monkeypatch)
    del port.said[:]
    with pytest.raises(TestbedError, match=says):
        program.prepare(CATALOGUE.profile(words.split()), (OUT,))
    assert port.said == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_no_program_can_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = generator(name, monkeypatch)
    for call in (program.live, lambda: program.burst(5, 1.0), lambda: program.measure(Load(1.0), 1.0, keep=1)):
        with pytest.raises(
            TestbedError, match=rf"^the generator '{PROGRAMS[name].program}' .*; expected one .*: trex$"
        ):
            call()


def test_flows_use_no_more_cores_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    program, port = generator("iperf3", monkeypatch)
    program.prepare(CATALOGUE.profile(["64b", "3-flows"]), (OUT,))
    assert program.measure(Load(1000.0), 1.0).readings["sender_cores"] == 2
    pinned = [shlex.split(line)[3].split()[:3] for line in port.said[-1].split("\n")]
    assert pinned == [["taskset", "-c", core] for core in "010"]


def test_values_are_one_word_each_of_the_shell() -> None:
    value = "$(touch /tmp/x); '`"
    assert shlex.split(filled("a {interface} b", {"interface": value})) == ["a", value, "b"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("send", "{program} {interfaces}", r"'\{interfaces\}' stands for nothing; expected any of program, interface"),
        ("report", "([0-9]+) packets", r"needs a group '\(\?P<frames>…\)'"),
        ("report", "(", "is not a regular expression"),
        ("cannot", ["latence"], "'latence' is no ability; expected any of mixes, "),
        ("sends", "x", "unknown key 'sends'; did you mean 'send'"),
    ],
)
def test_a_wrong_description_is_refused_with_its_line(key: str, value: Any, says: str, tmp_path: Path) -> None:
    described = yaml.safe_load((FOLDER / "trafgen.yaml").read_text("utf-8"))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**described, key: value}))
    with pytest.raises(ConfigError, match=rf"own\.yaml:\d+: .*{says}"):
        load_config(tmp_path / "own.yaml", Description)


# -- the shell of a port -----------------------------------------------------------------------------------------------


def shell(script: str) -> str:
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=20).stdout


@pytest.mark.slow
def test_an_interface_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(TestbedError, match=r"^there is no interface 'eth7none' on this machine; there are: ") as found:
        Port(0, Place("eth7none"))
    assert "lo" in str(found.value).split("there are: ")[1] and "status" not in str(found.value)


@pytest.mark.slow
def test_a_program_reports_when_it_is_interrupted_and_ends_with_the_others_when_it_is_halted() -> None:
    with contextlib.closing(Port(0, Place("lo"))) as port:
        script = shlex.quote("sh -c 'trap \"echo told; exit 3\" INT; echo ready; while :; do sleep 0.01; done'")
        port.ask(f"start one 20 {script}; start two 2 {script}; start three 20 {script}; await 9 '[ -s one.out ]'")
        port.ask("interrupt one")
        assert [port.await_end("one", 10.0).status, port.await_end("two", 10.0).status] == [3, STOPPED]
        assert port.await_end("two", 1.0).output == "ready\ntold\n"
        port.ask("pid=$(pid_of three); halt; ! kill -0 $pid")
        assert port.ask("ls") == "watching.py\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ("ifconfig.ix1", "ac:1f:6b:00:00:01 1 10000 1500 ix"),
        ("ifconfig-v.ix0.no-carrier", "90:ec:77:00:00:01 0  1500 ix"),
    ],
)
def test_facts_of_freebsds_interfaces(shown: str, says: str) -> None:
    path = ROOT / "utest" / "golden" / "recorded" / "freebsd" / f"{shown}.txt"
    stand_ins = f"uname() {{ echo FreeBSD; }}; ifconfig() {{ cat {shlex.quote(str(path))}; }}"
    assert " ".join(shell(f"interface=ix1\n{FUNCTIONS}\n{stand_ins}\nfacts").split("\n")).rstrip() == says


@pytest.mark.slow
@pytest.mark.parametrize(
    "shown", ["", "qdisc noqueue 0: root refcnt 2 ", "qdisc mq 0: root", "qdisc pfifo 7: root limit 9p"]
)
def test_a_discipline_that_somebody_set_is_not_lost(shown: str) -> None:
    """Queueing disciplines that come back by themselves may be replaced."""
    free = PROGRAMS["trafgen"].free
    assert free
    found = shell(f"tc() {{ echo {shlex.quote(shown)}; }}; {filled(free.run, {'interface': 'eth1'})}")
    assert found.strip() == ("pfifo 7: root limit 9p" if "7:" in shown else "")


def test_all_programs_are_asked_to_start_before_the_first_has_answered() -> None:
    said = list[str]()

    def port(name: str) -> Any:
        return SimpleNamespace(order=lambda command: said.append(f"{name} {command}") or (lambda: said.append(name)))

    order_together([(port("a"), "x"), (port("b"), "y")])
    assert said == ["a x", "b y", "a", "b"]


# -- reports -----------------------------------------------------------------------------------------------------------


def report(name: str, output: str, status: int = 0, receiver: bool = False) -> dict[str, str]:
    program = PROGRAMS[name]
    pattern = program.received if receiver else program.report
    return read_report(program, pattern or "", Ran(status, output), "host")


@pytest.mark.parametrize("status", [0, STOPPED])
def test_the_last_match_is_the_report(status: int) -> None:
    assert report("pktgen", PKT_GEN, status) == {"frames": "14880000", "bytes": "892800000", "seconds": "1.00"}
    assert report("iperf3", IPERF3, status) == {"frames": "1000", "seconds": "1.25"}
    assert report("trafgen", TRAFGEN, status) == {"frames": "1000"}
    assert report("pktgen", "Received nothing.\n", status, receiver=True) == {"frames": "0", "bytes": "0"}


@pytest.mark.parametrize("name", PROGRAMS)
@given(
    st.text()
    | st.sampled_from(["Sent", "Received 5 packets", "Sent -5 packets", PKT_GEN.replace("Sent", "sent"), "{}"])
    | st.just('{"end": {"sum_sent": {"seconds": 1, "packets": null}}}')
)
def test_any_other_output_is_one_error(name: str, output: str) -> None:
    with pytest.raises(TestbedError, match=f"{PROGRAMS[name].program} on host gave no report .status 0.: "):
        report(name, output)
    with pytest.raises(TestbedError, match="status 1"):
        report(name, OUTPUTS[name], 1)


def test_a_failure_is_told_in_the_programs_words() -> None:
    with pytest.raises(TestbedError, match=r"^iperf3 on host: unable to connect to server$"):
        report("iperf3", IPERF3 + '"error": "unable to connect to server"', 1)
    assert report("iperf3", IPERF3 + '"error": "interrupt - the client has terminated"', STOPPED)["frames"] == "1000"


# -- counts ------------------------------------------------------------------------------------------------------------


def counted(**counts: int) -> dict[int, Mapping[str, int]]:
    """Counters of two ports, as ``p0_opackets=5``; the rest is 0."""
    return {port: {name: counts.get(f"p{port}_{name}", 0) for name in COUNTERS} for port in (0, 1)}


def outcome(sent: Sent, **counts: int) -> Outcome:
    after = counted(**counts)
    return outcome_of(Load(1000.0), 1.0, {OUT: 1000}, {OUT: sent}, counted(), after, after)


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


@pytest.mark.parametrize(
    ("sent", "seconds", "says"),
    [
        (700, 1.0, "700 frames in up to 1.000 s, expected 1000"),
        (1000, 1.386, "1000 frames in up to 1.386 s, expected 1386"),
    ],
)
def test_a_program_that_sent_less_or_longer_is_below_the_load(sent: int, seconds: float, says: str) -> None:
    trial = doubted(outcome(Sent(sent, seconds, seconds), p0_opackets=sent, p1_ipackets=sent))
    (problem,) = trial.problems
    assert problem.fault is Fault.UNDER_OFFERED and says in str(problem) and not trial.lost


@pytest.mark.parametrize(
    ("counts", "fault", "says"),
    [
        ({"p0_opackets": 999}, Fault.MISCOUNTED, "port 0 sent 999 frames by its counters, 1000 by its program"),
        ({"p0_opackets": 1001}, Fault.MISCOUNTED, "port 0 sent 1001 frames by its counters, 1000 by its program"),
        ({"p1_opackets": 3}, Fault.OVER_OFFERED, "port 1 sent 3 frames that nobody asked it for"),
        ({"p1_ipackets": -7}, Fault.COUNTERS, "ipackets of generator port 1 fell by 7"),
        ({"p1_ipackets": 980, "p1_ierrors": 20}, Fault.GENERATOR, "port 1 received 20 frames with errors"),
    ],
)
def test_counts_that_may_be_wrong_prove_no_loss(counts: dict[str, int], fault: Fault, says: str) -> None:
    found = outcome(Sent(1000, 1.0, 1.0), **{"p0_opackets": 1000, "p1_ipackets": 1000, **counts})
    assert found.problems[0].fault is fault and says in str(found.problems[0])
    assert certainly_lost(found) == 0


def test_frames_that_control_a_program_are_neither_load_nor_forgiven() -> None:
    found = outcome(Sent(1000, 1.0, 1.0, others=20), p0_opackets=1014, p1_ipackets=1010, p1_opackets=12)
    (row,) = found.directions
    assert (row.offered, row.forwarded, row.lost) == (1000, 996, 4)
    assert not found.problems and found.counters["after"]["0.others"] == 14


def both(first: Span, second: Span) -> Outcome:
    sent = {
        row: Sent(1000, span.least, span.most, span=span)
        for row, span in zip((OUT, BACK), (first, second), strict=True)
    }
    counts = counted(p0_opackets=1000, p1_ipackets=1000, p1_opackets=1000, p0_ipackets=1000)
    return outcome_of(Load(1000.0), 1.0, dict.fromkeys(sent, 1000), sent, counted(), counts, counts)


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
    ("sent", "received", "says"),
    [(990, 900, "frames sent by port 0"), (1000, 850, "frames received by port 1"), (-1, 900, "sent by port 0 fell")],
)
def test_a_switch_that_counts_otherwise_makes_a_trial_inconclusive(sent: int, received: int, says: str) -> None:
    found = switched(sent, received)
    assert says in str(found.problems[0]) and certainly_lost(found) == 0
    assert sent < 0 or not switched(sent, received, tolerance=0.1).problems


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
