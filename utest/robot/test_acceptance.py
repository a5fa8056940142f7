"""What the keywords do with a verdict."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import MagicMock

import pytest

from lineproof.counts.trial import Load
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.verify import verify
from lineproof.robot import acceptance
from lineproof.robot.shared import Shared
from lineproof.sla.goals import read_goal
from lineproof.sla.sentence import parse
from lineproof.traffic.catalogue import Catalogue
from support.model_bench import PROJECT
from support.outcomes import outcome


def test_a_plot_that_cannot_be_drawn_costs_no_verdict(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    requirement = parse("64b unidirectional ≥ 1 kpps", Catalogue.read(PROJECT.profiles))
    goal = read_goal(PROJECT.goals, "quick")
    verdict = verify(requirement, Load(1000), goal, lambda load, time: outcome(), 10e9, TrialConditions())

    def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("no such axis")

    monkeypatch.setattr(acceptance, "sentence_plot", broken)
    session, recorder = MagicMock(link_bps=10e9, simulated=True), MagicMock()
    session.traffic.reconnection.note = session.revival.note = ""
    session.testbed.lab = None
    shared = Shared(opened=[("suite", session)], recorder=recorder)
    with caplog.at_level(logging.INFO):
        acceptance.AcceptanceKeywords(shared).keep_evidence(verdict)
    recorder.keep_verdict.assert_called_once()
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        "no plot of the trials: an error of Lineproof's own (lineproof/robot/acceptance.py, line "
        in warning.getMessage()
    )
    assert any("<table" in record.getMessage() for record in caplog.records)
