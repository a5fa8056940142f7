"""Makes an outcome from the counts of a trial, as the client's process answers them.

TRex counts probe frames in a histogram for each packet group, of three digits where it was started ``--hdrh``. The
other one (v3.08, ``src/time_histogram.cpp``) has buckets of one digit, of frames of 10 µs to less than 1 s. A later
frame is in none. Its bucket 0 (less than 10 µs) has the highest count that it ever had in the server's life: no reset
takes it back, so it may be of an earlier trial. It is absent if the trial had no such frame.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from hdrh.histogram import HdrHistogram

from ...core.counter_names import is_error, is_group_count, is_pause, is_received_pause, pause_seconds
from ...core.foreign import RECEIVED_AROUND
from ...core.latency import LatencyCount, Resolution
from ...core.trial import UNDER_WAY, DirectionCount, Fault, Load, Outcome, Problem
from ...errors import TestbedError
from ..base import Direction
from .client.service import Snapshot, TrialCounts

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
    """The outcome of a trial from its *counts*, with the problems that they show.

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
    before, after, snapshots, ended = counts.before, counts.after, counts.snapshots, counts.at_end.latest
    sent = {item.tx_port: after.since(before, item.tx_port, "opackets") for item in directions}
    least, most = (clock_speed * s for s in sending_bounds(counts.first, ended, snapshots, sent))
    most = max(most, duration) if most > duration - clock_speed * START_BURST else most
    elapsed = duration if least <= duration <= most else (least + most) / 2
    problems = [Problem(Fault.GENERATOR, text) for text in counts.complaints]
    times = [counts.first, *(time for item in snapshots for time in (item.earliest, item.latest)), ended]
    if any(earlier > later for earlier, later in pairwise(times)):
        problems.append(Problem(Fault.CLOCK, "the server's went back"))
    server, slowest, fastest = counts.clocks
    if not slowest * (1 - CLOCK_DRIFT) <= server <= fastest * (1 + CLOCK_DRIFT):
        words = f"the server's went on by {server:.3f} s, this machine's by {slowest:.3f} to {fastest:.3f} s"
        problems.append(Problem(Fault.CLOCK, words))
    ports = tuple((direction.tx_port, direction.rx_port) for direction in directions)
    for number, up in counts.links.items():
        if not up:
            concerned = tuple(pair for pair in ports if number in pair)
            problems.append(Problem(Fault.LINK_DOWN, f"generator port {number}", directions=concerned))

    def difference(port: int, name: str) -> int:
        grown = after.since(before, port, name)
        # a counter that began anew within the trial may end above where it began
        of_snapshots = {"opackets": "offered", "ipackets": "received"}.get(name)
        during = [getattr(item, of_snapshots).get(port, 0) for item in snapshots] if of_snapshots else []
        shown = [0, *during, counts.at_end.since(before, port, name), grown]
        if (fall := -grown if grown < 0 else max(earlier - later for earlier, later in pairwise(shown))) > 0:
            words = f"{name} of generator port {port} fell by {fall}"
            place = 0 if name.startswith("o") else 1
            concerned = tuple(pair for pair in ports if pair[place] == port)
            problems.append(Problem(Fault.COUNTERS, words, directions=concerned))
        return max(0, grown)

    counted = tuple(
        DirectionCount(
            tx_port=direction.tx_port,
            rx_port=direction.rx_port,
            intended=round((rates or {}).get(direction.tx_port, load.pps) * duration),
            offered=difference(direction.tx_port, "opackets"),
            forwarded=difference(direction.rx_port, "ipackets"),
            offered_bytes=difference(direction.tx_port, "obytes"),
            forwarded_bytes=difference(direction.rx_port, "ibytes"),
        )
        for direction in directions
    )
    counted = tuple(
        replace(item, backlog=queue_growth(snapshots, sent, item.tx_port, item.rx_port, item.lost)) for item in counted
    )
    unsent = {direction.tx_port: difference(direction.tx_port, "oerrors") for direction in directions}
    for direction in directions:
        if failed := unsent[direction.tx_port]:
            words = (
                f"port {direction.tx_port} failed to send {failed} frames{_extended_text(counts, direction.tx_port)}"
            )
            problems.append(Problem(Fault.UNSENT, words, failed, ((direction.tx_port, direction.rx_port),)))
    # of a port that was told to send nothing: what the router returns to it would hide as many lost frames
    for port in sorted(after.ports.keys() - sent.keys()):
        if stray := difference(port, "opackets"):
            words = f"port {port} sent {stray} frames that nobody asked it for; does somebody else use the server?"
            # they may be lost in the place of others, and come back in the place of others
            problems += [Problem(fault, words, stray) for fault in (Fault.OVER_OFFERED, Fault.FOREIGN)]
    missed = [difference(direction.rx_port, "ierrors") for direction in directions]
    latency = probe_counts(counts.latency, max(duration, most))
    probes = {item.tx_port: item.sent for item in latency}
    for item, count in zip(counted, missed, strict=True):
        problems.extend(_pauses(counts, item.tx_port, item.rx_port, load, speeds or {}))
        if count and item.lost:
            # the generator itself may have missed so many of them; any loss beyond that is the router's
            words = f"port {item.rx_port} received {count} frames with errors, or missed them"
            words += _extended_text(counts, item.rx_port)
            if count == probes.get(item.tx_port):
                words += f"; exactly as many as probe frames were sent: {MISCOUNTED_PROBES}"
            problems.append(Problem(Fault.GENERATOR, words, count, ((item.tx_port, item.rx_port),)))
    first, last, cpu = before.queue_full, after.queue_full, counts.cpu_util
    queue_full = None if first is None or last is None else max(0.0, last - first)
    if cpu is None or (not cpu and queue_full):
        # a core that filled its queue was not idle: the reading was not there yet
        cpu = None
        if any(item.lost for item in counted):
            words = f"its load is not known, and a transmit queue was full {queue_full or 0:.0f} times"
            problems.append(Problem(Fault.CPU_BOUND, words))
    if abs(counts.clock_jump) > CLOCK_JUMP:
        problems.append(Problem(Fault.CLOCK, f"it moved by {counts.clock_jump:+.1f} s during the trial"))
    if not counts.finished:
        problems.append(Problem(Fault.STRETCHED, f"still sending after {elapsed:.1f} s, stopped"))
    return Outcome(
        load=load,
        duration=duration,
        elapsed=elapsed,
        started=counts.started,
        directions=counted,
        problems=tuple(problems),
        readings={
            name: float(value)
            for name, value in {
                "cpu_util": cpu,
                "rx_cpu_util": counts.at_end.rx_load,
                "elapsed_uncertainty": most - elapsed,
                "ierrors": sum(missed),
                "oerrors": sum(unsent.values()),
                "queue_full": queue_full,
                "drain": counts.drained * clock_speed,
                **{
                    f"card.{port}.{name}": count
                    for port, of_card in counts.cards.items()
                    for name, count in of_card.items()
                },
                **{
                    f"{UNDER_WAY}{row.tx_port}": under_way(snapshots, row, duration / clock_speed)
                    for row in counted
                    if row.tx_port in probes
                },
                **{
                    f"{RECEIVED_AROUND}{port}": count
                    for port, count in counts.received_around.items()
                    if _of_card(counts, port, is_group_count)
                },
            }.items()
            if value is not None
        },
        latency=latency,
        counters={
            moment: {
                f"{port}.{name}": count for port, totals in reading.ports.items() for name, count in totals.items()
            }
            for moment, reading in (("before", before), ("ended", counts.at_end), ("after", after))
        },
    )


