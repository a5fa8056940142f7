"""``lineproof rejudge``: the same verdicts from the run's folder alone, and what is said where records do not agree.

That every other suite of the tests comes to the same verdicts again is checked where they are run
(:func:`support.robot_run.check_runs`).
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import LineproofError
from lineproof.evidence.rejudge import rejudge
from lineproof.evidence.resume import EarlierRun
from lineproof.evidence.run import RecordedRun, read_run
from support import robot_run
from support.evidence_builders import change_records
from support.fuzz import TIMES
from support.patience import wait_until

pytestmark = pytest.mark.slow

TESTS = """\
Kept
    64b 1-flow unidirectional ≥ 2 Mpps
Missed
    64b 1-flow unidirectional ≥ 6 Mpps
Soon Enough
    64b 1-flow unidirectional latency p99 ≤ 200 µs at 1 Mpps
Costs
    64b 1-flow unidirectional costs ≤ 450 cycles/packet
Recovers
    64b 1-flow unidirectional recovers in ≤ 2 s at 10 Mpps
Broken
    Cause Fault    lost reply    start=3    at=0.3
    64b 1-flow unidirectional ≥ 1 Mpps
"""

VERDICTS = {"Kept": "PASS", "Missed": "FAIL", "Soon Enough": "PASS", "Broken": "INCONCLUSIVE"}
"""Tests whose figures do not depend on real time: on a busy machine the others may be INCONCLUSIVE."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run, away from its project, which is gone."""
    folder = tmp_path_factory.mktemp("judged")
    suite = robot_run.write_tests(folder, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    found = robot_run.run(folder, suite, *robot_run.short_goal(folder))
    verdicts = {test: message.partition(":")[0] for test, (_, message) in found.tests.items()}
    assert verdicts | VERDICTS == verdicts, found.console
    (left,) = (folder / "results").iterdir()
    kept = tmp_path_factory.mktemp("kept") / left.name
    shutil.move(left, kept)
    shutil.rmtree(folder)
    return kept


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(run, tmp_path / run.name))


RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 0.5, 10**30, -(2**63), 1e308),
    *("", "x" * 3000, "\ud800", "NaN", [], [[]], {}, {"a": [None]}),
)
BYTES = (b"\xff", b"\0", b"{", b"[" * 5000, b"9" * 5000, b"NaN", b"1e999", b"\n", b"")


