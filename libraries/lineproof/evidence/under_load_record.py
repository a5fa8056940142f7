"""The router's reports under load as record, and the reasons of a FAIL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..core.explanation import Why
from ..core.router_facts import RouterFacts
from ..core.under_load import UnderLoad
from .json_fields import field_data
from .records import UNDER_LOAD

KEPT_ELSEWHERE = ("raw", "sampled")
"""Fields of UnderLoad that are texts and a picture of their own."""


def under_load_data(
    found: UnderLoad, run: str, simulated: bool, requirement: int, sentence: str, flame_graph: str
) -> dict[str, Any]:
    """The record as JSON data (schema ``lineproof.under_load/1``); the raw output is in ``telemetry/``.

    *flame_graph*: the picture's file in the run's folder, or "".
    """
    head: Mapping[str, Any] = {"schema": UNDER_LOAD, "run": run, "simulated": simulated}
    figures = field_data(found, without=KEPT_ELSEWHERE)
    return {**head, "requirement": requirement, "sentence": sentence, **figures, "flame_graph": flame_graph}


WHY, LOAD = "why", "load"
"""Keys in the extra data of a requirement's record, and in what is there."""

T = TypeVar("T")


def why_data(why: Why) -> dict[str, Any]:
    """*why* as JSON data. The router's own output is kept elsewhere."""
    load = None if why.load is None else field_data(why.load, without=KEPT_ELSEWHERE)
    return {"explanations": [found.to_json() for found in why.explanations], LOAD: load}


def recorded_load(extra: Mapping[str, Any]) -> UnderLoad | None:
    """The router's load of a requirement's *extra* data; None where it has none that can be read."""
    why = extra.get(WHY)
    return _read(UnderLoad, why.get(LOAD)) if isinstance(why, Mapping) else None


def recorded_facts(data: Any) -> RouterFacts | None:
    """The router's facts from their JSON *data*; None where these are none."""
    return _read(RouterFacts, data)


def _read(kind: type[T], data: Any) -> T | None:
    if not isinstance(data, Mapping):
        return None
    try:
        return TypeAdapter(kind).validate_json(json.dumps(data))
    except ValidationError:
        return None
