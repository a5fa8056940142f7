"""The common part of setting a router up for other frames than plain IPv4: what is not set up, and MPLS labels."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.traffic.frame_kinds import FrameKind
from ..core.traffic.profiles import LABEL_STEP
from ..errors import TestbedError
from .base import Side
from .changing_commands import ChangingCommands


class FrameSetup:
    """*commands*: of a router whose *sides* are configured for IPv4; *notes* receives changes and what is missing."""

    def __init__(self, commands: ChangingCommands, sides: Sequence[Side], notes: list[str]) -> None:
        self._commands, self._sides, self._notes = commands, sides, notes
        self._not_forwarded: dict[frozenset[FrameKind], str] = {}

    def _mark_not_forwarded(self, reason: str, *kinds: FrameKind) -> None:
        self._not_forwarded[frozenset(kinds)] = reason
        self._notes.append(f"not set up for {' with '.join(kinds)}: {reason}")


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
