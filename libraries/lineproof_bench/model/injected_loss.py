"""A modelled router that loses a share of a port's frames at any load, for the fault ``one-way loss``."""

from __future__ import annotations

import math
from dataclasses import replace

from .changed_frames import LyingModel
from .counting import Sending, StreamCounts
from .forwarding import Fate


class LossyModel(LyingModel):
    """The model, faultless until :meth:`lose` is called. The router's interface counts its losses as missed.

    Frames that the cable loses are counted nowhere, unless it damages them.
    """

    _damaging: frozenset[int] = frozenset()
    """Ports whose frames the cable loses by damaging them, so that the router's card counts them."""

    _losses: dict[int, tuple[float, float]] | None = None
    _cable_losses: dict[Sending, tuple[float, float]] | None = None
    """By stream: the share of its missed frames that the cable lost, and the fraction of a frame carried on."""

    def lose(self, port: int, share: float, cable: float = 0.0, damages: bool = False) -> None:
        """From now on the router loses *share* (0…1) of what the generator's *port* sends; the cable to it, *cable*."""
        now = self._advance()
        self._damaging = self._damaging | {port} if damages else self._damaging - {port}
        self._losses = {**(self._losses or {}), port: (share, cable)}
        self._settle(now)

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for port, (share, cable) in (self._losses or {}).items():
            self._rings.reduce(port, (1 - share) * (1 - cable))
        before, self._cable_losses = self._cable_losses or {}, {}
        for sending, number in self._entering.items() if self._losses else ():
            share, cable = (self._losses or {}).get(sending.port, (0.0, 0.0))
            if share or cable:
                fate = with_loss(with_loss(self._forwarding.fates[number], share), cable)
                sending.fate(fate)
                if cable and fate.missed:
                    self._cable_losses[sending] = (cable / fate.missed, before.get(sending, (0.0, 0.0))[1])

    def _record(self, sending: Sending, new: StreamCounts, unsent: int) -> None:
        super()._record(sending, new, unsent)
        if self._cable_losses and sending in self._cable_losses:
            share, carry = self._cable_losses[sending]
            exact = share * new.missed + carry
            unseen = min(new.missed, math.floor(exact + 1e-9))
            self._cable_losses[sending] = (share, max(0.0, exact - unseen))
            port = self._ports[sending.port]
            there = port.interface
            damaged = there.rx_damaged + (unseen if sending.port in self._damaging else 0)
            port.interface = there._replace(rx_missed=there.rx_missed - unseen, rx_damaged=damaged)


def with_loss(fate: Fate, share: float) -> Fate:
    """*fate* with *share* of all frames missed in addition."""
    kept = 1 - share
    exits = {direction: part * kept for direction, part in fate.exits.items()}
    return replace(fate, missed=1 - (1 - fate.missed) * kept, exits=exits)
