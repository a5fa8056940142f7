"""The search for the margin after a sentence: when there is one, and that it changes no verdict."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from robot.errors import ExecutionFailed

from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.evidence.records import MarginRecord
from lineproof.methods.margin import Margin
from lineproof.robot import characterisation
from lineproof.robot.characterisation import CharacterisationKeywords
from lineproof.robot.shared import Judged
from support.catalogue import CATALOGUE
from support.paths import ROOT

RATE, PASS = "64b unidirectional ≥ 5 Mpps", Ruling.PASS


def searched(
    monkeypatch: pytest.MonkeyPatch, search: Mock, sentence: str = RATE, ruling: Ruling = PASS, wanted: bool = True
) -> str:
    """Return what the keyword adds to the message of such a verdict. *search*: the characteriser's."""
    work = nullcontext(SimpleNamespace(characteriser=SimpleNamespace(margin=search)))
    monkeypatch.setattr(characterisation, "CharacterisationWork", lambda *terms: work)

    def keep(found: Margin, *name: object) -> MarginRecord:
        return MarginRecord("run", True, 1, "T", sentence, found.low, found.high, found.reason, 0.0, limit=found.limit)

    kept = SimpleNamespace(number=1, keep_margin=keep)
    verdict: Any = SimpleNamespace(ruling=ruling, requirement=parse(sentence, CATALOGUE))
    judged = Judged(verdict.requirement, "PASS", verdict)
    shared: Any = SimpleNamespace(records=kept, sentence=judged, verdict=verdict)
    CharacterisationKeywords(shared).search_for_more(wanted, None, "never", None)
    return "\n".join(judged.more)


def test_a_suite_searches_unless_it_is_told_not_to():
    lines = (ROOT / "resources" / "acceptance.resource").read_text(encoding="utf-8").splitlines()
    assert ["${MARGIN}", "on"] in map(str.split, lines) and ["${MARGIN_DEADLINE}", "15"] in map(str.split, lines)


@pytest.mark.parametrize(
    ("sentence", "ruling", "wanted", "searches"),
    [
        (RATE, PASS, True, 1),
        (RATE, PASS, False, 0),
        (RATE, Ruling.FAIL, True, 0),
        (RATE, Ruling.INCONCLUSIVE, True, 0),
        ("64b unidirectional latency p99 ≤ 1 ms at 1 Mpps", PASS, True, 0),
        ("64b unidirectional loses ≤ 1% at 1 Mpps", PASS, True, 0),
    ],
)
def test_only_a_pass_of_a_rate_is_followed_by_a_search(
    monkeypatch: pytest.MonkeyPatch, sentence: str, ruling: Ruling, wanted: bool, searches: int
):
    search = Mock(return_value=Margin(1.08, None, limit="line rate"))
    assert searched(monkeypatch, search, sentence, ruling, wanted) == ""
    assert search.call_count == searches


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), AssertionError("of ours"), KeyError("x")])
def test_whatever_goes_wrong_in_a_search_is_one_line_of_the_result(monkeypatch: pytest.MonkeyPatch, error: Exception):
    told = searched(monkeypatch, Mock(side_effect=error))
    assert told.startswith("margin: ") and "\n" not in told


def test_an_interrupt_ends_the_search_and_the_run(monkeypatch: pytest.MonkeyPatch):
    ending = ExecutionFailed("Execution terminated by signal", exit=True)
    with pytest.raises(ExecutionFailed):
        searched(monkeypatch, Mock(side_effect=ending))
