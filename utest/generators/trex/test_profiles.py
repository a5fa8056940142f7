"""Profiles in TRex's own format: loaded in their own process in each common style, sent, and refused."""

from __future__ import annotations

import base64
import contextlib
import json
import struct
import time
from pathlib import Path

import psutil
import pytest

from lineproof.core.sentence import parse
from lineproof.core.traffic.profiles import Traffic
from lineproof.core.trial import Load, read_trial
from lineproof.errors import ConfigError, SentenceError
from lineproof.generators.base import Direction
from lineproof.generators.trex import clients as copies
from lineproof.generators.trex import profile_loader
from lineproof.generators.trex.client.shipped import CLIENT_FILE, CLIENT_PATH
from lineproof.generators.trex.driver import TrexGenerator
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import real_trex, robot_run
from support.patience import wait_until
from support.server_support import FakeBackend
from support.simulated_session import started
from support.trex_profile_support import ARGPARSE, HEAD, HOME, LATENCY, Own, ours, project_with

pytestmark = pytest.mark.slow


BOTH = "{size: 128, both: true}"


@pytest.mark.parametrize(
    ("signature", "body", "tunables"),
    [
        ("self, direction=0, **kwargs", "return [stream(kwargs.get('size', 64), direction)]", "{size: 128}"),
        ("self, direction=0, port_id=0, size=64", "return [stream(size, port_id)]", "{size: 128}"),
        ("self, tunables, **kwargs", ARGPARSE, "[--size, 128]"),
        ("self, tunables, **kwargs", ARGPARSE, BOTH),
        ("self, direction, tunables, **kwargs", ARGPARSE.replace("kwargs.get('direction', ", "("), BOTH),
    ],
    ids=["kwargs", "no kwargs", "arguments", "tunables", "direction, tunables"],
)
def test_every_signature_of_get_streams_gets_direction_and_tunables(
    own: Own, signature: str, body: str, tunables: str, client: str
) -> None:
    found = own.profile(ours(body, signature), tunables, client)
    assert [(frame.size, frame.weight) for frame in found.frames] == [(128, 1.0)]
    assert found.has_own_addresses and not found.one_direction_reason
    assert found.program is not None
    ahead, back = (direction[0].frame[26:34] for direction in found.program.directions)
    assert ahead == bytes([16, 0, 0, 1, 48, 0, 0, 1]) and back == ahead[4:] + ahead[:4]


NAMED = """\
vm = STLScVmRaw([
    STLVmFlowVar(name="s", min_value="16.0.0.1", max_value="16.0.0.100", size=4, op="inc"),
    STLVmWrFlowVar(fv_name="s", pkt_offset="IP.src"),
    STLVmFlowVar(name="p", min_value=1025, max_value=1029, size=2, op="inc"),
    STLVmWrFlowVar(fv_name="p", pkt_offset="UDP.sport"),
    STLVmWrFlowVar(fv_name="p", pkt_offset="UDP.sport", offset_fixup=2),
    STLVmFixIpv4(offset="IP"),
])
return [stream(size, direction, STLTXCont(pps=pps), vm, isg=isg) for size, pps, isg in MIX]
"""


def test_named_offsets_are_those_of_the_packet(own: Own, client: str) -> None:
    mix = "MIX = [(64, 28, 0), (594, 16, 0.1), (1518, 4, 0.2)]\n\n"
    spelt = "trex_stl_lib.api" if client == "pypi" else "trex.stl.api"
    found = own.profile(ours(NAMED, head=HEAD.replace("trex_stl_lib.api", spelt) + mix), client=client)
    assert found.mean_size == pytest.approx((28 * 64 + 16 * 594 + 4 * 1518) / 48)
    assert found.program is not None
    data = [json.loads(item.text) for item in found.program.directions[0]]
    for item in data:
        written = [row for row in item["vm"]["instructions"] if row["type"] in ("write_flow_var", "fix_checksum_ipv4")]
        assert [row["pkt_offset"] for row in written] == [26, 34, 36, 14]
    assert [round(item["mode"]["rate"]["value"] * 48) for item in data] == [28, 16, 4]
    assert [item["isg"] for item in data] == [0, 0.1, 0.2]


LAYERS = """\
packet = Ether() / Dot1Q(vlan=7) / IP() / UDP() / VXLAN() / Ether() / IP() / TCP(options=[("MSS", 1460)]) / "xxxx"
vm = STLScVmRaw([
    STLVmFlowVar(name="a", min_value=1, max_value=9, size=2, op="inc"),
    *(STLVmWrFlowVar(fv_name="a", pkt_offset=name)
      for name in ("802|1Q.vlan", "IP.src", "IP:1.dst", "TCP.window", "VXLAN.vni", "Raw.load", "IP:1.ttl")),
])
return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont())
"""