def _extended_text(counts: TrialCounts, port: int) -> str:
    """The card's own counters of errors at *port*, in words; "": none."""
    rows = _rows(_of_card(counts, port, is_error))
    return f" (the card's own counters in this trial: {rows})" if rows else ""


def _of_card(counts: TrialCounts, port: int, fits: Callable[[str], bool]) -> dict[str, int]:
    """By how much the card's own counters at *port* grew whose names fit."""
    return {name: count for name, count in counts.cards.get(port, {}).items() if fits(name)}


def _rows(counters: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counters.items())


def _pauses(
    counts: TrialCounts, tx_port: int, rx_port: int, load: Load, speeds: Mapping[int, float]
) -> Iterator[Problem]:
    """Yield that pause frames held up what goes from *tx_port* to *rx_port*, at either end of its way.

    Where the link's speed is known, they explain no more frames than came in the longest pauses that they ask for.
    """
    for port, received, fault in ((tx_port, True, Fault.PAUSED), (rx_port, False, Fault.PAUSING)):
        counters = _of_card(counts, port, is_pause)
        pauses = {name: count for name, count in counters.items() if is_received_pause(name) == received}
        if rows := _rows(pauses):
            frames = None
            if speed := speeds.get(port):
                frames = math.ceil(pause_seconds(max(pauses.values()), speed) * load.pps)
            yield Problem(fault, f"port {port}: {rows}", frames, ((tx_port, rx_port),))


