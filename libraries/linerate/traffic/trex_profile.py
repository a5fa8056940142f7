"""A user's own profile in TRex's format, as figures: its streams of each direction, their sizes and rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..units import l1_bits
from .patterns import Pattern


@dataclass(frozen=True, slots=True)
class ProgramStream:
    """A stream. ``text``: what TRex's ``add_stream`` takes, as JSON; ``frame``: its first one, without FCS.

    ``share`` of the frames that follow the load, 0..1; 0 for one whose rate is ``pps``, whatever the load. ``sizes``:
    (bytes with FCS, part of the stream's frames).
    """

    text: str
    frame: bytes
    share: float
    sizes: tuple[tuple[int, float], ...]
    pps: float = 0.0


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """The file of a profile: its ``sha256``, what it was told (``tunables``), and the ``client`` that loaded it.

    ``mac_dst``: "port" where all streams go to the port's destination MAC address, whatever they say.
    """

    path: Path
    sha256: str
    tunables: str
    client: str
    mac_dst: str = "packet"

    def to_json(self) -> dict[str, str]:
        """For a record."""
        found = {"file": self.path.name, "sha256": self.sha256, "tunables": self.tunables, "client": self.client}
        return found if self.mac_dst == "packet" else {**found, "mac_dst": self.mac_dst}


@dataclass(frozen=True)
class TrexProfile:
    """``directions``: the streams of each direction; ``one_way``: why there is none in the second, or "".

    ``flows``: how many in the first direction, 0 where that is not known; ``addresses``: least and greatest IPv4 source
    and destination address there.
    """

    source: ProfileSource
    directions: tuple[tuple[ProgramStream, ...], tuple[ProgramStream, ...]]
    one_direction: str
    flows: int
    addresses: tuple[tuple[int, int], tuple[int, int]]
    patterns: tuple[Pattern | None, Pattern | None] = (None, None)
    """How the streams of each direction are sent in time; None: all of them all the time."""

    def to_json(self) -> dict[str, str]:
        """For a record: the file, and what is done with its streams where they are not all sent all the time."""
        if self.steady:
            return self.source.to_json()
        again = ", and is begun again when it is over" if self.ends else ""
        return {**self.source.to_json(), "pattern": f"played faster or slower, pauses and all, for each load{again}"}

    @property
    def steady(self) -> bool:
        """Whether all streams are sent all the time."""
        return self.patterns == (None, None)

    @property
    def ends(self) -> bool:
        """Whether it would end by itself, and is begun again."""
        return any(item is not None and item.ends for item in self.patterns)

    def intended(self, second: bool, pps: float, seconds: float) -> int:
        """Frames of one port, in the first or *second* direction, in *seconds* at *pps*."""
        found = self.patterns[second]
        if found is None:
            return round(pps * seconds)
        fixed = sum(stream.pps for stream in self.directions[second])
        return round(fixed * seconds) + found.frames(pps - fixed, seconds)

    @cached_property
    def crests(self) -> tuple[float, float]:
        """How many times its average rate on L1 a port sends while bursts last, in each direction; 1 without bursts."""
        found = []
        for pattern_of, direction in zip(self.patterns, self.directions, strict=True):
            bits = [sum(part * l1_bits(size) for size, part in stream.sizes) for stream in direction if stream.share]
            found.append(1.0 if pattern_of is None else pattern_of.crest(bits))
        return found[0], found[1]

    @property
    def fixed_pps(self) -> float:
        """Frames/s of each port that are sent whatever the load is."""
        return max(sum(stream.pps for stream in direction) for direction in self.directions)

    def mean_size(self, pps: float) -> float:
        """Bytes with FCS of a frame, on the average of *pps* frames/s, those of latency streams among them."""
        fixed = [
            (stream.pps, size * part) for stream in self.directions[0] for size, part in stream.sizes if stream.pps
        ]
        follow = pps - sum(stream.pps for stream in self.directions[0])
        return (follow * _mean(self.directions[0]) + sum(rate * size for rate, size in fixed)) / pps

    def sizes(self) -> tuple[tuple[int, float], ...]:
        """Frame sizes (bytes with FCS) of the first direction, each with its part of the frames."""
        return _sizes(self.directions[0])


def _sizes(streams: Sequence[ProgramStream]) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for stream in streams:
        for size, part in stream.sizes:
            if stream.share:
                found[size] = found.get(size, 0.0) + stream.share * part
    return tuple(found.items())


def _mean(streams: Sequence[ProgramStream]) -> float:
    return sum(size * part for size, part in _sizes(streams))