def test_named_offsets_after_tags_and_tunnels(own: Own, client: str) -> None:
    found = own.profile(ours(LAYERS, head=HEAD + "from scapy.layers.vxlan import VXLAN\n\n"), client=client)
    assert found.program is not None
    (item,) = found.program.directions[0]
    places = [row["pkt_offset"] for row in json.loads(item.text)["vm"]["instructions"][1:]]
    # tag at 14, IP at 18, UDP at 38, VXLAN at 46, Ethernet at 54, IP at 68, TCP at 88 with 4 bytes of options
    assert places == [14, 18 + 12, 68 + 16, 88 + 14, 46 + 4, 112, 68 + 8]
    # default addresses are TRex's, not this machine's
    assert item.frame[:12].hex() == "000000010000000000020000"
    assert struct.unpack("!4B", item.frame[30:34]) == (16, 0, 0, 1)


def test_a_file_is_loaded_again_only_after_a_change(own: Own) -> None:
    catalogue = own.read(ours("open(__file__ + '.seen', 'a').write('x')\nreturn stream(64, direction)"))
    catalogue.profile(["mine"])
    assert catalogue.profile(["mine"]).mean_size == 64
    assert (own.traffic / "mine.py.seen").read_text() == "xx"  # once for each direction
    (own.traffic / "mine.py").write_text(ours("return stream(128, direction)"))
    assert catalogue.profile(["mine"]).mean_size == 128
    assert not list(own.traffic.glob("__pycache__"))


def test_the_client_of_trex_home_or_the_latest_copy_loads_profiles(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path | None] = []

    def ask(path: Path, entry: object, folder: Path | None, *_: object) -> dict[str, object]:
        asked.append(folder)
        raise ConfigError("enough", path)

    monkeypatch.setattr("lineproof.generators.trex.profile_loader.run_profile", ask)
    kept, home = copies.copies_folder() / "trex-v9.99", own.folder / "home"
    kept.mkdir(parents=True)
    (home / CLIENT_PATH / CLIENT_FILE).parent.mkdir(parents=True)
    (home / CLIENT_PATH / CLIENT_FILE).touch()
    for folder in ("", str(home)):
        monkeypatch.setenv("TREX_HOME", folder)
        with pytest.raises(ConfigError, match="enough"):
            own.profile(ours("return stream(64, direction)"))
    assert asked == [kept, home]


AHEAD, BACK = Direction(0, 1), Direction(1, 0, swapped=True)
TWO = "MIX = [(64, 3, 0), (1518, 1, 0.1)]\n\n"


def test_the_load_is_shared_by_all_streams_in_their_ratio(
    own: Own, sender: TrexGenerator, backend: FakeBackend
) -> None:
    sender.prepare(own.profile(ours(NAMED, head=HEAD + TWO)), (AHEAD, BACK))
    counted = sender.measure(Load(8000), 0.25).directions
    assert [row.offered for row in counted] == [2000, 2000]
    for port in (0, 1):
        sent = {len(item.frame): item for item in backend.starts[-1][0][port]}
        assert {length: item.pps for length, item in sent.items()} == {
            60: pytest.approx(6000),
            1514: pytest.approx(2000),
        }
        assert all(len(item.variables) == 3 for item in sent.values())
    assert [row.offered for row in sender.burst(401, 20000.0).directions] == [401, 401]
    assert sorted(item.count or 0 for item in backend.starts[-1][0][0]) == [100, 301]
    sender.step_down(Load(8000), 0.2, Load(4000), 2.0, 0.5)  # on a busy machine the change comes late
    assert backend.updates[-2:] == [(0, pytest.approx(4000)), (1, pytest.approx(4000))]


@pytest.mark.parametrize(("keys", "flags"), [("", 2), ("mac_dst: port", 0)])
def test_frames_to_a_mac_address_of_the_profile_may_go_to_the_ports(own: Own, keys: str, flags: int) -> None:
    text = ours('return STLStream(packet=STLPktBuilder(pkt=Ether(dst="02:00:00:00:09:09") / IP()), mode=STLTXCont())')
    program = own.profile(text, more=keys).program
    assert program is not None and ("mac_dst" in program.source.to_json()) is bool(keys)
    assert [json.loads(item.text)["flags"] & 6 for item in program.directions[0]] == [flags]


