"""Which MPLS labels leave a router by which of its sides, and why it may not take them with tags."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.traffic.profiles import LABEL_STEP
from ..errors import TestbedError


def labels_by_side(pairs: Sequence[tuple[int, int]], sides: int) -> list[tuple[int, ...]]:
    """The labels that leave by each of so many *sides*; *pairs*: a label of the first and of the second direction.

    Each pair of sides has its own labels: those of the first direction leave by the second side. Raises TestbedError if
    a label would have to leave by two.
    """
    ahead, back = zip(*pairs, strict=True)
    exits = [
        tuple(dict.fromkeys(label + index // 2 * LABEL_STEP for label in (ahead if index % 2 else back)))
        for index in range(sides)
    ]
    used = [label for labels in exits for label in labels]
    both = sorted(label for label in set(used) if used.count(label) > 1)
    if both:
        hint = f" ({LABEL_STEP} more for each further pair of ports)" if sides > 2 else ""
        raise TestbedError(
            f"label {both[0]} is among the words' 'labels' and 'labels_back'{hint}, and a router forwards each label in"
            " one direction only; expected different labels"
        )
    return exits


def one_label_table(system: str) -> str:
    """Why labelled frames with tags are not forwarded."""
    return (
        f"{system} has one label table for all its interfaces, and would forward labelled frames without the tags that"
        " they arrived with"
    )
