"""How a simulation says that it is one: the marks that the bench puts into its answers, and the product looks for.

Several answers bear a mark, so that a proxy that changes one of them does not turn a simulation into a measurement. The
server of the ``netns`` testbed bears none: it sends real frames.
"""

from __future__ import annotations

from collections.abc import Mapping

MODEL_DRIVER = "lineproof_model"
"""Driver of the ports of a modelled generator."""

BY_A_MODEL = "SIMULATED by a forwarding model"

_MARKS = (MODEL_DRIVER, "SIMULATED")


def simulation_signs(said: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of *said* (what says it -> its words) that a simulation says, in words."""
    return tuple(f"{who}: {words}" for who, words in said.items() if any(mark in words for mark in _MARKS))
