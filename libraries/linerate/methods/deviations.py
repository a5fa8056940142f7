"""Deviations of a measurement from the method that it is named after: part of the result, and printed with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """``source``: the method and its section; ``asks``: what it asks for; ``done``: what was done instead."""

    source: str
    asks: str
    done: str

    def __str__(self) -> str:
        return f"{self.source} asks for {self.asks}; here: {self.done}"


class DeviatingResult:
    """A result whose text is what was ``found``, then its ``deviations``."""

    __slots__ = ()
    deviations: tuple[Deviation, ...]

    @property
    def found(self) -> str:
        """What was found, in words, without the deviations."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "; ".join([self.found, *(f"deviation: {item}" for item in self.deviations)])


def findings_text(results: Sequence[object]) -> str:
    """The text of each result, without deviations."""
    return "\n".join(getattr(item, "found", str(item)) for item in results) or "nothing was measured"


def deviations_of(results: Sequence[object]) -> list[Deviation]:
    """Every deviation of *results*, each once."""
    return list(dict.fromkeys(item for result in results for item in getattr(result, "deviations", ())))
