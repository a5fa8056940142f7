"""Profiles in TRex's own format: loaded in their own process, in each style of the field, sent, and refused."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import robot_run
from linerate.errors import ConfigError, SentenceError
from linerate.generators.base import Probe, Way
from linerate.generators.streams import bursts, streams
from linerate.generators.trex import copies
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.generators.trex.programs import ProgramLoader
from linerate.plan import Plan
from linerate.profiles import Catalogue, Profile
from linerate.project import Project
from linerate.sentence import parse
from linerate.trial import Load
from server_support import FakeBackend, serving

WORDS = Path(__file__).resolve().parents[1] / "variables" / "profiles"
HOME = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"
CLIENTS = ["pypi", pytest.param(HOME, id="official", marks=pytest.mark.skipif(not HOME, reason=NEEDED))]

pytestmark = pytest.mark.slow

# what the profiles below have in common: UDP frames, the addresses of direction 1 swapped
HEAD = """\
from trex_stl_lib.api import *

def stream(size=64, direction=0, mode=None, vm=None, **more):
    ends = ["16.0.0.1", "48.0.0.1"]
    head = Ether() / IP(src=ends[direction], dst=ends[1 - direction]) / UDP(sport=1025, dport=12)
    packet = STLPktBuilder(pkt=head / (b"x" * (size - 4 - len(head))), vm=vm)
    return STLStream(packet=packet, mode=mode or STLTXCont(pps=1), **more)

"""
TAIL = """
def register():
    return Ours()
"""


class Own:
    """A project with one profile of its own, ``mine``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.traffic = folder, folder / "traffic"
        self.traffic.mkdir()
        for path in WORDS.glob("*.yaml"):
            (folder / path.name).write_text(path.read_text())

    def read(self, text: str, tunables: str = "{}", client: str = "", name: str = "mine.py") -> Catalogue:
        (self.traffic / name).write_text(text)
        entry = f"{{kind: trex, name: mine, file: traffic/{name}, tunables: {tunables}, about: ours}}"
        (self.folder / "own.yaml").write_text(f"entries:\n  - {entry}\n")
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), "TREX_HOME": ""}
        return Catalogue.read(self.folder, ProgramLoader("" if client == "pypi" else client, 3.0, environment))

    def profile(self, text: str, tunables: str = "{}", client: str = "", name: str = "mine.py") -> Profile:
        return self.read(text, tunables, client, name).profile(["mine"])


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Own(tmp_path)


def ours(body: str, signature: str = "self, direction=0, **kwargs", head: str = HEAD) -> str:
    rows = "\n".join(f"        {row}" for row in body.splitlines())
    return f"{head}class Ours(object):\n    def get_streams({signature}):\n{rows}\n{TAIL}"


