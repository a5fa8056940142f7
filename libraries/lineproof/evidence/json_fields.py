"""Dataclasses as JSON data, and back; what a record may hold is the matter of its schema, which comes first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def finite(value: float) -> float | None:
    """*value*, or None (``null``) if it is not finite."""
    return value if math.isfinite(value) else None


def read_figure(value: float | None) -> float:
    """The inverse of :func:`finite`: NaN for ``null``."""
    return math.nan if value is None else value


def field_data(record: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a dataclass as JSON data, in their order."""
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record) if item.name not in without}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return field_data(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def read_fields(kind: type[T], data: Any) -> T:
    """The dataclass *kind* with the fields that *data* holds; other keys are left out. Raises ValueError."""
    adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
    return adapter.validate_python(data)


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
