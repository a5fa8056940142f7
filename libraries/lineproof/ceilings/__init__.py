"""The generator's own part: what it carries, loses and delays by itself, as it was measured or published.

The ceiling was measured (:class:`MeasuredLimits`, a calibration) or is published for the generator's card
(:class:`PublishedLimits`); a measured one comes first.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AwareDatetime, BeforeValidator, Field

from ..config import Config, load_config, matching
from ..core.bounds import Bounds
from ..core.doubts import USABLE_SHARE, OwnPart
from ..core.json_types import Count, NotNegative, Positive
from ..core.latency import Statistic, time_words
from ..core.quantity import TrafficWords
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.frame_kinds import FrameKind, kinds_of
from ..core.traffic.profiles import Profile
from ..core.trial import Outcome
from ..errors import LineproofError, TestbedError
from ..files import write_whole
from ..generators.base import GeneratorPort, ProbesRefused
from ..project import Folder, listed
from ..units import parse_link_speed, si

# -- what is published of a card ---------------------------------------------------------------------------------------

FrameBytes = Annotated[int, Field(ge=64, le=16384)]
Version = Annotated[
    str,
    matching(r"v?\d{1,6}(\.\d{1,6}){1,3}", 'is not a version; expected for example v3.07 of TRex, "9.20" of firmware'),
]


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers that *text* begins with, as TRex's ``v3.08 (STL)`` or a firmware's ``9.20 0x8000d95e``."""
    match = re.match(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?![\w.])", text)
    return tuple(map(int, match[1].split("."))) if match else ()


class FigureSource(Config):
    """The source of a figure: where it is published, what it says in short, and when it was read (``2026-01-31``)."""

    title: str
    url: str
    says: str
    seen: str

    def __str__(self) -> str:
        return f"{self.title}, {self.url}, seen {self.seen}"