ARGPARSE = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--size', type=int, default=64)
parser.add_argument('--both', action='store_true')
found = parser.parse_args(tunables)
size, direction = found.size, kwargs.get('direction', locals().get('direction', 0))
return [stream(size, direction)]
"""


# -- the styles of the field -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("self, direction=0, **kwargs", "return [stream(kwargs.get('size', 64), direction)]"),
        ("self, direction=0, size=64, **kwargs", "return stream(size, direction)"),
        ("self, direction=0, port_id=0, size=64", "return [stream(size, port_id)]"),
        ("self, tunables, **kwargs", ARGPARSE),
        ("self, direction, tunables, **kwargs", ARGPARSE.replace("kwargs.get('direction', ", "(")),
        ("self, port_id, direction, tunables, **kwargs", ARGPARSE.replace("kwargs.get('direction', ", "(")),
    ],
    ids=["kwargs", "names", "no kwargs", "tunables", "direction, tunables", "port_id"],
)
def test_every_signature_gets_direction_and_tunables(own: Own, signature: str, body: str, client: str) -> None:
    tunables = "{size: 128, both: true}" if "tunables" in signature else "{size: 128}"
    found = own.profile(ours(body, signature), tunables, client)
    assert [(frame.size, frame.weight) for frame in found.frames] == [(128, 1.0)]
    assert found.own_addresses and not found.one_way and found.is_one_flow
    assert found.program is not None
    ahead, back = (way[0].frame[26:34] for way in found.program.ways)
    assert ahead == bytes([16, 0, 0, 1, 48, 0, 0, 1]) and back == ahead[4:] + ahead[:4]


def test_tunables_may_be_the_words_of_a_command_line(own: Own) -> None:
    assert own.profile(ours(ARGPARSE, "self, tunables, **kwargs"), "[--size, 256]").mean_size == 256


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


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("spelt", ["trex_stl_lib.api", "trex.stl.api"])
def test_offsets_by_name_and_the_names_of_both_clients(own: Own, client: str, spelt: str) -> None:
    mix = "MIX = [(64, 28, 0), (594, 16, 0.1), (1518, 4, 0.2)]\n\n"
    found = own.profile(ours(NAMED, head=HEAD.replace("trex_stl_lib.api", spelt) + mix), client=client)
    assert found.mean_size == pytest.approx((28 * 64 + 16 * 594 + 4 * 1518) / 48)
    assert found.program is not None
    data = [json.loads(item.text) for item in found.program.ways[0]]
    for item in data:
        written = [row for row in item["vm"]["instructions"] if row["type"] in ("write_flow_var", "fix_checksum_ipv4")]
        assert [row["pkt_offset"] for row in written] == [26, 34, 36, 14]
    assert [round(item["mode"]["rate"]["value"] * 48) for item in data] == [28, 16, 4]
    assert [item["isg"] for item in data] == [0, 0.1, 0.2]
    # 100 sources and 5 ports that step together: all pairs by turns
    assert found.flows.count == 100
    assert (found.flows.source.first, found.flows.source.last) == ("16.0.0.1", "16.0.0.100")
    assert (found.flows.destination.first, found.flows.destination.last) == ("48.0.0.1", "48.0.0.1")


LAYERS = """\
packet = Ether() / Dot1Q(vlan=7) / IP() / UDP() / VXLAN() / Ether() / IP() / TCP(options=[("MSS", 1460)]) / "xxxx"
vm = STLScVmRaw([
    STLVmFlowVar(name="a", min_value=1, max_value=9, size=2, op="inc"),
    *(STLVmWrFlowVar(fv_name="a", pkt_offset=name)
      for name in ("802|1Q.vlan", "IP.src", "IP:1.dst", "TCP.window", "VXLAN.vni", "Raw.load", "IP:1.ttl")),
])
return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont())
"""


@pytest.mark.parametrize("client", CLIENTS)
def test_offsets_behind_tags_and_tunnels(own: Own, client: str) -> None:
    found = own.profile(ours(LAYERS, head=HEAD + "from scapy.layers.vxlan import VXLAN\n\n"), client=client)
    assert found.program is not None
    (item,) = found.program.ways[0]
    places = [row["pkt_offset"] for row in json.loads(item.text)["vm"]["instructions"][1:]]
    # tag at 14, IP at 18, UDP at 38, VXLAN at 46, Ethernet at 54, IP at 68, TCP at 88 with 4 bytes of options
    assert places == [14, 18 + 12, 68 + 16, 88 + 14, 46 + 4, 112, 68 + 8]
    # addresses that are not named are TRex's, and not this machine's
    assert item.frame[:12].hex() == "000000010000000000020000"
    assert struct.unpack("!4B", item.frame[30:34]) == (16, 0, 0, 1)


def test_mac_addresses_are_the_ports_but_where_the_profile_says_otherwise(own: Own) -> None:
    text = ours(
        'return [stream(), stream(mac_src_override_by_pkt=1), STLStream(packet=STLPktBuilder(pkt=Ether(src="02'
        ':00:00:00:00:09", dst="02:00:00:00:00:08") / IP() / UDP()), mode=STLTXCont())]'
    )
    program = own.profile(text).program
    assert program is not None
    assert [json.loads(item.text)["flags"] for item in program.ways[0]] == [0, 1, 3]


def test_sizes_that_vary_have_the_mean_of_their_range(own: Own) -> None:
    body = """\
