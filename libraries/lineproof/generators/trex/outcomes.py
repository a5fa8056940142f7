"""Makes an outcome from the counts of a trial, as the client's process answers them.

TRex counts probe frames in a histogram for each packet group, of three digits where it was started ``--hdrh``. The
other one (v3.08, ``src/time_histogram.cpp``) has buckets of one digit, of frames of 10 µs to less than 1 s. Its bucket
0 (less than 10 µs) proves nothing: no reset takes it back, so it may be of an earlier trial.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any

from hdrh.histogram import HdrHistogram

from ...core.counter_names import is_error, is_group_count, is_pause, is_received_pause, pause_seconds
from ...core.foreign import RECEIVED_AROUND
from ...core.latency import LatencyCount, Resolution
from ...core.trial import DRAIN, UNDER_WAY, DirectionCount, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ..base import Direction
from ..counting import by_moment, counted, counter_problems, grown, missed_problem
from .client.service import CounterReading, TrialCounts

CLOCK_DRIFT, START_BURST = 1e-3, 0.02
"""Share by which the server's clock may differ; seconds of frames that TRex sends at once in software mode (v3.08)."""

CLOCK_JUMP = 0.5
"""Tolerated change in s of the time of day against the monotonic clock in a trial (set clock, suspended machine)."""

MISCOUNTED_PROBES = (
    "Intel's 700 series (i40e) with firmware 9.5 counts each of them as an error under TRex v3.08 (trex-core, issue"
    " 1222); take other firmware, or TRex with --software"
)


