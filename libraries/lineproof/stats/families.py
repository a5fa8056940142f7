"""Several tests at once: Holm's correction, which keeps the risk of one false finding in all of them together."""

from __future__ import annotations

from collections.abc import Sequence


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """The level at which each of the hypotheses with these *p_values* is tested (Holm 1979); in their order.

    One is rejected where its p is at most its level. The probability that any true one is rejected is at most *alpha*,
    however the tests depend on each other. An interval of confidence 1 - level says the same as the test.
    """
    levels = [alpha] * len(p_values)
    going, level = True, alpha
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        if going:
            level = alpha / (len(p_values) - rank)
            going = p_values[place] <= level
        levels[place] = level
    return levels
