"""Ceilings, calibrations and failed verdicts for tests."""

from __future__ import annotations

from datetime import UTC, datetime

from lineproof.ceilings import Calibration, CeilingEntry, MeasuredLimits, PublishedLimits, own_part, read_cards
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.generators.base import GeneratorPort
from support.catalogue import CATALOGUE as CATALOGUE
from support.made_testbeds import LINE_PPS, LINK_BPS, decided, goal_named, promised, router
from support.paths import ROOT

GOAL = goal_named("standard")
LINK, LINE = LINK_BPS, LINE_PPS
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def ceiling(
    traffic: str = "64b", bidirectional: bool = False, lossless: float = LINE / 2, **other: object
) -> CeilingEntry:
    return CeilingEntry.model_validate(
        {
            "traffic": traffic,
            "bidirectional": bidirectional,
            "measured": NOW,
            "line_pps": LINE,
            "offered_pps": LINE,
            "lossless_pps": lossless,
            "received_pps": lossless,
            "trial_duration": 1.0,
            **other,
        }
    )


def calibration(*ceilings: CeilingEntry, **other: object) -> Calibration:
    """Return that of a generator at *ceilings*, by default of half of line rate."""
    whole = Calibration(
        testbed="lab",
        platform="box",
        kind="hardware",
        link_bps=LINK,
        lineproof="0.1",
        simulated=False,
        versions={"server": "v3.08"},
        ceilings=ceilings or (ceiling(),),
    )
    return whole.model_copy(update=other)


def measured_limits(*ceilings: CeilingEntry) -> MeasuredLimits:
    return MeasuredLimits(calibration(*ceilings), CATALOGUE, "hardware", LINK, "v3.08", False, NOW)


def promise(sentence: str, measured: MeasuredLimits | None = None, published: PublishedLimits | None = None) -> Promise:
    """Return *sentence* with the generator's own part, as it was *measured* or *published*."""
    own = own_part(measured, published, parse(sentence, CATALOGUE), promised(sentence).load_pps)
    return promised(sentence, own=own)


def ruled(promised: Promise, offered: float, lost: float = 0.1) -> Ruling | None:
    """Return the ruling of *promised* on trials in which a share of *offered* frames/s was lost each way."""
    return decided(promised, router(lost, sent=offered / promised.load_pps)).ruling


FAILING = "64b unidirectional ≥ 50% line rate"
CARDS = {card.card: card for card in read_cards(ROOT / "variables" / "generators")}


def ports(driver: str, gbps: float = 10, description: str = "", cards: str = "--") -> tuple[GeneratorPort, ...]:
    """Return ports, each on one of *cards*, a letter each; ``-``: its PCI address is not known."""
    return tuple(
        GeneratorPort(
            n, f"02:00:00:00:00:0{n}", gbps * 1e9, True, driver, "" if card == "-" else f"{card}.{n}", description
        )
        for n, card in enumerate(cards)
    )
