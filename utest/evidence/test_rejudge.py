"""A run's folder judged again: its records as a bench, by its own sentences, and by those of another SLA."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from lineproof import __version__
from lineproof.commands.main import main
from lineproof.commands.rejudge import sentences_of
from lineproof.core.deciding import Standing, TrialConditions, decide
from lineproof.core.goal import read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Telemetry
from lineproof.core.trial import Fault, Load, Outcome, Tolerance, Trial
from lineproof.documents.document import as_text
from lineproof.errors import ConfigError, LineproofError, SentenceError, TestbedError
from lineproof.evidence.gate import ComparisonRule, gate
from lineproof.evidence.inputs import REMOVED, read_kept_plan, without_secrets
from lineproof.evidence.recorder import Recorder, code_identity
from lineproof.evidence.records import EnvironmentRecord, MarginRecord, ReadingRecord, TrialRecord
from lineproof.evidence.rejudge import (
    AnotherVerdict,
    AskedSentence,
    RecordedBench,
    RecordMismatch,
    judge_another_sla,
    rejudge,
)
from lineproof.evidence.report import report
from lineproof.evidence.run import RecordedRun, read_run
from lineproof.evidence.run_files import INPUTS
from lineproof.evidence.signoff.sheet import html_sheet, make_sheet
from lineproof.evidence.summary import ExecutionSummary, summary, summary_of
from lineproof.project import Project
from lineproof.session.judging import AFTER, BEFORE, SET_UP, Reading, nobody
from lineproof.session.plan import Plan
from lineproof.session.router_watch import RouterRestarted
from support import robot_run
from support.evidence_builders import (
    ENVIRONMENT,
    LINK,
    RUN,
    change_records,
    requirement_record,
    reseal,
    rows,
    trial_record,
    write_rows,
)
from support.made_testbeds import fault, router
from support.paths import ROOT, VARIABLES

PLAN = Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick")
KEPT, MISSED = "64b 1-flow unidirectional ≥ 4 Mpps", "64b 1-flow unidirectional ≥ 6 Mpps"
BOTH = "64b 1-flow bidirectional ≥ 8 Mpps in total"
TRIALS = ((KEPT, 4e6, (0,)), (MISSED, 6e6, (10**6,)), (BOTH, 4e6, (0, 0)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A closed run: KEPT passed, MISSED failed, BOTH passed."""
    recorder = Recorder(tmp_path, RUN, replace(ENVIRONMENT, goal=PLAN.goal, clock_speed=50.0))
    recorder.keep_inputs(PLAN)
    folder = recorder.folder
    for number, (sentence, pps, losses) in enumerate(TRIALS, 1):
        for count in range(1, 7):
            one = trial_record(number=count, pps=pps, losses=losses)
            after = {f"{row.tx_port}.opackets": row.offered for row in one.trial.outcome.directions}
            after |= {f"{row.rx_port}.ipackets": row.forwarded for row in one.trial.outcome.directions}
            counts = {"before": {}, "after": after}
            # frames that came back are looked at in the last trial
            seen = {"examined.1": 1000.0} if count == 6 else {}
            began = one.trial.outcome.started + 100 * number
            outcome = replace(one.trial.outcome, counters=counts, readings=seen, started=began)
            measured = replace(one.trial, outcome=outcome)
            evidence = "misses" if any(losses) else "keeps"
            named: dict[str, Any] = {"requirement": number, "sentence": sentence, "test": "T"}
            folder.add(replace(one, trial=measured, evidence=evidence, **named))
        for moment in (BEFORE, AFTER):
            folder.add(ReadingRecord(RUN, True, number, Reading(moment, Telemetry(None, {}))))
        ruling, trials = "FAIL" if any(losses) else "PASS", tuple(range(1, 7))
        folder.add(requirement_record(sentence=sentence, verdict=ruling, trials=trials, number=number, test="T"))
    recorder.close()
    return folder.path


def more_frames(records: list[dict[str, Any]]) -> None:
    records[6]["trial"]["outcome"]["directions"][0]["forwarded"] += 10**6


def fewer_frames_and_counters(records: list[dict[str, Any]]) -> None:
    for outcome in (record["trial"]["outcome"] for record in records[:6]):
        outcome["directions"][0]["forwarded"] -= 10**6
        outcome["counters"]["after"]["1.ipackets"] -= 10**6


