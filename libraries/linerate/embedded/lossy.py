"""A modelled router that loses a share of the frames that come in at one side, at whatever load."""

from __future__ import annotations

from dataclasses import replace

from .model.forwarding import Fate
from .model_backend import ModelBackend


class LossyModel(ModelBackend):
    """The model, faultless until :meth:`lose` is called. What is lost counts as missed at the router's interface."""

    _losses: dict[int, float] | None = None

    def lose(self, port: int, share: float) -> None:
        """From now on lose *share* (0…1) of the frames that the generator's *port* sends; 0: none."""
        now = self._advance()
        self._losses = {**(self._losses or {}), port: share}
        self._settle(now)

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for sending, number in self._entering.items() if self._losses else ():
            if share := (self._losses or {}).get(sending.port, 0.0):
                sending.fate(losing(self._forwarding.fates[number], share))


def losing(fate: Fate, share: float) -> Fate:
    """*fate* where *share* of all frames is missed besides."""
    kept = 1 - share
    exits = {way: part * kept for way, part in fate.exits.items()}
    return replace(fate, missed=1 - (1 - fate.missed) * kept, exits=exits)
