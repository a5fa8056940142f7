"""Published facts about the network cards of generators: ``variables/generators/*.yaml``, each figure with a source.

A missing figure is unknown. Above a published ceiling there is no FAIL; what the card cannot do at all is refused
before traffic.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator, model_validator

from ..config import Config, load_config, matching
from ..core.ceiling import Positive, own_ceiling
from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.traffic.frame_kinds import FrameKind, kinds_of
from ..core.traffic.profiles import Profile
from ..errors import ConfigError, TestbedError
from ..files import read_file
from ..generators.base import GeneratorPort, ProbesRefused
from ..project import Folder, listed
from ..units import parse_link_speed, si
from ..visible import shortened

SOFTWARE_ONLY = "tpg"
"""What a TRex in stateless mode reports to measure only if it was started with ``--software``, or if the card has no
filters (v3.08, src/stx/common/trex_rpc_cmds_common.cpp:502-506)."""

FrameBytes = Annotated[int, Field(ge=64, le=16384)]


def version_of(text: str) -> tuple[int, ...] | None:
    """Return the numbers that *text* begins with, as TRex's ``v3.08 (STL)`` or a firmware's ``9.20 0x8000d95e``."""
    found = re.match(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?![\w.])", text)
    return tuple(map(int, found[1].split("."))) if found else None


def _checked_version(value: str) -> str:
    if version_of(value) is None:
        raise ValueError('is not a version; expected for example v3.07 of TRex, "9.20" of firmware')
    return value


def _checked_day(value: str) -> str:
    try:
        date.fromisoformat(value)
    except ValueError:
        raise ValueError('is not a day; expected for example "2026-01-31"') from None
    return value


class FigureSource(Config):
    """The source of a figure: where it is published, what it says in short, and when it was read (``2026-01-31``)."""

    title: Annotated[str, Field(min_length=3)]
    url: Annotated[str, matching(r"https?://\S+", "is not an address; expected https://…")]
    says: Annotated[str, Field(min_length=3)]
    seen: Annotated[str, AfterValidator(_checked_day)]

    def __str__(self) -> str:
        return f"{self.title}, {self.url}, seen {self.seen}"


class Versions(Config):
    """Versions from ``since`` up to, not including, ``before``. Neither: all versions, also unknown ones."""

    since: Annotated[str, AfterValidator(_checked_version)] | None = None
    before: Annotated[str, AfterValidator(_checked_version)] | None = None

    def include(self, reported: str | None) -> bool:
        """Return whether the version *reported* is one of these; an unknown one is in no bounded range."""
        if self.since is None and self.before is None:
            return True
        version = version_of(reported or "")
        since, before = (version_of(bound or "") for bound in (self.since, self.before))
        return version is not None and (since or ()) <= version and (before is None or version < before)


class CardFact(Config):
    """A fact about a card with some versions of TRex, ``servers``."""

    servers: Versions = Versions()
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

    def applies_to(self, profile: Profile) -> bool:
        """Return whether *profile* has only frames that it limits."""
        return self.frames_below is None or max(frame.size for frame in profile.frames) < self.frames_below

    @property
    def rate(self) -> tuple[float, str, str]:
        """The rate, its unit, and per what it is: a port or a card."""
        rates = (
            (self.pps_per_port, "pps", "port"),
            (self.pps_per_card, "pps", "card"),
            (self.bps_per_card, "bit/s", "card"),
        )
        return next((rate, unit, per) for rate, unit, per in rates if rate is not None)

    def of_each_port(self, profile: Profile, sending: int) -> float:
        """Return the frames/s of each of *sending* ports of a card."""
        rate, unit, per = self.rate
        frames = rate if unit == "pps" else rate / (8 * profile.mean_size)
        return frames / sending if per == "card" else frames

    def __str__(self) -> str:
        rate, unit, per = self.rate
        small = f" of frames below {self.frames_below} bytes" if self.frames_below else ""
        return f"{si(rate, unit)} per {per}{small}"


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


class FlowStatisticsLimit(CardFact):
    """How many ``streams`` it counts at a time; whether it counts received bytes too."""

    streams: Annotated[int, Field(ge=0)]
    counts_bytes: bool = True


class CardQuirk(CardFact):
    """A remark; no verdict depends on it. ``above_pps``: it may matter at more frames/s of a port; None: at no rate."""

    quirk: str
    above_pps: Positive | None = None


class FirmwareFact(CardFact, Versions):
    """The problem of such versions of firmware, as ``ethtool -i`` shows them, and what to do (``remedy``)."""

    problem: str
    remedy: str


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
        return tuple(fact for fact in self.firmware if fact.servers.include(server) and fact.include(firmware))

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
    files = []
    for path in listed(folder, "*.yaml"):
        card = load_config(path, Card)
        if card.card != path.stem:
            raise ConfigError(
                f"says 'card: {shortened(card.card)}'; in a file of this name expected '{path.stem}'", path
            )
        files.append(CardFile(card, path, hashlib.sha256(read_file(path)).hexdigest()))
    return tuple(files)


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
        file = next((file for file in files if file.card.card == named), None)
        if file is None:
            return CardChoice(None, f"there is no file '{named}.yaml' in variables/generators")
        if file in driven:
            return CardChoice(file, "named in the testbed file")
        return CardChoice(
            None,
            f"the testbed file says 'card: {named}', which TRex drives by {', '.join(file.card.drivers)}, but the"
            f" driver here is {', '.join(drivers)}; fix 'card'",
        )
    if not ports or not drivers[0]:
        return CardChoice(None, "the server does not report its ports' driver")
    fitting = [file for file in driven if not file.card.only_named]
    if not fitting:
        return CardChoice(None, f"no file in variables/generators knows {', '.join(drivers)}")
    described = [file for file in fitting if all(file.card.is_named_by(port.description) for port in ports)]
    candidates = described or [file for file in fitting if all(file.card.has_speed(port.speed_bps) for port in ports)]
    names = [file.card.card for file in candidates or fitting]
    if len(candidates) == 1:
        by = "description" if described else "driver and port speed"
        return CardChoice(candidates[0], f"by its {by if len(fitting) > 1 else 'driver'}")
    return CardChoice(
        None,
        f"{', '.join(drivers)} may be {' or '.join(names)}; say which: 'card: {names[0]}' for the generator in the"
        " testbed file",
    )


def card_of_each_port(ports: Sequence[GeneratorPort]) -> tuple[str, ...]:
    """The card of each of *ports*, by its PCI bus and device; all the same ("") if one is not known."""
    cards = tuple(port.pci.rpartition(".")[0] for port in ports)
    return cards if all(cards) else ("",) * len(cards)


@dataclass(frozen=True)
class PublishedLimits:
    """The limits of the chosen card, if any (``choice``), with TRex version ``server`` (None: not known).

    ``software``: whether that TRex picks received frames out itself (``--software``), as far as it reports it.
    """

    choice: CardChoice
    link_bps: float
    server: str | None = None
    port_cards: tuple[str, ...] = ("", "")
    """The card of each port that the testbed uses; "": not known, taken as the same."""
    software: bool = False

    @classmethod
    def of(
        cls, choice: CardChoice, ports: Sequence[GeneratorPort], link_bps: float, server: str | None
    ) -> PublishedLimits:
        """*ports*: those that the testbed uses, each of *link_bps* bit/s."""
        software = bool(ports) and all(SOFTWARE_ONLY in (port.measures or ()) for port in ports)
        return cls(choice, link_bps, server, card_of_each_port(ports), software)

    def most_senders_on_one_card(self, bidirectional: bool, pairs: int = 1) -> int:
        """How many ports of one card send at once: the highest number of any card."""
        senders = [card for index, card in enumerate(self.port_cards[: 2 * pairs]) if bidirectional or not index % 2]
        return max(Counter(senders).values(), default=1)

    @property
    def card_file(self) -> CardFile | None:
        """The card's file; None if the card is not known."""
        return self.choice.file

    @property
    def limits(self) -> tuple[CardLimit, ...]:
        """The ceilings that apply to this TRex version."""
        limits = self.card_file.card.limits if self.card_file else ()
        return tuple(limit for limit in limits if limit.servers.include(self.server))

    @property
    def lacking_latency(self) -> tuple[UnsupportedLatency, ...]:
        """Return what this TRex cannot measure the latency of with this card."""
        facts = self.card_file.card.latency if self.card_file else ()
        here = [fact for fact in facts if fact.servers.include(self.server)]
        return tuple(fact for fact in here if not (fact.hardware_filters and self.software))

    def known_ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> OwnPart | None:
        """The lowest ceiling that applies to *profile*, of each sending port; None if none is known."""
        file, sending = self.card_file, self.most_senders_on_one_card(bidirectional, pairs)
        limits = [limit for limit in self.limits if limit.applies_to(profile)]
        if file is None or not limits:
            return None
        limit = min(limits, key=lambda one: one.of_each_port(profile, sending))
        pps = limit.of_each_port(profile, sending)
        ports = f", {sending} ports of it send" if sending > 1 and limit.pps_per_port is None else ""
        words = (
            f"the generator's card is not known to carry this load: this card ({file.card.name}) is known to stop at"
            f" {limit}{ports}: {si(pps, 'pps')} from each port (source: {limit.source}; beyond {USABLE_SHARE:.0%} of"
            " that no FAIL is given)"
        )
        remedy = "calibrate the generator, because a measured ceiling replaces a published one, or use a faster one"
        evidence = {
            "known": True,
            "card": file.card.card,
            "limit": limit.model_dump(mode="json", exclude_none=True),
            "ports_of_card": sending,
            "ceiling_pps": pps,
            "file": file.path.name,
            "sha256": file.sha256,
        }
        return own_ceiling(profile.line_rate_pps(self.link_bps), pps, pps, words, remedy, evidence)

    def check_sendable(self, profile: Profile, probes: bool) -> None:
        """Raise TestbedError if the card is known not to send these frames, or not to measure their latency."""
        if self.card_file is None:
            return
        card, server = self.card_file.card, self.server or "this TRex"
        refused = f"'{profile.name}' was not sent: the generator's card ({card.name}) is known not to"
        for size in card.frame_sizes:
            sizes = [frame.size for frame in profile.frames]
            beyond = [n for n in sizes if n > (size.largest or n) or n < (size.smallest or n)]
            if beyond and size.servers.include(self.server):
                raise TestbedError(f"{refused} send frames of {beyond[0]} bytes under {server} ({size.source})")
        for lacking in self.lacking_latency if probes else ():
            kinds = sorted(kinds_of(profile) & set(lacking.frames))
            if kinds or not lacking.frames:
                frames = f"of {' and '.join(kinds)} frames " if kinds else ""
                raise ProbesRefused(
                    f"{refused} measure the latency {frames}under {server} ({lacking.source}); {lacking.remedy}"
                )

    def record(self) -> dict[str, object]:
        """For the record of the environment."""
        if self.card_file is None:
            return {"card": None, "why": self.choice.why}
        return {
            "card": self.card_file.card.card,
            "why": self.choice.why,
            "file": self.card_file.path.name,
            "sha256": self.card_file.sha256,
            "one_card": len(set(self.port_cards)) == 1,
        }

    def __str__(self) -> str:
        if self.card_file is None:
            return f"limits of the generator's card are not known: {self.choice.why}"
        file, known = self.card_file, "; ".join(map(str, self.limits))
        return f"{file.card.name} ({self.choice.why}): {known or 'no limit of its own is known'} ({file.path.name})"
