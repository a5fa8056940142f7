"""Traffic that changes while it runs, told to the client's process step by step."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from ...counts.live_traffic import Sample
from ...counts.step_down import Moment, StepDown
from ...counts.trial import Load
from ...errors import TestbedError
from ..base import Direction
from .counts import outcome


class AskClient(Protocol):
    """The driver's way to ask its client's process. Raises TestbedError."""

    def __call__(self, command: str, **arguments: Any) -> Any:
        """The answer."""
        ...


def step_down(
    ask: AskClient,
    told: Mapping[str, Any],
    directions: tuple[Direction, ...],
    first: Load,
    seconds: float,
    second: Load,
    every: float,
) -> StepDown:
    """*first* for *seconds* s, then *second*; *told* as the client's ``trial`` is told of the whole.

    The generator itself ends the traffic after the whole duration, whatever happens here. By the time of the change,
    known to lie between two questions, and by that end it is told what the second phase should have sent.
    """
    whole, speed = float(told["duration"]), float(told["clock_speed"])
    try:
        began = ask("begin", rates=told["rates"], directions=told["directions"], duration=whole)
        ask("watch", seconds=seconds / speed, every=seconds / speed)
        changed = ask("change", rates=dict.fromkeys(told["rates"], second.pps), clock_speed=speed)
        # until the generator has ended; the limit is for one that does not
        found = ask("watch", seconds=1.5 * whole / speed + 5, every=every / speed)
        answer = ask("finish", drain=told["drain"], clock_speed=speed)
    except BaseException:
        with contextlib.suppress(TestbedError):
            ask("stop")
        raise
    counted = outcome(answer, first, whole, directions, speed)
    before, after = (_moment(changed[name], began["counters"], directions) for name in ("before", "after"))
    samples = [_moment(item, began["counters"], directions) for item in found]
    ends = [item.offered for item in counted.directions]
    # what was read once sending had ended has no time
    samples = [item for item in samples if all(sent < end for sent, end in zip(item.offered, ends, strict=True))]
    # s of the testbed's clock that the second phase lasted, at least and at most
    least = whole - (changed["answered"] - began["asked"]) * speed
    most = whole - (changed["asked"] - began["answered"]) * speed
    rows, rates = [], []
    for index, row in enumerate(counted.directions):
        sent = (row.offered - after.offered[index], row.offered - before.offered[index])
        rates.append((sent[0] / most if most > 0 else 0.0, sent[1] / least if least > 0 else float("inf")))
        # whatever the first phase sent was enough: it need only be more than the router carries
        short, over = second.pps * max(least, 0.0) - sent[1], sent[0] - second.pps * max(most, 0.0)
        rows.append(replace(row, intended=row.offered + round(max(short, 0.0) - max(over, 0.0))))
    readings = {**counted.readings, "second_load_pps": second.pps, "change_uncertainty": most - least}
    return StepDown(
        replace(counted, directions=tuple(rows), readings=readings),
        second,
        before,
        after,
        tuple(samples),
        (min(low for low, _ in rates), max(high for _, high in rates)),
    )


def _moment(now: Mapping[str, Any], start: Mapping[str, Any], directions: tuple[Direction, ...]) -> Moment:
    def since(port: int, name: str) -> int:
        return max(0, int(now[str(port)][name]) - int(start[str(port)][name]))

    return Moment(
        tuple(since(direction.tx_port, "opackets") for direction in directions),
        tuple(since(direction.rx_port, "ipackets") for direction in directions),
    )


class TrexLive:
    """A :class:`~linerate.counts.live_traffic.LiveTraffic`. *told* as the client's ``trial`` is told, of any load."""

    def __init__(self, ask: AskClient, told: Mapping[str, Any], directions: tuple[Direction, ...]) -> None:
        self._ask, self._told, self._directions = ask, told, directions
        self._speed = float(told["clock_speed"])
        self._start: Mapping[str, Any] = {}

    def start(self, load: Load) -> Sample:
        """See :class:`~linerate.counts.live_traffic.LiveTraffic`."""
        answer = self._ask("begin", rates=self._rates(load), directions=self._told["directions"])
        self._start = answer["counters"]
        return Sample(float(answer["asked"]) * self._speed, 0, 0)

    def change(self, load: Load) -> Sample:
        """See :class:`~linerate.counts.live_traffic.LiveTraffic`."""
        answer = self._ask("change", rates=self._rates(load), clock_speed=self._speed)
        return self._reading(answer["after"], answer["answered"])

    def sample(self) -> Sample:
        """See :class:`~linerate.counts.live_traffic.LiveTraffic`."""
        (answer,) = self._ask("watch", seconds=0.0, every=0.0)
        return self._reading(answer, answer["moment"])

    def wait(self, seconds: float) -> None:
        """As :class:`.LiveTraffic`; in parts, so that each question ends within its limit."""
        left = seconds / self._speed
        while left > 0:
            part = min(left, 5.0)
            self._ask("watch", seconds=part, every=2 * part)
            left -= part

    def stop(self) -> None:
        """See :class:`~linerate.counts.live_traffic.LiveTraffic`."""
        self._ask("stop")

    def _rates(self, load: Load) -> dict[str, float]:
        return dict.fromkeys(self._told["rates"], load.pps)

    def _reading(self, counters: Mapping[str, Any], moment: float) -> Sample:
        found = _moment(counters, self._start, self._directions)
        return Sample(float(moment) * self._speed, sum(found.offered), sum(found.forwarded))
