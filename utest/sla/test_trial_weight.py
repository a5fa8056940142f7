"""Why a trial was given its weight, in words."""

from __future__ import annotations

import pytest

from lineproof.counts.trial import Fault, Problem
from lineproof.sla.trial_weight import why_weighed
from lineproof.sla.verdict import Evidence
from support.evidence_builders import trial


@pytest.mark.parametrize("evidence", list(Evidence))
def test_each_evidence_has_its_reason_and_its_frames(evidence: Evidence) -> None:
    assert why_weighed(trial(losses=(7,)), evidence).endswith("; lost 7 of 1000000 frames")


def test_the_problems_are_the_reason_and_explain_so_many_frames() -> None:
    missed = Problem(Fault.GENERATOR, "port 1 missed frames", frames=5)
    words = why_weighed(trial(losses=(7,), problems=(missed,)), Evidence.NONE)
    assert "lost 7 of 1000000 frames, up to 5 of them by the testbed; the generator reported an error: port 1" in words
    assert words.startswith("it proves nothing about the router")
