"""Allure's results of recorded runs. The records decide; what Allure's listener left of a test adds its steps.

A run that was killed has no results of the listener: its tests are made of the records alone.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from ..files import write_whole
from ..units import counted
from ..visible import visible_data
from .listener_leavings import LeftBehind
from .plots import svg_image
from .quantity_plots import plot_name, sentence_plot
from .records import TrialRecord
from .reported_run import RecordedTest, ReportedRun, md5_of, rank
from .run_files import DERIVED_SUMS
from .sentence_rows import SentenceRow
from .tables import trials_table
from .why_record import WHY

NO_TESTBED = "no testbed was opened"
SEVERITIES = ("blocker", "critical", "normal", "minor", "trivial")
_NOT_OF_A_TEST = ("parentSuite", "suite", "subSuite", "severity")
_ALLURE_LABEL = re.compile(r"@?allure\.label\.severity[:=](\w+)|severity:(\w+)", re.IGNORECASE)


class _Traffic(NamedTuple):
    """What tables and pictures need of a profile."""

    name: str
    mean_size: float


def write_results(
    shown: Sequence[ReportedRun], folder: Path, others: Sequence[ReportedRun] = ()
) -> tuple[dict[str, list[str]], list[str]]:
    """Write Allure's results of the runs *shown* into *folder*; the ids of the page's tests by status, and notes.

    *others*: those of the same executions that are not shown. Each result is a test of its own: none is another one's
    retry, whose status Allure would not count. Raises TestbedError if a file cannot be written.
    """
    executions: dict[Path, list[ReportedRun]] = defaultdict(list)
    for found in sorted((*shown, *others), key=lambda run: run.started):
        executions[found.execution].append(found)
    ids: dict[str, list[str]] = defaultdict(list)
    notes: list[str] = []
    shown_ids = {id(run) for run in shown}
    for execution, runs in executions.items():
        if not any(id(run) in shown_ids for run in runs):
            continue
        left = LeftBehind(execution)
        results = list(_execution_results(runs, shown_ids, left, folder))
        uuids: dict[str, str] = {}
        for old, result in results:
            _write(folder / f"{uuid4()}-result.json", result)
            ids[result["status"]].append(md5_of(result["uuid"]))
            if old is not None:
                uuids.setdefault(old, result["uuid"])
        for container in left.containers:
            children = [uuids[child] for child in dict.fromkeys(container["children"]) if child in uuids]
            if children:
                data = {**left.copied(container, folder), "uuid": str(uuid4()), "children": children}
                _write(folder / f"{uuid4()}-container.json", data)
        if left.strange:
            several = counted(len(left.strange), "file")
            notes.append(f"{several} of {execution.name}/allure left out: not as {DERIVED_SUMS} has them")
    return ids, notes


def _execution_results(
    runs: Sequence[ReportedRun], shown: Collection[int], left: LeftBehind, folder: Path
) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """The results of an execution's *runs*, those *shown* by their ids, with the listener's own uuid of each."""
    for found in runs:
        for test in found.tests:
            start, stop = test.times
            # of a test without a verdict nobody wrote down when it ended
            base = left.take(test.long_name, start, stop if test.rows else math.inf)
            if id(found) in shown:
                old = base["uuid"] if base else None
                yield old, _test_result(test, left.copied(base, folder), folder)
    suites = {run.summary.suite for run in runs if id(run) not in shown}
    suites -= {run.summary.suite for run in runs if id(run) in shown}
    recorded = {test.long_name for run in runs for test in run.tests}
    for number, data in enumerate(left.rest(recorded)):
        if ".".join(data["titlePath"]) not in suites:
            result = _unrecorded(left.copied(data, folder), [run for run in runs if id(run) in shown])
            case = md5_of(json.dumps([runs[0].execution.name, number, data.get("fullName", "")]))
            yield data["uuid"], {**result, "testCaseId": case, "historyId": case}


def _test_result(test: RecordedTest, base: Mapping[str, Any] | None, folder: Path) -> dict[str, Any]:
    """The result of *test*, with the steps of the listener's *base*; without one its own tables and pictures."""
    run, (start, stop) = test.run, test.times
    result: dict[str, Any] = {
        "start": start,
        "stop": stop,
        "labels": [{"name": "framework", "value": "robotframework"}, {"name": "host", "value": run.host}],
        **(base or {}),
        **_outcome(test, base),
    }
    if base is None:
        words = f"<p>{escape(test.documentation)}</p>" if test.documentation else ""
        result["descriptionHtml"] = words + "".join(_drawn(run, row) for row in test.rows)
        result["attachments"] = [item for row in test.rows for item in _attachments(run, row, folder)]
        result["labels"] += [{"name": "tag", "value": tag} for tag in test.tags]
    return {
        **result,
        "uuid": str(uuid4()),
        "name": test.name,
        "fullName": test.long_name,
        "testCaseId": test.case_id,
        "historyId": test.case_id,
        "titlePath": list(run.key),
        "labels": _labels(result, run.key, test.tags),
        "links": [*test.links(), *result.get("links", ())],
        "parameters": list(test.parameters()),
    }


