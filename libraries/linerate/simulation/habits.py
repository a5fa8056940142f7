"""What a simulated router does as physical ones do, and as no model does by itself: ``router_habits`` of a testbed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..config import Config

Seconds = Annotated[float, Field(ge=0, le=600)]


class RouterHabits(Config):
    """Seconds of the testbed's clock. All 0: links are there at once.

    ``link_delay``: from taking an interface up to its carrier at both ends of the cable (negotiation, training, FEC).
    ``link_poll``: between the router's looks at its links: what it has not seen come up it does not send to
    (VPP's dpdk plugin: 3 s, ``DPDK_LINK_POLL_INTERVAL`` in its device/dpdk.h).
    """

    link_delay: Seconds = 0.0
    link_poll: Seconds = 0.0