def longer_trials(records: list[dict[str, Any]]) -> None:
    (goal,) = (record for record in records if "/goals/" in record["name"])
    goal["text"] = goal["text"].replace("final_trial_duration: 1", "final_trial_duration: 2")


def begun_at_once(records: list[dict[str, Any]]) -> None:
    records[1]["trial"]["outcome"]["started"] = records[0]["trial"]["outcome"]["started"] + 0.01


@pytest.mark.parametrize(
    ("file", "edit", "states", "says"),
    [
        ("requirements.jsonl", lambda kept: kept[1].update(verdict="PASS"), "same DIFFERS same", ""),
        (
            "trials.jsonl",
            more_frames,
            "same SUSPECT same",
            "trial 1 says that 6000000 frames were received, and its counters",
        ),
        ("trials.jsonl", fewer_frames_and_counters, "DIFFERS same same", ""),
        (
            "inputs.jsonl",
            longer_trials,
            "UNKNOWN UNKNOWN UNKNOWN",
            "trial 1 is one of 2 s at 4 Mpps now, and the recorded one",
        ),
        ("trials.jsonl", lambda kept: kept.pop(0), "SUSPECT same same", "names 6 trials, and trials.jsonl has others"),
        (
            "trials.jsonl",
            lambda kept: kept.__delitem__(slice(2, 6)),
            "UNKNOWN same same",
            "needs more than the 2 recorded",
        ),
        (
            "readings.jsonl",
            lambda kept: kept.pop(0),
            "UNKNOWN same same",
            "no reading of the router was recorded: before",
        ),
        ("requirements.jsonl", lambda kept: kept[0]["goal"].update(risk=0.04), "SUSPECT same same", "has other terms"),
        (
            "requirements.jsonl",
            lambda kept: kept.pop(),
            "same same",
            f"has no verdict of '{BOTH}' (T), which has trials",
        ),
        ("trials.jsonl", begun_at_once, "same same same", "has trial 1 of sentence 1 and trial 2 of sentence 1 at the"),
        (
            "environment.json",
            lambda kept: kept[0].update(simulated=False),
            "same same same",
            "it is not simulated, and",
        ),
    ],
)
def test_an_edited_record_that_was_sealed_again_is_believed_by_nobody(
    run: Path, file: str, edit: Callable[[list[dict[str, Any]]], object], states: str, says: str
) -> None:
    change_records(run / file, edit)
    found = rejudge(read_run(run))
    assert found.same == states.split().count("same")
    assert " ".join(item.state for item in found.sentences) == states
    assert says in "; ".join([*found.changed, *(words for item in found.sentences for words in item.remarks)])
    for command in (["gate", str(run)], ["signoff", str(run), "--draft", "--html-only"]):
        with pytest.raises(ConfigError, match="is not believed"):
            main(command)
    store = f"sqlite:///{run.parent}/history.db"
    assert main(["history", "import", str(run), "--store", store]) == 1


def test_an_edited_message_that_was_sealed_again_is_shown_by_nobody(run: Path) -> None:
    change_records(run / "requirements.jsonl", lambda records: records[0].update(message="PASS: twice as much"))
    assert "twice" not in html_sheet(make_sheet(run, datetime.now(UTC), draft=True))


@pytest.mark.parametrize("name", ["environment.json", "inputs.jsonl"])
def test_what_a_resealed_run_lacks_is_one_sentence(run: Path, name: str) -> None:
    (run / name).unlink()
    reseal(run, RUN)
    with pytest.raises(ConfigError, match=rf"{run}: has no {name}[^\n]*$"):
        rejudge(read_run(run))


def test_trials_of_a_sentence_have_the_same_directions_or_are_refused(run: Path) -> None:
    change_records(run / "trials.jsonl", lambda records: records[-1]["trial"]["outcome"]["directions"].pop())
    with pytest.raises(ConfigError, match=r"trials\.jsonl: the trials of sentence 3 have different directions"):
        read_run(run)


def asked(run: Path, sentence: str, goal: str = "quick") -> AnotherVerdict:
    terms = read_goal(VARIABLES / "goals", goal)
    ((found,),) = judge_another_sla(run, [AskedSentence("another", sentence)], terms)[1:]
    return found


NO_TRIALS = "the run has no trials that decide it"