FIRST_SHARE, EARLY_SHARE = 0.01, 0.5
"""A reading between these shares of the frames is one of those soon after the start: no queue is filled at once."""

BACKLOG_READINGS = 2
"""So many of the last readings show what is under way: one alone may be torn between two counters."""

STANDSTILL, JUMP, STEADY_READINGS = 0.02, 2.0, 4
"""A counter that is read for each answer rises in this share of a trial, by at most so many times the mean rate (some
cards update theirs once a second); so many readings show what is always under way."""


def sending_bounds(
    first: float, ended: float, snapshots: Sequence[Snapshot], offered: Mapping[int, int]
) -> tuple[float, float]:
    """Least and most s in which the frames *offered* by port were sent: as many intervals as frames.

    *first*: a time before the first frame, *ended*: one after the last. No rate is taken for granted: a generator that
    waits for its CPU sends more slowly then.
    """
    least, most = math.inf, 0.0
    for port, frames in offered.items():
        if not frames:
            continue
        during = [item for item in snapshots if 0 < item.offered[port] < frames]
        none = [item for item in snapshots if not item.offered[port]]
        # counters that stand still show less than was sent, so neither the first frame nor the last one
        is_live = _rise([(item, item.offered[port] / frames) for item in [*none[-1:], *during]], ended - first)
        began = [item.earliest for item in none] if is_live else []
        sent = [item.latest for item in snapshots if item.offered[port] >= frames]
        intervals = frames / max(1, frames - 1)
        most = max(most, intervals * (min([*sent, ended]) - max([first, *began])))
        least = min(least, intervals * (during[-1].earliest - during[0].latest) if is_live else 0.0)
    return max(0.0, min(least, most)), most


def _rise(readings: Sequence[tuple[Snapshot, float]], seconds: float) -> bool:
    """Return whether shares of the frames of a trial of *seconds* rise with time, and never pause or jump."""
    pauses = ((to.earliest - at.latest, more - less) for (at, less), (to, more) in combinations(readings, 2))
    jumps = ((to.latest - at.earliest, more - less) for (at, less), (to, more) in pairwise(readings))
    return (
        len(readings) > 2
        and all(risen > 0 or time <= STANDSTILL * seconds for time, risen in pauses)
        and all(risen <= STANDSTILL + JUMP * time / seconds for time, risen in jumps)
    )


def under_way(snapshots: Sequence[Snapshot], row: DirectionCount, seconds: float) -> int | None:
    """Return the fewest frames that were under way at a reading, once as many had come back; None: not known.

    All lost ones may have been lost before, and as many as are sent between the reading of two counters may be none.
    """
    counts = [(item, item.offered[row.tx_port], item.received[row.rx_port]) for item in snapshots]
    steady = [(item, sent, back) for item, sent, back in counts if 0 < sent < row.offered and 2 * back >= sent]
    if len(steady) < STEADY_READINGS or not _rise([(item, back / row.offered) for item, _, back in steady], seconds):
        return None
    torn = row.offered / seconds
    fewest = min(sent - back - torn * (item.latest - item.earliest) for item, sent, back in steady)
    return max(0, math.floor(fewest) - row.lost)


def queue_growth(
    snapshots: Sequence[Snapshot], offered: Mapping[int, int], tx_port: int, rx_port: int, lost: int
) -> int | None:
    """Return the most frames by which queues from *tx_port* to *rx_port* grew while frames were sent.

    Those under way near the end and not *lost*, less those that were under way soon after the start. The readings while
    every port was sending count; None: there are too few near the end. Without an early one, none were under way.
    """
    during = [item for item in snapshots if all(item.offered[port] < count for port, count in offered.items())]
    half = EARLY_SHARE * offered[tx_port]
    first = [item for item in during if FIRST_SHARE * offered[tx_port] <= item.offered[tx_port] < half]
    last = during[-BACKLOG_READINGS:]
    # a reading early in the trial says nothing about its end
    if not last or last[0].offered[tx_port] < half:
        return None
    ending, beginning = (
        min((item.offered[tx_port] - item.received[rx_port] for item in some), default=lost) for some in (last, first)
    )
    # how many were lost before an early reading is not known: perhaps all of them
    return max(0, ending - lost - max(0, beginning - lost))


LOWEST, HIGHEST, DIGITS = 1, 10_000_000, 3
"""The steps and the range of TRex's fine histogram, in µs, and its significant digits (``HDRH_…`` in the same file)."""

