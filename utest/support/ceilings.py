"""Ceilings, calibrations and failed verdicts for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from lineproof.ceilings.calibration import Calibration, CalibrationFile, CeilingEntry
from lineproof.ceilings.cards import read_cards
from lineproof.ceilings.headroom import CeilingSource, MeasuredLimits, own_part
from lineproof.core.deciding import ask
from lineproof.core.doubts import with_doubts
from lineproof.core.goal import read_goal
from lineproof.core.quantity import Promise, Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome, Tolerance, read_trial
from lineproof.core.verdict import Verdict
from lineproof.generators.base import GeneratorPort
from support.catalogue import CATALOGUE as CATALOGUE
from support.paths import ROOT

GOAL = read_goal(ROOT / "variables" / "goals", "standard")
LINK, LINE = 10e9, 10e9 / (84 * 8)
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def ceiling(
    traffic: str = "64b", bidirectional: bool = False, lossless: float = LINE / 2, **other: object
) -> CeilingEntry:
    return CeilingEntry.model_validate(
        {
            "traffic": traffic,
            "mean_size": CATALOGUE.profile(traffic.split()).mean_size,
            "bidirectional": bidirectional,
            "measured": NOW.isoformat(),
            "line_pps": LINE,
            "offered_pps": LINE,
            "lossless_pps": lossless,
            "received_pps": lossless,
            "trials": 5,
            "trial_duration": 1.0,
            **other,
        }
    )


def calibration(*ceilings: CeilingEntry) -> Calibration:
    return Calibration(content(*ceilings), Path("lab-box.yaml"), "0" * 64)


def content(*ceilings: CeilingEntry, server: str = "v3.08", **other: object) -> CalibrationFile:
    found = CalibrationFile(
        testbed="lab",
        platform="box",
        kind="hardware",
        link_bps=LINK,
        lineproof="0.1",
        simulated=False,
        versions={"server": server},
        ceilings=ceilings or (ceiling(),),
    )
    return found.model_copy(update=other)


def measured_limits(*ceilings: CeilingEntry, link_bps: float = LINK) -> MeasuredLimits:
    return MeasuredLimits(calibration(*ceilings), CATALOGUE, "hardware", link_bps, "v3.08", False, NOW)


def failed(sentence: str, offered: float, ruling: Ruling = Ruling.FAIL, lost: float = 0.1) -> Verdict:
    requirement = parse(sentence, CATALOGUE)
    frames = round(offered)
    count = DirectionCount(0, 1, frames, frames, round(frames * (1 - lost)))
    trial = read_trial(1, Outcome(Load(max(offered, 1.0)), 1.0, 1.0, 0.0, (count,)), Tolerance())
    return Verdict(requirement, GOAL, ruling, Reason("lost 10 %"), (trial,), LINK, {})


def promise(sentence: str, *sources: CeilingSource, calibrated: MeasuredLimits | None = None) -> Promise:
    """*sentence* with the generator's own part that *sources* and its calibration know."""
    requirement = parse(sentence, CATALOGUE)
    load = requirement.quantity.load(requirement, LINK, Load(LINE))
    return requirement.promise(GOAL, load, LINK, own_part(sources, calibrated, requirement, load.pps, 1.0))


def ruled(promised: Promise, offered: float, lost: float = 0.1) -> Ruling | None:
    """The ruling of *promised* on trials of a second in which a share of *offered* frames was lost each way."""
    frames, asked = round(offered), round(promised.load_pps)
    count = DirectionCount(0, 1, asked, frames, round(frames * (1 - lost)))
    outcome = Outcome(Load(promised.load_pps), 1.0, 1.0, 0.0, (count,))
    trial = with_doubts(read_trial(1, outcome, Tolerance()), promised.conditions, promised.quantity.doubts)
    return ask(promised, [trial] * GOAL.budget).ruling


FAILING = "64b unidirectional ≥ 50% line rate"
FILES = read_cards(ROOT / "variables" / "generators")


def ports(
    driver: str, gbps: float = 10, description: str = "", pci: tuple[str, str] = ("", "")
) -> tuple[GeneratorPort, ...]:
    return tuple(
        GeneratorPort(n, f"02:00:00:00:00:0{n}", gbps * 1e9, True, driver, pci[n], description) for n in range(2)
    )
