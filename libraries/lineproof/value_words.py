"""What is wrong with one value of a file, in this project's words: pydantic's kinds of errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .visible import shortened

EXPECTED_TYPES = {
    "float": "expected a number with a decimal point and no unit",
    "int": "expected a whole number without a unit",
    "bool": "expected true or false",
    "string": "expected text",
    "model": "expected keys below it, as 'name: value'",
    "dict": "expected keys below it, as 'name: value'",
    "mapping": "expected keys below it, as 'name: value'",
}
"""By the first word of pydantic's type of an error."""

_PLURALS = {"value": "values", "key": "keys", "character": "characters"}


def _count(number: int, unit: str) -> str:
    return f"{number} {unit if number == 1 else _PLURALS[unit]}"


def _unit(about: Mapping[str, Any]) -> str:
    return "key" if about.get("field_type") == "Dictionary" else "value"


def _few(about: Mapping[str, Any]) -> str:
    least, there = int(about["min_length"]), int(about["actual_length"])
    return (
        f"expected at least {_count(least, _unit(about))}, and there {'is' if there == 1 else 'are'} {there or 'none'}"
    )


def _short(about: Mapping[str, Any]) -> str:
    return f"expected at least {_count(int(about['min_length']), 'character')}"


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda about: f"expected more than {about['gt']:.12g}",
    "greater_than_equal": lambda about: f"expected at least {about['ge']:.12g}",
    "less_than": lambda about: f"expected less than {about['lt']:.12g}",
    "less_than_equal": lambda about: f"expected at most {about['le']:.12g}",
    "finite_number": lambda about: "expected a number, and no infinite one",
    "too_short": _few,
    "too_long": lambda about: f"expected at most {_count(int(about['max_length']), _unit(about))}",
    "string_too_short": _short,
    "string_too_long": lambda about: f"expected at most {_count(int(about['max_length']), 'character')}",
    "string_pattern_mismatch": lambda about: f"expected text of the form {shortened(about['pattern'], 200)}",
    "literal_error": lambda about: f"expected {about['expected']}",
    "date_type": lambda about: "expected a date, as 2026-11-23",
    "date_parsing": lambda about: "expected a date, as 2026-11-23",
    "date_from_datetime_parsing": lambda about: "expected a date, as 2026-11-23",
    "date_from_datetime_inexact": lambda about: "expected a date without a time, as 2026-11-23",
    "path_type": lambda about: "expected the path of a file, as text",
    "int_parsing_size": lambda about: "expected a smaller number",
}
"""By pydantic's type of an error, what is expected, of its context."""


def value_words(error: Mapping[str, Any]) -> str:
    """Return what *error* of pydantic expects of the value; "": it is of a kind without words here."""
    words = _WORDS.get(error["type"])
    return "" if words is None else words(error.get("ctx", {}))
