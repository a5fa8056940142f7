"""What is known of the network cards of traffic generators: ``variables/generators/*.yaml``, each figure with a source.

A figure that nobody published is not there: absent means unknown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from ..config import Config, load
from ..errors import ConfigError
from ..generators.base import GeneratorPort
from ..traffic.frame_kinds import FrameKind
from ..units import parse_link_speed

_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_NAME = re.compile(r"[a-z0-9_]+")

Rate = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=64, le=16384)]


class FigureSource(Config):
    """Where a figure stands, what it says there in short, and when it was looked up (``2026-01-31``)."""

    title: Annotated[str, Field(min_length=3)]
    url: str
    says: Annotated[str, Field(min_length=3)]
    seen: str

    @field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        if not re.fullmatch(r"https?://\S+", value):
            raise ValueError("is not an address; expected https://…")
        return value

    @field_validator("seen")
    @classmethod
    def _day(cls, value: str) -> str:
        try:
            date.fromisoformat(value)
        except ValueError:
            raise ValueError('is not a day; expected for example "2026-01-31"') from None
        return value

    def __str__(self) -> str:
        return f"{self.title}, {self.url}, seen {self.seen}"


class Servers(Config):
    """TRex versions: from ``since`` on, ``before`` one that no longer. Neither: all, and those that are not told."""

    since: str | None = None
    before: str | None = None

    @field_validator("since", "before")
    @classmethod
    def _version(cls, value: str | None) -> str | None:
        if value is not None and not _VERSION.fullmatch(value):
            raise ValueError("is not a version of TRex; expected for example v3.07")
        return value

    def hold(self, server: str | None) -> bool:
        """Whether *server*, as it tells its version, is one of these; a bound needs a version to be told."""
        if self.since is None and self.before is None:
            return True
        if server is None or (found := _VERSION.match(server)) is None:
            return False
        mine = _order(found)
        since, before = (_VERSION.fullmatch(bound) if bound else None for bound in (self.since, self.before))
        return (since is None or _order(since) <= mine) and (before is None or mine < _order(before))


def _order(found: re.Match[str]) -> tuple[int, int]:
    return int(found[1]), int(found[2])


class Fact(Config):
    """Something known of a card under some versions of TRex."""

    servers: Servers = Servers()
    source: FigureSource


class Limit(Fact):
    """A ceiling: frames/s of a port or of all sending ports of a card together, or bit/s of frames with FCS of a card.

    ``frames_below``: holds where every frame is smaller than so many bytes with FCS.
    """

    pps_per_port: Rate | None = None
    pps_per_card: Rate | None = None
    bps_per_card: Rate | None = None
    frames_below: Bytes | None = None

    @model_validator(mode="after")
    def _one(self) -> Limit:
        if sum(value is not None for value in (self.pps_per_port, self.pps_per_card, self.bps_per_card)) != 1:
            raise ValueError("needs exactly one of pps_per_port, pps_per_card, bps_per_card")
        return self


class NoLatency(Fact):
    """Probe frames of one of these kinds (none named: any) do not work; ``remedy``: what to do."""

    frames: tuple[FrameKind, ...] = ()
    remedy: str


class FrameSize(Fact):
    """Frames it cannot send: above ``largest`` or below ``smallest`` bytes with FCS."""

    smallest: Bytes | None = None
    largest: Bytes | None = None

    @model_validator(mode="after")
    def _any(self) -> FrameSize:
        if self.smallest is None and self.largest is None:
            raise ValueError("needs 'smallest' or 'largest'")
        return self


class FlowStatistics(Fact):
    """``streams`` that can be counted at a time; whether bytes received are counted too."""

    streams: Annotated[int, Field(ge=0)]
    counts_bytes: bool = True


class Quirk(Fact):
    """Worth knowing, in words; no verdict depends on it."""

    quirk: str


class Card(Config):
    """One file. ``drivers``: as TRex names them; ``speeds`` of its ports, ``descriptions``: parts of TRex's, to tell
    cards of one driver apart; ``only_named``: never chosen unless a testbed names it.
    """

    card: str
    name: str
    drivers: Annotated[tuple[str, ...], Field(min_length=1)]
    speeds: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    only_named: bool = False
    limits: tuple[Limit, ...] = ()
    latency: tuple[NoLatency, ...] = ()
    frame_sizes: tuple[FrameSize, ...] = ()
    flow_stats: FlowStatistics | None = None
    quirks: tuple[Quirk, ...] = ()

    @field_validator("speeds")
    @classmethod
    def _speeds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for speed in value:
            parse_link_speed(speed)
        return value

    def runs_at(self, bps: float) -> bool:
        """Whether it has ports of *bps* bit/s; 0: not told, which fits any."""
        speeds = [parse_link_speed(speed) for speed in self.speeds]
        return not speeds or not bps or any(abs(speed - bps) <= 0.01 * speed for speed in speeds)

    def is_described(self, description: str) -> bool:
        """Whether TRex's *description* of a port names it."""
        return any(part.lower() in description.lower() for part in self.descriptions)


