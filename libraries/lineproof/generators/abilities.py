"""Abilities of a generator, declared: a sentence that asks for more is refused before any traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from ..core.traffic.profiles import Profile

MOST_FRAMES = 4096
"""Different frames that are written out for a generator that sends a list in turn."""


def listing(shares: Sequence[float], flows: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the frames of each stream in one turn of all sizes, and how many turns send every flow.

    *shares* of the streams, in sum 1; so many *flows* each. Raises ValueError where they have no place in a list of
    MOST_FRAMES.
    """
    fractions = [Fraction(share).limit_denominator(MOST_FRAMES) for share in shares]
    kept = all(math.isclose(one, share, rel_tol=1e-9) for one, share in zip(fractions, shares, strict=True))
    whole = math.lcm(*(share.denominator for share in fractions))
    weights = tuple(int(share * whole) for share in fractions)
    # a turn of all sizes, as often as every flow of each needs
    rounds = math.lcm(*(each // math.gcd(each, weight) for each, weight in zip(flows, weights, strict=True) if weight))
    if sum(fractions) != 1 or not kept or rounds * whole > MOST_FRAMES:
        raise ValueError(f"these sizes and flows have no place in a list of {MOST_FRAMES} frames")
    return weights, rounds


WORDS = {
    "mixes": "sends no frames of several sizes",
    "flows": "sends one flow, or a few",
    "unlisted": f"sends a list of at most {MOST_FRAMES} different frames in turn",
    "headers": "sends plain IPv4 and UDP only",
    "own_frames": "sends no captures and no streams of a file",
    "bidirectional": "sends in one direction only",
    "pairs": "uses one pair of ports only",
    "latency": "measures no latency",
    "capture": "keeps no received frames",
    "live": "cannot change its load while it sends",
    "bursts": "sends no bursts of an exact length",
    "own_counts": "has no receive counters of its own: what it received is what the host's interfaces count",
    "promiscuous": "does not switch which frames its ports take",
}
"""Words for what a generator without the ability does, after its name."""


class Method(Enum):
    """Methods of keywords beyond a sentence: its words, and the ability that it needs."""

    THROUGHPUT = "RFC 2544's throughput test", "own_counts"
    FRAME_LOSS = "RFC 2544's frame loss test", "own_counts"
    LATENCY = "RFC 2544's latency test", "latency"
    BACK_TO_BACK = "RFC 2544's back-to-back test", "bursts"
    RECOVERY = "RFC 2544's system recovery", "live"
    RESET = "RFC 2544's reset test", "live"

    def __init__(self, words: str, ability: str) -> None:
        self.words, self.ability = words, ability


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a generator can: those of :data:`WORDS` in ``can``, all by default.

    Only a generator with ``own_counts`` may carry the label of RFC 2544, or one that a switch has checked.
    ``most_flows``: those that one without ``flows`` sends; ``fragments``: one without ``mixes`` sends the two sizes of
    a datagram in fragments.
    """

    can: frozenset[str] = frozenset(WORDS)
    most_flows: int = 1
    fragments: bool = False

    def lacks(self, profile: Profile, bidirectional: bool, pairs: int = 1, *more: str) -> tuple[str, ...]:
        """The abilities that this traffic needs, or that are in *more*, and that are not there."""
        headers = profile.headers
        plain = headers.version == 4 and headers.transport == "udp" and not headers.tags and not headers.labels
        needed = {
            "own_frames": profile.has_own_addresses,
            "bidirectional": bidirectional,
            "pairs": pairs > 1,
            "mixes": len(profile.frames) > 1 and not (self.fragments and profile.fragmented_datagram),
            "unlisted": not _has_list(profile),
            "headers": not plain,
            "flows": not 1 <= profile.flows.count <= self.most_flows,
        }
        return self.lacks_of(*(name for name, asked in needed.items() if asked), *more)

    def lacks_of(self, *names: str) -> tuple[str, ...]:
        """Return those of *names* that are not there."""
        return tuple(name for name in names if name not in self.can)


def _has_list(profile: Profile) -> bool:
    """Return whether the different frames of *profile* have a place in a list; those of a file have other needs."""
    if profile.has_own_addresses:
        return True
    try:
        listing([share for _, share in profile.shares()], [profile.flows.count] * len(profile.frames))
    except ValueError:
        return False
    return True
