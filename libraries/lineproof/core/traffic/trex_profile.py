"""A user's profile in TRex's format: the streams of each direction, their sizes and rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...units import l1_bits
from .patterns import Pattern


@dataclass(frozen=True, slots=True)
class ProgramStream:
    """A stream. ``text``: JSON for TRex's ``add_stream``; ``frame``: the first one, without FCS.

    ``share``: of the frames that follow the load, 0..1; 0 for a stream with the fixed rate ``pps``. ``sizes``: (bytes
    with FCS, share of the stream's frames).
    """

    text: str
    frame: bytes
    share: float
    sizes: tuple[tuple[int, float], ...]
    pps: float = 0.0


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """The file of a profile, its ``sha256``, its ``tunables`` and the ``client`` that loaded it.

    ``mac_dst``: "port" where all streams use the port's destination MAC address.
    """

    path: Path
    sha256: str
    tunables: str
    client: str
    mac_dst: str = "packet"

    def to_json(self) -> dict[str, str]:
        """Data of a record."""
        found = {"file": self.path.name, "sha256": self.sha256, "tunables": self.tunables, "client": self.client}
        return found if self.mac_dst == "packet" else {**found, "mac_dst": self.mac_dst}


@dataclass(frozen=True)
class TrexProfile:
    """``directions``: the streams of each; ``one_direction_reason``: why the second has none, or "".

    ``flows``: number in the first direction, 0: not known; ``addresses``: least and greatest IPv4 source and
    destination address there.
    """

    source: ProfileSource
    directions: tuple[tuple[ProgramStream, ...], tuple[ProgramStream, ...]]
    one_direction_reason: str
    flows: int
    addresses: tuple[tuple[int, int], tuple[int, int]]
    patterns: tuple[Pattern | None, Pattern | None] = (None, None)
    """How each direction is sent in time; None: all streams all the time."""

    answer: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The file that it was read from, as JSON data."""

    def to_json(self) -> dict[str, str]:
        """Data of a record: the file, and how a pattern of its streams is sent."""
        if self.steady:
            return self.source.to_json()
        again = ", and is begun again when it is over" if self.ends else ""
        return {**self.source.to_json(), "pattern": f"played faster or slower, pauses and all, for each load{again}"}

    @property
    def steady(self) -> bool:
        """Return whether all streams are sent all the time."""
        return self.patterns == (None, None)

    @property
    def ends(self) -> bool:
        """Return whether it would end by itself, and is started again."""
        return any(item is not None and item.ends for item in self.patterns)

    def intended(self, second: bool, pps: float, seconds: float) -> int:
        """Frames of one port, in the first or *second* direction, in *seconds* at *pps*."""
        found = self.patterns[second]
        if found is None:
            return round(pps * seconds)
        fixed = sum(stream.pps for stream in self.directions[second])
        return round(fixed * seconds) + found.frames(pps - fixed, seconds)

    @cached_property
    def peak_to_mean(self) -> tuple[float, float]:
        """Peak rate by mean rate of a port on L1, in each direction; 1 without bursts."""
        found = []
        for pattern, direction in zip(self.patterns, self.directions, strict=True):
            bits = [sum(part * l1_bits(size) for size, part in stream.sizes) for stream in direction if stream.share]
            found.append(1.0 if pattern is None else pattern.peak_to_mean(bits))
        return found[0], found[1]

    @property
    def fixed_pps(self) -> float:
        """Frames/s of each port at a fixed rate, independent of the load."""
        return max(sum(stream.pps for stream in direction) for direction in self.directions)

    def mean_size(self, pps: float) -> float:
        """Mean frame size in bytes with FCS at *pps* frames/s, latency streams included."""
        fixed = [
            (stream.pps, size * part) for stream in self.directions[0] for size, part in stream.sizes if stream.pps
        ]
        follow = pps - sum(stream.pps for stream in self.directions[0])
        return (follow * mean_frame_size(self.directions[0]) + sum(rate * size for rate, size in fixed)) / pps

    def sizes(self) -> tuple[tuple[int, float], ...]:
        """Frame sizes (bytes with FCS) of the first direction, each with its share of the frames."""
        return _size_shares(self.directions[0])


def _size_shares(streams: Sequence[ProgramStream]) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for stream in streams:
        for size, part in stream.sizes:
            if stream.share:
                found[size] = found.get(size, 0.0) + stream.share * part
    return tuple(found.items())


def mean_frame_size(streams: Sequence[ProgramStream]) -> float:
    """Bytes with FCS, without streams at a fixed rate."""
    return sum(size * part for size, part in _size_shares(streams))
