"""Published facts about the network cards of generators: ``variables/generators/*.yaml``, each figure with a source.

A missing figure is unknown.
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

from ..config import Config, load_config
from ..core.traffic.frame_kinds import FrameKind
from ..errors import ConfigError
from ..files import read_file
from ..generators.base import GeneratorPort
from ..project import Folder, listed
from ..units import parse_link_speed
from ..visible import shortened

_VERSION = re.compile(r"v?(\d+)\.(\d+)")
_CARD_NAME = re.compile(r"[a-z0-9_]+")

Positive = Annotated[float, Field(gt=0)]
FrameBytes = Annotated[int, Field(ge=64, le=16384)]


class FigureSource(Config):
    """The source of a figure: where it is published, what it says in short, and when it was read (``2026-01-31``)."""

    title: Annotated[str, Field(min_length=3)]
    url: str
    says: Annotated[str, Field(min_length=3)]
    seen: str

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not re.fullmatch(r"https?://\S+", value):
            raise ValueError("is not an address; expected https://…")
        return value

    @field_validator("seen")
    @classmethod
    def _check_date(cls, value: str) -> str:
        try:
            date.fromisoformat(value)
        except ValueError:
            raise ValueError('is not a day; expected for example "2026-01-31"') from None
        return value

    def __str__(self) -> str:
        return f"{self.title}, {self.url}, seen {self.seen}"


class TrexVersions(Config):
    """TRex versions from ``since`` up to, not including, ``before``. Neither: all versions, also unknown ones."""

    since: str | None = None
    before: str | None = None

    @field_validator("since", "before")
    @classmethod
    def _check_version(cls, value: str | None) -> str | None:
        if value is not None and not _VERSION.fullmatch(value):
            raise ValueError("is not a version of TRex; expected for example v3.07")
        return value

    def include(self, server: str | None) -> bool:
        """Whether the version that *server* reports is one of these; an unknown one (None) is in no bounded range."""
        if self.since is None and self.before is None:
            return True
        if server is None or (found := _VERSION.match(server)) is None:
            return False
        version = _numbers(found)
        since, before = (_VERSION.fullmatch(bound) if bound else None for bound in (self.since, self.before))
        return (since is None or _numbers(since) <= version) and (before is None or version < _numbers(before))


def _numbers(found: re.Match[str]) -> tuple[int, int]:
    return int(found[1]), int(found[2])


class CardFact(Config):
    """A fact about a card with some versions of TRex."""

    servers: TrexVersions = TrexVersions()
    source: FigureSource


class CardLimit(CardFact):
    """A ceiling in frames/s of a port, or of all sending ports of a card together, or in bit/s (L2) of a card.

    ``frames_below``: applies only if every frame is smaller than so many bytes with FCS.
    """

    pps_per_port: Positive | None = None
    pps_per_card: Positive | None = None
    bps_per_card: Positive | None = None
    frames_below: FrameBytes | None = None

    @model_validator(mode="after")
    def _check_one_rate(self) -> CardLimit:
        if sum(value is not None for value in (self.pps_per_port, self.pps_per_card, self.bps_per_card)) != 1:
            raise ValueError("needs exactly one of pps_per_port, pps_per_card, bps_per_card")
        return self


class UnsupportedLatency(CardFact):
    """Probe frames of these kinds (empty: any) do not work; ``remedy``: what to do.

    ``hardware_filters``: so because the card picks them out; a TRex with ``--software`` does it itself.
    """

    frames: tuple[FrameKind, ...] = ()
    hardware_filters: bool = False
    remedy: str


class FrameSizeLimit(CardFact):
    """The card cannot send frames above ``largest`` or below ``smallest`` bytes with FCS."""

    smallest: FrameBytes | None = None
    largest: FrameBytes | None = None

    @model_validator(mode="after")
    def _check_any_size(self) -> FrameSizeLimit:
        if self.smallest is None and self.largest is None:
            raise ValueError("needs 'smallest' or 'largest'")
        return self


class FlowStatisticsLimit(CardFact):
    """How many ``streams`` it counts at a time; whether it counts received bytes too."""

    streams: Annotated[int, Field(ge=0)]
    counts_bytes: bool = True


class CardQuirk(CardFact):
    """A remark; no verdict depends on it. ``above_pps``: it may matter at more frames/s of a port; None: at no rate."""

    quirk: str
    above_pps: Positive | None = None


class FirmwareFact(CardFact):
    """What goes wrong with firmware from ``since`` up to, not including, ``before``, and what to do (``remedy``)."""

    since: str | None = None
    before: str | None = None
    problem: str
    remedy: str

    @field_validator("since", "before")
    @classmethod
    def _check_version(cls, value: str | None) -> str | None:
        if value is not None and firmware_version(value) is None:
            raise ValueError('is not a version of firmware; expected for example "9.20"')
        return value

    @model_validator(mode="after")
    def _check_bound(self) -> FirmwareFact:
        if self.since is None and self.before is None:
            raise ValueError("needs 'since' or 'before'")
        return self

    def includes(self, firmware: str) -> bool:
        """Return whether *firmware*, as ``ethtool -i`` shows it, is such a one; a text without a version is not."""
        version = firmware_version(firmware)
        since, before = (firmware_version(bound or "") for bound in (self.since, self.before))
        return version is not None and (since or ()) <= version and (before is None or version < before)


def firmware_version(text: str) -> tuple[int, ...] | None:
    """``9.20 0x8000d95e 22.0.9`` or ``16.25.1020 (MT_0000000080)``: the numbers of the first word; None without any."""
    found = re.match(r"\d{1,6}(?:\.\d{1,6}){1,3}(?![\w.])", text)
    return tuple(map(int, found[0].split("."))) if found else None


class Card(Config):
    """One file. ``drivers``: TRex's names of them. ``speeds`` of its ports and ``descriptions`` (parts of TRex's texts)
    distinguish cards of one driver. ``only_named``: used only if a testbed names it.
    """

    card: str
    name: str
    drivers: Annotated[tuple[str, ...], Field(min_length=1)]
    speeds: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    only_named: bool = False
    limits: tuple[CardLimit, ...] = ()
    latency: tuple[UnsupportedLatency, ...] = ()
    frame_sizes: tuple[FrameSizeLimit, ...] = ()
    flow_stats: FlowStatisticsLimit | None = None
    firmware: tuple[FirmwareFact, ...] = ()
    quirks: tuple[CardQuirk, ...] = ()

    @field_validator("speeds")
    @classmethod
    def _check_speeds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for speed in value:
            parse_link_speed(speed)
        return value

    def has_speed(self, bps: float) -> bool:
        """Return whether it has ports of *bps* bit/s; 0 (unknown) fits any card."""
        speeds = [parse_link_speed(speed) for speed in self.speeds]
        return not speeds or not bps or any(abs(speed - bps) <= 0.01 * speed for speed in speeds)

    def firmware_facts(self, firmware: str, server: str | None) -> tuple[FirmwareFact, ...]:
        """Return what is known of *firmware* with the TRex version *server*."""
        return tuple(fact for fact in self.firmware if fact.servers.include(server) and fact.includes(firmware))

    def is_named_by(self, description: str) -> bool:
        """Return whether TRex's *description* of a port names it."""
        return any(part.lower() in description.lower() for part in self.descriptions)


