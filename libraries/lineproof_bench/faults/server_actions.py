"""What the server has to do itself because of a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

THIEF = "somebody"
"""The user that takes the ports in the fault ``ports stolen``."""


@dataclass(frozen=True, slots=True)
class ServerAction:
    """Publish a ``link`` event, ``steal`` or ``free`` a port, ``end``, or end and be started again (``restart``).

    ``after``: s of wall time until the restart, with ``specification`` put into the present one.
    """

    what: Literal["link", "steal", "free", "end", "restart"]
    port: int = 0
    up: bool = True
    after: float = 0.0
    specification: Mapping[str, Any] = field(default_factory=dict)