@dataclass(frozen=True)
class CardFile:
    """A file that was read. ``sha256`` of its bytes."""

    card: Card
    path: Path
    sha256: str


def read_cards(folder: Path) -> tuple[CardFile, ...]:
    """Every file of *folder*; none where there is no such folder. Raises ConfigError naming file, line and remedy."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        card = load(path, Card)
        if card.card != path.stem or not _NAME.fullmatch(card.card):
            raise ConfigError(f"says 'card: {card.card}'; in a file of this name expected '{path.stem}'", path)
        found.append(CardFile(card, path, hashlib.sha256(path.read_bytes()).hexdigest()))
    return tuple(found)


@dataclass(frozen=True)
class Choice:
    """Which card the generator's ports are on; None and ``why`` where that is not known."""

    file: CardFile | None
    why: str


def choose(files: Sequence[CardFile], ports: Sequence[GeneratorPort], named: str | None = None) -> Choice:
    """The card that all *ports* are on: the one *named* in the testbed, else by driver, description and speed."""
    drivers = sorted({port.driver for port in ports})
    driven = [file for file in files if all(driver in file.card.drivers for driver in drivers)]
    if named is not None:
        for file in files:
            if file.card.card == named:
                if file in driven:
                    return Choice(file, "named in the testbed file")
                return Choice(
                    None,
                    f"the testbed file says 'card: {named}', which TRex drives by {', '.join(file.card.drivers)}, but"
                    f" the driver here is {', '.join(drivers)}; fix 'card'",
                )
        return Choice(None, f"there is no file '{named}.yaml' in variables/generators")
    if not ports or not drivers[0]:
        return Choice(None, "the server does not tell its ports' driver")
    fitting = [file for file in driven if not file.card.only_named]
    if not fitting:
        return Choice(None, f"no file in variables/generators knows {', '.join(drivers)}")
    told = [file for file in fitting if all(file.card.is_described(port.description) for port in ports)]
    left = told or [file for file in fitting if all(file.card.runs_at(port.speed_bps) for port in ports)]
    names = " or ".join(file.card.card for file in left or fitting)
    if len(left) == 1:
        by = "description" if told and len(fitting) > 1 else "driver" if len(fitting) == 1 else "driver and port speed"
        return Choice(left[0], f"by its {by}")
    return Choice(
        None,
        f"{', '.join(drivers)} may be {names}; say which: 'card: {(left or fitting)[0].card.card}' for the"
        " generator in the testbed file",
    )


def places(ports: Sequence[GeneratorPort]) -> tuple[str, ...]:
    """Which card each of *ports* is on, by its PCI address; all alike where one of them is not told."""
    found = tuple(port.pci.rpartition(".")[0] for port in ports)
    return found if all(found) else ("",) * len(found)
