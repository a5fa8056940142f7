"""The modelled bench without its router: the generator's two ports are connected to each other."""

from __future__ import annotations

from linerate.units import l2_bits

from ..backend import CapturedFrame
from ..packet_groups import Delay
from .counting import Sending
from .flows import frame_of
from .forwarding import Fate
from .latency import ALWAYS
from .lossy import LossyModel


class BypassedModel(LossyModel):
    """Whatever the generator sends comes back at the other port of the pair, as it was sent.

    What is left of the model is the generator: its ceiling, and its half of the time that two cards take.
    """

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for sending in self._sending:
            sending.fate(Fate(0.0, 0.0, 0.0, {sending.port ^ 1: 1.0}))

    def _delay(self, sending: Sending) -> Delay:
        return Delay(ALWAYS / 2 + l2_bits(sending.size) / self.model.link_bps * 1e6, 0.0)

    def _keep(self, sending: Sending, numbers: range, direction: int, frames: int) -> None:
        port = self._ports[direction]
        room = min(port.capture_limit - len(port.captured), frames)
        if room > 0:
            seen = (frame_of(sending.traffic, number) for number in numbers[:room])
            port.captured += tuple(CapturedFrame(direction, data, self._last) for data in seen)
