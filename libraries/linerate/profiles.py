"""Traffic profiles as data: which frames, in which ratio, how many flows. ``variables/profiles/*.yaml``, one schema.

A profile knows nothing of a generator. It is written the way the sentences name it: ``64b``, ``imix``,
``64b 1-flow``, ``1514b var1``.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from .config import Config, load
from .errors import ConfigError, SentenceError
from .units import FCS, Layer, bits, line_rate_pps

HEADERS = 14 + 20 + 8
"""Bytes of Ethernet, IPv4 and UDP headers: the least a frame of these profiles holds, without FCS."""


@dataclass(frozen=True, slots=True)
class FrameClass:
    """Frames of one size. ``size`` bytes with FCS; ``weight`` frames per round of the mix."""

    size: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class AddressRange:
    """IPv4 addresses ``first`` … ``last``, stepping by one, starting anew after the last."""

    first: str
    last: str

    @property
    def count(self) -> int:
        """How many addresses."""
        return int(ipaddress.IPv4Address(self.last)) - int(ipaddress.IPv4Address(self.first)) + 1

    def at(self, index: int) -> int:
        """The address of frame *index* as a number."""
        return int(ipaddress.IPv4Address(self.first)) + index % self.count


@dataclass(frozen=True, slots=True)
class Flows:
    """Addresses and UDP ports of the first direction; the second direction swaps source and destination addresses.

    Where both ranges vary they step together, as the two field-engine variables of TRex's bench profile do.
    """

    source: AddressRange
    destination: AddressRange
    source_port: int = 1025
    destination_port: int = 12

    @property
    def count(self) -> int:
        """Number of distinct flows."""
        a, b = self.source.count, self.destination.count
        return max(a, b) if min(a, b) == 1 or a == b else math.lcm(a, b)

    def reversed(self) -> Flows:
        """The same flows for the second direction: addresses swapped, ports kept (as the bench profile does)."""
        return Flows(self.destination, self.source, self.source_port, self.destination_port)


@dataclass(frozen=True)
class Profile:
    """What the generator is to send: sizes in their ratio, and flows."""

    name: str
    frames: tuple[FrameClass, ...]
    flows: Flows
    source: str = ""

    @cached_property
    def mean_size(self) -> float:
        """Mean frame size in bytes with FCS, weighted by frames."""
        total = sum(frame.weight for frame in self.frames)
        return sum(frame.size * frame.weight for frame in self.frames) / total

    def shares(self) -> tuple[tuple[FrameClass, float], ...]:
        """Each size with its share of the frames (0..1)."""
        total = sum(frame.weight for frame in self.frames)
        return tuple((frame, frame.weight / total) for frame in self.frames)

    def line_rate_pps(self, link_bps: float) -> float:
        """Frames/s of the whole mix that fill one direction of the link."""
        return line_rate_pps(link_bps, self.mean_size)

    def bits(self, layer: Layer) -> float:
        """Mean bits per frame at *layer*."""
        return bits(self.mean_size, layer)

    @property
    def is_one_flow(self) -> bool:
        """Every frame has the same addresses and ports."""
        return self.flows.count == 1


# -- the files ---------------------------------------------------------------------------------------------------------


class _Range(Config):
    first: str
    last: str

    @field_validator("first", "last")
    @classmethod
    def _address(cls, value: str) -> str:
        return str(ipaddress.IPv4Address(value))


class FlowsFile(Config):
    """``kind: flows``: what one word of a sentence (``1-flow``, ``var1``) says about addresses."""

    kind: Literal["flows"]
    name: str
    source: _Range
    destination: _Range
    source_port: Annotated[int, Field(ge=1, le=65535)] = 1025
    destination_port: Annotated[int, Field(ge=1, le=65535)] = 12
    default: bool = False
    about: str


class _Frame(Config):
    size: Annotated[int, Field(ge=64, le=9216)]
    weight: Annotated[int, Field(ge=1)]


class MixFile(Config):
    """``kind: mix``: frame sizes (with FCS) in a ratio."""

    kind: Literal["mix"]
    name: str
    frames: Annotated[tuple[_Frame, ...], Field(min_length=1)]
    about: str


class SizesFile(Config):
    """``kind: sizes``: which ``Nb`` there are, and those named otherwise than by their size with FCS."""

    kind: Literal["sizes"]
    smallest: Annotated[int, Field(ge=64)]
    largest: Annotated[int, Field(le=9216)]
    named_without_fcs: tuple[int, ...] = ()
    about: str


class ProfileFile(Config):
    """One file of ``variables/profiles``: a list of entries of the three kinds."""

    entries: tuple[Annotated[FlowsFile | MixFile | SizesFile, Field(discriminator="kind")], ...]


_SIZE = re.compile(r"^(\d+)b$")


@dataclass(frozen=True)
class Catalogue:
    """All traffic words that sentences may use."""

    flows: dict[str, FlowsFile]
    mixes: dict[str, MixFile]
    sizes: SizesFile

    @classmethod
    def read(cls, folder: Path) -> Catalogue:
        """Read every ``*.yaml`` of *folder*. Raises ConfigError."""
        flows: dict[str, FlowsFile] = {}
        mixes: dict[str, MixFile] = {}
        sizes: SizesFile | None = None
        for path in sorted(folder.glob("*.yaml")):
            for entry in load(path, ProfileFile).entries:
                if isinstance(entry, SizesFile):
                    if sizes:
                        raise ConfigError("a second 'kind: sizes'; there is one for all profiles", path)
                    sizes = entry
                    continue
                if entry.name in flows or entry.name in mixes:
                    raise ConfigError(f"the traffic word '{entry.name}' is defined twice", path)
                if isinstance(entry, FlowsFile):
                    flows[entry.name] = entry
                else:
                    mixes[entry.name] = entry
        if sizes is None or sum(item.default for item in flows.values()) != 1:
            raise ConfigError("needs one 'kind: sizes' and exactly one 'kind: flows' with 'default: true'", folder)
        return cls(flows, mixes, sizes)

    def words(self) -> list[str]:
        """What a sentence may say of traffic, for messages."""
        return ["64b", "1514b", "<bytes>b", *self.mixes, *self.flows]

    def is_word(self, word: str) -> bool:
        """Whether *word* speaks of traffic."""
        return bool(_SIZE.match(word)) or word in self.mixes or word in self.flows

    def profile(self, words: list[str]) -> Profile:
        """The profile that *words* name, in any order. Raises SentenceError."""
        frames: tuple[FrameClass, ...] | None = None
        flows: FlowsFile | None = None
        sized = flowed = ""
        for word in words:
            if word in self.flows:
                if flows:
                    raise SentenceError(f"'{flowed}' and '{word}' both say which flows; keep one")
                flows, flowed = self.flows[word], word
                continue
            if frames:
                raise SentenceError(f"'{sized}' and '{word}' both say which frames; keep one")
            sized = word
            if word in self.mixes:
                frames = tuple(FrameClass(frame.size, frame.weight) for frame in self.mixes[word].frames)
            else:
                frames = (FrameClass(self._size(word)),)
        if frames is None:
            raise SentenceError(f"no frame size; right would be one of {', '.join(['64b', '1514b', *self.mixes])}")
        chosen = flows or next(item for item in self.flows.values() if item.default)
        name = sized + (f" {flowed}" if flowed else "")
        return Profile(
            name,
            frames,
            Flows(
                AddressRange(chosen.source.first, chosen.source.last),
                AddressRange(chosen.destination.first, chosen.destination.last),
                chosen.source_port,
                chosen.destination_port,
            ),
        )

    def _size(self, word: str) -> int:
        found = _SIZE.match(word)
        if not found:
            raise SentenceError(f"'{word}' is not a traffic word; known: {', '.join(self.words())}")
        named = int(found[1])
        size = named + FCS if named in self.sizes.named_without_fcs else named
        if not self.sizes.smallest <= size <= self.sizes.largest:
            raise SentenceError(f"'{word}': frames are {self.sizes.smallest} to {self.sizes.largest} bytes with FCS")
        return size
