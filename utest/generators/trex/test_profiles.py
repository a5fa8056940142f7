"""Profiles in TRex's own format: loaded in their own process in each common style, sent, and refused."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest

from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.trial import Load
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.base import Direction, Probe
from lineproof.generators.streams import profile_streams
from lineproof.generators.trex import client_fetch as copies
from lineproof.generators.trex.driver import TrexGenerator
from lineproof.generators.trex.profile_loader import TrexProfileLoader
from support.server_support import FakeBackend
from support.trex_profile_support import ARGPARSE, HEAD, HOME, LATENCY, NEEDED, Own, ours

pytestmark = pytest.mark.slow


# -- common styles -----------------------------------------------------------------------------------------------------

BOTH = "{size: 128, both: true}"


@pytest.mark.parametrize(
    ("signature", "body", "tunables"),
    [
        ("self, direction=0, **kwargs", "return [stream(kwargs.get('size', 64), direction)]", "{size: 128}"),
        ("self, direction=0, size=64, **kwargs", "return stream(size, direction)", "{size: 128}"),
        ("self, direction=0, port_id=0, size=64", "return [stream(size, port_id)]", "{size: 128}"),
        ("self, tunables, **kwargs", ARGPARSE, "[--size, 128]"),
        ("self, tunables, **kwargs", ARGPARSE, BOTH),
        ("self, direction, tunables, **kwargs", ARGPARSE.replace("kwargs.get('direction', ", "("), BOTH),
        ("self, port_id, direction, tunables, **kwargs", ARGPARSE.replace("kwargs.get('direction', ", "("), BOTH),
    ],
    ids=["kwargs", "names", "no kwargs", "arguments", "tunables", "direction, tunables", "port_id"],
)
def test_every_signature_of_get_streams_gets_direction_and_tunables(
    own: Own, signature: str, body: str, tunables: str, client: str
) -> None:
    found = own.profile(ours(body, signature), tunables, client)
    assert [(frame.size, frame.weight) for frame in found.frames] == [(128, 1.0)]
    assert found.has_own_addresses and not found.one_direction_reason and found.is_one_flow
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


@pytest.mark.parametrize("spelt", ["trex_stl_lib.api", "trex.stl.api"])
def test_named_offsets_and_imports_of_both_clients_work(own: Own, client: str, spelt: str) -> None:
    mix = "MIX = [(64, 28, 0), (594, 16, 0.1), (1518, 4, 0.2)]\n\n"
    found = own.profile(ours(NAMED, head=HEAD.replace("trex_stl_lib.api", spelt) + mix), client=client)
    assert found.mean_size == pytest.approx((28 * 64 + 16 * 594 + 4 * 1518) / 48)
    assert found.program is not None
    data = [json.loads(item.text) for item in found.program.directions[0]]
    for item in data:
        written = [row for row in item["vm"]["instructions"] if row["type"] in ("write_flow_var", "fix_checksum_ipv4")]
        assert [row["pkt_offset"] for row in written] == [26, 34, 36, 14]
    assert [round(item["mode"]["rate"]["value"] * 48) for item in data] == [28, 16, 4]
    assert [item["isg"] for item in data] == [0, 0.1, 0.2]
    # 100 sources and 5 ports that step together
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


def test_mac_addresses_are_the_ports_unless_the_profile_sets_them(own: Own) -> None:
    text = ours(
        'return [stream(), stream(mac_src_override_by_pkt=1), STLStream(packet=STLPktBuilder(pkt=Ether(src="02'
        ':00:00:00:00:09", dst="02:00:00:00:00:08") / IP() / UDP()), mode=STLTXCont())]'
    )
    program = own.profile(text).program
    assert program is not None
    assert [json.loads(item.text)["flags"] for item in program.directions[0]] == [0, 1, 3]


def test_a_file_is_loaded_again_only_after_a_change(own: Own) -> None:
    catalogue = own.read(ours("open(__file__ + '.seen', 'a').write('x')\nreturn stream(64, direction)"))
    catalogue.profile(["mine"])
    assert catalogue.profile(["mine"]).mean_size == 64
    assert (own.traffic / "mine.py.seen").read_text() == "xx"  # once for each direction
    (own.traffic / "mine.py").write_text(ours("return stream(128, direction)"))
    assert catalogue.profile(["mine"]).mean_size == 128
    assert not list(own.traffic.glob("__pycache__"))


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_the_client_of_trex_home_loads_profiles(own: Own) -> None:
    own.read(ours("return stream(64, direction)"))
    found = Catalogue.read(own.folder, TrexProfileLoader("", environment={**os.environ, "TREX_HOME": HOME}))
    program = found.profile(["mine"]).program
    assert program is not None and program.source.client.startswith("TRex's own, of ")


def test_a_copied_client_loads_profiles(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path | None] = []

    def ask(path: Path, entry: object, folder: Path | None, *_: object) -> dict[str, object]:
        asked.append(folder)
        raise ConfigError("enough", path)

    monkeypatch.setattr("lineproof.generators.trex.profile_loader.run_profile", ask)
    kept = copies.store_copy("v9.99", {"trex/stl/trex_stl_client.py": b""})
    with pytest.raises(ConfigError, match="enough"):
        own.profile(ours("return stream(64, direction)"))
    assert asked == [kept]


# -- sent --------------------------------------------------------------------------------------------------------------


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
    changed = sender.step_down(Load(8000), 0.2, Load(4000), 0.2, 0.05)
    assert backend.updates[-2:] == [(0, pytest.approx(4000)), (1, pytest.approx(4000))]
    # on a busy machine the change comes late
    assert 2160 < changed.outcome.directions[0].offered < 3200


def test_latency_streams_keep_their_rate_and_are_part_of_the_load(
    own: Own, sender: TrexGenerator, backend: FakeBackend
) -> None:
    found = own.profile(ours(LATENCY))
    assert found.program is not None and found.program.fixed_pps == 1000
    sender.prepare(found, (AHEAD,))
    assert sender.measure(Load(8000), 0.25).directions[0].offered == 2000
    assert sorted(item.pps for item in backend.starts[-1][0][0]) == pytest.approx([1000, 7000])
    with pytest.raises(TestbedError, match="send 1000 frames/s whatever the load is, and 900 were asked for"):
        sender.measure(Load(900), 0.1)
    assert sender.burst(100, 10000.0).directions[0].offered == 100


def test_frames_to_another_mac_address_are_refused(own: Own, sender: TrexGenerator) -> None:
    text = ours('return STLStream(packet=STLPktBuilder(pkt=Ether(dst="02:00:00:00:09:09") / IP()), mode=STLTXCont())')
    with pytest.raises(TestbedError, match="02:00:00:00:09:09, and the generator's port 0 sends"):
        sender.prepare(own.profile(text), (AHEAD,))
    found = own.profile(text, more="mac_dst: port")
    sender.prepare(found, (AHEAD,))
    assert sender.measure(Load(1000), 0.1).directions[0].offered == 100
    assert found.program is not None and found.program.to_json()["mac_dst"] == "port"


def test_latency_of_a_files_streams_is_refused(own: Own) -> None:
    with pytest.raises(ValueError, match="latency is not measured with the streams of a file"):
        profile_streams(own.profile(ours("return stream(64, direction)")), AHEAD, Probe(100.0))
