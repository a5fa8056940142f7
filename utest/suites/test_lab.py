"""Whole runs in a lab that labgrid lends: every verdict is right, and no bench is used by two runs at once."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import RecordedRun, read_run
from lineproof.system.login import Login
from support import robot_run
from support.lab_rig import Lab, bench_project, client, lab
from support.patience import wait_until
from support.ports import free_port
from support.served_bench import served

pytestmark = pytest.mark.slow

TESTS = """\
Kept
    64b 1-flow ≥ 1 Mpps

Not Kept
    64b 1-flow ≥ 14 Mpps
"""
POOL = """\
testbed: benches
kind: pool
lab: {{coordinator: "{address}", tags: {{kind: bench}}, wait: 5 min}}
"""
BENCHES = ("bench1", "bench2")


def suites(folder: Path, count: int) -> Path:
    tests = folder / "tests"
    tests.mkdir()
    for number in range(count):
        robot_run.write_tests(tests, TESTS, name=f"suite{number}")
    return tests


def as_user(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LG_USERNAME", name)
    monkeypatch.setenv("LG_HOSTNAME", "here")


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are those of ``here/alice``."""
    as_user(monkeypatch, "alice")


def runs_in(folder: Path) -> list[RecordedRun]:
    return [read_run(path.parent) for path in sorted(folder.rglob("environment.json"))]


def used_at_once(runs: Sequence[RecordedRun]) -> list[str]:
    """Benches that two runs had at the same time."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        found = run.environment
        assert found is not None and found.ended is not None
        assert found.extra["labgrid"]["place"] == found.testbed
        spans.setdefault(found.testbed, []).append((found.started, found.ended))
    wrong = []
    for bench, times in spans.items():
        times.sort()
        wrong += [bench for (_, end), (begin, _) in itertools.pairwise(times) if begin < end]
    return wrong


def test_three_suites_of_two_users_share_two_benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = bench_project(tmp_path, BENCHES)
    with lab(tmp_path / "lab", BENCHES) as rig:
        (home / "variables" / "testbeds" / "benches.yaml").write_text(POOL.format(address=rig.address), "utf-8")
        tests = suites(tmp_path, 2)
        options = ["-v", f"PROJECT:{home}", "-v", "GOAL:quick", "-v", "TESTBED:benches"]
        as_user(monkeypatch, "alice")
        (alice := tmp_path / "alice").mkdir()
        pabot = subprocess.Popen(
            [sys.executable, "-m", "pabot.pabot", "--processes", "2", "-d", "out", *options, str(tests)],
            env=robot_run.environment(alice),
            cwd=alice,
            stdout=subprocess.PIPE,
            text=True,
        )
        as_user(monkeypatch, "bob")
        (bob := tmp_path / "bob").mkdir()
        robot = robot_run.start(bob, tests / "suite0.robot", *options)
        said = pabot.communicate(timeout=300)[0]
        assert (pabot.returncode, robot.wait(300)) == (2, 1), said
        assert rig.holders() == {}
    runs = runs_in(tmp_path)
    assert len(runs) == 3 and used_at_once(runs) == []
    for run in runs:
        assert Counter(record.verdict for record in run.requirements) == Counter(PASS=1, FAIL=1)
        assert check_integrity(run.path).altered == ()
    owners = Counter(run.environment.extra["labgrid"]["owner"] for run in runs if run.environment)
    assert owners == {"here/alice": 2, "here/bob": 1}
    # one execution: its runs with one id, Allure's results and the summary of all
    first, second = sorted(path.parent for path in alice.glob("out/*/requirements.jsonl"))
    assert second.name == f"{first.name}-2"
    assert len(list((first / "allure").glob("*-result.json"))) == 4 and not (second / "allure").exists()
    summary = (first / "summary.txt").read_text(encoding="utf-8")
    assert summary.count("1 PASS, 1 FAIL, 0 INCONCLUSIVE – SIMULATED") == 2
    assert re.findall(r"^Evidence: (.*)$", summary, re.MULTILINE) == [str(first), str(second)]
    assert evidence_in(alice / "out" / "output.xml") == {str(first), str(second)}
    assert (alice / "out" / "log.html").exists()
    assert robot_run.processes_of(tmp_path) == []


def evidence_in(output: Path) -> set[str]:
    """The folders of evidence that the suites of a result name."""
    suites = ExecutionResult(output).suite.suites
    return {value for suite in suites for name, value in suite.metadata.items() if "Evidence" in name}


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_gives_its_place_back(tmp_path: Path, ending: signal.Signals, alice: None) -> None:
    with lab(tmp_path / "lab", ["bench1"]) as rig:
        home = bench_project(tmp_path, ["bench1"], 'lab: {{coordinator: "' + rig.address + '"}}\n', 10)
        (suite,) = suites(tmp_path, 1).iterdir()
        run = robot_run.start(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "GOAL:quick", "-v", "TESTBED:bench1")
        wait_until(lambda: any(path.stat().st_size for path in (tmp_path / "results").rglob("trials.jsonl")))
        assert rig.holders() == {"bench1": "here/alice"}
        # as a terminal does it: the whole group hears it
        os.killpg(run.pid, ending)
        assert run.wait(60) != 0
        wait_until(lambda: rig.holders() == {} and robot_run.processes_of(tmp_path / "runtime") == [])


class Outlet:
    """A switch of power for labgrid's ``model: rest``: it keeps what it was told, and wakes what it feeds."""

    def __init__(self, port: int) -> None:
        self.port, self.told, self.pid = port, list[str](), 0
        outlet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                outlet.told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                if outlet.told[-1] == "1":
                    os.kill(outlet.pid, signal.SIGCONT)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def lab_with_power(folder: Path) -> Iterator[tuple[Lab, Outlet]]:
    outlet = Outlet(free_port())
    resources = (
        f"lab:\n  NetworkPowerPort: {{model: rest, host: 'http://127.0.0.1:{outlet.port}/{{index}}', index: 1}}\n"
    )
    try:
        with lab(folder, ["lab"], resources) as rig:
            yield rig, outlet
    finally:
        outlet.close()


