"""Do frames arrive where they should? What a little slow traffic shows, each way with a rate of its own. Pure."""

from __future__ import annotations

from ..errors import TestbedError
from .trial import DirectionCount, Outcome

APART = 0.25
"""By how much more frames each further way has, so that their numbers tell them apart."""

STRANGERS = 0.08
"""Share of a way's frames that others (LLDP and the like) may be beside them, before they are another way's."""

FEW = 20
"""As many may be in any case."""


def check_reached(outcome: Outcome) -> None:
    """Raise TestbedError where a way carries nothing, or what arrives is not what was sent there.

    Swapped cables, a wrong next hop or an unconfigured router are the testbed's: they must never read as loss.
    """
    for direction in outcome.directions:
        if not direction.offered:
            raise TestbedError(
                f"the generator's port {direction.tx_port} sends nothing; look at the TRex server's console"
            )
        if not direction.forwarded:
            raise TestbedError(
                f"none of {direction.offered} frames sent from the generator's port {direction.tx_port} came back at port"
                f" {direction.rx_port}; check the cables, the router's addresses, routes and neighbours, and the destination"
                " MAC of TRex's port"
            )
    if strange := _strange(outcome):
        sent = ", ".join(f"{direction.offered} to port {direction.rx_port}" for direction in outcome.directions)
        raise TestbedError(
            f"the generator's port {strange.rx_port} received {strange.forwarded} frames, and {strange.offered} were"
            f" to arrive there (sent: {sent}): some are another way's, or strangers'; check which cable leads where,"
            " and the router's routes"
        )


def check_own_addresses(name: str, outcome: Outcome) -> None:
    """Raise TestbedError where frames of *name*, which bring their addresses, have no way through the router."""
    for direction in outcome.directions:
        if direction.forwarded < direction.offered * (1 - STRANGERS):
            raise TestbedError(
                f"of {direction.offered} frames of '{name}' sent slowly from the generator's port {direction.tx_port},"
                f" {direction.forwarded} came back at port {direction.rx_port}, where other traffic arrives: the router has no way"
                " for them, or drops them as wrong; check the addresses, checksums and lengths that they bring along"
            )
    if strange := _strange(outcome):
        raise TestbedError(
            f"of the frames of '{name}' {strange.forwarded} arrived at port {strange.rx_port}, and {strange.offered}"
            " were sent there: the router sends some of them another way; check the addresses that they bring along"
        )


def _strange(outcome: Outcome) -> DirectionCount | None:
    """The way at whose end clearly more arrived than was sent there."""
    return next(
        (direction for direction in outcome.directions if direction.surplus > max(FEW, STRANGERS * direction.offered)),
        None,
    )
