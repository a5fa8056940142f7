"""Published facts about the network cards of generators: ``variables/generators/*.yaml``, each figure with a source.

A missing figure is unknown. Above a published ceiling there is no FAIL; what the card cannot do at all is refused
before traffic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..config import Config, load_config, matching
from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.json_types import Positive
from ..core.traffic.frame_kinds import FrameKind, kinds_of
from ..core.traffic.profiles import Profile
from ..errors import TestbedError
from ..generators.base import GeneratorPort, ProbesRefused
from ..project import Folder, listed
from ..units import parse_link_speed, si

FrameBytes = Annotated[int, Field(ge=64, le=16384)]


def version_of(text: str) -> tuple[int, ...] | None:
    """Return the numbers that *text* begins with, as TRex's ``v3.08 (STL)`` or a firmware's ``9.20 0x8000d95e``."""
    found = re.match(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?![\w.])", text)
    return tuple(map(int, found[1].split("."))) if found else None


Version = Annotated[
    str,
    matching(r"v?\d{1,6}(\.\d{1,6}){1,3}", 'is not a version; expected for example v3.07 of TRex, "9.20" of firmware'),
]


class FigureSource(Config):
    """The source of a figure: where it is published, what it says in short, and when it was read (``2026-01-31``)."""

    title: Annotated[str, Field(min_length=3)]
    url: Annotated[str, matching(r"https?://\S+", "is not an address; expected https://…")]
    says: Annotated[str, Field(min_length=3)]
    seen: Annotated[str, matching(r"\d{4}-\d{2}-\d{2}", 'is not a day; expected for example "2026-01-31"')]

    def __str__(self) -> str:
        return f"{self.title}, {self.url}, seen {self.seen}"


class Versions(Config):
    """Versions from ``since`` up to, not including, ``before``. Neither: all versions, also unknown ones."""

    since: Version | None = None
    before: Version | None = None

    def include(self, reported: str | None) -> bool:
        """Return whether the version *reported* is one of these; an unknown one is in no bounded range."""
        if self.since is None and self.before is None:
            return True
        version, before = version_of(reported or ""), version_of(self.before or "")
        return (
            version is not None
            and (version_of(self.since or "") or ()) <= version
            and not (before and version >= before)
        )


class CardFact(Config):
    """A fact about a card with some versions of TRex, ``servers``."""

    servers: Versions = Versions()
    source: FigureSource


class CardLimit(CardFact):
    """A ceiling of a port, or of all sending ports of a card together, in frames/s or in bit/s (L2).

    ``frames_below``: applies only if every frame is smaller than so many bytes with FCS.
    """

    rate: Positive
    unit: Literal["pps", "bit/s"] = "pps"
    per: Literal["port", "card"]
    frames_below: FrameBytes | None = None

    def applies_to(self, profile: Profile) -> bool:
        """Return whether *profile* has only frames that it limits."""
        return self.frames_below is None or max(frame.size for frame in profile.frames) < self.frames_below

    def of_each_port(self, profile: Profile, sending: int) -> float:
        """Return the frames/s of each of *sending* ports of a card."""
        frames = self.rate if self.unit == "pps" else self.rate / (8 * profile.mean_size)
        return frames / sending if self.per == "card" else frames

    def __str__(self) -> str:
        small = f" of frames below {self.frames_below} bytes" if self.frames_below else ""
        return f"{si(self.rate, self.unit)} per {self.per}{small}"


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
    speeds: tuple[Annotated[float, BeforeValidator(lambda text: parse_link_speed(str(text)))], ...] = ()
    descriptions: tuple[str, ...] = ()
    only_named: bool = False
    limits: tuple[CardLimit, ...] = ()
    latency: tuple[UnsupportedLatency, ...] = ()
    frame_sizes: tuple[FrameSizeLimit, ...] = ()
    firmware: tuple[FirmwareFact, ...] = ()
    quirks: tuple[CardQuirk, ...] = ()

    def has_speed(self, bps: float) -> bool:
        """Return whether it has ports of *bps* bit/s; 0 (unknown) fits any card."""
        return not self.speeds or not bps or any(abs(speed - bps) <= 0.01 * speed for speed in self.speeds)

    def firmware_facts(self, firmware: str, server: str | None) -> tuple[FirmwareFact, ...]:
        """Return what is known of *firmware* with the TRex version *server*."""
        return tuple(fact for fact in self.firmware if fact.servers.include(server) and fact.include(firmware))

    def is_named_by(self, description: str) -> bool:
        """Return whether TRex's *description* of a port names it."""
        return any(part.lower() in description.lower() for part in self.descriptions)


def read_cards(folder: Folder) -> tuple[Card, ...]:
    """Return every card of *folder*; none if there is no such folder. Raises ConfigError with file, line and fix."""
    return tuple(load_config(path, Card, "card") for path in listed(folder, "*.yaml"))


