"""Wrong profiles in TRex's own format, and data files: each is refused in one sentence, within limits of its own."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lineproof.core.sentence import parse
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.errors import ConfigError, SentenceError
from lineproof.generators.trex import profile_loader
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.system.children import environment
from support.patience import wait_until
from support.trex_profile_support import ARGPARSE, LATENCY, Own, ours, project_with

pytestmark = pytest.mark.slow


# -- what is wrong -----------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, str]] = [
    ("return [", r"mine\.py:11: is not Python: '\[' was never closed"),
    ("return stream(1/0)", r"mine\.py:11: fails with ZeroDivisionError: division by zero"),
    ("return stream(vm=STLScVmRaw([STLVmFixIpv4(offset='IPv6')]))", r"mine\.py:\d+: fails.*no layer 'IPv6'"),
    ("sys.exit(3)", r"mine\.py:11: ends itself \(exit 3\)"),
    ("os._exit(4)", r"ended the process that loads it \(status 4\)"),
    ("return []", "has no streams"),
    ("return [1]", "returns, as number 1, a int and no STLStream"),
    # the streams themselves: traffic/test_trex_streams.py
    ("return stream(isg=2000.0)", "stream 1 starts 2 ms late"),
]


@pytest.mark.parametrize(("body", "says"), WRONG, ids=[row[1][:40] for row in WRONG])
def test_a_wrong_profile_is_reported_in_one_sentence(own: Own, body: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        own.profile(ours(body))
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
def test_an_unknown_tunable_is_refused(own: Own, signature: str, tunables: str, says: str) -> None:
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
def test_a_module_without_streams_is_refused(own: Own, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own.profile(text)
    assert says in str(caught.value)


def test_output_and_processes_of_a_profile_do_not_disturb(own: Own) -> None:
    body = """\
