"""Calibrations: what a testbed's generator was found to send and receive by itself, kept in a file for later verdicts.

Measured, not set: so they lie with the results (``results/calibrations/``), one file for each testbed and platform.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from ..config import Config, load
from ..counts.ceiling import Ceiling, OwnLatency
from ..counts.latency import LatencyBounds
from ..errors import ConfigError, LinerateError, TestbedError
from ..traffic.catalogue import Catalogue
from ..traffic.profiles import Profile

FRESH = timedelta(days=90)
"""How long a calibration is taken for what the generator still does."""

FOLDER = "calibrations"

Rate = Annotated[float, Field(gt=0)]
Microseconds = Annotated[float, Field(ge=0)]

_HEAD = """\
# What the generator of testbed '{testbed}' sends and receives by itself, the router bypassed. Measured, by
#   python -m linerate calibrate {testbed} --platform {platform}
# Run that again rather than edit this file: what stands here can take the word FAIL from a router's verdict.
# Rates are frames/s of each sending port, of several directions the worst one. line_pps fills the link; offered_pps was
# sent as asked for; lossless_pps was sent, whatever was asked for, and came back whole; received_pps came back while
# line_pps were asked for. Latency in µs.
"""


class OwnLatencyEntry(Config):
    """:class:`.methods.headroom.OwnLatency`, with units in the keys."""

    load_pps: Rate
    frames: Annotated[int, Field(ge=1)]
    mean_us: Microseconds
    p99_low_us: Microseconds
    p99_high_us: Microseconds
    minimum_us: Microseconds | None = None

    def __str__(self) -> str:
        least = f"at least {self.minimum_us:.3g} µs, " if self.minimum_us is not None else ""
        return f"{least}{self.mean_us:.3g} µs on average, p99 {LatencyBounds(self.p99_low_us, self.p99_high_us)}"


class CeilingEntry(Config):
    """One profile and direction. ``traffic``: the profile's words; ``trial_duration`` in s; ``measured``: ISO 8601."""

    traffic: str
    mean_size: Rate
    bidirectional: bool
    measured: str
    line_pps: Rate
    offered_pps: Rate
    lossless_pps: Rate
    received_pps: Annotated[float, Field(ge=0)]
    trials: Annotated[int, Field(ge=1)]
    trial_duration: Rate
    steal_percent: Annotated[float, Field(ge=0, le=100)] = 0.0
    latency: OwnLatencyEntry | None = None
    pairs: Annotated[int, Field(ge=1)] = 1

    @field_validator("measured")
    @classmethod
    def _moment(cls, value: str) -> str:
        if datetime.fromisoformat(value).tzinfo is None:
            raise ValueError("does not say which time zone; expected for example 2026-01-31T12:00:00+00:00")
        return value

    @model_validator(mode="after")
    def _ordered(self) -> CeilingEntry:
        if max(self.lossless_pps, self.offered_pps, self.received_pps) > self.line_pps * 1.01:
            raise ValueError("no rate is more than line_pps")
        return self

    @property
    def when(self) -> datetime:
        """When it was measured."""
        return datetime.fromisoformat(self.measured)

    @property
    def direction(self) -> str:
        """``unidirectional`` or ``bidirectional``, and how many pairs of ports where there are several."""
        pairs = f" on {self.pairs} pairs" if self.pairs > 1 else ""
        return f"{'bi' if self.bidirectional else 'uni'}directional{pairs}"


class CalibrationFile(Config):
    """The whole file. ``versions``: what the generator said of itself, ``server`` first of all."""

    testbed: str
    platform: str
    kind: Literal["simulated", "netns", "hardware"]
    link_bps: Rate
    linerate: str
    versions: Mapping[str, str]
    ceilings: Annotated[tuple[CeilingEntry, ...], Field(min_length=1)]

    def alike(self, other: CalibrationFile) -> bool:
        """Whether both were measured on the same testbed with the same generator."""
        mine, others = (
            (item.testbed, item.platform, item.kind, item.link_bps, item.versions.get("server"))
            for item in (self, other)
        )
        return mine == others


