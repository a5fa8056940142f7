"""Where a measurement departs from the method that it is named after. Part of the result, and printed with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """``source`` names the method and its section, ``asks`` what it asks for, ``done`` what was done instead."""

    source: str
    asks: str
    done: str

    def __str__(self) -> str:
        return f"{self.source} asks for {self.asks}; here: {self.done}"
