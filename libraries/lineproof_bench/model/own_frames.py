"""A generator whose cards drop frames that are addressed to other MAC addresses, as most cards of hardware do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from lineproof.simulation.habits import Habit

from ..clock import ClockReader
from .backend import ModelBackend
from .counting import Sending
from .flows import mac_bytes

_LOOKED_AT = 4
"""Frames of a stream whose destination is looked at: they have one."""


class OwnFramesModel(ModelBackend):
    """The model, with the habit ``own frames only`` on some ports. What such a card drops it counts nowhere."""

    _own_only: frozenset[int] = frozenset()
    _promiscuous: frozenset[int] = frozenset()

    @classmethod
    def from_specification(cls, specification: Mapping[str, Any], clock: ClockReader) -> Self:
        """As the model's, and ``habits``."""
        found = super().from_specification(specification, clock)
        habits = [Habit.model_validate(row) for row in specification.get("habits") or ()]
        own = {habit.port for habit in habits if habit.kind == "own frames only"}
        found._own_only = frozenset(port.index for port in found.ports if own & {None, port.index})
        return found

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        """From now on the card of *port* takes every frame, or only its own."""
        self._advance()
        self._promiscuous = self._promiscuous | {port} if enabled else self._promiscuous - {port}

    def _takes(self, sending: Sending, direction: int) -> bool:
        if direction not in self._own_only - self._promiscuous:
            return True
        port = self._ports[direction]
        frame = next(self._egress_frames(sending, range(_LOOKED_AT), port, 1), None)
        return frame is None or bool(frame[0] & 1) or frame[:6] == mac_bytes(port.mac)
