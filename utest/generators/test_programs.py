"""Programs as generators, without a network: descriptions, frames, reports, and what their counts prove."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lineproof.config import load_config
from lineproof.core.counter_names import PORT_TOTALS
from lineproof.core.traffic.profiles import FrameClass, Profile
from lineproof.core.trial import HOST_COUNTS, Fault, Load, Outcome, Tolerance, read_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import directions_of
from lineproof.generators.programs import driver
from lineproof.generators.programs.description import STOPPED, Description, Ran, filled
from lineproof.generators.programs.driver import ProgramGenerator, Sent, config_line, listed_frames, outcome_of
from lineproof.generators.programs.port import FUNCTIONS, Port, Span
from lineproof.generators.site import GeneratorEndpoint, Place
from lineproof.generators.streams import profile_streams
from lineproof.generators.switch import Switch, SwitchSettings
from lineproof.system.login import ENVIRONMENT
from lineproof.testbed.settings import default_side
from lineproof.units import FCS
from support.catalogue import CATALOGUE
from support.paths import ROOT

OUT, BACK = directions_of((0, 1), bidirectional=True)
OWN, ROUTER = "02:00:00:00:00:01", "02:00:00:00:00:02"
FOLDER = ROOT / "variables" / "programs"
PROGRAMS = {path.stem: load_config(path, Description) for path in FOLDER.glob("*.yaml")}
OUTPUTS = {name: program.examples[0].output for name, program in PROGRAMS.items()}
OUTPUTS["pkt-gen"] = OUTPUTS["pkt-gen"].replace("14880000 packets", "1000 packets")


def frames(words: str) -> list[bytes]:
    return listed_frames(profile_streams(CATALOGUE.profile(words.split()), OUT), OWN, ROUTER)


@given(st.integers(1, 20_000), st.integers(1, 3))
def test_a_rare_size_is_sent_as_often_as_it_should_or_refused(often: int, rare: int) -> None:
    flow = CATALOGUE.profile(["64b", "1-flow"]).flows
    profile = Profile("mix", (FrameClass(64, often), FrameClass(9018, rare)), flow)
    try:
        found = [len(frame) + FCS for frame in listed_frames(profile_streams(profile, OUT), OWN, ROUTER)]
    except ValueError as error:
        assert "no place in a list" in str(error) and often > 1000
    else:
        assert sum(found) / len(found) == pytest.approx(profile.mean_size, rel=1e-6)


@given(st.binary(min_size=14, max_size=200))
def test_a_line_of_trafgen_is_the_frame(frame: bytes) -> None:
    octets, filling, count = re.findall(r"\{ ((?:0x\w\w, )*)fill\(0x(\w\w), (\d+)\) \}", config_line(frame))[0]
    assert bytes.fromhex(octets.replace("0x", "").replace(",", "") + int(count) * filling) == frame


class StandIn(Port):
    """A port without a host: it keeps what it was asked, and its programs print what they print."""

    def __init__(self, index: int, output: str) -> None:
        self.index, self.output, self.mac, self.mtu = index, output, OWN, "1500"
        self.place = Place("p0", router_mac=ROUTER)
        self.said: list[str] = []
        self._counted, self._made, self.listed = 0, {}, {}
        self._own_counts = dict.fromkeys(PORT_TOTALS, 0) if output == OUTPUTS["pkt-gen"] else None

    def order(self, command: str, limit: float = 0.0) -> Callable[[], str]:
        self.said.append(command)
        return lambda: self._answered(command)

    def _answered(self, command: str) -> str:
        self.said += ["answered"] if command.startswith("start send") else []
        return "0\n1" if command == "cores" else "here" if command.startswith("command -v") else ""

    def facts(self) -> dict[str, str]:
        return {"address": OWN, "carrier": "1", "speed": "", "mtu": self.mtu, "driver": ""}

    def await_end(self, name: str, limit: float) -> Ran:
        return Ran(0, self.output.replace("Sent", "Received") if "receive" in name else self.output, 2.0)

    def watched_span(self) -> Span:
        return Span(5.0, 5.0, 6.0, 6.0)

    def counters(self) -> dict[str, int]:
        if self._own_counts is not None:
            return super().counters()
        self._counted = min(2000, self._counted + 1000)
        return dict.fromkeys(PORT_TOTALS, self._counted) | {"ierrors": 0, "oerrors": 0}

    def close(self) -> None: ...


def generator(
    name: str, monkeypatch: pytest.MonkeyPatch, words: str = "64b 1-flow"
) -> tuple[ProgramGenerator, StandIn]:
    """The program *name* with *words* prepared in one direction, on two stand-ins, the first of which is returned."""
    monkeypatch.setattr(driver, "DRAIN", 0.0)
    monkeypatch.setattr(driver, "OPENING", 0.0)
    ports = [StandIn(index, OUTPUTS[name]) for index in (0, 1)]
    endpoint, side = GeneratorEndpoint((0, 1), Mock()), default_side(0).of_router("eth0")
    monkeypatch.setattr(driver, "Port", lambda index, place, counts: ports[index])
    made = ProgramGenerator(
        PROGRAMS[name], endpoint, [side] * 2, tuple(port.place for port in ports), PROGRAMS[name].program
    )
    made.prepare(CATALOGUE.profile(words.split()), (OUT,))
    return made, ports[0]


@pytest.mark.parametrize(
    ("name", "send"),
    [
        ("trafgen", "--dev p0 --conf frames.cfg --jumbo-support --no-sock-mem --cpus 1 --qdisc-path"),
        ("iperf3", "-c 48.0.0.1 -B 16.0.0.1 --cport 1025 -p 12 -u -l 18 -k 1000 -b 144000 --pacing-timer 200"),
        ("pkt-gen", f"-i p0 -f tx -w 0 -n 1000 -R 1000 -l 60 -s 16.0.0.1:1025 -d 48.0.0.1:12 -S {OWN} -D {ROUTER}"),
    ],
)
def test_a_trial_starts_the_program_and_counts_its_frames(
    name: str, send: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, port = generator(name, monkeypatch)
    found = program.measure(Load(1000.0), 1.0)
    started = shlex.split(next(line for line in port.said if line.startswith("start send0")))
    assert started[2] == "2.100" and started[3].startswith(f"{PROGRAMS[name].program} {send}")
    assert [row.offered for row in found.directions] == [1000] and HOST_COUNTS in found.readings
    assert (found.readings["sender_cpu_seconds"], found.readings["sender_cores"]) == (2.0, 1.0)
    changes = [*PROGRAMS[name].prepare, *PROGRAMS[name].pace]
    assert len([line for line in port.said if line.startswith("undo=")]) == len(changes)


def test_two_programs_count_where_no_interface_does(monkeypatch: pytest.MonkeyPatch) -> None:
    program, port = generator("pkt-gen", monkeypatch)
    port.output = port.output.replace("1000 packets 892800000", "1040 packets 62400")
    found = program.measure(Load(1040.0), 1.0)
    (row,) = found.directions
    assert (row.intended, row.offered, row.forwarded, row.offered_bytes) == (1040, 1040, 1000, 66_560)
    assert not found.problems and found.readings["elapsed_uncertainty"] == pytest.approx(0.005)
    assert [heard.frames for heard in program.idle(0.0).values()] == [1040, 1000]


def test_all_programs_are_asked_to_start_before_the_first_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    program, port = generator("trafgen", monkeypatch)
    for other in program._ports.values():
        other.__dict__["said"] = port.said
    program.prepare(CATALOGUE.profile(["64b"]), (OUT, BACK))
    program.measure(Load(1000.0), 1.0)
    said = [line.split()[0] for line in port.said if re.match("start send|answered", line)]
    assert said == ["start", "start", "answered", "answered"]


@pytest.mark.parametrize(
    ("words", "mtu"), [("1522b 1-flow", 1504), ("64b 1-flow", 1500), ("datagram-1500 1-flow", 1500)]
)
def test_a_port_has_the_mtu_of_its_frames(words: str, mtu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, port = generator("iperf3", monkeypatch, words)
    assert f"ip link set p0 mtu {mtu}" in port.said


def test_flows_use_no_more_cores_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    program, port = generator("iperf3", monkeypatch, "64b 3-flows")
    assert program.measure(Load(1000.0), 1.0).readings["sender_cores"] == 2
    (starts,) = (line.split("\n") for line in port.said if line.startswith("start send0"))
    assert [shlex.split(line)[3].split()[:3] for line in starts] == [["taskset", "-c", core] for core in "010"]


def test_values_are_one_word_each_of_the_shell() -> None:
    value = "$(touch /tmp/x); '`"
    assert shlex.split(filled("a {interface} b", {"interface": value})) == ["a", value, "b"]


@pytest.mark.parametrize("name", PROGRAMS)
@given(st.text() | st.sampled_from(["Sent", "Received 5 packets", "Sent -5 packets", "{}"]))
def test_any_other_output_is_one_error(name: str, output: str) -> None:
    program = PROGRAMS[name]
    with pytest.raises(TestbedError, match=f"{program.program} on host gave no report .status 0.: "):
        program.read(Ran(0, output), "host")
    with pytest.raises(TestbedError, match="status 1"):
        program.read(Ran(1, OUTPUTS[name]), "host")
    assert program.read(Ran(STOPPED, OUTPUTS[name]), "host")["frames"] == "1000"


def test_a_failure_is_told_in_the_programs_words() -> None:
    output = OUTPUTS["iperf3"] + '"error": "unable to connect to server"'
    with pytest.raises(TestbedError, match=r"^iperf3 on host: unable to connect to server$"):
        PROGRAMS["iperf3"].read(Ran(1, output), "host")
    assert PROGRAMS["iperf3"].read(Ran(STOPPED, output), "host")["frames"] == "1000"


def shell(script: str) -> str:
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=20).stdout


@pytest.mark.slow
def test_an_interface_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(TestbedError, match=r"there is no interface 'eth7none'; there are: .*lo"):
        Port(0, Place("eth7none"))


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
    free = filled(PROGRAMS["trafgen"].free, {"interface": "eth1"})
    refusal = shell(f"tc() {{ echo {shlex.quote(shown)}; }}; {free}")
    assert ("(pfifo 7: root limit 9p)" in refusal) == ("7:" in shown) == bool(refusal)


def counted(**counts: int) -> dict[int, Mapping[str, int]]:
    """Counters of two ports, as ``p0_opackets=5``; the rest is 0."""
    return {port: {name: counts.get(f"p{port}_{name}", 0) for name in PORT_TOTALS} for port in (0, 1)}


def outcome(sent: Sent, **counts: int) -> Outcome:
    after = counted(**counts)
    return outcome_of(Load(1000.0), 1.0, {OUT: 1000}, {OUT: sent}, counted(), after, after, {})


def certainly_lost(found: Outcome) -> float:
    trial = read_trial(1, found, Tolerance())
    return sum(trial.lost_frames(row).low for row in found.directions)


@pytest.mark.parametrize(
    ("counts", "fault", "says"),
    [
        ({"p0_opackets": 999}, Fault.MISCOUNTED, "port 0 sent 999 frames by its counters, 1000 by its program"),
        ({"p0_opackets": 1001}, Fault.MISCOUNTED, "port 0 sent 1001 frames by its counters, 1000 by its program"),
        # the others are those of every generator: trex/test_outcomes.py
        ({"p1_ipackets": 980, "p1_ierrors": 20}, Fault.GENERATOR, "port 1 received 20 frames with errors"),
    ],
)
def test_counts_that_may_be_wrong_prove_no_loss(counts: dict[str, int], fault: Fault, says: str) -> None:
    found = outcome(Sent(1000, 1.0, 1.0), **{"p0_opackets": 1000, "p1_ipackets": 1000, **counts})
    assert found.problems[0].fault is fault and says in str(found.problems[0])
    assert certainly_lost(found) == 0


def test_frames_that_come_after_the_programs_end_have_waited_in_a_queue() -> None:
    # 100 of them left the port itself after that
    sent, ended = Sent(1000, 1.0, 1.0, span=Span(5.0, 5.0, 6.0, 6.0)), counted(p0_opackets=900, p1_ipackets=700)
    after = counted(p0_opackets=1000, p1_ipackets=1000)
    queued = outcome_of(Load(1000.0), 1.0, {OUT: 1000}, {OUT: sent}, counted(), ended, after, {})
    assert [row.backlog for row in queued.directions] == [200]
    # a program that counts itself is read in the end only
    assert [row.backlog for row in outcome(Sent(1000, 1.0, 1.0), p0_opackets=1000).directions] == [None]


def both(first: Span, second: Span) -> Outcome:
    spans = zip((OUT, BACK), (first, second), strict=True)
    sent = {row: Sent(1000, *span.seconds, span=span) for row, span in spans}
    counts = counted(p0_opackets=1000, p1_ipackets=1000, p1_opackets=1000, p0_ipackets=1000)
    return outcome_of(Load(1000.0), 1.0, dict.fromkeys(sent, 1000), sent, counted(), counts, counts, {})


def test_a_hosts_clock_that_is_ahead_does_not_set_directions_apart() -> None:
    there = Span(105.0, 105.001, 106.0, 106.001).here((99.9, 100.1))
    assert there == pytest.approx((4.9, 5.101, 5.9, 6.101))
    assert both(Span(5.0, 5.001, 6.0, 6.001), there).readings["elapsed_uncertainty"] > 0.09


def switched(sent: int, received: int, tolerance: float = 0.0) -> Outcome:
    """A trial with 1000 frames sent and 900 received, beside a switch that counted so many."""
    before = {"0.in": 5, "0.out": 6, "1.in": 7, "1.out": 8}
    after = {**before, "0.in": 5 + sent, "1.out": 8 + received}
    settings = SwitchSettings(run="true", received="()", sent="()", ports=(), tolerance=tolerance, settle=0)
    switch = Mock(wraps=Switch(settings, (), ENVIRONMENT), settings=settings, read=lambda: after)
    return Switch.checked(switch, outcome(Sent(1000, 1.0, 1.0), p0_opackets=1000, p1_ipackets=900), before)


@pytest.mark.parametrize(
    ("sent", "received", "says"),
    [(990, 900, "frames sent by port 0"), (1000, 850, "frames received by port 1"), (-1, 900, "sent by port 0 fell")],
)
def test_a_switch_that_counts_otherwise_makes_a_trial_inconclusive(sent: int, received: int, says: str) -> None:
    found = switched(sent, received)
    assert says in str(found.problems[0]) and certainly_lost(found) == 0
    assert sent < 0 or not switched(sent, received, tolerance=0.1).problems


# by the program of each switch in the documents: what it prints. As Net-SNMP 5.9 with -Oqn: each object identifier, and
# its value
PRINTED = {
    "snmpget": 'test "$3" = c0mmunity || exit 1\nshift 5\nfor oid; do echo ".$oid 100"; done',
    "ssh": "echo 'InFrames:    300'\necho 'OutFrames:   300'",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PRINTED)
def test_the_documents_show_switches_that_are_read(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "generators.md").read_text("utf-8").partition("## A switch beside it")[2]
    (text,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if f"{program} -" in block)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SWITCH_COMMUNITY", "c0mmunity")
    (tmp_path / program).write_text(f"#!/bin/sh\n{PRINTED[program]}\n")
    (tmp_path / program).chmod(0o755)
    settings = SwitchSettings.model_validate(yaml.safe_load(text)["switch"])
    assert Switch(settings, (0, 1), ENVIRONMENT).read() == {"0.in": 300, "0.out": 300, "1.in": 300, "1.out": 300}


@pytest.mark.slow
def test_what_a_switch_prints_in_place_of_a_count_is_shown() -> None:
    settings = SwitchSettings.model_validate({"run": "echo a=-1", "received": "a=(.*)", "sent": "(1)", "ports": [1]})
    with pytest.raises(TestbedError, match=r"^the switch, of port 1: its command prints 'a=-1'; expected counts at "):
        Switch(settings, (0,), ENVIRONMENT).read()