@dataclass(frozen=True)
class CardFile:
    """A file that was read. ``sha256`` of its bytes."""

    card: Card
    path: Path
    sha256: str


def read_cards(folder: Folder) -> tuple[CardFile, ...]:
    """Every file of *folder*; none if there is no such folder. Raises ConfigError with file, line and fix."""
    found = []
    for path in listed(folder, "*.yaml"):
        card = load_config(path, Card)
        if card.card != path.stem or not _CARD_NAME.fullmatch(card.card):
            raise ConfigError(
                f"says 'card: {shortened(card.card)}'; in a file of this name expected '{path.stem}'", path
            )
        found.append(CardFile(card, path, hashlib.sha256(read_file(path)).hexdigest()))
    return tuple(found)


@dataclass(frozen=True)
class CardChoice:
    """The card of the generator's ports; None if it is not known. ``why``: the reason for either."""

    file: CardFile | None
    why: str


def choose_card(files: Sequence[CardFile], ports: Sequence[GeneratorPort], named: str | None = None) -> CardChoice:
    """The card of all *ports*: the one *named* in the testbed, else by driver, description and speed."""
    drivers = sorted({port.driver for port in ports})
    driven = [file for file in files if all(driver in file.card.drivers for driver in drivers)]
    if named is not None:
        for file in files:
            if file.card.card == named:
                if file in driven:
                    return CardChoice(file, "named in the testbed file")
                return CardChoice(
                    None,
                    f"the testbed file says 'card: {named}', which TRex drives by {', '.join(file.card.drivers)}, but"
                    f" the driver here is {', '.join(drivers)}; fix 'card'",
                )
        return CardChoice(None, f"there is no file '{named}.yaml' in variables/generators")
    if not ports or not drivers[0]:
        return CardChoice(None, "the server does not report its ports' driver")
    fitting = [file for file in driven if not file.card.only_named]
    if not fitting:
        return CardChoice(None, f"no file in variables/generators knows {', '.join(drivers)}")
    described = [file for file in fitting if all(file.card.is_named_by(port.description) for port in ports)]
    candidates = described or [file for file in fitting if all(file.card.has_speed(port.speed_bps) for port in ports)]
    names = " or ".join(file.card.card for file in candidates or fitting)
    if len(candidates) == 1:
        by = "description" if described else "driver and port speed"
        return CardChoice(candidates[0], f"by its {by if len(fitting) > 1 else 'driver'}")
    return CardChoice(
        None,
        f"{', '.join(drivers)} may be {names}; say which: 'card: {(candidates or fitting)[0].card.card}' for the"
        " generator in the testbed file",
    )


def card_of_each_port(ports: Sequence[GeneratorPort]) -> tuple[str, ...]:
    """The card of each of *ports*, by its PCI bus and device; all the same ("") if one is not known."""
    found = tuple(port.pci.rpartition(".")[0] for port in ports)
    return found if all(found) else ("",) * len(found)
