"""The interface of a traffic generator, and its abilities: a sentence that asks for more is refused before traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Protocol

from ..command_values import instead_of
from ..core.foreign import Heard
from ..core.json_types import Names
from ..core.step_down import StepDown
from ..core.traffic.profiles import Profile
from ..core.trial import During, Load, Outcome
from ..errors import TestbedError

HIGHEST_SPEED_BPS = 200e9
"""The speed that TRex reports of a link that is faster, bit/s (TRex v3.08, src/trex_port_attr.h:50)."""


class PortsTaken(TestbedError):
    """Another user has a port."""


class ProbesRefused(TestbedError):
    """The generator's cards cannot count such probe frames."""


@dataclass(frozen=True, slots=True)
class GeneratorPort:
    """A port as the generator itself describes it. ``speed_bps``: link speed in bit/s; 0: its driver does not know it.

    ``pci``: its PCI address, ``description``: its card in words, ``destination``: the MAC address that it sends to; ""
    if unknown. ``measures``: what it can measure of received frames (``latency``, ``flow_stats``, …); None: unknown.
    ``numa``: the node that its card is on; None: unknown, or the machine has one. ``cores``: the generator's numbers of
    those that send for it; the ports of a pair share them; empty: unknown. ``flow_control``: which pause frames are
    on: ``off``, ``rx`` (obeyed), ``tx`` (sent) or ``rx and tx``; None: the driver cannot say.
    ``card_mac``: the card's own MAC address, which it takes frames for, whatever ``mac`` it sends with; "": unknown.
    ``promiscuous``: whether it takes all frames; None: unknown. ``is_virtual``: it receives in software.
    """

    index: int
    mac: str
    speed_bps: float
    link_up: bool
    driver: str
    pci: str = ""
    description: str = ""
    destination: str = ""
    measures: Names | None = None
    numa: int | None = None
    cores: tuple[int, ...] = ()
    flow_control: str | None = None
    card_mac: str = ""
    promiscuous: bool | None = None
    is_virtual: bool = False

    @property
    def speed_text(self) -> str:
        """The speed, for messages."""
        return f"{self.speed_bps / 1e9:g} Gbit/s" if self.speed_bps else "a speed that its driver does not report"

    def is_slower_than(self, link_bps: float) -> bool:
        """Return whether its link certainly has a lower speed than *link_bps*, bit/s."""
        return 0 < self.speed_bps < min(0.99 * link_bps, HIGHEST_SPEED_BPS)


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction through the router: frames leave ``tx_port`` and are expected at ``rx_port``.

    ``swapped``: the second direction of a port pair, whose addresses are swapped. ``pair``: number of the port pair,
    from 0; each pair has its own networks. ``destination``: the MAC address that the frames carry, where it is not the
    sending port's own destination.
    """

    tx_port: int
    rx_port: int
    swapped: bool = False
    pair: int = 0
    destination: str = ""


def directions_of(ports: Sequence[int], bidirectional: bool, pairs: int = 1) -> tuple[Direction, ...]:
    """Return the directions of the first *pairs* port pairs of *ports*, pair by pair."""
    directions: list[Direction] = []
    for pair in range(pairs):
        first, second = ports[2 * pair : 2 * pair + 2]
        directions.append(Direction(first, second, pair=pair))
        if bidirectional:
            directions.append(Direction(second, first, swapped=True, pair=pair))
    return tuple(directions)


@dataclass(frozen=True, slots=True)
class Probe:
    """Frames with a number and a time, as part of the load: ``pps`` per second from each sending port.

    ``times``: their latency is measured; otherwise only which of them came back, how often and in which order.
    """

    pps: float
    times: bool = True


MOST_FRAMES = 4096
"""Different frames that are written out for a generator that sends a list in turn."""


def listing(shares: Sequence[float], flows: Sequence[int]) -> list[int]:
    """Return the stream of each frame of a list, evenly mixed, in which every stream has all its flows equally often.

    *shares* of the streams, in sum 1; so many *flows* each. Raises ValueError where they have no place in a list of
    MOST_FRAMES.
    """
    fractions = [Fraction(share).limit_denominator(MOST_FRAMES) for share in shares]
    kept = all(math.isclose(one, share, rel_tol=1e-9) for one, share in zip(fractions, shares, strict=True))
    whole = math.lcm(*(share.denominator for share in fractions))
    weights = [int(share * whole) for share in fractions]
    # a turn of all sizes, as often as every flow of each needs
    rounds = math.lcm(*(each // math.gcd(each, weight) for each, weight in zip(flows, weights, strict=True) if weight))
    if sum(fractions) != 1 or not kept or rounds * whole > MOST_FRAMES:
        raise ValueError(f"these sizes and flows have no place in a list of {MOST_FRAMES} frames")
    due = [
        ((number + 0.5) / weight, place) for place, weight in enumerate(weights) for number in range(weight * rounds)
    ]
    return [place for _, place in sorted(due)]


ABILITIES = {
    "mixes": "sends no frames of several sizes",
    "flows": "sends one flow, or a few",
    "unlisted": f"sends a list of at most {MOST_FRAMES} different frames in turn",
    "headers": "sends plain IPv4 and UDP only",
    "own_frames": "sends no captures and no streams of a file",
    "bidirectional": "sends in one direction only",
    "pairs": "uses one pair of ports only",
    "latency": "measures no latency",
    "capture": "keeps no received frames",
    "live": "cannot change its load while it sends",
    "bursts": "sends no bursts of an exact length",
    "own_counts": "has no receive counters of its own: what it received is what the host's interfaces count",
    "promiscuous": "does not switch which frames its ports take",
}
"""The abilities that a generator may have. Value: words for what one without it does, after its name."""


class Method(Enum):
    """Methods of keywords beyond a sentence: its words, and the ability that it needs."""

    THROUGHPUT = "RFC 2544's throughput test", "own_counts"
    FRAME_LOSS = "RFC 2544's frame loss test", "own_counts"
    LATENCY = "RFC 2544's latency test", "latency"
    BACK_TO_BACK = "RFC 2544's back-to-back test", "bursts"
    RECOVERY = "RFC 2544's system recovery", "live"
    RESET = "RFC 2544's reset test", "live"

    def __init__(self, words: str, ability: str) -> None:
        self.words, self.ability = words, ability


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a generator: those of :data:`ABILITIES` in ``can``, all by default.

    Only a generator with ``own_counts`` may carry the label of RFC 2544, or one that a switch has checked.
    ``most_flows``: those that one without ``flows`` sends; ``fragments``: one without ``mixes`` sends the two sizes of
    a datagram in fragments.
    """

    can: frozenset[str] = frozenset(ABILITIES)
    most_flows: int = 1
    fragments: bool = False

    def __post_init__(self) -> None:
        for name in sorted(self.can - ABILITIES.keys()):
            raise ValueError(f"'{name}' is no ability; {instead_of(name, ABILITIES)}")

    def lacks(self, profile: Profile, bidirectional: bool, pairs: int = 1, *more: str) -> tuple[str, ...]:
        """Return the abilities that this traffic needs, or that are in *more*, and that are not there."""
        headers = profile.headers
        plain = headers.version == 4 and headers.transport == "udp" and not headers.tags and not headers.labels
        needed = {
            "own_frames": profile.has_own_addresses,
            "bidirectional": bidirectional,
            "pairs": pairs > 1,
            "mixes": len(profile.frames) > 1 and not (self.fragments and profile.fragmented_datagram),
            "unlisted": not _has_list(profile),
            "headers": not plain,
            "flows": not 1 <= profile.flows.count <= self.most_flows,
        }
        return self.lacks_of(*(name for name, asked in needed.items() if asked), *more)

    def lacks_of(self, *names: str) -> tuple[str, ...]:
        """Return those of *names* that are not there."""
        return tuple(name for name in names if name not in self.can)


