"""The model without its router: a cable connects the generator's two ports."""

from __future__ import annotations

from collections.abc import Iterator

from lineproof.units import l2_bits

from ..packet_groups import Delay
from .counting import Sending
from .flows import frame_of
from .forwarding import Fate
from .injected_loss import LossyModel
from .latency import FIXED_LATENCY
from .ports import ModelPort


class DirectCableModel(LossyModel):
    """Every frame comes back unchanged at the other port of the pair.

    Only the generator is modelled: its ceiling, and its half of the time that two cards take.
    """

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for sending in self._sending:
            sending.fate(Fate(0.0, 0.0, 0.0, {sending.port ^ 1: 1.0}))

    def _delay(self, sending: Sending) -> Delay:
        return Delay(FIXED_LATENCY / 2 + l2_bits(sending.size) / self.model.link_bps * 1e6, 0.0)

    def _egress_frames(self, sending: Sending, numbers: range, port: ModelPort, most: int) -> Iterator[bytes]:
        return (frame_of(sending.traffic, number) for number in numbers[:most])
