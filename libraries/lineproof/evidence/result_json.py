"""The result of a characterisation as JSON data.

Loads are frames/s into each port, trials their numbers in ``trials.jsonl``, figures that are not finite ``null``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

from ..core.goal import Goal
from ..core.trial import Load, Trial
from ..methods.deviations import Deviation


def json_data(value: Any) -> Any:
    """*value* as JSON data. Raises TypeError for anything but dataclasses, mappings, sequences and plain values."""
    if isinstance(value, Load):
        return value.pps
    if isinstance(value, Trial):
        return value.number
    if isinstance(value, Goal):
        return value.model_dump()
    if isinstance(value, Deviation):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_data(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: json_data(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no part of a result")