def make_outcome(
    counts: TrialCounts,
    load: Load,
    duration: float,
    directions: tuple[Direction, ...],
    clock_speed: float = 1.0,
    rates: Mapping[int, float] | None = None,
    speeds: Mapping[int, float] | None = None,
) -> Outcome:
    """Return the outcome of a trial from its *counts*, with the problems that they show.

    *rates*: frames/s by sending port, where they differ. *speeds*: of links, bit/s by port, where they are known.

    ``elapsed`` is in s of the testbed's clock, measured with the server's (:func:`sending_bounds`). If *duration* is
    possible it is taken: TRex sends no faster than it is asked to. Else it is the middle. The true value is ``elapsed``
    ± the reading ``elapsed_uncertainty``, a few ms whatever the distance to the server.

    Readings, each only if it was reported: ``cpu_util`` and ``rx_cpu_util``, per cent: the highest load of a core in a
    second of sending, and the receiving load after sending; ``queue_full``: times that a transmit queue was full, no
    fault if all frames were sent; ``ierrors``: frames that receiving ports got with errors or missed; ``oerrors``:
    frames that sending ports failed to send; ``card.0.rx_crc_errors``: by how much a card's own counter of errors,
    pause frames or frames to a group at port 0 grew, ``received_around.0``: frames
    that the port received while it could; ``drain``: s of the testbed's clock.
    """
    before, snapshots = counts.before, [reading.after(counts.before) for reading in counts.snapshots]
    sent = {direction.tx_port: counts.after.since(before, direction.tx_port, "opackets") for direction in directions}
    least, most = (clock_speed * s for s in sending_bounds(counts.first, counts.at_end.latest, snapshots, sent))
    most = max(most, duration) if most > duration - clock_speed * START_BURST else most
    elapsed = duration if least <= duration <= most else (least + most) / 2
    latency = probe_counts(counts.latency)
    by_direction = list[DirectionCount]()
    for direction in directions:
        way, pps = (direction.tx_port, direction.rx_port), (rates or {}).get(direction.tx_port, load.pps)
        row = counted(before.ports, counts.after.ports, way, round(pps * duration))
        by_direction.append(replace(row, backlog=queue_growth(snapshots, sent, row)))
    was_full, full = before.queue_full, counts.after.queue_full
    queue_full = None if was_full is None or full is None else max(0.0, full - was_full)
    # a core that filled its queue was not idle: the reading was not there yet
    cpu = None if not counts.cpu_util and queue_full else counts.cpu_util
    problems = [Problem(Fault.GENERATOR, text) for text in counts.complaints]
    problems += _of_clocks(counts)
    # some drivers correct their counts of bytes and errors meanwhile
    frames = [
        {port: {name: of[name] for name in ("opackets", "ipackets")} for port, of in reading.ports.items()}
        for reading in counts.snapshots
    ]
    in_order = [before.ports, *frames, counts.at_end.ports, counts.after.ports]
    ways = [(row.tx_port, row.rx_port) for row in by_direction]
    problems += counter_problems(in_order, ways, counts.links, partial(_error_words, counts))
    for row in by_direction:
        problems += _pauses(counts, row, load, speeds or {})
        problems += missed_problem(before.ports, counts.after.ports, row, _missed_words(counts, row, latency))
        if late := counts.late.get(row.rx_port):
            detail = f"port {row.rx_port}: up to {late:,} more than {DRAIN:g} s after the last one was sent"
            problems.append(Problem(Fault.LATE, detail, late, ((row.tx_port, row.rx_port),)))
    if cpu is None and any(row.lost for row in by_direction):
        detail = f"its load is not known, and a transmit queue was full {queue_full or 0:.0f} times"
        problems.append(Problem(Fault.CPU_BOUND, detail))
    if not counts.finished:
        problems.append(Problem(Fault.STRETCHED, f"still sending after {elapsed:.1f} s, stopped"))
    readings = {
        "cpu_util": cpu,
        "rx_cpu_util": counts.at_end.rx_load,
        "elapsed_uncertainty": most - elapsed,
        "ierrors": sum(_grown(counts, row.rx_port, "ierrors") for row in by_direction),
        "oerrors": sum(_grown(counts, row.tx_port, "oerrors") for row in by_direction),
        "queue_full": queue_full,
        "drain": counts.drained * clock_speed,
    }
    for port, of_card in counts.cards.items():
        readings |= {f"card.{port}.{name}": count for name, count in of_card.items()}
        if _of_card(counts, port, is_group_count):
            readings[f"{RECEIVED_AROUND}{port}"] = counts.received_around.get(port)
    for row in by_direction:
        if any(count.tx_port == row.tx_port for count in latency):
            readings[f"{UNDER_WAY}{row.tx_port}"] = under_way(snapshots, row, duration / clock_speed)
    return Outcome(
        load=load,
        duration=duration,
        elapsed=elapsed,
        started=counts.started,
        directions=tuple(by_direction),
        problems=tuple(problems),
        readings={name: float(value) for name, value in readings.items() if value is not None},
        latency=latency,
        counters=by_moment(before=before.ports, ended=counts.at_end.ports, after=counts.after.ports),
    )


def _grown(counts: TrialCounts, port: int, name: str) -> int:
    """Return by how much a counter of *port* grew in the trial; 0 where it fell."""
    return grown(counts.before.ports, counts.after.ports, port, name)


def _of_clocks(counts: TrialCounts) -> Iterator[Problem]:
    """Yield that the clock of the server, or the time of day, cannot be believed."""
    times = [counts.first, *(time for reading in counts.snapshots for time in (reading.earliest, reading.latest))]
    if any(earlier > later for earlier, later in pairwise([*times, counts.at_end.latest])):
        yield Problem(Fault.CLOCK, "the server's went back")
    server, slowest, fastest = counts.clocks
    if not slowest * (1 - CLOCK_DRIFT) <= server <= fastest * (1 + CLOCK_DRIFT):
        detail = f"the server's went on by {server:.3f} s, this machine's by {slowest:.3f} to {fastest:.3f} s"
        yield Problem(Fault.CLOCK, detail)
    if abs(counts.clock_jump) > CLOCK_JUMP:
        yield Problem(Fault.CLOCK, f"it moved by {counts.clock_jump:+.1f} s during the trial")