@pytest.mark.parametrize(
    ("sentence", "ruling", "says"),
    [
        ("64b 1-flow unidirectional ≥ 3 Mpps", Ruling.PASS, "judged at 4 Mpps into each port"),
        ("64b 1-flow unidirectional ≥ 4.00001 Mpps", Ruling.PASS, ""),
        ("64b 1-flow unidirectional ≥ 5.5 Mpps", Ruling.INCONCLUSIVE, "at least 4 trials of 1 s at 5.5 Mpps of 64b"),
        ("64b 1-flow unidirectional ≥ 6 Mpps", Ruling.FAIL, ""),
        ("64b 1-flow unidirectional ≥ 7 Mpps", Ruling.FAIL, "judged at 6 Mpps into each port"),
        ("64b 1-flow bidirectional ≥ 7 Mpps in total", Ruling.PASS, "judged at 4 Mpps into each port"),
        ("64b 1-flow bidirectional ≥ 8 Mpps in total", Ruling.PASS, ""),
        ("64b 1-flow bidirectional ≥ 9 Mpps in total", Ruling.INCONCLUSIVE, "at 4.5 Mpps into each port of 64b 1-flow"),
        ("64b unidirectional ≥ 1 Mpps", Ruling.INCONCLUSIVE, NO_TRIALS),
        ("imix bidirectional ≥ 1 Mpps each way", Ruling.INCONCLUSIVE, NO_TRIALS),
        ("64b 1-flow unidirectional forwards ≥ 4 Mpps", Ruling.INCONCLUSIVE, NO_TRIALS),
        # a load that is named is that of a throughput too
        ("64b 1-flow unidirectional loses ≤ 20% at 6 Mpps", Ruling.PASS, ""),
    ],
)
def test_another_sentence_is_decided_by_trials_at_its_load_or_beyond(run, sentence, ruling, says) -> None:
    found = asked(run, sentence)
    assert (found.ruling, bool(found.rests_on)) == (ruling, ruling is not Ruling.INCONCLUSIVE)
    assert says in found.message and ("judged at" in found.message) is says.startswith("judged at")


CHANGED = {"fault": "CHANGED", "detail": "", "frames": 100.0}


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda trial: trial.update(problems=[CHANGED]), "changed or copied frames"),
        (lambda trial: trial["outcome"].update(readings={}), "was looked at"),
    ],
)
def test_a_pass_needs_frames_that_were_looked_at_and_were_those_that_were_sent(
    run: Path, edit: Callable[[dict[str, Any]], None], says: str
) -> None:
    change_records(run / "trials.jsonl", lambda records: edit(records[11]["trial"]))
    found = asked(run, "64b 1-flow unidirectional loses ≤ 20% at 6 Mpps")
    assert found.ruling is Ruling.INCONCLUSIVE and says in found.message


def test_a_load_that_is_carried_once_and_once_not_decides_no_lower_one(run: Path) -> None:
    def lost(records: list[dict[str, Any]]) -> None:
        for record in records[6:12]:
            outcome = record["trial"]["outcome"]
            outcome["load"]["pps"] = 4e6
            outcome["directions"][0].update(intended=4 * 10**6, offered=4 * 10**6, forwarded=3 * 10**6)

    change_records(run / "trials.jsonl", lost)
    change_records(run / "requirements.jsonl", lambda records: records[1].update(load_pps=4e6))
    assert asked(run, "64b 1-flow unidirectional ≥ 3 Mpps").ruling is Ruling.INCONCLUSIVE


@pytest.mark.slow
def test_a_sentence_that_expects_another_verdict_is_no_promise_of_another_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = robot_run.write_suite(tmp_path, KEPT, f"{MISSED}    expect=FAIL")
    assert [each.sentence for each in sentences_of(suite, [])] == [KEPT]
    assert "1 sentence left out" in capsys.readouterr().err


# -- a stranger's figures: each is read, or refused in a sentence, with as much work as others


Place = tuple[str | int, ...]


