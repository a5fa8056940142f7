"""What a method and a testbed need of a traffic generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..counts.live_traffic import LiveTraffic
from ..counts.step_down import StepDown
from ..counts.trial import Load, Outcome
from ..traffic.profiles import Profile


@dataclass(frozen=True, slots=True)
class GeneratorPort:
    """A port as the generator itself describes it. ``speed_bps`` is its link speed in bit/s.

    ``pci``: its PCI address, ``description``: its card in words, ``destination``: the MAC address that it sends to; ""
    where it tells none. ``measures``: what it can tell of received frames (``latency``, ``flow_stats``, …); None: not
    told.
    """

    index: int
    mac: str
    speed_bps: float
    link_up: bool
    driver: str
    pci: str = ""
    description: str = ""
    destination: str = ""
    measures: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction through the router: frames leave ``tx_port`` and are expected at ``rx_port``.

    ``swapped``: the second direction of a pair, whose addresses are swapped. ``pair``: which pair of ports, from 0;
    each has networks of its own.
    """

    tx_port: int
    rx_port: int
    swapped: bool = False
    pair: int = 0


def directions_of(ports: Sequence[int], bidirectional: bool, pairs: int = 1) -> tuple[Direction, ...]:
    """The directions through the first *pairs* pairs of *ports*, pair by pair."""
    found: list[Direction] = []
    for pair in range(pairs):
        first, second = ports[2 * pair : 2 * pair + 2]
        found.append(Direction(first, second, pair=pair))
        if bidirectional:
            found.append(Direction(second, first, swapped=True, pair=pair))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Probe:
    """Frames whose latency is measured, among the others: ``pps`` of them per second into each sending port."""

    pps: float


class Generator(Protocol):
    """A connected generator that holds its ports. Every call has a time limit and raises TestbedError beyond it."""

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The ports held."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of server, client and protocol, as evidence."""
        ...

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """Put the profile's streams on the sending ports, replacing what was there.

        With *probe*, some of the load's frames are probes, and outcomes tell their latency.
        """
        ...

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial of the prepared profile: send for *duration* s, wait for the drain, read the counts."""
        ...

    def reach(self, rates: Sequence[float], duration: float) -> Outcome:
        """Send a rate of its own (frames/s) in each way of the prepared profile, so that ways can be told apart.

        The outcome's load is the highest of them.
        """
        ...

    def burst(self, frames: int, pps: float) -> Outcome:
        """Exactly *frames* frames of the prepared profile (no probes) from each sending port at *pps*, and the drain.

        The outcome's load is *pps*, its duration what the frames take at that.
        """
        ...

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Send at *first* for *seconds* s, then at *second* for *after* s, without a pause; wait for the drain.

        In the second phase the counts are read every *every* s, or as often as the generator can. All of the testbed's
        clock.
        """
        ...

    def live(self) -> LiveTraffic:
        """Traffic of the prepared profile that is steered and looked at while it runs."""
        ...

    def capture(self, load: Load, duration: float, limit: int) -> Mapping[int, tuple[bytes, ...]]:
        """Send like :meth:`measure` and return up to *limit* received frames (without FCS) of each receiving port."""
        ...

    def stop(self) -> None:
        """Stop all traffic now."""
        ...

    def reconnect(self) -> None:
        """Begin anew, with no streams, after a call that failed. Takes no port from anybody else unless told so.

        May be tried again where it fails.
        """
        ...

    def close(self) -> None:
        """Stop traffic, release the ports, end the client's process. Harmless when repeated."""
        ...
