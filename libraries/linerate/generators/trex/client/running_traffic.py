# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Traffic from its begin to its end, in steps: the client's commands ``begin``, ``change``, ``watch``, ``finish``.

A trial is a begin and a finish; a burst ends by itself; a load that changes has the others between them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .drain import drained
from .library import ClientLibrary
from .messages import busiest, busy_in
from .service import Refusal
from .stream_objects import in_tempo

END_DELAY = 0.015
"""Seconds that may pass from the last frame to the server's message of it, besides the message's own way: TRex's main
loop looks every 10 ms, the embedded server every 4 ms."""

CHANGED = 0.03
"""Seconds after the server's answer within which a new rate is surely sent: TRex tells its cores by a message, the
embedded server its sending processes a moment ahead."""

LOOK = 0.5
"""Seconds between two looks at the links during a trial (TRex itself looks every 0.5 s)."""

LATE, SHORT = 1.01, 0.5
"""A trial that took so many times its duration may be one that the generator's CPU could not keep up with; not where it
is shorter than so many s, of which 1 % is nothing."""

SECOND = 1.05
"""Seconds, at most, over which TRex takes a core's load: 100 rounds of its main loop, of 10 ms and some work."""

PAUSE, LAST_PAUSE = 0.05, 0.005
"""Seconds between two looks at what happened during a trial: as a rule, and when its end is due."""


@dataclass(slots=True)
class _Running:
    """Traffic under way. ``duration``: s of the testbed's clock until it ends by itself; None: it must be stopped."""

    sending: dict[int, float]
    directions: list[tuple[int, int]]
    involved: list[int]
    duration: float | None
    frames: Mapping[int, int]
    before: dict[str, Any]
    trip: float
    started: float
    asked: float
    began: float = 0.0
    busiest: float = 0.0
    judged: float = 0.0
    """Since when the cores' loads count: a change is begun with whatever load there was."""
    look: float = 0.0