def _outcome(test: RecordedTest, base: Mapping[str, Any] | None) -> dict[str, Any]:
    """Status and message: the records', but what failed outside of its sentences.

    The listener's folder has no chain, as the records have.
    """
    if base is None:
        return {"status": test.status, "statusDetails": {"message": test.message}}
    worse = rank(base["status"]) > rank(test.status)
    given = base["statusDetails"].get("message", "")
    details = dict(base["statusDetails"])
    if worse or test.status == base["status"]:
        # Robot has a mark before them, and may have several
        missing = [words for words in test.failures if words not in given]
        details["message"] = "\n".join([*missing, *([given] if given else [])])
    else:
        details = {"message": test.message}
    return {"status": base["status"] if worse else test.status, "statusDetails": details}


def _unrecorded(data: Mapping[str, Any], runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """The result of a test that nothing was recorded of, beside those of its suite among *runs*, if that was opened."""
    suite = ".".join(data["titlePath"])
    found = next((run for run in runs if run.summary.suite == suite), None)
    key = found.key if found else (NO_TESTBED, "", suite.rpartition(".")[2])
    path = {"titlePath": list(found.key)} if found else {}
    parameters = [{"name": "recorded", "value": "nothing: no sentence was judged", "excluded": True}]
    return {**data, **path, "uuid": str(uuid4()), "labels": _labels(data, key, ()), "parameters": parameters}


def _labels(data: Mapping[str, Any], key: Sequence[str], tags: Sequence[str]) -> list[Any]:
    """The labels of a result, with its place by platform, software and suite, and its severity."""
    given = data.get("labels")
    known = [label for label in given if isinstance(label, dict)] if isinstance(given, list) else []
    places = zip(_NOT_OF_A_TEST, (*key, _severity([*tags, *_tags(known)], known)), strict=True)
    return [
        *(label for label in known if label.get("name") not in _NOT_OF_A_TEST and not _is_severity(label)),
        *({"name": name, "value": value} for name, value in places if value),
    ]


def _tags(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(label.get("value")) for label in labels if label.get("name") == "tag"]


def _is_severity(label: Mapping[str, Any]) -> bool:
    return label.get("name") == "tag" and _ALLURE_LABEL.fullmatch(str(label.get("value"))) is not None


def _severity(tags: Iterable[str], labels: Iterable[Any]) -> str:
    given = [match[1] or match[2] for tag in tags if (match := _ALLURE_LABEL.fullmatch(tag))]
    given += [
        str(label.get("value")) for label in labels if isinstance(label, dict) and label.get("name") == "severity"
    ]
    return next((word.lower() for word in given if word.lower() in SEVERITIES), "normal")


def _judged(found: ReportedRun, row: SentenceRow) -> list[TrialRecord]:
    return [item for item in found.run.trials if item.requirement == row.record.number and item.trial.number]


def _shown(found: ReportedRun, row: SentenceRow) -> tuple[Any, ...]:
    record = row.record
    trials = [item.trial for item in _judged(found, row)]
    traffic = _Traffic(record.profile, record.mean_size)
    return trials, traffic, record.link_bps, f"{record.verdict}: {record.sentence}", record.simulated


def _plot(found: ReportedRun, row: SentenceRow) -> str:
    """The sentence's picture; "" if it has no trial."""
    trials, *shown = _shown(found, row)
    step_downs = {item.trial.number: item.step_down for item in _judged(found, row) if item.step_down is not None}
    traffic, link_bps, title, simulated = shown
    return sentence_plot(row.record.demand, trials, traffic, link_bps, title, simulated, step_downs) if trials else ""


def _drawn(found: ReportedRun, row: SentenceRow) -> str:
    plot = _plot(found, row)
    return svg_image(plot_name(row.record.demand), plot) if plot else ""


def _attachments(found: ReportedRun, row: SentenceRow, folder: Path) -> Iterator[dict[str, str]]:
    shown, record = _shown(found, row), row.record
    texts = [("Trials", "html", "text/html", trials_table(*shown))] if shown[0] else []
    if plot := _plot(found, row):
        texts.append((plot_name(record.demand), "svg", "image/svg+xml", plot))
    why = record.extra.get(WHY)
    causes = why.get("explanations") if isinstance(why, Mapping) else None
    if causes:
        words = [
            f"{item['words']} ({item['confidence']}){'; ' if item['remedy'] else ''}{item['remedy']}" for item in causes
        ]
        texts.append(("Why", "txt", "text/plain", "\n".join(words)))
    texts.append(("Verdict", "txt", "text/plain", record.message))
    for name, ending, kind, text in texts:
        file = f"{uuid4()}-attachment.{ending}"
        write_whole(folder / file, text)
        yield {"name": name, "source": file, "type": kind}


def _write(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(visible_data(data), ensure_ascii=False))
