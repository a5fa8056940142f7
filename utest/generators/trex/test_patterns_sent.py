"""Bursts and chains of a user's own profile: loaded, sent in order and ratio, and judged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lineproof.core.trial import Load, Tolerance, read_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.streams import profile_streams
from lineproof.generators.trex.client.stream_objects import scaled_pattern
from lineproof.generators.trex.driver import TrexGenerator
from support import real_trex, robot_run
from support.server_support import FakeBackend
from support.simulated_session import started
from support.trex_profile_support import Own, ours, project_with

pytestmark = pytest.mark.slow

AHEAD, BACK = Direction(0, 1), Direction(1, 0, swapped=True)

CHAIN = """\
sizes = [(64, 10), (594, 20), (1518, 30)]
return [
    stream(size, direction, STLTXSingleBurst(pps=10, total_pkts=frames), name=f"S{place}", next=f"S{(place + 1) % 3}",
           self_start=not place, isg=10.0 if not place else 0.0)
    for place, (size, frames) in enumerate(sizes)
]"""
ENDS = """\
return [
    stream(64, direction, STLTXSingleBurst(pps=1000, total_pkts=10), next="second"),
    stream(128, direction, STLTXMultiBurst(pps=1000, pkts_per_burst=4, count=5, ibg=20000.0), name="second",
           self_start=False),
]"""
BURSTS = "return stream(64, direction, STLTXMultiBurst(pps=1000, pkts_per_burst=4, count=0, ibg=17000.0))"
CAPTURE = """\
from scapy.utils import wrpcap
head = [Ether() / IP(src=f"16.0.0.{n}", dst="48.0.0.1") / UDP() / (b"x" * (18 + 50 * n)) for n in range(1, 4)]
wrpcap("mine.pcap", head)
return STLProfile.load_pcap("mine.pcap", ipg_usec=10.0, loop_count=0)"""


LOADS = {CHAIN: (12_000, 6_000), ENDS: (6_000, 3_000), BURSTS: (3000, 2000)}


@pytest.mark.parametrize(
    ("body", "sizes", "ends"),
    [
        (CHAIN, {64: 10, 594: 20, 1518: 30}, False),
        (ENDS, {64: 10, 128: 20}, True),
        (BURSTS, {64: 1}, False),
        ("return stream(64, direction, STLTXSingleBurst(pps=1, total_pkts=17))", {64: 1}, True),
        (CAPTURE, {114: 1, 164: 1, 214: 1}, False),
    ],
    ids=["chain", "ends", "bursts", "one burst", "capture"],
)
def test_sizes_have_the_ratio_of_their_frames(
    own: Own, client: str, body: str, sizes: dict[int, int], ends: bool
) -> None:
    found = own.profile(ours(body), client=client)
    whole = sum(sizes.values())
    assert {frame.size: frame.weight for frame in found.frames} == pytest.approx(
        {size: frames / whole for size, frames in sizes.items()}
    )
    assert found.program is not None and not found.program.steady and found.program.ends == ends
    assert ("begun again" in found.program.to_json()["pattern"]) == ends


def test_a_load_scales_rates_and_pauses(own: Own) -> None:
    rows = [item.to_json() for item in profile_streams(own.profile(ours(ENDS)), AHEAD)]
    before = [json.loads(item["program"]) for item in rows]
    after = [json.loads(item["program"]) for item in scaled_pattern(rows, 3 * rows[0]["pattern_pps"])]
    for old, new in zip(before, after, strict=True):
        assert new["mode"]["rate"]["value"] == pytest.approx(3 * old["mode"]["rate"]["value"])
        assert new["isg"] == pytest.approx(old["isg"] / 3)
        assert new["mode"].get("ibg", 0) == pytest.approx(old["mode"].get("ibg", 0) / 3)
        counted = ("total_pkts", "pkts_per_burst", "count")
        assert [new["mode"].get(key) for key in counted] == [old["mode"].get(key) for key in counted]
    assert [item["next_stream_id"] for item in after] == [2, 1]
    assert [item["self_start"] for item in after] == [True, False]


@pytest.mark.parametrize("body", [CHAIN, ENDS, BURSTS], ids=["chain", "ends", "bursts"])
def test_a_trial_of_a_pattern_has_the_load_asked_for(
    own: Own, sender: TrexGenerator, backend: FakeBackend, body: str
) -> None:
    sender.prepare(own.profile(ours(body)), (AHEAD, BACK))
    for load in LOADS[body]:
        trial = read_trial(1, sender.measure(Load(load), 1.0), Tolerance())
        assert [row.offered for row in trial.outcome.directions] == pytest.approx([load, load], rel=0.005)
        assert trial.intended == pytest.approx(2 * load, rel=0.002)
        assert {problem.fault.name for problem in trial.problems} <= {"STRETCHED"}  # on a busy machine


def test_measure_rates_sends_all_streams_at_the_same_time(
    own: Own, sender: TrexGenerator, backend: FakeBackend
) -> None:
    sender.prepare(own.profile(ours(CHAIN)), (AHEAD,))
    found = sender.measure_rates([600.0], 0.5)
    assert found.directions[0].offered == 300
    sent = {len(item.frame) + 4: (item.pps, item.count) for item in backend.starts[-1][0][0]}
    assert sent == {64: (pytest.approx(100), None), 594: (pytest.approx(200), None), 1518: (pytest.approx(300), None)}
    sender.measure(Load(6000), 1.0)
    assert len(backend.starts[-1][0][0]) > 100  # a pattern again


def test_methods_that_a_pattern_does_not_support_are_refused(own: Own, sender: TrexGenerator) -> None:
    found = own.profile(ours(BURSTS))
    sender.prepare(found, (AHEAD,))
    with pytest.raises(TestbedError, match=r"a trial of 0\.1 s holds 4 frames of the pattern of 'mine' at 10 frames/s"):
        sender.measure(Load(10), 0.1)
    with pytest.raises(TestbedError, match=r"sends 5 times its average rate, which at this load is 300 % line rate"):
        sender.measure(Load(0.6 * 10e9 / 672), 1.0)
    for ask in (lambda: sender.step_down(Load(9), 1, Load(5), 1, 0.1), sender.live, lambda: sender.burst(9, 100)):
        with pytest.raises(TestbedError, match="'mine' comes in bursts or by turns"):
            ask()


@pytest.mark.netns
@pytest.mark.skipif(real_trex.REASON != "", reason=real_trex.REASON)
@pytest.mark.parametrize("body", [CHAIN, ENDS, BURSTS, CAPTURE], ids=["chain", "ends", "bursts", "capture"])
def test_a_real_server_sends_the_intended_frames(own: Own, tmp_path: Path, body: str) -> None:
    found = own.profile(ours(body), client=os.environ["TREX_HOME"])
    with started(tmp_path, real_trex.WORDS, bypass=True) as session:
        session.generator.connect(real_trex.generator)
        session.traffic.put(found, bidirectional=False)
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


def test_a_sentence_with_such_traffic_on_the_simulated_testbed(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project_with(tmp_path, client, ours=ours(CHAIN), peaks=ours(BURSTS))
    suite = robot_run.write_suite(
        tmp_path,
        "ours bidirectional loses ≤ 0% at 10 kpps each way",
        "peaks unidirectional ≥ 700 pps",
        "peaks unidirectional ≥ 50% line rate",
    )
    ran = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path}", "-v", "GOAL:quick")
    records = [json.loads(line) for path in tmp_path.rglob("requirements.jsonl") for line in path.open()]
    assert [item["verdict"] for item in records] == ["PASS", "PASS", "INCONCLUSIVE"], ran.console
    assert "sends 5 times its average rate" in records[-1]["message"]
    source = records[0]["extra"]["traffic_file"]
    assert source["file"] == "ours.py" and len(source["sha256"]) == 64
    assert source["client"].startswith("trex-stl-lib 0.3" if client == "pypi" else "TRex's own")
    assert source["pattern"].startswith("played faster or slower")