vm = STLScVmRaw([STLVmFlowVar(name="z", min_value=60, max_value=1000, size=2, op="random"), STLVmTrimPktSize("z")])
return [stream(1004, direction, STLTXCont(pps=3), vm), stream(64, direction)]"""
    found = own.profile(ours(body))
    assert found.mean_size == pytest.approx(0.75 * (64 + 1004) / 2 + 0.25 * 64)


def test_the_file_is_loaded_once_and_again_when_it_changes(own: Own) -> None:
    catalogue = own.read(ours("open(__file__ + '.seen', 'a').write('x')\nreturn stream(64, direction)"))
    catalogue.profile(["mine"])
    assert catalogue.profile(["mine"]).mean_size == 64
    assert (own.traffic / "mine.py.seen").read_text() == "xx"  # once for each direction
    (own.traffic / "mine.py").write_text(ours("return stream(128, direction)"))
    assert catalogue.profile(["mine"]).mean_size == 128
    assert not list(own.traffic.glob("__pycache__"))


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_the_client_of_the_installation_here_loads_it(own: Own) -> None:
    own.read(ours("return stream(64, direction)"))
    found = Catalogue.read(own.folder, ProgramLoader("", environment={**os.environ, "TREX_HOME": HOME}))
    program = found.profile(["mine"]).program
    assert program is not None and program.source.client.startswith("TRex's own, of ")


def test_a_copy_of_a_servers_client_loads_it(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path | None] = []

    def ask(path: Path, entry: object, folder: Path | None, *_: object) -> dict[str, object]:
        asked.append(folder)
        raise ConfigError("enough", path)

    monkeypatch.setattr("linerate.generators.trex.programs.ask", ask)
    kept = copies.keep("v9.99", {"trex/stl/trex_stl_client.py": b""}, "a test")
    with pytest.raises(ConfigError, match="enough"):
        own.profile(ours("return stream(64, direction)"))
    assert asked == [kept]


# -- what is wrong -----------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, str, str]] = [
    ("return [", "{}", r"mine\.py:11: is not Python: '\[' was never closed"),
    ("return stream(1/0)", "{}", r"mine\.py:11: fails with ZeroDivisionError: division by zero"),
    ("return stream(vm=STLScVmRaw([STLVmFixIpv4(offset='IPv6')]))", "{}", r"mine\.py:\d+: fails.*no layer 'IPv6'"),
    ("while True: pass", "{}", r"mine\.py:11: did not end within 3 s"),
    ("while True:\n    try: time.sleep(9)\n    except: pass", "{}", "did not end within 3 s, and takes no notice"),
    ("sys.exit(3)", "{}", r"mine\.py:11: ends itself \(exit 3\)"),
    ("os._exit(4)", "{}", r"ended the process that loads it \(status 4\)"),
    ("return []", "{}", "has no streams"),
    ("return [1]", "{}", "returns, as number 1, a int and no STLStream"),
    ("return STLStream(packet=STLPktBuilder(pkt=Ether()/ARP()), mode=STLTXCont())", "{}", "stream 1: .* is not IP"),
    ("return stream(mode=STLTXSingleBurst(total_pkts=7))", "{}", "stream 1 is a burst of 7 frames; right would be"),
]


@pytest.mark.parametrize(("body", "tunables", "says"), WRONG, ids=[row[2][:40] for row in WRONG])
def test_a_profile_that_is_wrong_says_so_in_one_sentence(own: Own, body: str, tunables: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        own.profile(ours(body), tunables)
    assert "\n" not in str(caught.value) and "mine.py" in str(caught.value)


@pytest.mark.parametrize(
    ("signature", "tunables", "says"),
    [
        ("self, tunables, **kwargs", "{sise: 64}", r"mine\.py:\d+: ends itself \(exit 2\): unrecognized.* --sise 64"),
        ("self, direction=0, size=64", "{sise: 64}", "has no tunable 'sise'; it has size"),
        ("self, direction=0, size=64", "[--size, 64]", "has no tunable '--size'; it has size"),
        ("self, direction, colour, **kwargs", "{}", "missing 1 required positional argument: 'colour'"),
    ],
)
def test_a_tunable_that_it_does_not_have(own: Own, signature: str, tunables: str, says: str) -> None:
    body = ARGPARSE if "tunables" in signature else "return stream()"
    with pytest.raises(ConfigError, match=says):
        own.profile(ours(body, signature), tunables)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "has no function 'register()'"),
        ("def register():\n    return 5\n", "has no 'get_streams'"),
        ("from trex.stl.api import NewerThanThat\n", "a newer client is used where TREX_HOME names a TRex"),
        ("from trex.stl.trex_stl_hltapi import STLHltStream\n", "a newer client is used where TREX_HOME names"),
        ("from trex_stl_lib.trex_stl_hltapi import STLHltStream\n", "a newer client is used where TREX_HOME names"),
        ("import nothing_of_that_name\n", "mine.py:1: fails with ModuleNotFoundError"),
    ],
)
def test_a_module_that_is_no_profile(own: Own, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own.profile(text)
    assert says in str(caught.value)


def test_what_it_prints_and_starts_is_no_answer(own: Own) -> None:
    body = """\