@contextlib.contextmanager
def way_to(router: Login, home: Path) -> Iterator[int]:
    """A process through which the testbed ``lab`` of the project *home* reaches its router; yields its number."""
    code = "import sys; from lineproof.testbed.trex.relay import Relay; relay = Relay(None, int(sys.argv[1]))"
    argv = [sys.executable, "-c", f"{code}; print(relay.port, flush=True); sys.stdin.read()", str(router.port)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        port, hosts = process.stdout.readline().strip(), home / "known_hosts"
        for old, new in ((router.known_hosts_path, hosts), (home / "variables" / "testbeds" / "lab.yaml",) * 2):
            text = re.sub(rf"(?<=[: ]){router.port}\b", port, old.read_text(encoding="utf-8"))
            new.write_text(text.replace(str(router.known_hosts_path), str(hosts)), encoding="utf-8")
        yield process.pid
        process.kill()


def test_a_router_that_hangs_is_switched_off_and_on_once_if_the_file_says_so(tmp_path: Path) -> None:
    """That nothing is switched else is in ``session/test_revival.py``."""
    with contextlib.ExitStack() as stack:
        rig, outlet = stack.enter_context(lab_with_power(tmp_path / "lab"))
        bench = stack.enter_context(served(tmp_path))
        home = bench.project(tmp_path)
        robot_run.shorten(home)
        with (home / "variables" / "testbeds" / "lab.yaml").open("a", encoding="utf-8") as file:
            file.write(f'lab: {{coordinator: "{rig.address}", power: {{off: 1 s, boot: 1 min}}}}\n')
        outlet.pid = stack.enter_context(way_to(bench.router, home))
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 14 Mpps")
        wait_until(lambda: "lab/NetworkPowerPort" in client(rig.address, "resources"))
        run = robot_run.start(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick")
        wait_until(lambda: any(path.stat().st_size for path in (tmp_path / "results").rglob("trials.jsonl")))
        os.kill(outlet.pid, signal.SIGSTOP)
        status = run.wait(240)
        os.kill(outlet.pid, signal.SIGCONT)
    console = (tmp_path / "console.txt").read_text(encoding="utf-8")
    assert status == 1, console
    (left,) = runs_in(tmp_path / "results")
    (record,) = left.requirements
    assert outlet.told == ["0", "1"]
    assert record.verdict == "FAIL" and record.number == 2, record.message
    assert re.search(
        r"the router did not answer \(.*\); .*the power of labgrid's place 'lab' was switched off for 1 s and on"
        r" again; it answered again after \d+ s",
        note := str(record.extra.get("recovery", "")),
    ), note
    # the first try is in the evidence, and no sentence is unfinished
    assert {trial.requirement for trial in left.trials} == {1, 2} and "INCOMPLETE" not in console
