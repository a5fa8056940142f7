"""What others measured, as rows of the store: load tests for trex-loadtest-viz, result folders of netbenches.

Nothing of it was judged, and nobody can check it: it is marked by its origin and never in a trend with own runs. Rates
are the readings of those programs, so that there are no counts of frames.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from ...files import read_file
from ...json_text import parse_json
from ...stats.intervals import mean_interval
from ...visible import shortened
from .stored_run import StoredRun, TrialRow, columns

LOADTEST, NETBENCHES = "trex-loadtest", "netbenches"
"""The origins."""

FAIL_THRESHOLD = 0.001
"""The loss ratio from which trex-loadtest-viz calls a load too high."""

LARGEST_LOADTEST, LARGEST_SAMPLE = 64 * 2**20, 2**20
"""Bytes; a second of a load test is some 300."""


@dataclass(frozen=True)
class ForeignLabels:
    """What the files do not say, or say in their names only. ``moment``: Unix time; None: that of the file."""

    platform: str | None = None
    software: str | None = None
    moment: float | None = None


@dataclass(frozen=True)
class _Figure:
    """A row of ``sentences``, with what was observed."""

    sentence: str
    quantity: str
    traffic: str
    scope: str
    sample: tuple[float, ...]


def foreign_kind(path: Path) -> str | None:
    """Which origin the file or folder *path* has; None: it is none of these."""
    if path.suffix == ".json" and path.is_file():
        return LOADTEST
    return NETBENCHES if path.is_dir() and any(path.glob("*.pps")) else None


def read_foreign(path: Path, labels: ForeignLabels) -> StoredRun:
    """What others measured at *path*. Raises ConfigError naming file and line of what is none of it."""
    return _loadtest(path, labels) if foreign_kind(path) == LOADTEST else _netbenches(path, labels)


def _stored(
    path: Path, origin: str, content: bytes, labels: ForeignLabels, figures: Sequence[_Figure], **known: Any
) -> StoredRun:
    digest = hashlib.sha256(content).hexdigest()
    found = {"testbed": "", "simulated": False, **known}
    moment = path.stat().st_mtime if labels.moment is None else labels.moment
    said = f"{found['platform']}\n{found['software']}\n{labels.moment}".encode(errors="surrogatepass")
    run = columns(
        **found,
        run=f"{origin}-{digest[:24]}",
        folder=str(path.resolve()),
        origin=origin,
        closed=True,
        # with other labels it is another state of it
        sha256=hashlib.sha256(content + said).hexdigest(),
        records=sum(len(item.sample) for item in figures),
        started=moment,
        ended=None,
        release=found["software"],
        versions={},
        goal="",
        lineproof="",
    )
    rows = tuple(_sentence(number, item, moment) for number, item in enumerate(figures, 1))
    trials: list[TrialRow] = []
    for number, item in enumerate(figures, 1):
        for place, value in enumerate(item.sample, 1):
            trials.append((len(trials) + 1, number, place, None, None, None, None, None, None, value, True))
    return StoredRun(run, rows, tuple(trials))


def _sentence(number: int, found: _Figure, moment: float) -> dict[str, Any]:
    measured = mean_interval(found.sample) if found.sample else None
    return columns(
        number=number,
        test="",
        sentence=found.sentence,
        goal="",
        quantity=found.quantity,
        traffic=found.traffic,
        statistic=None,
        at_least=None,
        threshold=None,
        unit="pps",
        scope=found.scope,
        load_pps=None,
        verdict=None,
        measured=measured and measured.estimate,
        low=measured and measured.low,
        high=measured and measured.high,
        observations=len(found.sample),
        set_aside=0,
        searched=False,
        margin_low=None,
        margin_high=None,
        lost=None,
        started=moment,
        ended=None,
    )


def _loadtest(path: Path, labels: ForeignLabels) -> StoredRun:
    content = read_file(path, LARGEST_LOADTEST)
    try:
        data = parse_json(content)
        settings, seconds = data["vars"], list(data["stats"].values())
        profile, one_way = str(settings["profile_file"]), bool(settings.get("unidirectional", False))
        ways = [("0", "1")] if one_way else [("0", "1"), ("1", "0")]
        rates = [[(_rate(item[tx], "tx_pps"), _rate(item[rx], "rx_pps")) for item in seconds] for tx, rx in ways]
        simulated = settings.get("simulated", False) is True
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        words = f"the key {error} is missing" if isinstance(error, KeyError) else shortened(error)
        raise ConfigError(f"is no load test of trex-loadtest ({words}); expected 'vars' and 'stats'", path) from None
    if not seconds:
        raise ConfigError("is a load test without a second in its 'stats'", path)
    traffic = f"{Path(profile).stem if profile.endswith('.py') else profile} {'uni' if one_way else 'bi'}directional"
    scope = "" if one_way else "each way"
    words = f" {scope}" if scope else ""
    figures = (
        _Figure(f"{traffic} forwards{words}", "forwards", traffic, scope, (min(_most_received(way) for way in rates),)),
        _Figure(
            f"{traffic} throughput{words}, loss ≤ 0.1 %",
            *("throughput", traffic, scope),
            (min(_highest_carried(way) for way in rates),),
        ),
    )
    platform = labels.platform or _platform(path, profile)
    known = {"platform": platform, "software": labels.software or "", "simulated": simulated}
    return _stored(path, LOADTEST, content, labels, figures, **known)


def _platform(path: Path, profile: str) -> str:
    """What stands before the traffic in the file's name: ``003-netgate6100-64b-1-flow-loadtest.json``."""
    named = re.sub(r"^\d{3}-|-loadtest$", "", path.stem)
    ending = "-" + re.sub(r"[^A-Za-z0-9]+", "-", Path(profile).name.removesuffix(".py")).strip("-")
    if named.lower().endswith(ending.lower()):
        return named[: -len(ending)]
    return named.rpartition("-")[0] or named


