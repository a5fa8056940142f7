"""Fields of dataclasses as JSON data, and back with their types checked."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..visible import shortened


def finite(value: float) -> float | None:
    """*value*, or None (``null``) if it is not finite."""
    return value if math.isfinite(value) else None


def field_data(record: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a dataclass as JSON data, in their order."""
    return {item.name: _plain(getattr(record, item.name)) for item in fields(record) if item.name not in without}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return field_data(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def read_figure(name: str, value: Any) -> float:
    """A number, NaN for ``null``. Raises ValueError naming it."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"'{name}' is {shortened(repr(value))}; expected a number or null")
    return float(value)


@cache
def _json_types(kind: Any) -> tuple[type, ...]:
    """The types in JSON of a field of type *kind*. A float is read by :meth:`Fields.number` instead."""
    origin = get_origin(kind)
    if origin is Literal:
        return tuple({type(value) for value in get_args(kind)})
    if origin in (Union, types.UnionType):
        return tuple(found for part in get_args(kind) for found in _json_types(part))
    if kind is float:
        return float, int
    if is_dataclass(kind):
        return (dict,)
    if origin is not None and issubclass(origin, Mapping):
        return (dict,)
    return (list,) if origin is tuple else (kind,)


_types_of_fields = cache(get_type_hints)


class Fields:
    """Takes keys from JSON data, checking their types. *schema*: the one that the data must name; "": it names none."""

    def __init__(self, data: Any, schema: str = "") -> None:
        if not isinstance(data, Mapping):
            raise ValueError(f"is {type(data).__name__}; expected a mapping")
        self.data = data
        if schema and data.get("schema") != schema:
            raise ValueError(f"'schema' is {shortened(repr(data.get('schema')))}; expected '{schema}'")

    def __call__(self, key: str, *types: type) -> Any:
        """The value of *key*, of one of *types*. Raises ValueError."""
        if key not in self.data:
            raise ValueError(f"the key '{key}' is missing")
        value = self.data[key]
        # JSON's true is an int to Python, but never a count
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
            raise ValueError(f"'{key}' is {shortened(repr(value))}; expected {expected}")
        return value

    def number(self, key: str) -> float:
        """The number of *key*, NaN for ``null``. Raises ValueError."""
        if key not in self.data:
            raise ValueError(f"the key '{key}' is missing")
        return read_figure(key, self.data[key])

    def fields(
        self, record: type, without: tuple[str, ...] = (), keys: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The fields of the dataclass *record*; *keys*: their keys in the data where they have other names."""
        found = {}
        for name, kind in _types_of_fields(record).items():
            if name not in without:
                key = keys[name] if keys else name
                found[name] = self.number(key) if kind is float else self(key, *_json_types(kind))
        return found
