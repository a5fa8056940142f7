"""The report of runs: one HTML file that needs no network, made by Allure 3 from the runs' records.

The newest run of each suite, platform and software is what it shows; the others are its history.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import TestbedError
from ..files import read_file, write_whole
from ..system.node import Node
from ..units import counted
from ..visible import visible
from .allure import CATEGORIES, write_environment
from .allure_program import run_allure
from .recorder import EXECUTOR
from .report_page import check_counts, mend_page
from .report_results import write_results
from .reported_run import ReportedRun, history_point
from .run import read_run
from .run_files import REQUIREMENTS, partial
from .summary import summary_of
from .summary_files import execution_runs
from .tables import SIMULATED

LARGEST = 10 << 20
"""Bytes that a report may have to be sent around; more is said."""

_FURTHER = re.compile(r"(?P<first>.+-[0-9a-f]{6})-\d+")
_GROUPS = ["parentSuite", "suite", "subSuite"]


def read_executions(folders: Sequence[Path]) -> list[list[ReportedRun]]:
    """The runs of the executions that *folders* belong to, the oldest execution first.

    Raises ConfigError for what is no run, or was altered.
    """
    first = dict.fromkeys(_execution(folder) for folder in folders)
    executions = [[_read(run, folder) for run in execution_runs(folder)] or [_read(folder, folder)] for folder in first]
    return sorted(executions, key=lambda runs: runs[0].started)


def _read(folder: Path, execution: Path) -> ReportedRun:
    run = read_run(folder)
    return ReportedRun(run, summary_of(run), execution)


def _execution(folder: Path) -> Path:
    """The folder of the execution's first run, which has its Allure results."""
    # a folder may be named as '.'
    folder = folder if folder.name else folder.resolve()
    found = _FURTHER.fullmatch(folder.name)
    if found and (folder.with_name(found["first"]) / REQUIREMENTS).exists():
        return folder.with_name(found["first"])
    return folder


def newest(executions: Sequence[Sequence[ReportedRun]]) -> list[ReportedRun]:
    """The newest run of each key, in the order of time."""
    found = {run.key: run for runs in executions for run in runs}
    return sorted(found.values(), key=lambda run: (run.started, run.run.path.name))


def make_report(executions: Sequence[Sequence[ReportedRun]], node: Node, output: Path) -> int:
    """Write the report of *executions* (:func:`read_executions`) to *output*; returns its size in bytes.

    Raises TestbedError if Allure fails, or a file cannot be written.
    """
    shown = newest(executions)
    keys = {id(run) for run in shown}
    older = [[run for run in runs if id(run) not in keys] for runs in executions]
    try:
        work = tempfile.TemporaryDirectory(prefix="lineproof-report-", ignore_cleanup_errors=True)
    except OSError as error:
        raise TestbedError(f"no temporary folder for the report: {error}; expected room in TMPDIR") from error
    with work as name:
        folder = Path(name)
        (folder / "results").mkdir()
        others = [run for runs in older for run in runs]
        ids, notes = write_results(shown, folder / "results", others)
        left_out = {"left out": "; ".join(notes)} if notes else {}
        write_environment(folder / "results", {**_environment(shown), **left_out})
        _write_json(folder / "results" / "executor.json", _executor(shown))
        lines = [json.dumps(history_point(runs), ensure_ascii=False) + "\n" for runs in older if runs]
        write_whole(folder / "history.jsonl", "".join(lines))
        _write_json(folder / "allurerc.json", _settings(_title(shown)))
        run_allure(node, folder / "results", folder / "allurerc.json", folder / "made")
        made = _page(folder / "made")
        check_counts(made, ids)
        page = mend_page(made, {"widgets/quality-gate.json": {"default": _gate(shown, ids)}})
    write_whole(output, page, "name another file by --output", fresh=partial(output))
    return len(page.encode())


def _page(folder: Path) -> str:
    found = [path for path in folder.rglob("index.html") if "allureReportData" in _text(path)]
    if len(found) != 1:
        raise TestbedError(f"Allure made {counted(len(found), 'page')}; expected one")
    return _text(found[0])


def _text(path: Path) -> str:
    return read_file(path).decode("utf-8", "replace")


def _write_json(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False))


def _title(shown: Sequence[ReportedRun]) -> str:
    tested = dict.fromkeys(f"{platform} {software}" for platform, software, _ in (run.key for run in shown))
    words = visible(", ".join(tested))
    words += f" – {SIMULATED}" if any(run.summary.simulated for run in shown) else ""
    return f"{words} – INCOMPLETE" if any(run.summary.incomplete for run in shown) else words


def _settings(title: str) -> dict[str, Any]:
    """Allure 3's configuration, beside the results."""
    options = {
        "singleFile": True,
        "reportLanguage": "en",
        "groupBy": _GROUPS,
        "stepTreeExpansion": "expand_failed_only",
        "sections": ["charts", "timeline"],
    }
    return {
        "name": title,
        "historyPath": "./history.jsonl",
        "appendHistory": False,
        "hideLabels": ["framework", "language", "host", "thread", "package"],
        "categories": list(CATEGORIES),
        "plugins": {"awesome": {"options": options}},
    }


def _environment(shown: Sequence[ReportedRun]) -> Mapping[str, str]:
    """Every fact of the runs that are shown; one that differs has a name for each run."""
    found: dict[str, str] = {}
    for name, words, run in _facts(shown):
        found[name if found.get(name, words) == words else f"{name} ({run.run.path.name})"] = words
    return found


def _facts(shown: Sequence[ReportedRun]) -> Iterator[tuple[str, str, ReportedRun]]:
    for run in shown:
        if run.summary.simulated:
            yield "SIMULATED", SIMULATED, run
        for name, words in run.summary.facts.items():
            yield name, words, run
        yield f"run {run.run.path.name}", str(run.run.path), run
        if run.summary.incomplete:
            yield "incomplete", "; ".join(run.summary.incomplete), run


def _executor(shown: Sequence[ReportedRun]) -> dict[str, str]:
    """What started the newest run, as it recorded."""
    environment = shown[-1].run.environment
    given = environment.extra.get(EXECUTOR) if environment else None
    known = {str(key): str(text) for key, text in given.items()} if isinstance(given, Mapping) else {}
    if not known.get("buildUrl", "").startswith(("https://", "http://")):
        known.pop("buildUrl", None)
    host = str(environment.host.get("name", "")) if environment else ""
    return {"name": host or "unknown", "type": "local", "buildName": shown[-1].execution.name, **known}


def _gate(shown: Sequence[ReportedRun], ids: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The quality gate: everything passed, nothing is open, and nothing is missing."""
    incomplete = [words for run in shown for words in run.summary.incomplete]
    rules = (
        ("no test fails", counted(len(ids.get("failed", ())), "failed test"), ids.get("failed", ())),
        ("no test is inconclusive or broken", counted(len(ids.get("broken", ())), "such test"), ids.get("broken", ())),
        ("every run ended", "; ".join(incomplete), ()),
    )
    return [
        {
            **{"rule": rule, "success": good, "expected": 0, "actual": len(tests) or int(not good)},
            **{"message": f"{rule}: {found or 'all did'}", "environment": "default", "testResults": list(tests)},
        }
        for rule, found, tests in rules
        for good in [not tests and (rule != "every run ended" or not incomplete)]
    ]
