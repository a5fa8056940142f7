"""What a sentence's verdict declares of RFC 2544 section 23 and RFC 9971."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.core.goal import read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome, Tolerance, read_trial
from lineproof.core.verdict import Verdict, deviations_of_verdict
from lineproof.generators.trex.client.running_traffic import QUIET_TIME
from lineproof.generators.trex.driver import TrexSettings
from lineproof.session.traffic import LONGEST_PAUSE
from support.catalogue import CATALOGUE
from support.paths import VARIABLES


def verdict(sentence: str, goal: str, **looked_at: float) -> Verdict:
    row = DirectionCount(0, 1, 1000, 1000, 1000)
    readings = {f"{name}.1": frames for name, frames in (looked_at or {"examined": 1000.0}).items()}
    probes = () if "unprobed" in looked_at else (LatencyCount(0, 1, 10, 10),)
    outcome = Outcome(Load(1000.0), 1.0, 1.0, 0.0, (row,), readings=readings, latency=probes)
    trials = (read_trial(1, outcome, Tolerance()),)
    requirement = parse(sentence, CATALOGUE)
    promise = requirement.promise(read_goal(VARIABLES / "goals", goal), outcome.load, 10e9)
    found = Verdict(requirement, promise, Ruling.PASS, Reason(""), trials)
    return replace(found, deviations=deviations_of_verdict(found))


@pytest.mark.parametrize(
    ("sentence", "goal", "sources"),
    [
        ("64b unidirectional ≥ 5 Mpps", "quick", ["RFC 9971"]),
        ("64b unidirectional loses ≤ 1% at 5 Mpps", "quick", ["RFC 9971"]),
        ("64b unidirectional ≥ 5 Mpps", "rfc2544", ["RFC 9971", "RFC 2544 23", "RFC 2544 23"]),
        ("64b unidirectional forwards ≥ 5 Mpps", "rfc2544", ["RFC 2544 23", "RFC 2544 23"]),
        ("64b unidirectional forwards ≥ 5 Mpps", "quick", []),
    ],
)
def test_deviations_follow_quantity_and_goal(sentence: str, goal: str, sources: list[str]) -> None:
    found = verdict(sentence, goal)
    assert [words.split(" asks")[0].split(" (")[0] for words in found.deviations] == sources
    assert ("are declared in its record" in found.message) is (goal == "rfc2544")


@pytest.mark.parametrize(
    ("looked_at", "words"),
    [
        ({"examined_slowly": 500.0}, "500 frames of slow traffic"),
        ({"none": 0.0}, "not looked"),
        ({"examined": 500.0, "unprobed": 0.0}, "no probe frames"),
    ],
)
def test_content_that_was_not_looked_at_is_named(looked_at: dict[str, float], words: str) -> None:
    found = verdict("64b unidirectional ≥ 5 Mpps", "quick", **looked_at).deviations[-1]
    assert "RFC 2544 10 asks for" in found and words in found


def test_the_pauses_that_are_declared_are_those_of_the_code() -> None:
    done = " ".join(verdict("64b unidirectional ≥ 5 Mpps", "rfc2544").deviations).split("here: ")[-1]
    assert f"at most {LONGEST_PAUSE:g} s before" in done
    assert f"{TrexSettings('a server').drain:g} s at most" in done
    assert f"has come for {QUIET_TIME:g} s" in done
