"""``lineproof rejudge``: the same verdicts from the run's folder alone, and what is said where records do not agree.

That every other suite of the tests comes to the same verdicts again is checked where they are run
(:func:`support.robot_run.check_runs`).
"""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import LineproofError
from lineproof.evidence.resume import EarlierRun
from lineproof.evidence.run import read_run
from support import robot_run
from support.fuzz import TIMES

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
        for words in (("rejudge", copy), ("compare", run, copy), ("compare", copy, run, "--json")):
            try:
                status = main(list(map(str, words)))
            except LineproofError as error:
                text = str(error)
                assert path.name in text or copy.name in text, (seed, text)
            else:
                text = capsys.readouterr().out
                unseen = words[0] == "compare" or path.name == "manifest.json" or content == whole[path]
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