def _missed_words(counts: TrialCounts, row: DirectionCount, latency: Sequence[LatencyCount]) -> str:
    """Return what is known of the frames that the receiving port of *row* missed, in words."""
    detail, missed = _error_words(counts, row.rx_port), _grown(counts, row.rx_port, "ierrors")
    if any((count.tx_port, count.sent) == (row.tx_port, missed) for count in latency):
        detail += f"; exactly as many as probe frames were sent: {MISCOUNTED_PROBES}"
    return detail


def _error_words(counts: TrialCounts, port: int) -> str:
    """Return the card's own counters of errors at *port*, in words; "": none."""
    shown = _counter_words(_of_card(counts, port, is_error))
    return f" (the card's own counters in this trial: {shown})" if shown else ""


def _of_card(counts: TrialCounts, port: int, fits: Callable[[str], bool]) -> dict[str, int]:
    """Return by how much the card's own counters at *port* grew whose names fit."""
    return {name: count for name, count in counts.cards.get(port, {}).items() if fits(name)}


def _counter_words(counters: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counters.items())


def _pauses(counts: TrialCounts, row: DirectionCount, load: Load, speeds: Mapping[int, float]) -> Iterator[Problem]:
    """Yield that pause frames held up the frames of *row*, at either end of their way.

    Where the link's speed is known, they explain no more frames than came in the longest pauses that they ask for.
    """
    for port, received, fault in ((row.tx_port, True, Fault.PAUSED), (row.rx_port, False, Fault.PAUSING)):
        pauses = _of_card(counts, port, is_pause)
        if pauses := {name: count for name, count in pauses.items() if is_received_pause(name) == received}:
            speed, most = speeds.get(port), max(pauses.values())
            frames = math.ceil(pause_seconds(most, speed) * load.pps) if speed else None
            yield Problem(fault, f"port {port}: {_counter_words(pauses)}", frames, ((row.tx_port, row.rx_port),))


FIRST_SHARE, EARLY_SHARE = 0.01, 0.5
"""A reading between these shares of the frames is one of those soon after the start: no queue is filled at once."""

BACKLOG_READINGS = 2
"""So many of the last readings show what is under way: one alone may be torn between two counters."""

LEAST_RECENT, BURST = 0.1, 1e-3
"""The share of the frames between two readings that shows which share of the later ones comes; where there are none, a
part of a burst of lost frames may pass for a queue, at most this share of the frames."""

STANDSTILL, JUMP, STEADY_READINGS = 0.02, 2.0, 3
"""A counter that is read for each answer rises in this share of a trial, by at most so many times the mean rate (some
cards update theirs once a second); so many readings show what is always under way."""


def sending_bounds(
    first: float, ended: float, snapshots: Sequence[CounterReading], offered: Mapping[int, int]
) -> tuple[float, float]:
    """Return least and most s in which the frames *offered* by port were sent: as many intervals as frames.

    *first*: a time before the first frame, *ended*: one after the last. No rate is taken for granted: a generator that
    waits for its CPU sends more slowly then.
    """
    least, most = math.inf, 0.0
    for port, frames in offered.items():
        if not frames:
            continue
        during = [reading for reading in snapshots if 0 < reading.sent(port) < frames]
        none = [reading for reading in snapshots if not reading.sent(port)]
        # counters that stand still show less than was sent, so neither the first frame nor the last one
        is_live = _rise([(reading, reading.sent(port) / frames) for reading in [*none[-1:], *during]], ended - first)
        began = [reading.earliest for reading in none] if is_live else []
        sent = [reading.latest for reading in snapshots if reading.sent(port) >= frames]
        intervals = frames / max(1, frames - 1)
        most = max(most, intervals * (min([*sent, ended]) - max([first, *began])))
        least = min(least, intervals * (during[-1].earliest - during[0].latest) if is_live else 0.0)
    return max(0.0, min(least, most)), most


