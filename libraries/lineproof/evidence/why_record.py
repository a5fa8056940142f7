"""Why a verdict is a FAIL, in its record, and the facts and the load that it rests on, read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..core.explanation import Why
from ..core.router_facts import RouterFacts
from ..core.under_load import UnderLoad
from .json_fields import field_data
from .under_load_record import KEPT_ELSEWHERE

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