WRONG: list[tuple[str, str]] = [
    (ours("return ["), r"mine\.py:11: fails with SyntaxError: '\[' was never closed"),
    (ours("return stream(1/0)"), r"mine\.py:11: fails with ZeroDivisionError: division by zero"),
    (ours("return stream(vm=STLScVmRaw([STLVmFixIpv4(offset='IPv6')]))"), r"mine\.py:\d+: fails.*no layer 'IPv6'"),
    (ours("sys.exit(3)"), r"mine\.py:11: ends itself \(exit 3\)"),
    (ours("os._exit(4)"), r"ended the process that loads it \(status 4\)"),
    (ours("return [1]"), r"fails with AttributeError: 'int' object has no attribute"),
    ("x = 1\n", "fails with AttributeError: .* no attribute 'register'"),
    ("from trex.stl.api import *\n", "a newer client is used where TREX_HOME names a TRex"),
    ("import nothing_of_that_name\n", r"mine\.py:1: fails with ModuleNotFoundError"),
    # the streams themselves: traffic/test_profiles.py
]


@pytest.mark.parametrize(("text", "says"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_a_wrong_profile_is_reported_in_one_sentence(own: Own, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        own.profile(text)
    assert "\n" not in str(caught.value) and "mine.py" in str(caught.value)


@pytest.mark.parametrize(
    ("signature", "tunables", "says"),
    [
        ("self, tunables, **kwargs", "{sise: 64}", r"mine\.py:\d+: ends itself \(exit 2\): .*unrecognized.* --sise 64"),
        ("self, direction=0, size=64", "{sise: 64}", "has no tunable 'sise'; it has size"),
        ("self, direction=0, size=64", "[--size, 64]", "has no tunable '--size'; it has size"),
    ],
)
def test_an_unknown_tunable_is_refused(own: Own, signature: str, tunables: str, says: str) -> None:
    body = ARGPARSE if "tunables" in signature else "return stream()"
    with pytest.raises(ConfigError, match=says):
        own.profile(ours(body, signature), tunables)


def test_output_and_processes_of_a_profile_do_not_disturb(own: Own) -> None:
    body = """\
print('{"client": "false"}')
os.system('echo loud; echo {')
import threading
threading.Thread(target=time.sleep, args=(60,)).start()
return stream(64, direction)"""
    assert own.profile(ours(body)).mean_size == 64


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return stream()", "its frames are the same in both directions"),
        ("return stream(direction and [])", "fails with TypeError"),
    ],
    ids=["same", "fails"],
)
def test_a_profile_of_one_direction_is_refused_for_two(own: Own, body: str, says: str) -> None:
    catalogue = own.read(ours(body))
    assert not parse("mine unidirectional ≥ 1 Mpps", catalogue).bidirectional
    with pytest.raises(SentenceError, match="can be sent unidirectional only") as caught:
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)
    assert says in str(caught.value)


FRAME = (
    bytes(12) + bytes.fromhex("0800 4500 002e 0001 0000 4011 0000 10000001 30000001 0401 000c 001a 0000") + bytes(18)
)


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_file_of_data_is_read_as_its_client_does(own: Own, client: str, ending: str) -> None:
    ours = [(300, FRAME), (100, FRAME + bytes(40))]
    rest = {"action_count": 0, "enabled": True, "flags": 0, "isg": 0.0, "self_start": True, "vm": {"instructions": []}}
    streams: list[dict[str, object]] = []
    for pps, frame in ours:
        rate = {"pps": pps} if client == "pypi" else {"rate": {"type": "pps", "value": pps}}
        packet = {"binary": base64.b64encode(frame).decode(), "meta": ""}
        streams.append(
            {**rest, "flow_stats": {"enabled": False}, "mode": {"type": "continuous", **rate}} | {"packet": packet}
        )
    catalogue = own.read(json.dumps([{"stream": item} for item in streams]), name=f"mine.{ending}", client=client)
    assert catalogue.profile(["mine"]).mean_size == pytest.approx(0.75 * 64 + 0.25 * 104)
    with pytest.raises(SentenceError, match="a file of streams has no second direction"):
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)


def test_latency_is_not_measured_with_the_streams_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project_with(tmp_path, ours=ours(LATENCY))
    plan = Plan.read(Project(tmp_path), "netgate6100", "vpp", "simulated", "quick")
    assert plan.requirement("ours unidirectional ≥ 5 Mpps").profile.mean_size == 64
    with pytest.raises(SentenceError, match="latency is not measured with the streams of a file"):
        plan.requirement("ours unidirectional latency p99 ≤ 1 ms at 5 Mpps")