def _rise(readings: Sequence[tuple[CounterReading, float]], seconds: float) -> bool:
    """Return whether shares of the frames of a trial of *seconds* rise with time, and never pause or jump."""
    pauses = ((to.earliest - at.latest, more - less) for (at, less), (to, more) in combinations(readings, 2))
    jumps = ((to.latest - at.earliest, more - less) for (at, less), (to, more) in pairwise(readings))
    return (
        len(readings) > 2
        and all(risen > 0 or time <= STANDSTILL * seconds for time, risen in pauses)
        and all(risen <= STANDSTILL + JUMP * time / seconds for time, risen in jumps)
    )


def under_way(snapshots: Sequence[CounterReading], row: DirectionCount, seconds: float) -> int | None:
    """Return how many frames were under way at two readings at least, and at no reading fewer; None: not known.

    Readings count once as many frames had come back. As many as are sent between the reading of two counters may be
    none, or more of them: such a reading shows neither. All lost ones may have been lost before.
    """
    counts = [(at, at.sent(row.tx_port), at.received(row.rx_port)) for at in snapshots]
    steady = [(at, sent, back) for at, sent, back in counts if 0 < sent < row.offered and 2 * back >= sent]
    if len(steady) < STEADY_READINGS or not _rise([(at, back / row.offered) for at, _, back in steady], seconds):
        return None
    torn = [row.offered / seconds * (at.latest - at.earliest) for at, *_ in steady]
    fewest = sorted(sent - back - frames for frames, (_, sent, back) in zip(torn, steady, strict=True))
    most = min(sent - back + frames for frames, (_, sent, back) in zip(torn, steady, strict=True))
    return max(0, math.floor(min(fewest[-2], most)) - row.lost)


def queue_growth(snapshots: Sequence[CounterReading], offered: Mapping[int, int], row: DirectionCount) -> int | None:
    """Return the most frames by which queues of the direction *row* grew while frames were sent.

    Those that came after a reading near the end, but for those sent after it, of which as large a share came as of all
    before, or as of the last ones read before; less those that were under way soon after the start. The readings while
    every port was sending count; None: there are too few near the end. Without an early one, none were under way.
    """
    during = [reading for reading in snapshots if all(reading.sent(port) < count for port, count in offered.items())]
    counts = [(reading.sent(row.tx_port), reading.received(row.rx_port)) for reading in during]
    half, last = EARLY_SHARE * row.offered, counts[-BACKLOG_READINGS:]
    # a reading early in the trial says nothing about its end
    if not last or last[0][0] < half:
        return None
    # how many were lost before an early reading is not known: perhaps all of them
    early = min((sent - back for sent, back in counts if FIRST_SHARE * row.offered <= sent < half), default=0)
    # a burst that was lost before is none of those sent later
    (sent, back), (begun, came) = last[-1], next(count for count in counts if count[0] >= half)
    recent = min(1.0, (back - came) / (sent - begun)) if sent - begun >= LEAST_RECENT * row.offered else 0.0
    if not recent and row.lost * (row.offered - last[0][0]) > BURST * row.offered**2:
        return None
    shares = ((sent, back, max(recent, back / sent)) for sent, back in last)
    late = min(math.ceil(row.came_back - back - (row.offered - sent) * share) for sent, back, share in shares)
    return max(0, late - max(0, early - row.lost))


LOWEST, HIGHEST, DIGITS = 1, 10_000_000, 3
"""The steps and the range of TRex's fine histogram, in µs, and its significant digits (``HDRH_…`` in the same file)."""

LARGEST = 1 << 18
"""Characters and unzipped bytes of a fine histogram: 15 360 counters of at most 9 bytes are 184 000 characters."""

_FIRST_BUCKET = 10
"""µs: from here on the coarse histogram is certain."""