def places(data: object, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to everything in *data*."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(place for key, part in parts for place in places(part, (*at, key)))]


def damaged(text: bytes, chance: random.Random) -> bytes:
    """*text*, lines of JSON, with one value or a few bytes changed."""
    if chance.random() < 0.3:
        at = chance.randrange(len(text))
        return text[:at] + chance.choice(BYTES) + text[at + chance.randrange(20) :]
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    try:
        data = json.loads(lines[at])
        *path, last = chance.choice(places(data)[1:])
    except (ValueError, IndexError):  # a line of a file that is one document
        return text[: chance.randrange(len(text))]
    inner = data
    for key in path:
        inner = inner[key]
    if chance.random() < 0.3:
        del inner[last]
    else:
        inner[last] = chance.choice(ODD)
    lines[at] = json.dumps(data).encode() + b"\n"
    return b"".join(lines)


def test_damaged_records_are_a_sentence_and_never_better(
    run: Path, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Each reader of a run comes to an end of its own, and rejudge sees the change. ``LINEPROOF_FUZZ=50`` tries 500."""
    whole = {path: path.read_bytes() for path in copy.glob("*.json*")}
    for seed in range(10 * TIMES):
        chance = random.Random(seed)
        path = chance.choice(sorted(whole))
        content = damaged(whole[path], chance)
        path.write_bytes(content)
        for words in (
            ("rejudge", copy),
            ("gate", copy, "--baseline", run),
            ("gate", run, "--baseline", copy, "--json"),
        ):
            try:
                status = main(list(map(str, words)))
            except LineproofError as error:
                text = str(error)
                assert path.name in text or copy.name in text, (seed, text)
            else:
                text = capsys.readouterr().out
                unseen = words[0] == "gate" or path.name == "manifest.json" or content == whole[path]
                assert status == 1 or unseen, (seed, path)
            assert not RAW.search(text), (seed, text)
        try:
            EarlierRun.find(tmp_path, copy.name, "Suite")
        except LineproofError as error:
            assert not RAW.search(str(error)), (seed, error)
        path.write_bytes(whole[path])


def test_it_reads_nothing_but_the_folder(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The project is gone, and here the files that come with Lineproof are, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lineproof.project.packaged_variables", lambda: tmp_path / "nothing")
    assert main(["rejudge", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    now = {item["test"].rpartition(".")[2]: item["now"] for item in found["sentences"]}
    assert now | VERDICTS == now
    assert all(item["state"] == "same" and item["message_now"] == item["message_then"] for item in found["sentences"])
    assert found["different"] == 0 and found["simulated"] is True
    assert found["code"]["then"]["version"]


def test_what_was_sent_is_kept_once(run: Path):
    rows = [json.loads(line) for line in (run / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
    named = {row["streams"] for row in rows}
    assert named == {name for name in read_run(run).inputs if name.startswith("streams/")}
    assert len(named) == 3  # with many probe frames, with few and without


# -- going on with an earlier run: each verdict, its records and its table are of all trials


SETUP = "Open Testbed For    netgate6100    software=vpp    goal=quick"
TWO = "Kept\n    64b 1-flow unidirectional ≥ 2 Mpps\nMissed\n    64b 1-flow unidirectional ≥ 6 Mpps\n"


def runs_of(folder: Path) -> list[RecordedRun]:
    """Return the runs in *folder*, in their order."""
    runs = [read_run(path) for path in (folder / "results").iterdir()]
    return sorted(runs, key=lambda run: run.environment.started if run.environment else 0.0)


def verdicts(found: robot_run.RobotRun) -> dict[str, str]:
    return {name: message.partition(":")[0] for name, (_, message) in found.tests.items()}


def test_two_runs_decide_together_and_then_no_traffic_is_sent(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TWO, SETUP)
    options = robot_run.short_goal(tmp_path, "runs: 2\n")
    first = robot_run.run(tmp_path, suite, *options)
    assert set(verdicts(first).values()) == {"INCONCLUSIVE"}
    assert "run 1 of 2, evidence 23.4 to 1" in first.tests["Kept"][1]
    (one,) = runs_of(tmp_path)
    second = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{one.path.name}")
    assert verdicts(second) == {"Kept": "PASS", "Missed": "FAIL"}, second.console
    _, two = runs_of(tmp_path)
    assert f"8 trials (4 of run {one.path.name}, 4 of this one), evidence 549 to 1" in two.requirements[0].message
    third = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{two.path.name}")
    assert verdicts(third) == verdicts(second), third.console
    *_, three = runs_of(tmp_path)
    assert all(trial.trial.run for trial in three.trials), "all of them are of the earlier runs"


def test_doubts_that_somebody_took_from_a_trial_of_an_earlier_run_are_there_again(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TWO[TWO.index("Missed") :], SETUP)
    options = robot_run.short_goal(tmp_path)
    robot_run.run(tmp_path, suite, *options)
    robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{runs_of(tmp_path)[0].path.name}")
    _, again = runs_of(tmp_path)
    change_records(again.path / "trials.jsonl", lambda rows: [row["trial"].update(problems=[]) for row in rows])
    (sentence,) = rejudge(again.path).sentences
    assert sentence.state == "same" and sentence.verdict is not None and sentence.verdict.runs
    judged = [item.trial for item in again.trials if item.trial.number]
    assert [trial.problems for trial in sentence.verdict.trials] == [trial.problems for trial in judged]
    assert all(trial.problems for trial in judged)


def test_what_was_decided_sends_nothing_and_a_soak_that_was_ended_begins_anew(tmp_path: Path) -> None:
    tests = "Decided\n    64b unidirectional ≥ 1 Mpps\nLong\n    64b unidirectional ≥ 2 Mpps for 300 s\n"
    suite = robot_run.write_tests(tmp_path, tests, SETUP)
    options = robot_run.short_goal(tmp_path)
    process = robot_run.start(tmp_path, suite, *options)
    wait_until(lambda: any(p.read_bytes().count(b"for 300 s") > 20 for p in tmp_path.glob("results/*/trials.jsonl")))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    (killed,) = runs_of(tmp_path)
    found = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{killed.path.name}")
    assert set(verdicts(found).values()) == {"PASS"}, found.console
    _, again = runs_of(tmp_path)
    decided, long = ([item.trial for item in again.trials if item.test == name] for name in ("Decided", "Long"))
    assert all(trial.run for trial in decided)
    judged = [trial for trial in long if trial.number]
    assert [trial.number for trial in judged] == list(range(1, 301))
    assert not any(trial.run for trial in judged)
