"""Do the records of a run fit their published JSON Schemas?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import fastjsonschema

from ..json_text import parse_json
from ..visible import shortened
from .integrity import Alteration, Integrity
from .records import (
    CHARACTERISATION,
    ENVIRONMENT,
    FILE,
    MANIFEST,
    MARGIN,
    MEASUREMENT,
    READING,
    REQUIREMENT,
    TRIAL,
    UNDER_LOAD,
    schema,
)
from .run_files import CHARACTERISATION as CHARACTERISATION_FOLDER
from .run_files import ENVIRONMENT_FILE, FILES, MANIFEST_FILE, MEASUREMENTS, READINGS, REQUIREMENTS, TRIALS

LINES = {TRIALS: TRIAL, READINGS: READING, REQUIREMENTS: REQUIREMENT, FILES: FILE, MEASUREMENTS: MEASUREMENT}
"""File of records -> their schema."""


def schema_problems(found: Integrity) -> Iterator[Alteration]:
    """Where the records of a run differ from their schemas; of a file that was altered nothing is said."""
    altered = {item.file for item in found.altered}
    for name, kind in LINES.items():
        for number, line in enumerate(() if name in altered else found.lines[name], 1):
            if words := _problem(line, kind):
                yield Alteration(name, words, number)
    single = {ENVIRONMENT_FILE: ENVIRONMENT, MANIFEST_FILE: MANIFEST}
    for path in sorted((found.path / CHARACTERISATION_FOLDER).glob("*.json")):
        single[f"{CHARACTERISATION_FOLDER}/{path.name}"] = CHARACTERISATION
    for name, kind in single.items():
        path = found.path / name
        if name not in altered and path.is_file():
            content = path.read_bytes()
            if kind == CHARACTERISATION:
                kind = next((other for other in (UNDER_LOAD, MARGIN) if other.encode() in content), kind)
            # figures for other programs are in that folder too
            if (kind != CHARACTERISATION or CHARACTERISATION.encode() in content) and (
                words := _problem(content, kind)
            ):
                yield Alteration(name, words)


def _problem(text: bytes, kind: str) -> str:
    """Why *text* is no record of *kind*; empty if it is one."""
    try:
        words = why_unfit(parse_json(text, own=True), kind)
    except ValueError as error:
        return f"is no record: {error}"
    return words and f"does not fit the schema {kind}: {words}"


def why_unfit(data: Any, kind: str) -> str:
    """Where *data* does not fit the schema *kind*, in words; empty if it does."""
    try:
        _validator(kind)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        return shortened(error.message.replace("data.", "", 1))
    return ""


@cache
def _validator(kind: str) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = fastjsonschema.compile(schema(kind), use_default=False)
    return found