LARGEST = 1 << 18
"""Characters and unzipped bytes of a fine histogram: 15 360 counters of at most 9 bytes are 184 000 characters."""

_FIRST_BUCKET, _LATER = 10, 1_000_000
"""µs: the coarse histogram holds frames from the one to the other exactly."""

_FAR_BELOW = 100_000
"""µs: if no frame is known to be later, nothing overtook a frame that is later than ``_LATER`` for 0.9 s."""


def probe_counts(groups: Sequence[Mapping[str, Any]], seconds: float) -> tuple[LatencyCount, ...]:
    """Return the probe frames of each direction: the sum of its *groups*, sent within *seconds*. Raises TestbedError.

    A group: the fields of a LatencyCount with the coarse histogram, and ``hdrh``, the fine one or "". One without
    histograms has counts only.
    """
    directions: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for group in groups:
        directions.setdefault((group["tx_port"], group["rx_port"]), []).append(group)
    return tuple(_of_direction(rows, seconds) for rows in directions.values())


def _of_direction(groups: Sequence[Mapping[str, Any]], seconds: float) -> LatencyCount:
    if not any("histogram" in group for group in groups):
        return LatencyCount.of_groups([LatencyCount(**group) for group in groups])
    counts = []
    for group in groups:
        coarse = {int(key): frames for key, frames in group["histogram"].items()}
        fields = {key: value for key, value in group.items() if key != "hdrh"}
        counts.append(LatencyCount(**{**fields, "histogram": coarse}))
    texts = [group.get("hdrh") or "" for group in groups]
    fine = [fine_histogram(text) if text else {} for text in texts]
    if any(count.received + count.elsewhere and not histogram for count, histogram in zip(counts, fine, strict=True)):
        # with --software and several cores, v3.08 adds up the coarse ones alone (src/stx/stl/trex_stl.cpp)
        remedy = "with '--software' and one core" if any(texts) else "with '--hdrh'"
        return LatencyCount.of_groups([_coarse(count, seconds, remedy) for count in counts])
    finest = Resolution.THREE_DIGITS
    pairs = zip(counts, fine, strict=True)
    return LatencyCount.of_groups([replace(count, histogram=rows, resolution=finest) for count, rows in pairs])


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


def _coarse(count: LatencyCount, seconds: float, remedy: str) -> LatencyCount:
    """Return *count*, whose histogram is TRex's coarse one, with the frames whose bucket is certain."""
    placed = {key: frames for key, frames in count.histogram.items() if key >= _FIRST_BUCKET and frames}
    short, count = count.histogram.get(0, 0), replace(count, histogram=placed)
    if count.unplaced < 0:
        return count
    unexplained = max(0, count.unplaced - short)
    # two readings agree, and both begin anew with each trial
    late = unexplained if count.maximum >= _LATER else 0
    most_late, total = _most_late(count, unexplained, seconds), count.received + count.elsewhere
    known = f"the latest known: {count.maximum:g} µs"
    if unexplained:
        doubt = (
            f"{unexplained:,} of {total:,} received probe frames are missing in the generator's histogram, which"
            f" leaves out those later than 1 s ({known})"
        )
    elif most_late:
        doubt = (
            f"{most_late:,} of {total:,} received probe frames came in less than 10 µs, or later than 1 s"
            f" ({count.out_of_order} out of order, {count.lost} lost, {known})"
        )
    else:
        doubt = "the generator's histogram has one digit"
    histogram = {0: count.unplaced - most_late, **placed, _LATER: late}
    placed = {key: frames for key, frames in histogram.items() if frames}
    return replace(count, histogram=placed, doubt=f"{doubt}; expected TRex started {remedy}")


def _most_late(count: LatencyCount, unexplained: int, seconds: float) -> int:
    """Return the most of the frames in no bucket from 10 µs on that may be later than 1 s, in a trial of *seconds*.

    The bucket 0 does not show that they were fast: it may be of an earlier trial. Their order does. A frame that is 1 s
    late and not overtaken holds up all that follow: those sent within the next 0.9 s are later than 100 ms, or lost,
    and if it is among the last ones, it is the maximum. Otherwise it came out of order.
    """
    disorder = count.out_of_order + count.duplicates
    followed = (count.lost + disorder + 1) * seconds <= 0.9 * count.sent
    latest = max(count.histogram, default=0)
    if followed and not unexplained and latest < _FAR_BELOW and 0 < count.maximum < _FAR_BELOW:
        return min(count.unplaced, disorder)
    return count.unplaced
