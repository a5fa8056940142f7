"""Every run of a suite in a test is judged again from its folder: the records must suffice, whatever happened in it."""

from __future__ import annotations

from pathlib import Path

from lineproof.evidence.another_sla import judge_another_sla
from lineproof.evidence.rejudging import rejudge


def check_runs(results: Path) -> None:
    """Each run below *results* comes to the same verdicts again, for the same reasons in the same words.

    So do its sentences as those of another suite: each to a verdict that it has in this test.
    """
    for folder in sorted(path.parent for path in results.glob("*/inputs")):
        found = rejudge(folder)
        for item in found.sentences:
            told = (*item.problems, *item.notes)
            assert item.same and not told, f"{folder}: {item.record.message}\nagain: {item.verdict}\n{told}"
        verdicts = {(item.record.test, item.record.sentence, item.record.verdict) for item in found.sentences}
        for other in judge_another_sla(folder, None)[1]:
            assert (other.asked.test, other.asked.sentence, other.ruling.value) in verdicts, f"{folder}: {other}"
