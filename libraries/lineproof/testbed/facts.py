"""The facts of an open testbed: the addresses of its generator and router, and the cables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..generators.kinds import GeneratorEndpoint
from ..routers.base import Side
from ..system.login import Login

NO_ROUTER = Login("", 0, "", None, Path())
"""In place of the router's login while it is bypassed."""


@dataclass(frozen=True, slots=True)
class TestbedFacts:
    """An open testbed.

    ``sides``: one for each of the generator's ports, in their order; a ``peer_mac`` of "" is filled in from the
    generator's port once that is known.
    ``clock_speed``: seconds of the testbed's clock per second of real time.
    ``simulated``: no real frames; every result must be marked so. ``label``: for reports, one line.
    """

    generator: GeneratorEndpoint
    router: Login
    sides: tuple[Side, ...]
    label: str
    clock_speed: float = 1.0
    simulated: bool = False
    namespaces: tuple[str, ...] = ()
    """Network namespaces of this machine, as paths below /proc: the generator's first, the router's last."""
    sender: int | None = None
    """The process whose descendants send on this machine's interfaces to a router that is this machine's kernel."""