def choose_card(
    cards: Sequence[Card], ports: Sequence[GeneratorPort], named: str | None = None
) -> tuple[Card | None, str]:
    """Return which of *cards* the *ports* are on, None if that is not known, and why.

    *named*: the one that the testbed file says. Otherwise the drivers decide; of several cards of one driver those that
    TRex's description of each port names, or else those with ports of this speed.
    """
    drivers = sorted({port.driver for port in ports})
    driven = [card for card in cards if all(driver in card.drivers for driver in drivers)]
    if named is not None:
        card = next(card for card in cards if card.card == named)  # a plan names none that is not there
        if card in driven:
            return card, "named in the testbed file"
        mine = f"TRex drives by {', '.join(card.drivers)}, but the driver here is {', '.join(drivers)}"
        return None, f"the testbed file says 'card: {named}', which {mine}; fix 'card'"
    if not ports or not drivers[0]:
        return None, "the server does not report its ports' driver"
    fitting = [card for card in driven if not card.only_named]
    if not fitting:
        return None, f"no file in variables/generators knows {', '.join(drivers)}"
    described = [card for card in fitting if all(card.is_named_by(port.description) for port in ports)]
    candidates = described or [card for card in fitting if all(card.has_speed(port.speed_bps) for port in ports)]
    if len(candidates) == 1:
        by = "description" if described else "driver and port speed"
        return candidates[0], f"by its {by if len(fitting) > 1 else 'driver'}"
    names = [card.card for card in candidates or fitting]
    mine = f"say which: 'card: {names[0]}' for the generator in the testbed file"
    return None, f"{', '.join(drivers)} may be {' or '.join(names)}; {mine}"


@dataclass(frozen=True)
class PublishedLimits:
    """Published limits of the generator's *card* (None: not known; ``why`` either way) with TRex version ``server``.

    ``ports``: those that the testbed uses, each of ``link_bps``. ``server`` None: not known.
    """

    card: Card | None
    why: str
    ports: Sequence[GeneratorPort]
    link_bps: float
    server: str | None = None

    @property
    def software(self) -> bool:
        """Return whether that TRex picks received frames out itself (``--software``), as far as it reports it."""
        # with filters of the card it does not measure tpg (v3.08, src/stx/common/trex_rpc_cmds_common.cpp:502-506)
        return bool(self.ports) and all("tpg" in (port.measures or ()) for port in self.ports)

    def most_senders_on_one_card(self, bidirectional: bool, pairs: int = 1) -> int:
        """Return how many ports of one card send at once: the highest number of any card.

        Ports of one card have the same PCI bus and device; where one is not known, all are taken for those of one.
        """
        cards = [port.pci.rpartition(".")[0] for port in self.ports[: 2 * pairs]]
        senders = [card if all(cards) else "" for card in (cards if bidirectional else cards[::2])]
        return max(Counter(senders).values(), default=1)

    @property
    def limits(self) -> tuple[CardLimit, ...]:
        """Return the ceilings that apply to this TRex version."""
        return tuple(limit for limit in self.card.limits if limit.servers.include(self.server)) if self.card else ()

    @property
    def lacking_latency(self) -> tuple[UnsupportedLatency, ...]:
        """Return what this TRex cannot measure the latency of with this card."""
        here = [fact for fact in self.card.latency if fact.servers.include(self.server)] if self.card else []
        return tuple(fact for fact in here if not (fact.hardware_filters and self.software))

    def ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> OwnPart:
        """Return the lowest ceiling that applies to *profile*, of each sending port, as the generator's own part."""
        sending = self.most_senders_on_one_card(bidirectional, pairs)
        limits = [limit for limit in self.limits if limit.applies_to(profile)]
        if self.card is None or not limits:
            return OwnPart()
        limit = min(limits, key=lambda one: one.of_each_port(profile, sending))
        pps = limit.of_each_port(profile, sending)
        ports = f", {sending} ports of it send" if sending > 1 and limit.per == "card" else ""
        words = (
            f"the generator's card is not known to carry this load: this card ({self.card.name}) is known to stop at"
            f" {limit}{ports}: {si(pps, 'pps')} from each port (source: {limit.source}; beyond {USABLE_SHARE:.0%} of"
            " that no FAIL is given)"
        )
        remedy = "calibrate the generator, because a measured ceiling replaces a published one, or use a faster one"
        evidence = {
            "known": True,
            "card": self.card.card,
            "limit": limit.model_dump(mode="json", exclude_none=True),
            "ports_of_card": sending,
            "ceiling_pps": pps,
        }
        return OwnPart.of_ceiling(profile.line_rate_pps(self.link_bps), pps, pps, words, remedy, evidence)

    def check_sendable(self, profile: Profile, probes: bool) -> None:
        """Raise TestbedError if the card is known not to send these frames, or not to measure their latency."""
        if self.card is None:
            return
        server = self.server or "this TRex"
        refused = f"'{profile.name}' was not sent: the generator's card ({self.card.name}) is known not to"
        for size in self.card.frame_sizes:
            sizes = [frame.size for frame in profile.frames]
            beyond = [n for n in sizes if not (size.smallest or n) <= n <= (size.largest or n)]
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
        """Return it for the record of the environment; the card's file is among the run's inputs."""
        return {"card": self.card and self.card.card, "why": self.why}

    def __str__(self) -> str:
        if self.card is None:
            return f"limits of the generator's card are not known: {self.why}"
        limits = "; ".join(map(str, self.limits)) or "no limit of its own is known"
        return f"{self.card.name} ({self.why}): {limits} ({self.card.card}.yaml)"
