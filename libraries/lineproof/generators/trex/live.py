"""Traffic that is attended while it runs, or whose load changes, sent step by step through the client's process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ...core.step_down import CountSnapshot, Sample, StepDown
from ...core.trial import DURING_READING, During, Load
from ...errors import TestbedError
from ..base import Direction
from .client.service import TrialRequest
from .outcomes import make_outcome

BEGIN_WAIT = 0.1
"""Seconds of the testbed's clock from the answer to the start to a look whether every port sends, and between looks."""

STOP_LIMIT = 5.0
"""Seconds for the client to stop the traffic of a trial that failed or was interrupted; its end stops it too."""


AskClient = Callable[..., Any]
"""Sends a command with its arguments to the client's process, and returns the answer. Raises TestbedError."""


def trial_during(ask: AskClient, trial: TrialRequest, during: During, limit: float) -> dict[str, Any]:
    """The answer to *trial*, without latency, in which *during* is called.

    Adds ``readings`` with DURING_READING to the answer. *limit*: s for the end of the trial.
    """
    speed, readings = trial.clock_speed, {}
    try:
        began = ask("begin", **asdict(replace(trial, groups={})))

        def since_start() -> float:
            # both processes read the machine's monotonic clock
            return (time.monotonic() - float(began["asked"])) * speed

        while since_start() < (trial.duration or 0.0):
            _wait(ask, BEGIN_WAIT / speed)
            (now,) = ask("sample", seconds=0.0, interval=0.0)
            if all(now[port]["opackets"] > began["counters"][port]["opackets"] for port in trial.rates):
                during(lambda seconds: _wait(ask, seconds / speed))
                readings[DURING_READING] = since_start()
                break
        answer = ask("finish", limit=limit)
    except BaseException:
        with contextlib.suppress(TestbedError):
            ask("stop", limit=STOP_LIMIT)
        raise
    return {**answer, "readings": readings}


def _wait(ask: AskClient, seconds: float) -> None:
    """Wait *seconds* of real time while the client watches the traffic; in parts, so that each call keeps its limit."""
    while seconds > 0:
        part = min(seconds, 5.0)
        ask("sample", seconds=part, interval=2 * part)
        seconds -= part


def step_down(
    ask: AskClient,
    trial: TrialRequest,
    directions: tuple[Direction, ...],
    first: Load,
    first_duration: float,
    second: Load,
    interval: float,
) -> StepDown:
    """*first* for *first_duration* s, then *second*; *trial*: that of both phases.

    The generator itself ends the traffic after the whole duration. The change lies between its request and its answer;
    that time and the end give the frames that the second phase should have sent.
    """
    duration, speed = trial.duration or 0.0, trial.clock_speed
    try:
        began = ask("begin", **asdict(replace(trial, groups={})))
        ask("sample", seconds=first_duration / speed, interval=first_duration / speed)
        changed = ask("change", rates=dict.fromkeys(trial.rates, second.pps))
        # until the generator has ended, with a limit
        found = ask("sample", seconds=1.5 * duration / speed + 5, interval=interval / speed)
        answer = ask("finish")
    except BaseException:
        with contextlib.suppress(TestbedError):
            ask("stop", limit=STOP_LIMIT)
        raise
    outcome = make_outcome(answer, first, duration, directions, speed)
    before, after = (_snapshot(changed[name], began["counters"], directions) for name in ("before", "after"))
    samples = [_snapshot(item, began["counters"], directions) for item in found]
    ends = [item.offered for item in outcome.directions]
    # counts read after the end of sending give no time
    samples = [item for item in samples if all(sent < end for sent, end in zip(item.offered, ends, strict=True))]
    # duration of the second phase, s of the testbed's clock
    shortest = duration - (changed["answered"] - began["asked"]) * speed
    longest = duration - (changed["asked"] - began["answered"]) * speed
    rows, rates = [], []
    for index, row in enumerate(outcome.directions):
        sent = (row.offered - after.offered[index], row.offered - before.offered[index])
        rates.append((sent[0] / longest if longest > 0 else 0.0, sent[1] / shortest if shortest > 0 else float("inf")))
        # any count of the first phase is enough: it only has to overload the router
        short, over = second.pps * max(shortest, 0.0) - sent[1], sent[0] - second.pps * max(longest, 0.0)
        rows.append(replace(row, intended=row.offered + round(max(short, 0.0) - max(over, 0.0))))
    readings = {**outcome.readings, "second_load_pps": second.pps, "change_uncertainty": longest - shortest}
    outcome = replace(outcome, directions=tuple(rows), readings=readings)
    second_rate = (min(low for low, _ in rates), max(high for _, high in rates))
    return StepDown(outcome, second, before, after, tuple(samples), second_rate)


def _snapshot(now: Mapping[Any, Any], start: Mapping[Any, Any], directions: tuple[Direction, ...]) -> CountSnapshot:
    def since(port: int, name: str) -> int:
        return max(0, int(now[port][name] - start[port][name]))

    return CountSnapshot(
        tuple(since(direction.tx_port, "opackets") for direction in directions),
        tuple(since(direction.rx_port, "ipackets") for direction in directions),
    )


class TrexLive:
    """A :class:`~lineproof.core.step_down.LiveTraffic`. *trial*: one of any load that has no duration."""

    def __init__(self, ask: AskClient, trial: TrialRequest, directions: tuple[Direction, ...]) -> None:
        self._ask, self._trial, self._directions = ask, trial, directions
        self._speed = trial.clock_speed
        self._start: Mapping[Any, Any] = {}

    def start(self, load: Load) -> Sample:
        """See :class:`~lineproof.core.step_down.LiveTraffic`."""
        trial = replace(self._trial, rates=dict.fromkeys(self._trial.rates, load.pps))
        answer = self._ask("begin", **asdict(trial))
        self._start = answer["counters"]
        return Sample(float(answer["asked"]) * self._speed, 0, 0)

    def sample(self) -> Sample:
        """See :class:`~lineproof.core.step_down.LiveTraffic`."""
        (answer,) = self._ask("sample", seconds=0.0, interval=0.0)
        found = _snapshot(answer, self._start, self._directions)
        return Sample(float(answer["moment"]) * self._speed, sum(found.offered), sum(found.forwarded))

    def wait(self, seconds: float) -> None:
        """See :class:`~lineproof.core.step_down.LiveTraffic`."""
        _wait(self._ask, seconds / self._speed)

    def stop(self) -> None:
        """See :class:`~lineproof.core.step_down.LiveTraffic`."""
        self._ask("stop")