print('{"client": "false"}')
os.system('echo loud; echo {')
import threading
threading.Thread(target=time.sleep, args=(60,)).start()
return stream(64, direction)"""
    assert own.profile(ours(body)).mean_size == 64


def test_a_file_that_is_not_there(own: Own) -> None:
    catalogue = own.read("")
    (own.traffic / "mine.py").unlink()
    with pytest.raises(ConfigError, match=r"mine\.py: cannot be read: No such file"):
        catalogue.profile(["mine"])


@pytest.mark.parametrize("words", ["mine vlan", "mine 2000-flows", "mine 64b"])
def test_it_brings_its_own_headers_and_addresses(own: Own, words: str) -> None:
    catalogue = own.read(ours("return stream(64, direction)"))
    with pytest.raises(SentenceError, match=r"brings its own headers and addresses|both say which frames"):
        catalogue.profile(words.split())


ONE_WAY: list[tuple[str, str]] = [
    ("return stream()", "its frames are the same in both directions"),
    ("return [] if direction else stream()", "it has no streams for the second direction"),
    ("return stream(direction and [])", "fails with TypeError"),
    ("return stream([64, 128][direction], direction)", "64 bytes on average, and 128 in the second direction"),
]


@pytest.mark.parametrize(("body", "says"), ONE_WAY, ids=["same", "none", "fails", "sizes"])
def test_a_profile_of_one_direction(own: Own, body: str, says: str) -> None:
    catalogue = own.read(ours(body))
    assert not parse("mine unidirectional ≥ 1 Mpps", catalogue).bidirectional
    with pytest.raises(SentenceError, match="can be sent unidirectional only") as caught:
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)
    assert says in str(caught.value)


# -- sent --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture(params=CLIENTS)
def sender(request: pytest.FixtureRequest, backend: FakeBackend) -> Iterator[TrexGenerator]:
    with serving(backend) as server:
        settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=str(request.param))
        with TrexGenerator(settings) as generator:
            yield generator


AHEAD, BACK = Way(0, 1), Way(1, 0, swapped=True)
TWO = "MIX = [(64, 3, 0), (1518, 1, 0.1)]\n\n"


def test_a_load_is_of_all_streams_together_and_in_their_ratio(
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
    changed = sender.step_down(Load(8000), 0.2, Load(4000), 0.2, 0.05)
    assert changed.outcome.directions[0].offered == pytest.approx(2400, rel=0.1)


LATENCY = """\
return [stream(64, direction, STLTXCont(pps=4), flow_stats=STLFlowStats(pg_id=5 + direction)),
        stream(64, direction, STLTXCont(pps=1000), flow_stats=STLFlowLatencyStats(pg_id=7 + direction))]"""


def test_latency_streams_keep_their_rate_and_are_part_of_the_load(
    own: Own, sender: TrexGenerator, backend: FakeBackend
) -> None:
    from linerate.errors import BenchError

    found = own.profile(ours(LATENCY))
    assert found.program is not None and found.program.fixed_pps == 1000
    sender.prepare(found, (AHEAD,))
    assert sender.measure(Load(8000), 0.25).directions[0].offered == 2000
    assert sorted(item.pps for item in backend.starts[-1][0][0]) == pytest.approx([1000, 7000])
    with pytest.raises(BenchError, match="send 1000 frames/s whatever the load is, and 900 were asked for"):
        sender.measure(Load(900), 0.1)
    assert sender.burst(100, 10000.0).directions[0].offered == 100


def test_another_routers_mac_address_is_no_loss_of_this_one(own: Own, sender: TrexGenerator) -> None:
    from linerate.errors import BenchError

    text = ours('return STLStream(packet=STLPktBuilder(pkt=Ether(dst="02:00:00:00:09:09") / IP()), mode=STLTXCont())')
    with pytest.raises(BenchError, match="goes to the MAC address 02:00:00:00:09:09, and the generator's port 0 sends"):
        sender.prepare(own.profile(text), (AHEAD,))


def test_latency_of_such_frames_is_refused(own: Own) -> None:
    with pytest.raises(ValueError, match="latency is not measured with the streams of a file"):
        streams(own.profile(ours("return stream(64, direction)")), AHEAD, Probe(100.0))


def test_bursts_share_their_frames(own: Own) -> None:
    found = own.profile(ours(NAMED, head=HEAD + TWO))
    assert [item.burst for item in bursts(found, BACK, 10)] == [8, 2]


# -- files of data -----------------------------------------------------------------------------------------------------

FRAME = (
    bytes(12) + bytes.fromhex("0800 4500 002e 0001 0000 4011 0000 10000001 30000001 0401 000c 001a 0000") + bytes(18)
)


def written(frame: bytes = FRAME) -> str:
    import base64

    return base64.b64encode(frame).decode()


def test_yaml_of_the_console_and_of_the_gui(own: Own) -> None:
    text = f"""\
