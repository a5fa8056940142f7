"""``lineproof rejudge``: the same verdicts from the run's folder alone, and what is said where records do not agree.

That every other suite of the tests comes to the same verdicts again is checked where they are run
(:func:`support.robot_run.check_runs`).
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError, LineproofError
from lineproof.evidence.rejudging import rejudge
from lineproof.evidence.resume import EarlierRun
from lineproof.evidence.run import read_inputs
from lineproof.evidence.signoff.sheet import make_sheet
from support import robot_run
from support.fuzz import TIMES
from support.resealed import change_records, reseal

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

VERDICTS = ["PASS", "FAIL", "PASS", "PASS", "INCONCLUSIVE"]
"""Of the suite's sentences, without that about recovery."""
KEPT, MISSED, SOON, COSTS, RECOVERS, BROKEN = range(6)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run, away from its project, which is gone."""
    folder = tmp_path_factory.mktemp("judged")
    suite = robot_run.write_tests(folder, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    found = robot_run.run(folder, suite, *robot_run.short_goal(folder))
    # on a busy machine the counts after an overload are read too seldom to prove a recovery
    verdicts = {test: message.partition(":")[0] for test, (_, message) in found.tests.items()}
    assert verdicts.pop("Recovers") in ("PASS", "INCONCLUSIVE"), found.console
    assert list(verdicts.values()) == VERDICTS, found.console
    (left,) = (folder / "results").iterdir()
    kept = tmp_path_factory.mktemp("kept") / left.name
    shutil.move(left, kept)
    shutil.rmtree(folder)
    return kept


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(run, tmp_path / run.name))


def first_trial(rows: list[dict[str, Any]], sentence: int) -> dict[str, Any]:
    """The first judged trial of a sentence, by its place."""
    return next(row for row in rows if row["requirement"] == sentence + 1 and row["trial"]["number"] == 1)


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
    now = [item["now"] for item in found["sentences"]]
    assert now[:4] + now[5:] == VERDICTS
    assert all(item["same"] and item["message_now"] == item["message_then"] for item in found["sentences"])
    assert found["different"] == 0 and found["simulated"] is True
    assert found["code"]["then"]["version"]


def test_frames_that_were_not_lost(copy: Path, capsys: pytest.CaptureFixture[str]):
    """Somebody makes a FAIL better, and seals the run again: the counts contradict their raw counters."""

    def edit(rows: list[dict[str, Any]]) -> None:
        (row,) = first_trial(rows, MISSED)["trial"]["outcome"]["directions"]
        row["forwarded"] = row["offered"]

    change_records(copy / "trials.jsonl", edit)
    assert main(["rejudge", str(copy), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (item,) = (item for item in found["sentences"] if not item["same"])
    assert (found["different"], item["sentence"]) == (1, "64b 1-flow unidirectional ≥ 6 Mpps")
    assert (item["then"], item["now"]) == ("FAIL", None)
    assert any("frames were forwarded, and its counters say" in problem for problem in item["problems"])


def test_frames_that_were_lost_and_their_counters_too(copy: Path):
    def edit(rows: list[dict[str, Any]]) -> None:
        for trial in (row["trial"] for row in rows if row["requirement"] == KEPT + 1):
            if trial["number"]:
                trial["outcome"]["directions"][0]["forwarded"] -= 300_000
                trial["outcome"]["counters"]["after"]["1.ipackets"] -= 300_000

    change_records(copy / "trials.jsonl", edit)
    found = rejudge(copy).sentences[KEPT]
    assert found.verdict is not None and found.verdict.ruling.value == "FAIL" and not found.same
    assert "trial 1 was 'keeps', and is 'misses' now" in found.notes


@pytest.mark.parametrize(
    ("file", "place", "edit", "says"),
    [
        (
            "trials.jsonl",
            KEPT,
            lambda row: row["trial"]["outcome"].update(duration=0.3),
            "and the recorded one took 0.3 s at 2 Mpps",
        ),
        ("trials.jsonl", COSTS, lambda row: row["trial"].update(number=9), "and trials.jsonl has 9"),
        ("trials.jsonl", KEPT, lambda row: row.update(requirement=77), "the verdict names trials 1"),
        ("trials.jsonl", KEPT, lambda row: row.update(requirement=77), "a verdict needs more than the"),
        ("readings.jsonl", SOON, lambda row: row.update(requirement=77), "no reading of the router was recorded"),
    ],
)
def test_records_that_are_not_enough_are_named(
    copy: Path, file: str, place: int, edit: Callable[[dict[str, Any]], object], says: str
):
    def edit_row(rows: list[dict[str, Any]]) -> None:
        if file == "trials.jsonl":
            edit(first_trial(rows, place))
        else:
            for row in (row for row in rows if row["requirement"] == place + 1):
                edit(row)

    change_records(copy / file, edit_row)
    found = rejudge(copy).sentences[place]
    assert not found.same
    assert says in "; ".join(found.problems), found


def test_another_goal_than_that_of_the_run(copy: Path):
    def edit(rows: list[dict[str, Any]]) -> None:
        (goal,) = (row for row in rows if "/goals/" in row["name"])
        goal["text"] = goal["text"].replace("final_trial_duration: 1", "final_trial_duration: 2")

    change_records(copy / "inputs.jsonl", edit)
    found = rejudge(copy).sentences[KEPT]
    assert found.verdict is None
    assert found.problems == ("trial 1 is one of 2 s at 2 Mpps now, and the recorded one took 1 s at 2 Mpps",)


@pytest.mark.parametrize("name", ["environment.json", "inputs.jsonl"])
def test_what_a_resealed_run_lacks_is_one_sentence(copy: Path, name: str):
    said = json.loads((copy / "environment.json").read_text(encoding="utf-8"))["run"]
    (copy / name).unlink()
    reseal(copy, said)
    with pytest.raises(ConfigError, match=str(copy)) as caught:
        rejudge(copy)
    assert "\n" not in str(caught.value)


def test_a_verdict_that_was_changed_and_sealed_again_is_not_signed_off(copy: Path):
    def forge(records: list[dict[str, Any]]) -> None:
        records[MISSED]["verdict"] = "PASS"

    forged = "its records of '64b 1-flow unidirectional ≥ 6 Mpps' come to another verdict"
    assert forged not in " ".join(make_sheet(copy, datetime.now(UTC), draft=True).reasons)
    change_records(copy / "requirements.jsonl", forge)
    sheet = make_sheet(copy, datetime.now(UTC), draft=True)
    assert forged in " ".join(sheet.reasons)
    assert sheet.again.startswith("5 of 6 promises come to the same verdict")


def test_what_was_sent_is_kept_once(run: Path):
    rows = [json.loads(line) for line in (run / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
    named = {row["streams"] for row in rows}
    assert named == {name for name in read_inputs(run) if name.startswith("streams/")}
    assert len(named) == 3  # with many probe frames, with few and without
