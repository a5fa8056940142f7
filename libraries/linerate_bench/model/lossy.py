"""A modelled router that loses a share of the frames that come in at one side, at whatever load."""

from __future__ import annotations

import math
from dataclasses import replace

from .backend import ModelBackend
from .counting import Sending, StreamCounts
from .forwarding import Fate


class LossyModel(ModelBackend):
    """The model, faultless until :meth:`lose` is called. What is lost counts as missed at the router's interface.

    What the cable before the router loses counts nowhere.
    """

    _losses: dict[int, tuple[float, float]] | None = None
    _astray: dict[Sending, tuple[float, float]] | None = None
    """The share of the missed frames that the router never saw, and what of a frame it has made by now."""

    def lose(self, port: int, share: float, cable: float = 0.0) -> None:
        """From now on lose *share* (0…1) of the frames that the generator's *port* sends; 0: none.

        *cable*: the share that the cable to the router loses.
        """
        now = self._advance()
        self._losses = {**(self._losses or {}), port: (share, cable)}
        self._settle(now)

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for port, (share, cable) in (self._losses or {}).items():
            self._rings.thin(port, (1 - share) * (1 - cable))
        before, self._astray = self._astray or {}, {}
        for sending, number in self._entering.items() if self._losses else ():
            share, cable = (self._losses or {}).get(sending.port, (0.0, 0.0))
            if share or cable:
                fate = losing(losing(self._forwarding.fates[number], share), cable)
                sending.fate(fate)
                if cable and fate.missed:
                    self._astray[sending] = (cable / fate.missed, before.get(sending, (0.0, 0.0))[1])

    def _book(self, sending: Sending, new: StreamCounts, unsent: int) -> None:
        super()._book(sending, new, unsent)
        if self._astray and sending in self._astray:
            share, carry = self._astray[sending]
            exact = share * new.missed + carry
            unseen = min(new.missed, math.floor(exact + 1e-9))
            self._astray[sending] = (share, max(0.0, exact - unseen))
            port = self._ports[sending.port]
            port.interface = replace(port.interface, rx_missed=port.interface.rx_missed - unseen)


def losing(fate: Fate, share: float) -> Fate:
    """*fate* where *share* of all frames is missed besides."""
    kept = 1 - share
    exits = {direction: part * kept for direction, part in fate.exits.items()}
    return replace(fate, missed=1 - (1 - fate.missed) * kept, exits=exits)