def figures_in(data: object, place: Place = ()) -> Iterator[tuple[Place, float]]:
    """Yield the place of each number in *data*, and a large one of its kind."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in inside:
        yield from figures_in(value, (*place, name))
    if isinstance(data, int | float) and not isinstance(data, bool):
        yield place, 1e300 if isinstance(data, float) else 10**18


def lines_of(read: Callable[[], object], most: float = math.inf) -> int:
    """Return how many lines of the product *read* runs. Raises AssertionError beyond *most*."""
    done = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal done
        if "/lineproof/" not in frame.f_code.co_filename:
            return None
        done += 1
        assert done <= most, f"{frame.f_code.co_filename}:{frame.f_lineno}"
        return trace

    sys.settrace(trace)
    try:
        read()
    finally:
        sys.settrace(None)
    return done


def read_in_every_way(run: Path) -> None:
    with contextlib.suppress(LineproofError):
        read = read_run(run)
        execution = ExecutionSummary((summary_of(read),))
        as_text(summary(execution), 80)
        report(execution)
        rejudge(read_run(run))
        gate([read], [read], ComparisonRule())


def with_figure(data: Any, place: Place, figure: float) -> Any:
    changed = inside = copy.deepcopy(data)
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = figure
    return changed


def scaled(data: Any, factor: int) -> Any:
    """Return *data* with all its counts of frames that many times as large."""
    if isinstance(data, dict):
        return {name: value if "port" in name else scaled(value, factor) for name, value in data.items()}
    if isinstance(data, list):
        return [scaled(value, factor) for value in data]
    return data * factor if isinstance(data, int) and not isinstance(data, bool) else data


@pytest.fixture
def probed(run: Path) -> Path:
    """The run with a margin, and probe frames in the first trial."""
    write_rows(run / "results.jsonl", [MarginRecord(RUN, True, 1, "T", KEPT, 1.08, 1.09, "", 12.0).to_json()], RUN)
    probes = LatencyCount(0, 1, 1000, 990, 20.0, 90.0, 5.0, {10: 900, 400: 90}, 1, 2, 3)
    data = TypeAdapter(LatencyCount).dump_python(probes, mode="json")
    change_records(run / "trials.jsonl", lambda kept: kept[0]["trial"]["outcome"].update(latency=[data]))
    return run


@pytest.mark.slow
@pytest.mark.parametrize("file", ["trials.jsonl", "requirements.jsonl", "results.jsonl", "environment.json"])
def test_no_figure_of_a_record_takes_much_work_or_ends_in_a_traceback(probed: Path, file: str) -> None:
    first, *others = rows(probed / file)
    most = 20 * lines_of(lambda: read_in_every_way(probed))
    # what is no count is refused where one is expected, before anything is done with it
    changed = [with_figure(first, place, largest) for place, largest in figures_in(first)]
    if "trial" in first:
        outcome = scaled(first["trial"]["outcome"], 10**12)
        changed.append(first | {"trial": first["trial"] | {"outcome": outcome}})
    for record in changed:
        write_rows(probed / file, [record, *others], RUN)
        reseal(probed, RUN)
        lines_of(lambda: read_in_every_way(probed), most)


# -- the files that define a run, kept in its folder, make the same plan again; secrets do not get there


def own_project(folder: Path) -> Project:
    """A project with a goal, a testbed and traffic words of its own over the packaged files."""
    variables = folder / "variables"
    packaged = robot_run.ROOT / "variables"
    for kind, name in (("goals", "quick"), ("testbeds", "simulated")):
        (variables / kind).mkdir(parents=True)
        text = (packaged / kind / f"{name}.yaml").read_text(encoding="utf-8")
        (variables / kind / f"{name}.yaml").write_text(f"# api_key: hunter2\n{text}", encoding="utf-8")
    (variables / "profiles").mkdir()
    mix = (
        "entries:\n  - {kind: mix, name: imix, about: mine, frames: [{size: 100, weight: 1}, {size: 900, weight: 1}]}\n"
    )
    (variables / "profiles" / "mine.yaml").write_text(mix, encoding="utf-8")
    return Project(folder)


def kept(plan: Plan, folder: Path) -> Path:
    record = EnvironmentRecord(
        RUN, True, plan.testbed.testbed, plan.platform.platform, plan.software_name, 50.0, 0.0, goal=plan.goal
    )
    recorder = Recorder(folder, RUN, record)
    recorder.keep_inputs(plan)
    return recorder.folder.path


def test_the_kept_files_are_the_same_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = own_project(tmp_path / "project")
    plan = Plan.read(project, "netgate6100", "vpp", "simulated", "quick")
    folder = kept(plan, tmp_path / "results")
    assert "hunter2" not in (folder / INPUTS).read_text()
    # neither the project's files nor those that come with Lineproof are there any more
    monkeypatch.setattr("lineproof.project.packaged_variables", lambda: tmp_path / "nothing")
    again = read_kept_plan(read_run(folder))
    assert (again.goal, again.testbed, again.platform) == (plan.goal, plan.testbed, plan.platform)
    assert [file.card for file in again.cards] == [file.card for file in plan.cards]
    for words in ("imix", "64b 1-flow", "128b vlan"):
        assert again.catalogue.profile(words.split()) == plan.catalogue.profile(words.split())
    assert again.catalogue.profile(["imix"]).mean_size == 500, "the project's own word wins over the packaged one"


LAB = "variables/testbeds/lab.yaml"
BEGIN, END = (f"-----{word} OPENSSH PRIVATE KEY-----" for word in ("BEGIN", "END"))


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("", "password: hunter2", f"password: {REMOVED}"),
        ("", "# the api_key = hunter2", f"# the api_key = {REMOVED}"),
        ("", '{user: ci, "token": "hunter2", port: 22}', f'{{user: ci, "token": "{REMOVED}", port: 22}}'),
        ("", "see https://ci:hunter2@example.org/lab", f"see https://ci:{REMOVED}@example.org/lab"),
        ("", f"{BEGIN}\n  hunter2\n  {END}", f"{BEGIN}{REMOVED}{END}"),
        (LAB, f"key: |\n  {BEGIN}\n  hunter2", f"key: {REMOVED}\n  {BEGIN}{REMOVED}"),
        (LAB, "{user: me, key: 'hunter2'}  # a path", f"{{user: me, key: '{REMOVED}'}}  # a path"),
        *(("", text, text) for text in ("password_from: LAB", "passphrase_from: LAB", "key: id_lab", "a token bucket")),
    ],
)
def test_what_looks_like_a_secret_is_not_kept(name: str, text: str, kept: str) -> None:
    assert without_secrets(name, text) == kept


def test_no_file_of_the_packaged_ones_is_changed():
    for path in (robot_run.ROOT / "variables").rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert without_secrets("", text) == text, path


@pytest.mark.slow
def test_which_lineproof_it_was(tmp_path: Path):
    unknown = {"version": __version__, "commit": "unknown", "dirty": "unknown"}
    package = tmp_path / "lineproof"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert code_identity(package) == unknown, "no checkout"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True, timeout=20)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True, timeout=20)
    assert code_identity(package) == unknown, "installed inside the checkout of something else"
    subprocess.run([*git, "add", "lineproof"], check=True, timeout=20)
    subprocess.run([*git, "commit", "-q", "-m", "second"], check=True, timeout=20)
    found = code_identity(package)
    assert len(found["commit"]) == 40 and found["dirty"] is False
    (package / "__init__.py").write_text("# changed\n")
    assert code_identity(package) == {**found, "dirty": True}


@pytest.mark.parametrize("word", ["captured", "ours"])
def test_a_capture_or_profile_that_was_never_sent_is_named(tmp_path: Path, word: str) -> None:
    project = own_project(tmp_path / "project")
    (tmp_path / "project" / "variables" / "profiles" / "files.yaml").write_text(
        "entries:\n  - {kind: pcap, name: captured, file: c.pcap, about: a test}\n"
        "  - {kind: trex, name: ours, file: o.py, about: a test}\n"
    )
    folder = kept(Plan.read(project, "netgate6100", "vpp", "simulated", "quick"), tmp_path / "results")
    sentences = [AskedSentence("T", f"{traffic} unidirectional ≥ 1 Mpps") for traffic in (word, "64b")]
    _, (found, other) = judge_another_sla(folder, sentences)
    assert {found.ruling, other.ruling} == {Ruling.INCONCLUSIVE}
    assert f"the run never sent '{word}'" in found.message
    assert "the run has no trials that decide it" in other.message
    with pytest.raises(SentenceError, match=r"'later' is not understood.*\n\(platform, ports and traffic words are"):
        judge_another_sla(folder, [AskedSentence("T", "later unidirectional ≥ 1 Mpps")])


LOADED = Load(5e6)

SHARES = st.sampled_from((0.0, 0.0, 0.0, 1e-4, 0.01, 0.2))
FAULTS = st.sampled_from(((), (), (), (Fault.LINK_DOWN,), (Fault.UNDER_OFFERED,), (Fault.CLOCK, Fault.GENERATOR)))


def bench(*trials: TrialRecord, readings: Sequence[Reading] = (), **changes: Any) -> RecordedBench:
    """A bench that knows nothing but the records of a sentence."""
    record = requirement_record(**changes)
    named = [replace(trial, requirement=record.number) for trial in trials]
    read = [ReadingRecord(RUN, True, record.number, reading) for reading in readings]
    run = RecordedRun(Path("run"), tuple(named), (record,), ENVIRONMENT, readings=tuple(read))
    return RecordedBench(run, PLAN, record)


def recorded(trials: list[tuple[Trial, Standing]]) -> RecordedBench:
    """*trials* as they are read back from their records."""
    rows = []
    for trial, standing in trials:
        whole = replace(trial_record(), trial=trial, evidence=standing.last)
        rows.append(TrialRecord.from_json(json.dumps(whole.to_json()).encode()))
    return bench(*rows)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(SHARES, st.sampled_from((1.0, 1.0, 0.9)), FAULTS), min_size=60, max_size=60),
    st.sampled_from(("64b 1-flow unidirectional ≥ 5 Mpps", "64b unidirectional forwards ≥ 5 Mpps")),
)
def test_judged_from_the_records_is_judged_live(shares, sentence):
    promise, rows = parse(sentence, PLAN.catalogue).promise(PLAN.goal, LOADED, LINK), iter(shares)

    def live(load: Load, duration: float) -> Outcome:
        loss, sent, faults = next(rows)
        return router(loss, sent=sent, problems=tuple(map(fault, faults)))(load, duration)

    kept: list[tuple[Trial, Standing]] = []
    conditions = TrialConditions(Tolerance(), 1.0, on_trial=lambda *found: kept.append(found))
    judged = decide(promise, live, conditions, LINK / 672)
    again = recorded(kept)
    # of another plan, which asks for other loads and times
    found = decide(promise, again.measure_of(promise, nobody), TrialConditions(Tolerance(), 1.0), LOADED.pps)
    assert (found.ruling, found.trials) == (judged.ruling, judged.trials)
    assert again.judged == len(kept)


def next_outcome(bench: RecordedBench) -> Outcome:
    """Return what a trial of 1 s at 1 Mpps comes to."""
    requirement = parse("64b unidirectional ≥ 1 Mpps", PLAN.catalogue)
    promise = requirement.promise(PLAN.goal, requirement.threshold_load(LINK), LINK)
    return bench.measure_of(promise, nobody)(LOADED, 1.0)


def test_one_more_trial_than_recorded_is_a_mismatch_and_a_breakdown_is_repeated():
    row = trial_record()
    sentence = bench(row)
    assert next_outcome(sentence) == row.trial.outcome
    with pytest.raises(RecordMismatch, match="more than the 1 recorded trials"):
        next_outcome(sentence)
    with pytest.raises(TestbedError, match=r"^the server no longer answers$"):
        next_outcome(bench(breakdown="the server no longer answers"))


@pytest.mark.parametrize(("pps", "seconds"), [(2e6, 1.0), (0.98e6, 1.0), (1e6, 0.9)])
def test_trials_of_less_or_much_more_than_is_asked_now_are_a_mismatch(pps, seconds):
    with pytest.raises(RecordMismatch, match=f"and the recorded one took {seconds:g} s at"):
        next_outcome(bench(trial_record(pps=pps, duration=seconds)))


def test_readings_are_those_of_their_moment_and_fail_as_they_did():
    readings = [
        Reading(BEFORE, Telemetry(1.0, {})),
        Reading("under load", Telemetry(2.0, {})),
        Reading("trial 1", None, "the link dropped"),
        Reading("trial 3", None, "the router restarted", restarted=True),
        Reading(AFTER, Telemetry(9.0, {})),
    ]
    sentence = bench(readings=readings)
    with pytest.raises(TestbedError, match=r"^the link dropped$"):
        sentence.read("trial 1")
    assert sentence.read(BEFORE).uptime == 1.0
    with pytest.raises(TestbedError, match="no reading of the router was recorded: trial 2"):
        sentence.read("trial 2")
    with pytest.raises(RouterRestarted):
        sentence.read("trial 3")
    assert sentence.read(AFTER).uptime == 9.0
    # it is recorded only where it shows a change
    assert sentence.read(SET_UP) == Telemetry(None, {})
    with pytest.raises(TestbedError, match="no reading of the router was recorded: after"):
        sentence.read(AFTER)
    with pytest.raises(RecordMismatch, match="no reading of the router was recorded: before"):
        bench().read(BEFORE)
