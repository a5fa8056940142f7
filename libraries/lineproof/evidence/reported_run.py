"""A run as its report shows it: tests with status, message, parameters and links; and its point in their history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import md5
from pathlib import Path
from typing import Any

from ..units import counted
from ..visible import visible_data
from .recorder import ABOUT, SLA
from .run import RecordedRun
from .sentence_rows import SentenceRow, unfinished_sentences
from .summary import RunSummary, confidence_words, interval_text, margin_text, measured_text

STATUS = {"PASS": "passed", "INCONCLUSIVE": "broken", "FAIL": "failed"}
"""Of Allure, by verdict; the later the worse."""

_ADDRESS = re.compile(r"https?://[^\s|<>\"'\])]+(?<![.,;:])")


@dataclass(frozen=True)
class ReportedRun:
    """A run with its summary. ``execution``: the folder of its execution's first run, which has Allure's results."""

    run: RecordedRun
    summary: RunSummary
    execution: Path

    @property
    def suite(self) -> str:
        """The suite's own name, without those above it; the folder's where nobody wrote it down."""
        return self.summary.suite.rpartition(".")[2] or self.run.path.name

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two runs the same, repeated: platform, software, suite."""
        found = self.run.environment
        return (found.platform, found.software, self.suite) if found else ("unknown", "unknown", self.suite)

    @property
    def started(self) -> float:
        """Unix time in s."""
        times = [record.started for record in (self.run.environment, *self.run.requirements) if record is not None]
        return min(times, default=0.0)

    @property
    def host(self) -> str:
        """The name of the machine that ran it."""
        return str(self.run.environment.host.get("name") or "unknown") if self.run.environment else "unknown"

    @cached_property
    def tests(self) -> tuple[RecordedTest, ...]:
        """Its tests in order, with that in which it ended."""
        rows: dict[str, list[SentenceRow]] = {}
        for row in self.summary.rows:
            rows.setdefault(row.record.test, []).append(row)
        open_sentences: dict[str, str] = {}
        for (test, sentence), trials in unfinished_sentences(self.run).items():
            if test:
                rows.setdefault(test, [])
                open_sentences[test] = f"the run ended after {counted(trials, 'trial')} of '{sentence}'"
        return tuple(RecordedTest(self, test, tuple(of), open_sentences.get(test, "")) for test, of in rows.items())


@dataclass(frozen=True)
class RecordedTest:
    """A test with its sentences; ``ended``: how the run ended within it, "" if it did not."""

    run: ReportedRun
    name: str
    rows: tuple[SentenceRow, ...]
    ended: str = ""

    @property
    def long_name(self) -> str:
        """As Robot has it."""
        return f"{self.run.summary.suite or self.run.suite}.{self.name}"

    @property
    def case_id(self) -> str:
        """What the test is known by in every run of this suite on this platform."""
        return md5_of(json.dumps([*self.run.key, self.name]))

    @property
    def history_id(self) -> str:
        """As Allure 3 makes it of ``case_id``, where no parameter is part of a test's identity."""
        return f"{md5_of(self.case_id)}.{md5_of('')}"

    @property
    def status(self) -> str:
        """The worst of its verdicts; of a sentence without one it is INCONCLUSIVE."""
        verdicts = [row.record.verdict for row in self.rows] + (["INCONCLUSIVE"] if self.ended else [])
        return max((STATUS[verdict] for verdict in verdicts), key=rank, default="unknown")

    @property
    def failures(self) -> list[str]:
        """The messages of its verdicts that are no PASS."""
        return [words for words, passed in self._messages if not passed]

    @property
    def _messages(self) -> list[tuple[str, bool]]:
        found = [(row.record.message, row.record.verdict == "PASS") for row in self.rows]
        return found + ([(f"INCONCLUSIVE: {self.ended}; it has no verdict", False)] if self.ended else [])

    @property
    def message(self) -> str:
        """The messages of its verdicts, numbered if there are several."""
        words = [words for words, _ in self._messages]
        return words[0] if len(words) == 1 else "\n".join(f"{number}) {text}" for number, text in enumerate(words, 1))

    @property
    def times(self) -> tuple[int, int]:
        """Start and end in ms of Unix time."""
        starts = [row.record.started for row in self.rows] or [self.run.started]
        return round(1000 * min(starts)), round(1000 * max([row.record.ended for row in self.rows] or starts))

    @property
    def _about(self) -> Mapping[str, Any]:
        found = self.rows[0].record.extra.get(ABOUT) if self.rows else None
        return found if isinstance(found, Mapping) else {}

    @property
    def documentation(self) -> str:
        """As the suite has it; "" where it was not recorded."""
        return str(self._about.get("documentation", ""))

    @property
    def tags(self) -> list[str]:
        """As the suite has them."""
        return [str(tag) for tag in self._about.get("tags", ())]

    def parameters(self) -> Iterator[dict[str, Any]]:
        """Its figures. They are no part of a test's identity: a changed threshold keeps its history."""
        for number, row in enumerate(self.rows, 1):
            record, prefix = row.record, f"{number}. " if len(self.rows) > 1 else ""
            named = {
                "sentence": record.sentence,
                "threshold": str(record.demand),
                "measured": measured_text(row),
                confidence_words([row]): interval_text(row),
                "margin": margin_text(row),
                "verdict": record.verdict,
                "trials": f"{len(row.sample)} counted, {row.set_aside} set aside",
                "goal": record.goal,
            }
            yield from ({"name": f"{prefix}{name}", "value": value, "excluded": True} for name, value in named.items())

    def links(self) -> Iterator[dict[str, str]]:
        """Where the SLA is: the addresses in the suite's metadata ``SLA``, and those in the test's documentation."""
        extra = self.run.run.environment.extra if self.run.run.environment else {}
        source = str(extra.get(SLA, ""))
        name = " ".join(_ADDRESS.sub("", source).replace("()", "").split()).strip(" :,;-–") or "SLA"
        yield from ({"type": "link", "name": name, "url": address} for address in _ADDRESS.findall(source))
        yield from ({"type": "link", "name": url, "url": url} for url in _ADDRESS.findall(self.documentation))


def history_point(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """A line of Allure 3's ``history.jsonl``: one execution's *runs*, from their records."""
    results = {}
    for test in (test for run in runs for test in run.tests):
        start, stop = test.times
        known = {"id": md5_of(f"{test.run.run.path.name}/{test.name}"), "name": test.name, "fullName": test.long_name}
        results[test.history_id] = {
            **known,
            **{"status": test.status, "message": test.message, "trace": "", "environment": "default", "url": ""},
            **{"start": start, "stop": stop, "duration": stop - start, "labels": [], "reportLinks": []},
            "historyId": test.history_id,
        }
    execution = runs[0].execution.name
    point: dict[str, Any] = {
        "uuid": execution,
        "name": execution,
        "timestamp": round(1000 * runs[0].started),
        "url": "",
    }
    return {**point, "metrics": {}, "knownTestCaseIds": [], "testResults": visible_data(results)}


def rank(status: object) -> int:
    """How bad a *status* of Allure is; 0 is the best."""
    ranks = list(STATUS.values())
    return ranks.index(str(status)) if status in ranks else 0


def md5_of(text: str) -> str:
    """As Allure makes identities of texts."""
    return md5(text.encode(), usedforsecurity=False).hexdigest()
