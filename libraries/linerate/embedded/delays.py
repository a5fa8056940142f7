"""How late the modelled router's frames are: what is always there, and waiting that grows with the load."""

from __future__ import annotations

from ..units import l2_bits
from .groups import Delay
from .model.counting import Sending
from .model.forwarding import Forwarding, worker_of
from .model.schema import RouterModel

ALWAYS = 8.0
"""µs of two NICs, their buses and interrupts or polls, generator included."""
RING = 1024
"""Descriptors of a receive ring: the most frames that wait for a core."""
NEARLY = 0.999


def delay_of(model: RouterModel, forwarding: Forwarding, sending: Sending) -> Delay:
    """How late the frames of *sending* are, in µs.

    A frame is stored and forwarded, and handled with its vector: one vector's time. It waits for the frames before it
    as in a queue with random arrivals and fixed service (M/D/1: half the service time times load over free share), and
    where its core has no free time for a whole ring.
    """
    least = ALWAYS + 2 * l2_bits(sending.size) / model.link_bps * 1e6
    wait = most = 0.0
    for part in sending.parts:
        number = worker_of(model, sending.port, part.queue)
        if part.exit is None or number >= len(forwarding.workers):
            continue
        worker = forwarding.workers[number]
        service = worker.cycles / model.clock_hz * 1e6
        if worker.busy > NEARLY:
            here = RING * service
        else:
            here = service * (worker.vector + worker.busy / (2 * (1 - worker.busy)))
        wait, most = wait + part.share * min(here, RING * service), max(most, RING * service)
    return Delay(least, wait, least + max(most, wait))
