"""Reachability: what a little slow traffic shows, each direction at its own rate."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import TestbedError
from .trial import DirectionCount, Outcome

DIRECTION_STEP = 0.25
"""Each further direction has so many more frames (ratio), so that their counts identify them."""

FOREIGN_RATIO = 0.08
"""Ratio of a direction's frames that may be of other protocols (LLDP); more are another direction's."""

NONE_RATIO = 0.02
"""So few of the frames (ratio) are none of them: a switch (spanning tree) or the router sends some of its own."""

ALL_RATIO = 1 - FOREIGN_RATIO
"""So many of the frames (ratio) are all of them."""

FOREIGN_FRAMES = 20
"""Foreign frames that are always allowed."""


class NothingArrives(TestbedError):
    """Slow traffic does not come back: a router that has not noticed its link yet drops it, too."""


class OthersArrive(TestbedError):
    """More frames come back than were sent: another direction's, or those of slow traffic that was held up before."""


CHECK = (
    "check the cables and which leads where, the router's addresses, routes and neighbours, and the destination MAC of"
    " TRex's port"
)
"""Parts to look at where no frames come back."""


def check_arrival(
    name: str, outcome: Outcome, likely: Callable[[], str] = lambda: CHECK, least: float = NONE_RATIO
) -> None:
    """Raise TestbedError where no more than *least* (ratio) of the frames of *name* come back, or at another port.

    *likely*: tells what the router shows, or what to look at. Swapped cables, a wrong next hop or an unconfigured
    router are the testbed's fault and must not count as loss. A part that arrives: trials judge it.
    """
    for direction in outcome.directions:
        if not direction.offered:
            raise TestbedError(
                f"the generator's port {direction.tx_port} sends no frames of '{name}'; look at the TRex server's"
                " console, and at the MTU of that port"
            )
        if direction.forwarded <= least * direction.offered:
            problems = "".join(f"; meanwhile: {problem}" for problem in outcome.problems)
            raise NothingArrives(
                f"{direction.forwarded or 'none'} of {direction.offered} frames of '{name}' sent slowly from the"
                f" generator's port {direction.tx_port} came back at port {direction.rx_port}{problems}; what is not"
                f" set up is not lost: {likely()}"
            )
    if found := _direction_with_foreign_frames(outcome):
        sent = ", ".join(f"{direction.offered} to port {direction.rx_port}" for direction in outcome.directions)
        raise OthersArrive(
            f"the generator's port {found.rx_port} received {found.forwarded} frames, and {found.offered} of '{name}'"
            f" were to arrive there (sent: {sent}): some belong to another direction, or come from elsewhere;"
            f" {likely()}"
        )


def _direction_with_foreign_frames(outcome: Outcome) -> DirectionCount | None:
    """The first direction that received clearly more frames than it was sent."""
    return next(
        (item for item in outcome.directions if item.surplus > max(FOREIGN_FRAMES, FOREIGN_RATIO * item.offered)), None
    )
