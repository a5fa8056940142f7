"""Regular expressions that users write, with bounds of size and time: no pattern and no text can hang a run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import regex

from .errors import TestbedError
from .visible import shortened

LONGEST = 1000
"""Characters of an expression."""

MOST_REPEATS = 10_000
"""The product of all counts in braces of an expression: compiling `(a{1000}){1000}` takes seconds and gigabytes."""

LIMIT = 1.0
"""Seconds that one search may take. Usual ones take milliseconds."""

_COUNTS = re.compile(r"\{ *(\d*) *(?:, *(\d*) *)?\}")


def compiled(text: str) -> regex.Pattern[str]:
    """The expression *text*; ``^`` and ``$`` are the ends of each line. Raises ValueError that says what is wrong."""
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} characters; expected at most {LONGEST}")
    repeats = 1
    for found in _COUNTS.finditer(text):
        if any(len(number or "") > len(str(MOST_REPEATS)) for number in found.groups()):
            repeats = MOST_REPEATS + 1
            break
        repeats *= max(1, *(int(number or 0) for number in found.groups()))
    if repeats > MOST_REPEATS:
        raise ValueError(f"its counts in braces are together more than {MOST_REPEATS} repeats; expected fewer")
    try:
        return regex.compile(text, regex.MULTILINE)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"is not a regular expression: {shortened(why)}") from None


def search(pattern: regex.Pattern[str], text: str) -> regex.Match[str] | None:
    """The first match in *text*. Raises TestbedError after LIMIT seconds."""
    try:
        return pattern.search(text, timeout=LIMIT)
    except TimeoutError:
        raise _too_slow(pattern) from None


def matches_whole(pattern: regex.Pattern[str], text: str) -> bool:
    """Whether all of *text* matches. Raises TestbedError after LIMIT seconds."""
    try:
        return pattern.fullmatch(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise _too_slow(pattern) from None


def search_all(pattern: regex.Pattern[str], text: str) -> Iterator[regex.Match[str]]:
    """All matches in *text*. Raises TestbedError after LIMIT seconds."""
    try:
        yield from pattern.finditer(text, timeout=LIMIT)
    except TimeoutError:
        raise _too_slow(pattern) from None


def _too_slow(pattern: regex.Pattern[str]) -> TestbedError:
    return TestbedError(
        f"the expression '{shortened(pattern.pattern)}' takes longer than {LIMIT:g} s; expected one without"
        " a repeat of a repeat, as (a+)+"
    )