def _has_list(profile: Profile) -> bool:
    """Return whether the different frames of *profile* have a place in a list; those of a file have other needs."""
    if profile.has_own_addresses:
        return True
    try:
        listing([share for _, share in profile.shares()], [profile.flows.count] * len(profile.frames))
    except ValueError:
        return False
    return True


class Generator(Protocol):
    """A connected generator with claimed ports. Every call has a time limit and raises TestbedError beyond it.

    One without the ability has no ``burst`` and ``step_down``: the plan refuses what needs them.
    """

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The claimed ports."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of server, client and protocol, as evidence."""
        ...

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """Put the profile's streams on the sending ports; they replace the former ones.

        With *probe*, some of the load's frames are probes, and outcomes have their latency.
        """
        ...

    @property
    def streams(self) -> Mapping[str, object]:
        """Return what the generator was told to send by :meth:`prepare`, as JSON data by sending port: evidence."""
        ...

    def measure(
        self, load: Load, duration: float, during: During | None = None, keep: int = 0, rates: Sequence[float] = ()
    ) -> Outcome:
        """Measure one trial of the prepared profile: send for *duration* s, wait for the drain, read the counts.

        The last frames of each receiving port, *keep* at most, are in the outcome (only without *during*).
        *during* is called once every sending port has sent a frame (never, if one sends none). The outcome's reading
        DURING_READING says when it returned. If it raises, the traffic is stopped.

        *rates* (frames/s): of each direction, with *load* as the highest; different counts show which direction a frame
        belongs to. All streams are sent as continuous ones then.
        """
        ...

    def idle(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """Return what each port receives in *seconds* of the testbed's clock without traffic, and *keep* frames."""
        ...

    def burst(self, frames: int, pps: float) -> Outcome:
        """Send *frames* frames of the prepared profile (no probes) from each port at *pps*, and wait for the drain.

        The outcome's load is *pps*, its duration *frames* / *pps*.
        """
        raise TestbedError(f"the generator {ABILITIES['bursts']}")

    def step_down(
        self, first: Load, first_duration: float, second: Load, second_duration: float, interval: float
    ) -> StepDown:
        """Send at *first*, then without a pause at *second*; wait for the drain. All times: s of the testbed's clock.

        In the second phase the counts are read every *interval* s, or as often as the generator can.
        """
        raise TestbedError(f"the generator {ABILITIES['live']}")

    def stop(self) -> None:
        """Stop all traffic now."""
        ...

    def reconnect(self) -> None:
        """Connect again after a failed call; there are no streams then. May be repeated.

        Takes ports from another user only if the settings allow it.
        """
        ...

    def close(self) -> None:
        """Stop traffic, release the ports, end the client's process. May be repeated."""
        ...
