"""Routers that only a file describes, or that nobody logs in to: whole runs, with a served generator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.evidence.run import read_run
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import robot_run
from support.command_line import lineproof
from support.fake_cli import FakeCli, counters
from support.served_bench import ServedBench, served

pytestmark = pytest.mark.slow

SOFTWARE = """\
  box:
    shell: {shell}
    version: unknown
    interfaces: [GigabitEthernet0/1, GigabitEthernet0/2]
"""
WARM = """\
terminal: {prompt: 'Router(\\(\\w+\\))?#', prompts: ['Router# '], pager: '\\s*--More--', pagers: [--More--]}
refused: ['^% Invalid']
refusals: ['% Invalid input']
commands:
  version:
    run: show version
    pattern: 'Version (?P<version>[^,]+)'
    example: 'Version 1, x'
    expected: {version: '1'}
"""


def project(
    folder: Path, cli: FakeCli | None, bench: ServedBench | None, commands: str = "ios", prepare: str = "none"
) -> Path:
    """A project with the router ``box``: with *cli* one that *commands* describe, else a black box."""
    home = robot_run.project(folder)
    platform = home / "variables" / "platforms" / "netgate6100.yaml"
    software = SOFTWARE.format(shell=commands if cli else "none")
    text = platform.read_text(encoding="utf-8").replace("software:\n", f"software:\n{software}", 1)
    platform.write_text(text, encoding="utf-8")
    ports = (bench.sync, bench.events) if bench else (4501, 4500)
    robot_run.hardware(home, "box", ports, cli.login if cli else None, f"prepare: {prepare}")
    return home


def judged(folder: Path, home: Path, *sentences: str) -> robot_run.RobotRun:
    suite = robot_run.write_suite(folder, *sentences, setup="Open Testbed For    netgate6100    software=box")
    return robot_run.run(folder, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:box", "-v", "GOAL:quick")


def examined(folder: Path, home: Path, *options: str) -> str:
    """Return what the doctor says of it."""
    words = ("doctor", "box", "--platform", "netgate6100", "--software", "box", *options)
    return lineproof(folder, *words, cwd=home).stdout


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBench]:
    with served(tmp_path_factory.mktemp("bench"), "--clock-speed", "1") as found:
        yield found


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[FakeCli]:
    found = FakeCli(tmp_path)
    yield found
    found.close()


def test_a_described_router_is_judged_and_its_losses_are_in_the_ledger(
    tmp_path: Path, cli: FakeCli, bench: ServedBench
) -> None:
    readings = iter(range(1, 10**6))

    def more_at_each_reading(line: str) -> str:
        at = next(readings)
        return counters(line, at * 10**7, at * 9 * 10**6, at * 10**6)

    cli.answers["show interfaces "] = more_at_each_reading
    home = project(tmp_path, cli, bench)
    said = examined(tmp_path, home)
    sentences = ("64b 1-flow ≥ 1 Mpps", "64b 1-flow ≥ 6 Mpps")
    found = judged(tmp_path, home, *sentences)
    assert "15.2(4)E8" in said and "load: 12 %" in said and "wrong" not in said.replace("0 wrong", ""), said
    (left,) = (tmp_path / "results").iterdir()
    records = {record.sentence: record for record in read_run(left).requirements}
    assert [records[name].verdict for name in sentences] == ["PASS", "FAIL"], found.console
    assert "tx_drops at GigabitEthernet0/2" in records[sentences[1]].message, records[sentences[1]].message
    assert "packaged/shells/ios.yaml" in read_run(left).inputs
    raw = (left / "telemetry.jsonl").read_text(encoding="utf-8")
    assert "packets input" in raw and "--More--" not in raw and "\\u001b" not in raw


def test_doctor_names_the_entry_that_reads_nothing_and_loses_no_other(tmp_path: Path, cli: FakeCli) -> None:
    home = project(tmp_path, cli, None, "warm")
    cli.answers |= {"show load": "CPU: odd", "show heat": "43 C"}
    queries = "".join(
        f"  {name}: {{run: {run}, pattern: '(?P<{key}>\\d+) {unit}', example: 1 {unit}, expected: {{{key}: 1}}}}\n"
        for name, run, key, unit in (
            ("load", "show load", "percent", "%"),
            ("temperature", "show heat", "celsius", "C"),
        )
    )
    text = WARM + queries
    pattern = "pattern: '(?P<address>1) (?P<mac>2)', example: 1 2, expected: {mac: '2'}"
    text += f"  neighbours: {{run: show mistyped, {pattern}}}\n"
    (home / "variables" / "shells").mkdir(exist_ok=True)
    (home / "variables" / "shells" / "warm.yaml").write_text(text, encoding="utf-8")
    found = examined(tmp_path, home)
    assert "temperature: 43 °C" in found and "load:" not in found, found
    lines = [line for line in found.splitlines() if line.startswith("warning  router facts: ")]
    for line, name, why in zip(lines, ("load", "neighbours"), ("was not understood: ", "(status 1): "), strict=True):
        assert why in line and line.endswith(f"fix 'commands.{name}' in variables/shells/warm.yaml")
    assert "gave no answer" not in found


def test_a_black_box_is_judged_from_outside(tmp_path: Path, bench: ServedBench) -> None:
    home = project(tmp_path, None, bench)
    said = examined(tmp_path, home)
    sentences = ("64b 1-flow ≥ 1 Mpps", "64b 1-flow loses ≤ 5% at 5.1 Mpps", "64b 1-flow ≥ 6 Mpps")
    found = judged(tmp_path, home, *sentences)
    assert "black box" in said and "wrong" not in said.replace("0 wrong", ""), said
    (left,) = (tmp_path / "results").iterdir()
    run = read_run(left)
    records = {record.sentence: record for record in run.requirements}
    assert [records[name].verdict for name in sentences] == ["PASS", "PASS", "FAIL"], found.console
    # without counters of the router, forgiven loss needs probe frames
    forgiven = [record.trial.outcome for record in run.trials if record.sentence == sentences[1]]
    assert forgiven and all(outcome.latency[0].sent > 0 for outcome in forgiven)
    assert "whose own counts are not read" in records[sentences[2]].message


@pytest.mark.parametrize(
    ("testbed", "commands", "prepare", "software", "message"),
    [
        ("box", "ios", "configure", "box", "expected 'prepare: none'"),
        ("box", "ios", "none\nset_up: [vlan]", "box", "'set_up' is for"),
        ("simulated", "ios", "none", "box", "expected a testbed of 'kind: hardware'"),
        ("box", "isos", "none", "box", "no shell 'isos' here; did you mean 'ios'"),
        ("box", "", "configure", "box", "expected 'prepare: none'"),
        ("simulated", "", "none", "box", "expected a testbed of 'kind: hardware'"),
        ("box", "", "none", "vpp", "has no 'router', which says how to log in"),
    ],
)
def test_a_router_needs_files_that_fit(
    tmp_path: Path, cli: FakeCli, testbed: str, commands: str, prepare: str, software: str, message: str
) -> None:
    home = project(tmp_path, cli if commands else None, None, commands, prepare)
    with pytest.raises(ConfigError, match=message):
        Plan.read(Project.find(home), "netgate6100", software, testbed, "quick")


def test_the_sudo_that_init_writes_fits_a_router_without_it(tmp_path: Path, cli: FakeCli) -> None:
    home = project(tmp_path, cli, None, "ios", "none")
    box = home / "variables" / "testbeds" / "box.yaml"
    box.write_text(box.read_text().replace("user: admin", "user: admin, sudo: true"), encoding="utf-8")
    assert Plan.read(Project.find(home), "netgate6100", "box", "box", "quick").software.shell == "ios"