print('{"client": "false"}')
os.system('echo loud; echo {')
import threading
threading.Thread(target=time.sleep, args=(60,)).start()
return stream(64, direction)"""
    assert own.profile(ours(body)).mean_size == 64


def test_a_missing_file_is_named(own: Own) -> None:
    catalogue = own.read("")
    (own.traffic / "mine.py").unlink()
    with pytest.raises(ConfigError, match=r"mine\.py: cannot be read: No such file"):
        catalogue.profile(["mine"])


ONE_WAY: list[tuple[str, str]] = [
    ("return stream()", "its frames are the same in both directions"),
    ("return [] if direction else stream()", "it has no streams for the second direction"),
    ("return stream(direction and [])", "fails with TypeError"),
    ("return stream([64, 128][direction], direction)", "64 bytes on average, and 128 in the second direction"),
]


@pytest.mark.parametrize(("body", "says"), ONE_WAY, ids=["same", "none", "fails", "sizes"])
def test_a_profile_of_one_direction_is_refused_for_two(own: Own, body: str, says: str) -> None:
    catalogue = own.read(ours(body))
    assert not parse("mine unidirectional ≥ 1 Mpps", catalogue).bidirectional
    with pytest.raises(SentenceError, match="can be sent unidirectional only") as caught:
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)
    assert says in str(caught.value)


# -- files of data -----------------------------------------------------------------------------------------------------

FRAME = (
    bytes(12) + bytes.fromhex("0800 4500 002e 0001 0000 4011 0000 10000001 30000001 0401 000c 001a 0000") + bytes(18)
)


def written(frame: bytes = FRAME) -> str:
    return base64.b64encode(frame).decode()


def test_yaml_files_of_console_and_gui_are_read(own: Own) -> None:
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
    with pytest.raises(SentenceError, match="a file of streams has no second direction"):
        parse("mine bidirectional ≥ 1 Mpps in total", catalogue)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {a: [", "mine.yaml:1: not YAML"),
        ("a: 1\n", "is no list of streams"),
        ("- {stream: {packet: 5, mode: {pps: 1}}}\n", "stream 1 has no 'packet' and 'mode'"),
        ("- {stream: {packet: {binary: x}, mode: {pps: 1}, vm: 5}}\n", "stream 1 is not a stream that TRex accepts"),
        ("- {stream: {packet: {}, mode: {pps: 1}}}\n", "expected 'binary' or 'pcap'"),
        ("- {stream: {packet: {pcap: no.pcap}, mode: {pps: 1}}}\n", "no.pcap: cannot be read"),
        ("- {stream: {packet: {binary: x}, mode: {pps: 1, percentage: 2}}}\n", "expected one of pps, bps_L1"),
    ],
)
def test_wrong_data_files_are_reported(own: Own, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own.profile(text, name="mine.yaml")
    assert says in str(caught.value)


def test_a_json_file_is_read_as_a_yaml_file_is(own: Own) -> None:
    streams = [{"stream": {"packet": {"binary": written()}, "mode": {"type": "continuous", "pps": 1}}}]
    assert own.profile(json.dumps(streams), name="mine.json").mean_size == 64
    with pytest.raises(ConfigError, match=r"mine\.json:1: cannot be read: "):
        own.profile("[{", name="mine.json")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("file: mine.txt", "file"),
        ("file: mine.py, tunables: {direction: 1}", "'direction' is set by TRex itself"),
        ("file: mine.py, tunables: {a: {b: 1}}", "tunables"),
    ],
)
def test_wrong_entries_are_reported(own: Own, entry: str, says: str) -> None:
    (own.folder / "own.yaml").write_text(f"entries:\n  - {{kind: trex, name: mine, {entry}, about: ours}}\n")
    with pytest.raises(ConfigError, match=says):
        Catalogue.read(own.folder)


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("ours unidirectional ≥ 900 pps", "send 1 kpps whatever the load is; expected a load of more than that"),
        ("ours unidirectional ≥ 20 kpps", "make the mean frame one of 136.7 bytes, and the others have 64"),
        ("ours unidirectional latency p99 ≤ 1 ms at 5 Mpps", "latency is not measured with the streams of a file"),
    ],
)
def test_sentences_that_latency_streams_do_not_allow_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentence: str, says: str
) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    longer = LATENCY.replace("stream(64, direction, STLTXCont(pps=1000)", "stream(1518, direction, STLTXCont(pps=1000)")
    project_with(tmp_path, ours=ours(longer))
    plan = Plan.read(Project(tmp_path), "netgate6100", "vpp", "simulated", "quick")
    assert plan.requirement("ours unidirectional ≥ 5 Mpps").profile.mean_size == 64
    with pytest.raises(SentenceError) as caught:
        plan.requirement(sentence)
    assert says in str(caught.value)


# -- a profile has a limit of time and one of memory, and ends with the process that started it


def refused(own: Own, body: str) -> str:
    """The error of a profile."""
    with pytest.raises(ConfigError) as caught:
        own.read(ours(f"import os, signal\n{body}")).profile(["mine"])
    return str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "while True:\n    try: time.sleep(9)\n    except: pass",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_a_profile_that_cannot_be_interrupted_is_killed(own: Own, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own.profile(ours("return stream(64, direction)"))  # the server's libraries are imported after it
    monkeypatch.setattr(profile_loader, "LIMIT", 3.0)
    began = time.monotonic()
    assert "did not end within 3 s, and its process was ended" in refused(own, body)
    assert time.monotonic() - began < 30  # without a limit it runs for ever; a busy machine takes its time


@pytest.mark.parametrize("end", ["return stream(64, direction)", "raise ValueError"])
def test_what_it_started_ends_with_it(own: Own, end: str) -> None:
    began = own.folder / "began"
    start = "import os, subprocess\nif not direction: os.symlink(str(subprocess.Popen(['sleep', '60']).pid), '{}')\n"
    with contextlib.suppress(ConfigError):
        own.read(ours(start.format(began) + end)).profile(["mine"])
    wait_until(lambda: not psutil.pid_exists(int(str(began.readlink()))), limit=20)


def test_its_memory_is_limited(own: Own) -> None:
    assert "fails with MemoryError" in refused(own, "bytearray(8 << 30)")


def test_it_knows_no_secret(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    said = refused(own, "raise Exception(' '.join(sorted(os.environ)))")
    assert "PATH" in said and "SECRET" not in said


STARTER = """\
import os, pathlib, sys
from lineproof.generators.trex.profile_loader import ask_profile
request = {"file": sys.argv[1], "tunables": [], "named": {}}
ask_profile(request, None, pathlib.Path("/"), os.environ)
"""


def test_it_ends_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    profile, began = tmp_path / "slow.py", tmp_path / "began"
    profile.write_text(f"import os, time\nos.symlink(str(os.getpid()), '{began}')\ntime.sleep(60)\n")
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(profile)], env=environment())
    try:
        wait_until(began.is_symlink)
    finally:
        starter.kill()
        starter.wait(20)
    wait_until(lambda: not psutil.pid_exists(int(str(began.readlink()))), limit=20)