class Versions(Config):
    """Versions from ``since`` up to, not including, ``before``. Neither: all versions, also unknown ones."""

    since: Version | None = None
    before: Version | None = None

    def include(self, reported: str | None) -> bool:
        """Return whether the version *reported* is one of these; an unknown one is in no bounded range."""
        if not (version := version_of(reported or "")):
            return self.since is None and self.before is None
        return version_of(self.since or "") <= version and not (self.before and version >= version_of(self.before))


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

    def of_each_port(self, profile: Profile, sending: int) -> float:
        """Return the frames/s of *profile* of each of *sending* ports of a card; infinite where it does not apply."""
        if self.frames_below and max(frame.size for frame in profile.frames) >= self.frames_below:
            return math.inf
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

    smallest: FrameBytes = 64
    largest: FrameBytes = 16384


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

    def firmware_facts(self, firmware: str, server: str | None) -> tuple[FirmwareFact, ...]:
        """Return what is known of *firmware* with the TRex version *server*."""
        return tuple(fact for fact in self.firmware if fact.servers.include(server) and fact.include(firmware))

    def is_described_by(self, port: GeneratorPort) -> bool:
        """Return whether TRex's description of *port* names the card."""
        return any(part.lower() in port.description.lower() for part in self.descriptions)

    def has_speed_of(self, port: GeneratorPort) -> bool:
        """Return whether the card may have a *port* of this speed."""
        near = (abs(speed - port.speed_bps) <= 0.01 * speed for speed in self.speeds)
        return not self.speeds or not port.speed_bps or any(near)


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
    here = ", ".join(drivers)
    if named is not None:
        card = next(card for card in cards if card.card == named)  # a plan names none that is not there
        if card in driven:
            return card, "named in the testbed file"
        mine = f"TRex drives by {', '.join(card.drivers)}, but the driver here is {here}"
        return None, f"the testbed file says 'card: {named}', which {mine}; fix 'card'"
    if not here:
        return None, "the server does not report its ports' driver"
    if not (fitting := [card for card in driven if not card.only_named]):
        return None, f"no file in variables/generators knows {here}"
    described = [card for card in fitting if all(map(card.is_described_by, ports))]
    candidates = described or [card for card in fitting if all(map(card.has_speed_of, ports))]
    if len(candidates) == 1:
        by = "description" if described else "driver and port speed"
        return candidates[0], f"by its {by if len(fitting) > 1 else 'driver'}"
    names = [card.card for card in candidates or fitting]
    mine = f"say which: 'card: {names[0]}' for the generator in the testbed file"
    return None, f"{here} may be {' or '.join(names)}; {mine}"


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
        # with filters of the card TRex does not measure tpg (v3.08, src/stx/common/trex_rpc_cmds_common.cpp:502-506)
        is_software = bool(self.ports) and all("tpg" in (port.measures or ()) for port in self.ports)
        return tuple(fact for fact in here if not (fact.hardware_filters and is_software))

    def ceiling(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> OwnPart:
        """Return the lowest ceiling that applies to *profile*, of each sending port, as the generator's own part."""
        sending = self.most_senders_on_one_card(bidirectional, pairs)
        of_port = {limit.of_each_port(profile, sending): limit for limit in self.limits}
        pps = min(of_port, default=math.inf)
        if self.card is None or pps == math.inf:
            return OwnPart()
        limit = of_port[pps]
        ports = f", {sending} ports of it send" if sending > 1 and limit.per == "card" else ""
        description = (
            f"the generator's card is not known to carry this load: this card ({self.card.name}) is known to stop at"
            f" {limit}{ports}: {si(pps, 'pps')} from each port (source: {limit.source}; beyond {USABLE_SHARE:.0%} of"
            " that no FAIL is given); calibrate the generator, because a measured ceiling replaces a published one, or"
            " use a faster one"
        )
        return OwnPart.of_ceiling(profile.line_rate_pps(self.link_bps), pps, pps, description)

    def check_sendable(self, profile: Profile, probes: bool) -> None:
        """Raise TestbedError if the card is known not to send these frames, or not to measure their latency."""
        if self.card is None:
            return
        server = self.server or "this TRex"
        refused = f"'{profile.name}' was not sent: the generator's card ({self.card.name}) is known not to"
        for size in self.card.frame_sizes:
            beyond = [frame.size for frame in profile.frames if not size.smallest <= frame.size <= size.largest]
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
        """Return the card's name and why it was chosen, for the record; its file is among the run's inputs."""
        return {"card": self.card and self.card.card, "why": self.why}

    def __str__(self) -> str:
        if self.card is None:
            return f"limits of the generator's card are not known: {self.why}"
        limits = "; ".join(map(str, self.limits)) or "no limit of its own is known"
        return f"{self.card.name} ({self.why}): {limits} ({self.card.card}.yaml)"


# -- what was measured -------------------------------------------------------------------------------------------------

FRESH_FOR = timedelta(days=90)
"""A calibration older than this is stale."""

FOLDER = "calibrations"

WATCHED_SHARE = 0.98
"""A generator that was watched at this share of a load was watched at it."""

OF_SAMPLE = (0.5, 0.5)
"""Errors of a percentile that is that of the sample itself, as likely too low as too high."""

_FILE_HEADER = """\
# What the generator of testbed '{testbed}' sends and receives by itself, with the router bypassed. Measured by
#   lineproof calibrate {testbed} --platform {platform}
# Run that again, do not edit this file: its figures can turn a router's FAIL into INCONCLUSIVE.
# Rates are frames/s of each sending port, of several directions the worst one. line_pps: line rate; offered_pps,
# received_pps: sent, received while line_pps was asked for; lossless_pps: sent and received without loss.
# watched: how often frames were lost in longer traffic just below the lossless rate. Latency in µs.
"""


class OwnLatency(Config):
    """Latency of probe frames without a router, of the worse direction: the generator's own share.

    The 99th percentile lies within ``p99_low_us`` … ``p99_high_us``, a bucket of the generator's histogram.
    """

    mean_us: NotNegative
    p99_low_us: NotNegative
    p99_high_us: NotNegative

    def __str__(self) -> str:
        return f"{self.mean_us:.3g} µs on average, p99 {time_words(Bounds(self.p99_low_us, self.p99_high_us))}"


def own_latency(outcome: Outcome) -> OwnLatency | None:
    """Return the latency of the probe frames of *outcome*; None if none came back or the generator reports none."""
    latencies = []
    for count in outcome.latency:
        spread = count.spread()
        bounds = spread.bounds(Statistic("p99"), OF_SAMPLE) if spread else None
        if bounds is None or not math.isfinite(bounds.high) or not math.isfinite(count.mean):
            return None
        latencies.append(OwnLatency(mean_us=round(count.mean, 4), p99_low_us=bounds.low, p99_high_us=bounds.high))
    return max(latencies, key=lambda own: own.mean_us, default=None)


class Watch(Config):
    """How often the generator lost frames itself: ``lossy`` of ``trials`` of ``trial_duration`` s at ``load_pps``.

    ``most_lost``: frames in the worst of them.
    """

    goal: str
    load_pps: Positive
    trials: Annotated[int, Field(ge=1)]
    lossy: Count
    most_lost: Count = 0
    trial_duration: Positive


class CeilingEntry(Config):
    """One profile and direction. ``traffic``: the profile's words; ``trial_duration`` in s."""

    traffic: str
    bidirectional: bool
    pairs: Annotated[int, Field(ge=1)] = 1
    measured: AwareDatetime
    line_pps: Positive
    offered_pps: Positive
    lossless_pps: Positive
    received_pps: NotNegative
    trial_duration: Positive
    latency: OwnLatency | None = None
    watched: Watch | None = None

    @property
    def direction(self) -> str:
        """Return ``unidirectional`` or ``bidirectional``, and the number of port pairs if there are several."""
        pairs = f" on {self.pairs} pairs" if self.pairs > 1 else ""
        return f"{'bi' if self.bidirectional else 'uni'}directional{pairs}"


class Calibration(Config):
    """The whole file. ``versions``: those that the generator reported, with the key ``server``.

    ``simulated``: whether the generator said that it is.
    """

    testbed: str
    platform: str
    kind: Literal["simulated", "netns", "hardware"]
    link_bps: Positive
    lineproof: str
    simulated: bool
    versions: Mapping[str, str]
    ceilings: Annotated[tuple[CeilingEntry, ...], Field(min_length=1)]

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        return f"{self.testbed}-{self.platform}.yaml"

    @property
    def generator(self) -> tuple[object, ...]:
        """Return where it was measured, and with which generator: equal for the same ones."""
        return (self.kind, self.simulated, self.link_bps, self.versions.get("server"))

    def __str__(self) -> str:
        days = sorted({f"{entry.measured:%Y-%m-%d}" for entry in self.ceilings})
        return f"{self.file_name} of {' to '.join(dict.fromkeys((days[0], days[-1])))} ({len(self.ceilings)} ceilings)"


def read_calibration(folder: Path, testbed: str, platform: str) -> Calibration | None:
    """Return the calibration of *testbed* with *platform*; None if there is none. Raises ConfigError."""
    path = folder / f"{testbed}-{platform}.yaml"
    return load_config(path, Calibration) if path.exists() else None


def write_calibration(folder: Path, new: Calibration) -> Path:
    """Write *new* completely or not at all; other ceilings in an earlier file of the same generator are kept.

    Raises TestbedError if it cannot be written, ConfigError if the earlier file is wrong.
    """
    before = read_calibration(folder, new.testbed, new.platform)
    kept = before.ceilings if before and before.generator == new.generator else ()
    ceilings = {(entry.traffic, entry.direction): entry for entry in (*kept, *new.ceilings)}
    whole = new.model_copy(update={"ceilings": tuple(ceilings.values())})
    content = whole.model_dump(mode="json", exclude_none=True)
    header = _FILE_HEADER.format(testbed=new.testbed, platform=new.platform)
    text = header + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    write_whole(folder / new.file_name, text)
    return folder / new.file_name


@dataclass(frozen=True)
class MeasuredLimits:
    """A calibration, and the testbed in use: its ``kind``, ``link_bps`` of its ports, the version of its ``server``.

    ``server`` None: not known yet. ``simulated``: whether its generator is. ``now``: when it is asked for; None: now.
    """

    calibration: Calibration
    catalogue: Catalogue
    kind: str
    link_bps: float
    server: str | None
    simulated: bool
    now: datetime | None = None

    @property
    def why_unfit(self) -> str:
        """Return why it does not apply to the testbed; "" if it applies."""
        then, now = (
            f"{'simulated' if one.simulated else 'real'} generator, '{one.kind}' testbed, {si(one.link_bps, 'bit/s')}"
            for one in (self.calibration, self)
        )
        return "" if then == now else f"it was measured with: {then}; now: {now}"

    @property
    def why_stale(self) -> str:
        """Return why it may no longer be true, in words, though it is used; "" if it is fresh."""
        age = (self.now or datetime.now(UTC)) - min(entry.measured for entry in self.calibration.ceilings)
        reasons = [f"it is {age.days} days old"] if age > FRESH_FOR else []
        measured = self.calibration.versions.get("server")
        if self.server is not None and measured != self.server:
            reasons.append(f"the generator was {measured or 'of unknown version'}, and is {self.server} now")
        return " and ".join(reasons)

    def entry(self, profile: Profile, bidirectional: bool, pairs: int = 1) -> CeilingEntry | None:
        """Return the ceiling measured for this profile, direction and *pairs*; None if there is none that applies.

        One of fewer pairs is used if there is none of *pairs*: a port carries no more while more ports send. Profiles
        are compared by content: ``64b`` and ``64b var2`` are the same if the catalogue says so.
        """
        entries = () if self.why_unfit else self.calibration.ceilings
        for entry in sorted(entries, key=lambda entry: -entry.pairs):
            if entry.bidirectional == bidirectional and entry.pairs <= pairs:
                # words that are no longer known, or have changed their meaning, are no profile of today
                with contextlib.suppress(LineproofError):
                    if self.catalogue.profile(entry.traffic.split()).has_same_frames(profile):
                        return entry
        return None

    def ceiling(self, entry: CeilingEntry) -> OwnPart:
        """Return *entry* as the generator's own part."""
        most = si(min(entry.lossless_pps, entry.received_pps), "pps")
        description = (
            "loss this close to the generator's own ceiling does not count against the router: with the router bypassed"
            f" it carried {most} of {entry.traffic} {entry.direction} without loss (calibrated on"
            f" {entry.measured:%Y-%m-%d}{self._stale}; beyond {USABLE_SHARE:.0%} of that no FAIL is given); use a"
            " faster generator"
        )
        return OwnPart.of_ceiling(entry.line_pps, entry.lossless_pps, entry.received_pps, description)

    def record(self) -> dict[str, object]:
        """Return why the calibration is unfit or stale, for the record; its file is among the run's inputs."""
        return {"unfit": self.why_unfit, "stale": self.why_stale}

    @property
    def _stale(self) -> str:
        return f", STALE: {self.why_stale}" if self.why_stale else ""

    def __str__(self) -> str:
        if self.why_unfit:
            return f"calibration {self.calibration} is not used: {self.why_unfit}; calibrate anew"
        return f"calibration {self.calibration}{self._stale}{'; calibrate anew' if self.why_stale else ''}"


def own_part(
    measured: MeasuredLimits | None,
    published: PublishedLimits | None,
    traffic: TrafficWords,
    load_pps: float = 0.0,
    trial_seconds: float = 1.0,
) -> OwnPart:
    """Return the generator's own part under *traffic*, measured in trials of so many s at *load_pps* of each port.

    *measured*: its calibration; None: it was not calibrated, so nobody watched it.
    """
    kind = traffic.profile, traffic.bidirectional, traffic.pairs
    entry = measured.entry(*kind) if measured else None
    if measured is None or entry is None:
        return published.ceiling(*kind) if published else OwnPart()
    own = replace(measured.ceiling(entry), delay=entry.latency.p99_high_us if entry.latency else 0.0)
    watched = entry.watched
    if watched is None or watched.load_pps < WATCHED_SHARE * load_pps:
        return own
    seconds = watched.trials * watched.trial_duration
    return replace(own, trials=seconds / trial_seconds, lossy=watched.lossy, most_lost=watched.most_lost)
