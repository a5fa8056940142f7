"""Different frames as a list that is sent in turn: how often each size is in it, and how often its flows go round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

MOST_FRAMES = 4096
"""Different frames that are written out for a generator that sends a list in turn."""


@dataclass(frozen=True, slots=True)
class Listing:
    """``weights``: frames of each stream in one turn of all sizes; ``rounds``: such turns until every flow was sent."""

    weights: tuple[int, ...]
    rounds: int

    @property
    def frames(self) -> int:
        """How long the list is."""
        return self.rounds * sum(self.weights)


def listing(shares: Sequence[float], flows: Sequence[int]) -> Listing:
    """Of streams with *shares* of the frames, in sum 1, and so many *flows* each.

    Raises ValueError where they have no place in a list of MOST_FRAMES.
    """
    found = [Fraction(share).limit_denominator(MOST_FRAMES) for share in shares]
    kept = all(math.isclose(one, share, rel_tol=1e-9) for one, share in zip(found, shares, strict=True))
    if sum(found) != 1 or not kept:
        raise ValueError(
            f"a share of {100 * min(shares):.2g} % of the frames has no place in a list; expected sizes whose shares"
            f" are kept by at most {MOST_FRAMES} frames"
        )
    whole = math.lcm(*(share.denominator for share in found))
    weights = tuple(int(share * whole) for share in found)
    # a turn of all sizes, as often as every flow of each needs
    rounds = math.lcm(*(each // math.gcd(each, weight) for each, weight in zip(flows, weights, strict=True) if weight))
    result = Listing(weights, rounds)
    if result.frames > MOST_FRAMES:
        raise ValueError(
            f"{result.frames} different frames are too many for a list; expected at most {MOST_FRAMES}, with fewer"
            " flows or sizes"
        )
    return result
