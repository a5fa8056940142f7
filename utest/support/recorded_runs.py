"""Folders of runs that a session on the simulated testbed leaves, without Robot: seconds less of CPU for each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from lineproof.core.deciding import Standing
from lineproof.core.quantity import TrafficWords
from lineproof.core.rule import Ruling
from lineproof.core.trial import Trial
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import SIMULATED_BECAUSE, EnvironmentRecord
from lineproof.session.characterising import Characteriser
from lineproof.session.judging import Judge
from lineproof.session.session import Session


def recorded(session: Session, results: Path, sentences: Mapping[str, str], margins: bool = False) -> Path:
    """The folder of a run of *sentences* (by test), as a suite leaves it; *margins*: of those that pass, searched."""
    plan, facts = session.plan, session.testbed.facts
    record = EnvironmentRecord(
        *("made", session.simulated, plan.testbed.testbed, plan.platform.platform, plan.software_name),
        *(facts.clock_speed, time.time()),
        extra={"goal": plan.goal.model_dump(), SIMULATED_BECAUSE: list(session.simulation_signs)},
    )
    recorder = Recorder(results, record.run, record)
    recorder.keep_inputs(plan)
    known, ports = session.generator.known_limits, session.generator.ports
    parts = (session.versions(), session.router.configuration(), None, known.record() if known else None, ports)
    recorder.keep_parts(*parts, session.interfaces, session.router.facts)
    for test, sentence in sentences.items():
        _judge(session, recorder, test, sentence, margins)
    recorder.close()
    return recorder.folder.path


def _judge(session: Session, recorder: Recorder, test: str, sentence: str, margin: bool) -> None:
    requirement = session.plan.requirement(sentence)

    def on_trial(trial: Trial, standing: Standing | None = None) -> None:
        evidence = standing.last if standing else ""
        recorder.keep_trial(requirement, trial, session.link_bps, session.generator.streams, evidence)

    session.traffic.put_for(requirement)
    recorder.begin(test)
    if (trial := session.traffic.warm_up(requirement)) is not None:
        on_trial(trial)
    listeners = (on_trial, recorder.keep_telemetry, recorder.keep_reading, recorder.keep_step_down)
    verdict = Judge(session, *listeners).judge(requirement)
    recorder.keep_verdict(verdict, session.tolerance)
    if margin and verdict.ruling is Ruling.PASS and requirement.quantity.threshold_is_load:
        number = recorder.number

        def begin(_: TrafficWords) -> None:
            recorder.begin(test)

        def searching(words: TrafficWords, trial: Trial) -> None:
            recorder.keep_trial(words, trial, session.link_bps, session.generator.streams)

        recorder.keep_margin(Characteriser(session, begin, searching).margin(requirement), number, sentence)