- name: small
  stream:
    packet: {{binary: {written()}}}
    mode: {{type: continuous, pps: 300}}
    flow_stats: []
    vm:
      instructions:
        - {{type: flow_var, name: a, size: 1, op: inc, init_value: 1, min_value: 1, max_value: 9, step: 1}}
        - {{type: write_flow_var, name: a, pkt_offset: 29, add_value: 0, is_big_endian: true}}
      split_by_var: a
- stream_id: 4
  stream:
    action_count: 0
    enabled: true
    flags: 0
    flow_stats: {{enabled: false}}
    isg: 0.0
    mode: {{type: continuous, total_pkts: 1, rate: {{type: pps, value: 100}}}}
    packet: {{binary: {written(FRAME + bytes(40))}, meta: ""}}
    self_start: true
    vm: {{instructions: []}}
"""
    catalogue = own.read(text, name="mine.yaml")
    found = catalogue.profile(["mine"])
    assert found.mean_size == pytest.approx(0.75 * 64 + 0.25 * 104)
    assert not found.flows.known and found.flows.count == 0 and not found.is_one_flow
    with pytest.raises(SentenceError, match="a file of streams says nothing of a second direction"):
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {a: [", "mine.yaml:1: not YAML"),
        ("a: 1\n", "is no list of streams"),
        ("- {stream: {packet: {}, mode: {pps: 1}}}\n", "right would be 'binary' or 'pcap'"),
        ("- {stream: {packet: {pcap: no.pcap}, mode: {pps: 1}}}\n", "no.pcap: cannot be read"),
        ("- {stream: {packet: {binary: x}, mode: {pps: 1, percentage: 2}}}\n", "right would be one of pps, bps_L1"),
        ("- {stream: {packet: {binary: x}, mode: {pps: 1}}}\n", "its packet is not base64"),
    ],
)
def test_data_that_is_wrong(own: Own, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own.profile(text, name="mine.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("file: mine.txt", "file"),
        ("file: mine.py, tunables: {direction: 1}", "'direction' is told by TRex itself"),
        ("file: mine.py, tunables: {a: {b: 1}}", "tunables"),
    ],
)
def test_an_entry_that_is_wrong(own: Own, entry: str, says: str) -> None:
    (own.folder / "own.yaml").write_text(f"entries:\n  - {{kind: trex, name: mine, {entry}, about: ours}}\n")
    with pytest.raises(ConfigError, match=says):
        Catalogue.read(own.folder)


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("ours unidirectional ≥ 900 pps", "send 1 kpps whatever the load is; right would be a load of more than that"),
        ("ours unidirectional ≥ 20 kpps", "make the mean frame one of 136.7 bytes, and the others have 64"),
        ("ours unidirectional latency p99 ≤ 1 ms at 5 Mpps", "latency is not measured with the streams of a file"),
    ],
)
def test_latency_streams_that_would_spoil_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentence: str, says: str
) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    longer = LATENCY.replace("stream(64, direction, STLTXCont(pps=1000)", "stream(1518, direction, STLTXCont(pps=1000)")
    (tmp_path / "ours.py").write_text(ours(longer))
    entry = "{kind: trex, name: ours, file: ../../ours.py, about: a test}"
    (tmp_path / "variables" / "profiles" / "own.yaml").write_text(f"entries:\n  - {entry}\n")
    plan = Plan.read(Project(tmp_path), "netgate6100", "vpp", "simulated", "quick")
    assert plan.requirement("ours unidirectional ≥ 5 Mpps").profile.mean_size == 64
    with pytest.raises(SentenceError) as caught:
        plan.requirement(sentence)
    assert says in str(caught.value)


# -- the whole chain ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_a_sentence_of_such_traffic_on_the_simulated_bench(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    testbed = tmp_path / "variables" / "testbeds" / "simulated.yaml"
    testbed.write_text(f"{testbed.read_text(encoding='utf-8')}client: {client}\n", encoding="utf-8")
    (tmp_path / "traffic").mkdir()
    mix = "MIX = [(64, 28, 0), (594, 16, 0.1), (1518, 4, 0.2)]\n\n"
    (tmp_path / "traffic" / "ours.py").write_text(ours(NAMED, head=HEAD + mix))
    entry = "{kind: trex, name: ours, file: ../../traffic/ours.py, about: a test}"
    (tmp_path / "variables" / "profiles" / "own.yaml").write_text(f"entries:\n  - {entry}\n")
    suite = robot_run.write_suite(
        tmp_path, "ours unidirectional ≥ 20% line rate", "ours bidirectional loses ≤ 0% at 1 Mpps each way"
    )
    ran = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path}", "-v", "GOAL:quick")
    assert ran.status == 0, ran.console
    records = [json.loads(line) for path in tmp_path.rglob("requirements.jsonl") for line in path.open()]
    assert [round(item["mean_size"], 2) for item in records] == [361.83, 361.83]
    source = records[0]["extra"]["traffic_file"]
    assert source["file"] == "ours.py" and len(source["sha256"]) == 64
    assert source["client"].startswith("trex-stl-lib 0.3" if client == "pypi" else "TRex's own")