def _rate(found: Mapping[str, Any], key: str) -> float:
    value = found[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError(f"'{key}' is {shortened(repr(value))}; expected frames/s")
    return float(value)


def _most_received(way: Sequence[tuple[float, float]]) -> float:
    return max(received for _, received in way)


def _highest_carried(way: Sequence[tuple[float, float]]) -> float:
    """The highest load before the loss that does not end any more: what comes before a gap that closes counts too."""
    carried = [sent - received <= FAIL_THRESHOLD * sent for sent, received in way]
    overload = len(carried) - next((back for back, good in enumerate(reversed(carried)) if good), len(carried))
    return max((sent for sent, _ in way[:overload]), default=0.0)


def _netbenches(path: Path, labels: ForeignLabels) -> StoredRun:
    """A folder of files ``CASE.pps`` with a number in each line: frames/s received in a run of the case."""
    figures, parts = [], []
    for file in sorted(path.glob("*.pps")):
        content = read_file(file, LARGEST_SAMPLE)
        parts += [file.name.encode(errors="surrogateescape"), content]
        figures.append(_Figure(f"{file.stem} forwards", "forwards", file.stem, "", _sample(file, content)))
    whole = path.resolve()
    # MACHINE/CARD/BENCH/results/RELEASE, as in that repository
    there = whole.parent.name == "results" and len(whole.parts) > 5
    platform = labels.platform or ("/".join(whole.parts[-5:-3]) if there else whole.name)
    known = {"platform": platform, "software": labels.software or (whole.name if there else "")}
    return _stored(path, NETBENCHES, b"\0".join(parts), labels, figures, **known)


def _sample(file: Path, content: bytes) -> tuple[float, ...]:
    """An empty file has none: the router was overloaded then."""
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = float(line)
        except ValueError:
            value = math.nan
        if not 0 <= value < 1e15:
            raise ConfigError(f"'{shortened(line.decode(errors='replace'))}' is no rate in frames/s", file, number)
        found.append(value)
    return tuple(found)