def refused(own: Own, body: str) -> str:
    with pytest.raises(ConfigError) as caught:
        own.read(ours(f"import os, signal\n{body}")).profile(["mine"])
    return str(caught.value)


def test_a_profile_that_cannot_be_interrupted_is_killed(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"
    own.profile(ours("return stream(64, direction)"))  # the server's libraries are imported after it
    monkeypatch.setattr(profile_loader, "LIMIT", 3.0)
    began = time.monotonic()
    assert "did not end within 3 s, and its process was ended" in refused(own, body)
    assert time.monotonic() - began < 30  # without a limit it runs for ever; a busy machine takes its time


def test_what_it_started_ends_with_it(own: Own) -> None:
    began = own.folder / "began"
    start = "import os, subprocess\nif not direction: os.symlink(str(subprocess.Popen(['sleep', '60']).pid), '{}')\n"
    with contextlib.suppress(ConfigError):
        own.read(ours(start.format(began) + "raise ValueError")).profile(["mine"])
    wait_until(lambda: not psutil.pid_exists(int(str(began.readlink()))), limit=20)


def test_its_memory_is_limited(own: Own) -> None:
    assert "fails with MemoryError" in refused(own, "bytearray(8 << 30)")


def test_it_knows_no_secret(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    said = refused(own, "raise Exception(' '.join(sorted(os.environ)))")
    assert "PATH" in said and "SECRET" not in said


CHAIN = """\
sizes = [(64, 10), (594, 20), (1518, 30)]
return [
    stream(size, direction, STLTXSingleBurst(pps=10, total_pkts=frames), name=f"S{place}", next=f"S{(place + 1) % 3}",
           self_start=not place, isg=10.0 if not place else 0.0)
    for place, (size, frames) in enumerate(sizes)
]"""
CAPTURE = """\
from scapy.utils import wrpcap
head = [Ether() / IP(src=f"16.0.0.{n}", dst="48.0.0.1") / UDP() / (b"x" * (18 + 50 * n)) for n in range(1, 4)]
wrpcap("mine.pcap", head)
return STLProfile.load_pcap("mine.pcap", ipg_usec=10.0, loop_count=0)"""


def test_the_frames_of_a_capture_are_sent_equally_often(own: Own, client: str) -> None:
    found = own.profile(ours(CAPTURE), client=client)
    assert {frame.size: frame.weight for frame in found.frames} == pytest.approx({114: 1 / 3, 164: 1 / 3, 214: 1 / 3})


@pytest.mark.netns
@pytest.mark.skipif(real_trex.REASON != "", reason=real_trex.REASON)
def test_a_real_server_sends_the_intended_frames(own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREX_HOME", HOME)
    found = own.profile(ours(CHAIN), client=HOME)
    with started(tmp_path, real_trex.WORDS, bypass=True) as session:
        session.generator.connect(real_trex.generator)
        session.traffic.put(Traffic(found, False))
        for load in (6000.0, 3000.0):
            trial = read_trial(1, session.traffic.measure(Load(load), 2.0), session.plan.testbed.tolerances())
            (direction,) = trial.outcome.directions
            assert direction.offered == pytest.approx(2 * load, rel=0.005)
            assert direction.intended == pytest.approx(2 * load, rel=0.002)
            # a busy machine may take longer
            assert direction.lost == 0 and {found.fault.name for found in trial.problems} <= {
                "STRETCHED",
                "UNDER_OFFERED",
            }


def test_a_sentence_with_such_traffic_on_the_simulated_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project_with(tmp_path, ours=ours(CHAIN))
    suite = robot_run.write_suite(tmp_path, "ours bidirectional loses ≤ 0% at 10 kpps each way")
    ran = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path}", "-v", "GOAL:quick")
    records = [json.loads(line) for path in tmp_path.rglob("requirements.jsonl") for line in path.open()]
    assert [item["verdict"] for item in records] == ["PASS"], ran.console
    inputs = [json.loads(line) for path in tmp_path.rglob("inputs.jsonl") for line in path.open()]
    (kept,) = (json.loads(each["text"]) for each in inputs if each["name"] == "programs/ours.json")
    assert kept["file"] == "ours.py" and len(kept["sha256"]) == 64
    assert kept["client"].startswith("trex-stl-lib 0.3")
    assert kept["pattern"].startswith("6 of 6 streams of the file are bursts")
