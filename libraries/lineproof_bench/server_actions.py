"""Actions that the server has to do itself because of a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lineproof.simulation.faults import InjectedFault

THIEF = "somebody"
"""The user that takes the ports in the fault ``ports stolen``."""


@dataclass(frozen=True, slots=True)
class ServerAction:
    """Publish a ``link`` event, ``steal`` or ``free`` a port, ``end``, or end and be started again (``restart``).

    ``after``: s of wall time until the restart, with the ``faults`` that have not begun yet.
    """

    what: Literal["link", "steal", "free", "end", "restart"]
    port: int = 0
    up: bool = True
    after: float = 0.0
    faults: tuple[InjectedFault, ...] = ()