def probe_counts(groups: Sequence[Mapping[str, Any]]) -> tuple[LatencyCount, ...]:
    """Return the probe frames of each direction: the sum of its *groups*. Raises TestbedError.

    A group: the fields of a LatencyCount with the coarse histogram, and ``hdrh``, the fine one or "". One without
    histograms has counts only.
    """
    directions = defaultdict[tuple[int, int], list[Mapping[str, Any]]](list)
    for group in groups:
        directions[group["tx_port"], group["rx_port"]].append(group)
    return tuple(LatencyCount.of_groups(_counts(of_direction)) for of_direction in directions.values())


def _counts(groups: Sequence[Mapping[str, Any]]) -> list[LatencyCount]:
    """Return the counts of each of a direction's *groups*, with the finest histograms that all of them have."""
    counts, coarse, fine, texts = list[LatencyCount](), list[dict[int, int]](), list[dict[int, int]](), list[str]()
    for group in groups:
        fields = {key: value for key, value in group.items() if key not in ("histogram", "hdrh")}
        counts.append(LatencyCount(**fields))
        coarse.append({int(key): frames for key, frames in group.get("histogram", {}).items()})
        texts.append(group.get("hdrh", ""))
        fine.append(fine_histogram(texts[-1]) if texts[-1] else {})
    if not any("histogram" in group for group in groups):
        return counts
    # with --software and several cores, v3.08 adds up the coarse ones alone (src/stx/stl/trex_stl.cpp)
    if any(count.received + count.elsewhere and not frames for count, frames in zip(counts, fine, strict=True)):
        remedy = "with '--software' and one core" if any(texts) else "with '--hdrh'"
        return [_coarse(count, frames, remedy) for count, frames in zip(counts, coarse, strict=True)]
    finest = Resolution.THREE_DIGITS
    return [replace(count, histogram=frames, resolution=finest) for count, frames in zip(counts, fine, strict=True)]


def _coarse(count: LatencyCount, histogram: Mapping[int, int], remedy: str) -> LatencyCount:
    """Return *count* with the frames of TRex's coarse *histogram* whose bucket is certain."""
    placed = {key: frames for key, frames in histogram.items() if key >= _FIRST_BUCKET and frames}
    count, doubt = replace(count, histogram=placed), "the generator's histogram has one digit"
    if count.unplaced > 0:
        doubt = (
            f"{count.unplaced:,} of {count.received + count.elsewhere:,} received probe frames came in less than 10 µs,"
            f" or later than 1 s (the latest known: {count.maximum:g} µs)"
        )
    return replace(count, doubt=f"{doubt}; expected TRex started {remedy}")


def fine_histogram(text: str) -> dict[int, int]:
    """Return {lower end of a bucket in µs: frames} of TRex's ``hdrh`` (HdrHistogram V2, base64). Raises TestbedError.

    It is a stranger's: bounded before it is unzipped, and of TRex's own size before it is decoded.
    """
    try:
        if len(text) > LARGEST:
            raise ValueError(f"{len(text)} characters are too many")
        data = base64.b64decode(text, validate=True)
        if data[:8] != struct.pack(">Ii", 0x1C849314, len(data) - 8):
            raise ValueError("it does not begin as one")
        plain = zlib.decompressobj().decompress(data[8:], LARGEST)
        settings = struct.pack(">IIQQ", 0, DIGITS, LOWEST, HIGHEST)
        if plain[:4] + plain[8:32] != struct.pack(">I", 0x1C849313) + settings or not 40 <= len(plain) < LARGEST:
            raise ValueError(f"it has not {DIGITS} digits, and {LOWEST} to {HIGHEST} µs")
        histogram = HdrHistogram.decode(text)
    except (ValueError, IndexError, OverflowError, zlib.error) as error:
        raise TestbedError(f"the TRex server's 'hdrh' is no histogram of TRex's: {error}") from None
    return {histogram.get_value_from_index(place): count for place, count in enumerate(histogram.counts) if count}