@dataclass(frozen=True)
class Calibration:
    """A file that was read. ``sha256`` of its bytes."""

    content: CalibrationFile
    path: Path
    sha256: str

    def ceiling(
        self, profile: Profile, bidirectional: bool, catalogue: Catalogue, pairs: int = 1
    ) -> CeilingEntry | None:
        """What was measured for *profile* in this direction on so many *pairs* of ports; None where nothing was.

        What a port carries while fewer of them send bounds what it carries among more, and stands where nothing else
        does.

        Profiles are told by what they are: ``64b`` and ``64b var2`` are the same where *catalogue* says so.
        """
        for entry in sorted(self.content.ceilings, key=lambda item: -item.pairs):
            other_direction = entry.bidirectional != bidirectional or entry.pairs > pairs
            if other_direction or abs(entry.mean_size - profile.mean_size) > 1e-6:
                continue
            # words that are no longer known, or mean something else today, speak of no profile of today
            with contextlib.suppress(LinerateError):
                if catalogue.profile(entry.traffic.split()).is_same(profile):
                    return entry
        return None

    def unfit(self, kind: str, link_bps: float) -> str:
        """Why it says nothing of a testbed of this *kind*, whose ports run at *link_bps* bit/s; "" where it does."""
        mine = self.content
        if mine.kind != kind:
            return f"it was measured when the testbed was '{mine.kind}', and it is '{kind}' now"
        if abs(mine.link_bps - link_bps) > 0.01 * link_bps:
            return f"it was measured at {mine.link_bps / 1e9:g} Gbit/s, and the ports run at {link_bps / 1e9:g} now"
        return ""

    def stale(self, server: str | None, now: datetime) -> str:
        """Why it may no longer be true, in words; "" while it is fresh. *server*: the generator's version, if known."""
        found = []
        oldest = min(entry.when for entry in self.content.ceilings)
        if now - oldest > FRESH:
            found.append(f"it is {(now - oldest).days} days old")
        was = self.content.versions.get("server")
        if server is not None and was != server:
            found.append(f"the generator was {was or 'of unknown version'}, and is {server} now")
        return " and ".join(found)

    def __str__(self) -> str:
        days = sorted({entry.measured[:10] for entry in self.content.ceilings})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"{self.path.name} of {when} ({len(self.content.ceilings)} ceilings)"


def file_of(folder: Path, testbed: str, platform: str) -> Path:
    """Where the calibration of *testbed* with *platform* is kept."""
    return folder / f"{testbed}-{platform}.yaml"


def read_calibration(folder: Path, testbed: str, platform: str) -> Calibration | None:
    """The calibration of *testbed* with *platform*; None where there is none. Raises ConfigError for a wrong file."""
    path = file_of(folder, testbed, platform)
    if not path.exists():
        return None
    found = load(path, CalibrationFile)
    for what, is_, right in (("testbed", found.testbed, testbed), ("platform", found.platform, platform)):
        if is_ != right:
            raise ConfigError(f"says '{what}: {is_}'; in a file of this name expected '{right}'", path)
    return Calibration(found, path, hashlib.sha256(path.read_bytes()).hexdigest())


def entry(
    profile: Profile,
    bidirectional: bool,
    found: Ceiling,
    latency: OwnLatency | None,
    duration: float,
    steal: float,
    now: datetime | None = None,
    pairs: int = 1,
) -> CeilingEntry:
    """A method's result as it is kept. *steal*: per cent of the CPU time that was withheld meanwhile."""
    told = None
    if latency is not None:
        told = OwnLatencyEntry(
            load_pps=round(latency.pps, 3),
            frames=latency.frames,
            mean_us=round(latency.mean, 4),
            p99_low_us=latency.p99_low,
            p99_high_us=latency.p99_high,
            minimum_us=latency.minimum,
        )
    return CeilingEntry(
        traffic=profile.name,
        mean_size=profile.mean_size,
        bidirectional=bidirectional,
        measured=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        line_pps=round(found.line, 3),
        offered_pps=round(found.offered, 3),
        lossless_pps=round(found.lossless, 3),
        received_pps=round(found.received, 3),
        trials=len(found.trials),
        trial_duration=duration,
        steal_percent=round(steal, 2),
        latency=told,
        pairs=pairs,
    )


def write_calibration(folder: Path, new: CalibrationFile) -> Path:
    """Write *new* whole or not at all, with the ceilings that an earlier file of the same generator has beside them.

    Raises TestbedError where it cannot be written, ConfigError where the earlier file is wrong.
    """
    path = file_of(folder, new.testbed, new.platform)
    before = read_calibration(folder, new.testbed, new.platform)
    kept = before.content.ceilings if before and before.content.alike(new) else ()
    measured = {(item.traffic, item.direction) for item in new.ceilings}
    ceilings = (*(item for item in kept if (item.traffic, item.direction) not in measured), *new.ceilings)
    content = new.model_copy(update={"ceilings": ceilings}).model_dump(mode="json", exclude_none=True)
    text = _HEAD.format(testbed=new.testbed, platform=new.platform) + _yaml(content)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise TestbedError(f"the calibration cannot be written to {path}: {error.strerror}") from None
    return path


def _yaml(content: dict[str, Any]) -> str:
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))