class RunningTraffic(ABC):
    """The part of the client's session that sends. Times are s of the wall clock, but where they say otherwise."""

    _link: ClientLibrary
    _trip: float
    _streams: dict[str, list[dict[str, Any]]]

    def __init__(self) -> None:
        self._running: _Running | None = None

    # -- commands

    def begin(
        self,
        rates: Mapping[str, float],
        directions: list[tuple[int, int]],
        duration: float | None = None,
        frames: int | None = None,
        intended: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Send *rates* (frames/s per port number) for *duration* s of the testbed's clock, or until told otherwise.

        *frames*: how many each port sends in all, of streams that end by themselves within *duration*. *intended*: how
        many of each port are due, where that is not rate by duration.
        """
        self._connected()
        sending = {int(port): float(rate) for port, rate in rates.items()}
        involved = sorted({*sending, *(port for direction in directions for port in direction)})
        count = {port: round(rate * (duration or 0.0)) if frames is None else frames for port, rate in sending.items()}
        count |= {int(port): due for port, due in (intended or {}).items()}
        turns = {
            port: in_tempo(self._streams[str(port)], rate)
            for port, rate in sending.items()
            if any(item.get("tempo") for item in self._streams.get(str(port), ()))
        }
        if turns:
            self._link.streams(list(turns), turns)
        self._link.listen()
        self._link.watch.clear()
        before = self._counters()
        self._running = running = _Running(
            sending,
            directions,
            involved,
            duration,
            count,
            before,
            self._trip,
            time.time(),
            time.monotonic(),
        )
        running.began = self._link.start(
            sending, -1 if duration is None or frames is not None else duration, as_they_are=turns
        )
        running.judged = running.began
        return {"counters": before, "asked": running.asked, "answered": running.began}

    def change(self, rates: Mapping[str, float], clock_speed: float = 1.0) -> dict[str, Any]:
        """Go over to *rates* without a pause. Counters from right before, and from when it was surely done."""
        running = self._now_running()
        before, asked = self._counters(), time.monotonic()
        running.sending = {int(port): float(rate) for port, rate in rates.items()}
        running.frames = dict.fromkeys(running.sending, 0)  # how many is for others to say now
        self._link.update(running.sending)
        # a clock that runs fast is a simulated one, whose server changes at once
        time.sleep(CHANGED / clock_speed)
        running.judged = answered = time.monotonic()
        running.busiest = 0.0
        return {"before": before, "after": self._counters(), "asked": asked, "answered": answered}

    def watch(self, seconds: float, every: float) -> list[dict[str, Any]]:
        """Let *seconds* pass; counters of every so many of them, each with its ``moment`` on this machine's clock."""
        running, found = self._now_running(), []
        begin = time.monotonic()
        end, due = begin + seconds, begin + every
        while True:
            self._heed(running)
            now = time.monotonic()
            if now >= min(due, end):
                found.append({**self._counters(), "moment": time.monotonic()})
                # where counting takes longer than that, as often as it can
                due = max(due + every, time.monotonic())
            if time.monotonic() >= end or self._done(running):
                return found
            time.sleep(max(0.0, min(due, end, time.monotonic() + 0.05) - time.monotonic()))

    def finish(self, drain: float = 2.0, clock_speed: float = 1.0) -> dict[str, Any]:
        """The end of the traffic, at once where it has none of its own; the drain, and the counts.

        Answers counters before and after per port, global readings, ``elapsed`` (wall s of sending, at least and at
        most), ``finished``, ``links`` (per port: up whenever it was looked at) and what the server complained of.
        ``cpu_util``: the busiest that one of the generator's cores was in a second of it, in per cent; of a load that
        changed, since the last change.
        """
        running = self._now_running()
        self._running = None
        if running.duration is None:
            self._heed(running)
            self._link.halt(list(running.sending))
            finished, ended = True, time.monotonic()
        else:
            self._await_end(running, running.duration / clock_speed)
            finished = self._done(running)
            if not finished:
                self._link.halt(list(running.sending))
            ended = max(self._link.watch.done.values()) if finished else time.monotonic()
        first = self._counters()
        # sending began between the start's request and its answer, and ended before its message came
        latency = END_DELAY + max(running.trip, self._trip)
        took = (ended - running.judged) * clock_speed
        self._heed_cores(running, took)
        after, waited = drained(
            first, self._counters, running.before, running.directions, running.frames, drain, clock_speed
        )
        if clock_speed == 1 and SHORT <= (running.duration or 0.0) < took / LATE < 2 * SECOND / LATE:
            self._heed_all(running, ended, took)
        down = {item["index"] for item in self.ports(running.involved) if not item["link_up"]} | self._link.watch.down
        return {
            "started": running.started,
            "clock_jump": (time.time() - running.started) - (time.monotonic() - running.asked),
            "elapsed": [max(0.0, ended - latency - running.began), ended - running.asked],
            "ended": ended,
            "finished": finished,
            "drained": waited,
            "before": running.before,
            "after": after,
            "links": {str(port): port not in down for port in running.involved},
            "complaints": list(self._link.watch.complaints),
            "cpu_util": running.busiest,
            "rx_cpu_util": float(first["global"].get("m_rx_cpu_util", 0)),
        }

    def burst(
        self,
        streams: Mapping[str, list[dict[str, Any]]],
        frames: int,
        rates: Mapping[str, float],
        directions: list[tuple[int, int]],
        clock_speed: float = 1.0,
        drain: float = 2.0,
    ) -> dict[str, Any]:
        """Send *frames* frames of each port's *streams*, which end by themselves, and put back what was prepared."""
        prepared = self._streams
        try:
            self.prepare(streams)
            self.begin(rates, directions, frames / min(rates.values()), frames)
            return self.finish(drain, clock_speed)
        finally:
            self._streams = prepared
            if self._reachable():
                self.prepare(prepared)

    def forget(self) -> None:
        """Nothing is under way any more: it was stopped otherwise."""
        self._running = None

    # -- while it runs

    def _now_running(self) -> _Running:
        if self._running is None:
            raise Refusal("request", "no traffic is under way; expected a 'begin' first")
        return self._running

    def _done(self, running: _Running) -> bool:
        return all(port in self._link.watch.done for port in running.sending)

    def _heed(self, running: _Running) -> None:
        """Note the generator's load and the links; raise Refusal where the trial is lost."""
        self._link.listen()
        self._check_cancelled()
        if self._done(running):
            return
        if self._link.lost:
            raise Refusal("lost", "; ".join(self._link.watch.complaints) or "the server fell silent")
        if any("taken" in item for item in self._link.watch.complaints):
            raise Refusal("taken", "; ".join(self._link.watch.complaints))
        if time.monotonic() >= running.look or self._link.watch.doubtful:
            self._link.watch.doubtful = False
            for port in running.involved:
                self._link.look(port)
            if (seconds := time.monotonic() - running.judged) >= 2 * SECOND:
                self._heed_cores(running, seconds)
            running.look = time.monotonic() + LOOK

    def _heed_cores(self, running: _Running, seconds: float) -> None:
        """Note how busy the cores were in those seconds that lie wholly within the last so many."""
        running.busiest = max(running.busiest, busiest(self._link.cores(), seconds / SECOND - 1))

    def _heed_all(self, running: _Running, ended: float, took: float) -> None:
        """Count all that the cores did while sending, where the seconds that are told hold other times as well.

        A core that was never idle in a trial that *took* less than two of them reads less. This one took longer than it
        should, and it must be known whether that was why: the second in which it *ended* is waited for.
        """
        told = self._link.cores()
        while (known := self._link.cores()) == told and time.monotonic() < ended + SECOND:
            self._check_cancelled()
            time.sleep(PAUSE)
        running.busiest = max(running.busiest, busy_in(known, time.monotonic() - ended, took, SECOND))

    def _await_end(self, running: _Running, seconds: float) -> None:
        """Wait until all ports are done, which is due *seconds* after they began, or half as long again and 5 s."""
        due, watch = running.began + seconds, self._link.watch
        while True:
            self._heed(running)
            late = time.monotonic() - due
            if self._done(running) or late >= 0.5 * seconds + 5:
                return
            with watch.changed:
                if not self._done(running):
                    # one long overdue is looked at less often: it is late because it is busy
                    watch.changed.wait(min(PAUSE, max(LAST_PAUSE, -late, late / 100)))

    # -- of the session

    @abstractmethod
    def prepare(self, streams: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Replace all streams."""

    @abstractmethod
    def ports(self, ports: list[int] | None = None) -> list[dict[str, Any]]:
        """The ports as they are."""

    @abstractmethod
    def _counters(self) -> dict[str, Any]: ...

    @abstractmethod
    def _connected(self) -> Any: ...

    @abstractmethod
    def _reachable(self) -> bool: ...

    @abstractmethod
    def _check_cancelled(self) -> None: ...
