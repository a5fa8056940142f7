"""Allure's results of recorded runs. The records decide; what Allure's listener left of a test adds its steps.

A run that was killed has no results of the listener: its tests are made of the records alone.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from ..files import write_whole
from ..json_text import parse_json
from ..visible import visible_data
from .plots import svg_image
from .quantity_plots import plot_name, sentence_plot
from .records import TrialRecord
from .reported_run import RecordedTest, ReportedRun, md5_of, rank
from .sentence_rows import SentenceRow
from .tables import html_page, trials_table
from .why_record import WHY

NO_TESTBED = "no testbed was opened"
SEVERITIES = ("blocker", "critical", "normal", "minor", "trivial")
LARGEST_ATTACHMENT = 2 << 20
"""Bytes; what is larger is left out, and said so."""

_LARGEST_RESULT = 16 << 20
_ATTACHMENT = re.compile(r"[\w-]{1,80}-attachment(\.\w{1,8})?")
_NOT_OF_A_TEST = ("parentSuite", "suite", "subSuite", "severity")
_ALLURE_LABEL = re.compile(r"@?allure\.label\.severity[:=](\w+)|severity:(\w+)", re.IGNORECASE)


class _Traffic(NamedTuple):
    """What tables and pictures need of a profile."""

    name: str
    mean_size: float


class LeftBehind:
    """What Allure's listener left of an execution: results by the test's long name, and the suites' fixtures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        # a test may be there twice: early, and as its suite wrote it
        once = {found["uuid"]: found for found in self._read("*-result.json")}
        for found in sorted(once.values(), key=lambda data: str(data.get("start"))):
            self.results[str(found.get("fullName"))].append(found)
        self.containers = list(self._read("*-container.json"))
        self.notes: list[str] = []

    def _read(self, pattern: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self._folder.glob(pattern)):
            try:
                if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_RESULT:
                    continue
                data = parse_json(path.read_bytes())
            except (OSError, ValueError):
                continue  # a process was killed in it
            if isinstance(data, dict) and isinstance(data.get("uuid"), str):
                yield data

    def take(self, long_name: str) -> dict[str, Any] | None:
        """The next result of the test, in the order of time; None: it left none."""
        return self.results[long_name].pop(0) if self.results.get(long_name) else None

    def rest(self) -> list[dict[str, Any]]:
        """The tests that nothing was recorded of: no testbed was opened, or they have no sentence."""
        return [found for name in list(self.results) for found in self.results.pop(name)]

    def copy_attachments(self, data: Any, to: Path) -> None:
        """Copy the files that *data* names. A file that is too large is replaced by a text that says so."""
        for source in set(_sources(data)):
            path = self._folder / source
            if not _ATTACHMENT.fullmatch(source) or path.is_symlink() or not path.is_file():
                continue
            if (size := path.stat().st_size) > LARGEST_ATTACHMENT:
                words = f"left out of the report: {size} bytes; it is {path}\n"
                write_whole(to / source, html_page("left out", words) if source.endswith(".html") else words)
            else:
                shutil.copyfile(path, to / source, follow_symlinks=False)


def write_results(shown: Sequence[ReportedRun], folder: Path) -> dict[str, list[str]]:
    """Write Allure's results of the runs into *folder*; the ids of the page's tests by status.

    Raises TestbedError if a file cannot be written.
    """
    left: dict[Path, LeftBehind] = {}
    ids: dict[str, list[str]] = defaultdict(list)
    written: set[str] = set()
    for found in shown:
        leavings = left.setdefault(found.execution, LeftBehind(found.execution / "allure"))
        for test in found.tests:
            base = leavings.take(test.long_name)
            result = _test_result(test, base, folder)
            leavings.copy_attachments(base, folder)
            ids[_write_result(result, folder)].append(md5_of(result["uuid"]))
            written.add(result["uuid"])
    for execution, leavings in left.items():
        for data in leavings.rest():
            result = _unrecorded(data, [found for found in shown if found.execution == execution])
            leavings.copy_attachments(data, folder)
            ids[_write_result(result, folder)].append(md5_of(result["uuid"]))
            written.add(result["uuid"])
        for container in leavings.containers:
            children = container.get("children")
            if written.intersection(map(str, children if isinstance(children, list) else ())):
                leavings.copy_attachments(container, folder)
                _write(folder / f"{uuid4()}-container.json", container)
    return ids


def _test_result(test: RecordedTest, base: Mapping[str, Any] | None, folder: Path) -> dict[str, Any]:
    """The result of *test*, with the steps of the listener's *base*; without one its own tables and pictures."""
    run, (start, stop) = test.run, test.times
    result: dict[str, Any] = {
        "uuid": str(uuid4()),
        "start": start,
        "stop": stop,
        "status": test.status,
        "labels": [{"name": "framework", "value": "robotframework"}, {"name": "host", "value": run.host}],
        **(base or {}),
    }
    if base is None or rank(test.status) > rank(result["status"]):
        # the listener's folder has no chain, as the records have
        result.update(status=test.status, statusDetails={"message": test.message})
    if base is None:
        words = f"<p>{escape(test.documentation)}</p>" if test.documentation else ""
        result["descriptionHtml"] = words + "".join(_drawn(run, row) for row in test.rows)
        result["attachments"] = [item for row in test.rows for item in _attachments(run, row, folder)]
        result["labels"] += [{"name": "tag", "value": tag} for tag in test.tags]
    given = result.get("links")
    return {
        **result,
        "name": test.name,
        "fullName": test.long_name,
        "testCaseId": test.case_id,
        "historyId": test.case_id,
        "titlePath": list(run.key),
        "labels": _labels(result, run.key, test.tags),
        "links": [*test.links(), *(given if isinstance(given, list) else ())],
        "parameters": list(test.parameters()),
    }


def _unrecorded(data: Mapping[str, Any], runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """The result of a test that nothing was recorded of, beside those of its suite among *runs*, if that was opened."""
    path = data.get("titlePath")
    suite = ".".join(map(str, path)) if isinstance(path, list) else ""
    found = next((run for run in runs if run.summary.suite == suite), None)
    if found is None:
        return {**data, "labels": _labels(data, (NO_TESTBED, "", suite.rpartition(".")[2]), ())}
    case = RecordedTest(found, str(data.get("name")), ()).case_id
    labels = _labels(data, found.key, ())
    return {**data, "testCaseId": case, "historyId": case, "titlePath": list(found.key), "labels": labels}


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


def _sources(data: Any) -> Iterator[str]:
    """Every ``source`` of an attachment in *data*."""
    if isinstance(data, dict):
        if isinstance(data.get("source"), str):
            yield data["source"]
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from _sources(item)


def _write_result(result: Mapping[str, Any], folder: Path) -> str:
    _write(folder / f"{uuid4()}-result.json", result)
    return str(result.get("status"))


def _write(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(visible_data(data), ensure_ascii=False))
