"""Studies and their measurements, made up for tests."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lineproof.documents.document import as_csv, as_text
from lineproof.evidence.records import MeasurementRecord
from lineproof.project import Project
from lineproof.studies import results
from lineproof.studies.forms import COLUMNS, document
from lineproof.studies.results import StudyResults
from lineproof.studies.study import LINE, LINK, Study, load_study, steps_of
from support.evidence_builders import ENVIRONMENT

SMALL = """\
study: small
title: Two routers, one flow
platform: netgate6100
repeats: 2
seed: 7
baseline: vpp
measures:
  one flow: {forwards: 64b 1-flow unidirectional, tolerance: {points: 1}}
  ramp: {ramp: 64b 1-flow unidirectional, steps: 5, repeats: 1}
variants:
  vpp: {software: vpp}
  linux: {software: linux}
published:
  rows:
    one flow: {linux: 4.32, vpp: [33.5, 33.7, 33.9]}
"""


def study_project(folder: Path, text: str = SMALL, name: str = "small") -> Project:
    """Return a project in *folder* with the study *name*, which *text* is."""
    path = folder / "variables" / "studies" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Project(folder)


def study_of(folder: Path, text: str = SMALL) -> Study:
    name = text.split("\n", 1)[0].removeprefix("study: ")
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def measurements(
    study: Study,
    values: Mapping[str, Sequence[float | None]],
    row: str = "one flow",
    figures: Mapping[str, float] = MappingProxyType({}),
    **more: object,
) -> list[MeasurementRecord]:
    """Return a record of *row* for each of its places in the order, with *values* by variant, in turn."""
    left = {name: iter(of_variant) for name, of_variant in values.items()}
    records: list[MeasurementRecord] = []
    for step in steps_of(study):
        if step.row != row or step.variant not in left:
            continue
        value = next(left[step.variant], None)
        fields: dict[str, Any] = {
            "run": "20261123T120000Z-abcdef",
            "simulated": True,
            "study": study.study,
            "block": step.block,
            "turn": step.turn,
            "variant": step.variant,
            "row": row,
            "platform": study.platform_of(step.variant),
            "software": "vpp",
            "sentence": "forwards of 64b 1-flow unidirectional",
            "value": value,
            "unit": study.unit_of(row),
            "reason": "" if value is not None else "the link <b>flapped</b>",
            "requirement": 1,
            "started": 1.0,
            "ended": 2.0,
            "figures": {LINE: 14.88e6, LINK: 10e9, **figures},
        }
        records.append(MeasurementRecord(**{**fields, **more}))
    return records


def results_of(study: Study, records: Sequence[MeasurementRecord], planned: int = 0) -> StudyResults:
    """Return what *records* come to, of a run in an environment made up."""
    return results.results_of(study, records, ENVIRONMENT, planned)


def text(of_study: StudyResults) -> str:
    return as_text(document(of_study), COLUMNS)


def csv_rows(of_study: StudyResults) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(document(of_study)))))
