"""Where a measurement departs from the method that it is named after. Part of the result, and printed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """``source`` names the method and its section, ``asks`` what it asks for, ``done`` what was done instead."""

    source: str
    asks: str
    done: str

    def __str__(self) -> str:
        return f"{self.source} asks for {self.asks}; here: {self.done}"


def declared(found: str, deviations: Sequence[Deviation]) -> str:
    """What was found, with the deviations it was found under."""
    return "; ".join([found, *(f"deviation: {item}" for item in deviations)])


def found_in(results: Sequence[object]) -> str:
    """What each result says of itself, without the deviations."""
    return "\n".join(getattr(item, "found", str(item)) for item in results) or "nothing was measured"


def deviations_of(results: Sequence[object]) -> list[Deviation]:
    """Every deviation of *results*, once."""
    return list(dict.fromkeys(item for result in results for item in getattr(result, "deviations", ())))
