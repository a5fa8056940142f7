"""One reading of a router's own counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .causes import Cause
from .json_types import NotKept
from .neighbours import NeighbourEntry


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Frames of one interface since the router started, as the router counts them.

    ``tx_packets``: really sent; frames that the router counted and then failed to send are subtracted.
    """

    rx_packets: int = 0
    tx_packets: int = 0


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """One VPP graph node on one thread, from ``show runtime``. ``clocks`` are TSC cycles per vector."""

    thread: str
    name: str
    state: str
    calls: int
    vectors: int
    suspends: int
    clocks: float
    vectors_per_call: float


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A reading. ``uptime`` in s, None: not known; ``raw``: output by command.

    ``causes``: every counter of lost frames, zeros included. VPP only: ``runtime`` and ``since_clear``, the seconds
    that it covers (0: not known). ``neighbours``: its entries of the generator's ports; empty: not asked for, or
    ``neighbours_unread`` says why they are not known.
    """

    uptime: float | None
    interfaces: Mapping[str, InterfaceCounters]
    runtime: tuple[NodeRuntime, ...] = ()
    raw: NotKept[Mapping[str, str]] = field(default_factory=dict)
    since_clear: float = 0.0
    causes: tuple[Cause, ...] = ()
    neighbours: tuple[NeighbourEntry, ...] = ()
    neighbours_unread: str = ""
    taken_back: tuple[str, ...] = ()
    """Changes of the run that the router did not show any more; they are looked at before a FAIL."""
    pauses: Mapping[str, int] = field(default_factory=dict)
    """Pause frames that an interface received, where its card counts them."""
