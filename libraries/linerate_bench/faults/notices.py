"""What a faulty model tells the server to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

THIEF = "somebody"
"""Who takes the ports away."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What the server has to do about a fault.

    Tell of a ``link``, give ports away (``steal``) or back (``free``), ``end``, or end and be started again
    (``restart``) ``after`` so many s of the wall's clock, with ``specification`` put into the one it had.
    """

    what: Literal["link", "steal", "free", "end", "restart"]
    port: int = 0
    up: bool = True
    after: float = 0.0
    specification: Mapping[str, Any] = field(default_factory=dict)
