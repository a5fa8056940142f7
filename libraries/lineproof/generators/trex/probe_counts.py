"""Probe frames as TRex counts them: a histogram for each packet group, of three digits where it was started ``--hdrh``.

The other one (v3.08, ``src/time_histogram.cpp``) has buckets of one digit, of frames of 10 µs to less than 1 s. A later
frame is in none. Its bucket 0 (less than 10 µs) has the highest count that it ever had in the server's life: no reset
takes it back, so it may be of an earlier trial. It is absent if the trial had no such frame.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hdrh.histogram import HdrHistogram

from ...core.latency import LatencyCount, Resolution
from ...errors import TestbedError

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
        found = HdrHistogram.decode(text)
    except (ValueError, IndexError, OverflowError, zlib.error) as error:
        raise TestbedError(f"the TRex server's 'hdrh' is no histogram of TRex's: {error}") from None
    return {found.get_value_from_index(place): count for place, count in enumerate(found.counts) if count}


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
            f"{unexplained} of {total} received probe frames are missing in the generator's histogram, which leaves out"
            f" those later than 1 s ({known})"
        )
    elif most_late:
        doubt = (
            f"{most_late} of {total} received probe frames came in less than 10 µs, or later than 1 s"
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
