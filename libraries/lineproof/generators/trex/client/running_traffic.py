# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The client's commands for running traffic: ``begin``, ``change``, ``sample``, ``finish``.

A trial is a begin and a finish; a burst ends by itself; a changing load has the other commands between them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....core.counter_names import group_frames
from .answers import peak_load, peak_load_during
from .library import ClientLibrary
from .service import CounterReading, LoadStep, Refusal, Snapshot, TrialCounts, TrialRequest

CHANGE_DELAY = 0.03
"""Seconds after the server's answer until a new rate is certainly sent: TRex sends a message to its cores, the embedded
server to its sending processes, with a short delay."""

LINK_CHECK_INTERVAL = 0.5
"""Seconds between two checks of the links during a trial (TRex itself checks every 0.5 s)."""

LATE_RATIO, SHORT_TRIAL = 1.01, 0.5
"""A trial that took LATE_RATIO times its duration may have overloaded the generator's CPU; not one shorter than
SHORT_TRIAL s, where 1 % is too little to measure."""

LOAD_PERIOD = 1.05
"""Upper limit in s of TRex's period of a core's load: 100 runs of its main loop of 10 ms and some work."""

SNAPSHOT_SHARES = (0.02, 0.06, 0.1, 0.14, 0.18, 0.82, 0.86, 0.9, 0.94, 0.97, 0.99)
"""Shares of a trial's duration at which the counters are read: they show what is under way."""

READING_GAP = 0.0025
"""Seconds between two of these readings at least: a trial on a fast clock is too short for all of them."""

START_WINDOW = 0.2
"""Seconds in which the first frame is looked for. An idle core of TRex v3.08 looks for messages every 2 ms, after 4 s
every 50 ms (``src/stx/common/trex_dp_core.cpp``), or begins after 0.1 s (``SCHD_OFFSET_DTIME_RX_ENABLED``)."""

MARGIN, MARGIN_SHARE = 0.001, 0.05
"""Seconds of a reading before the first frame and after the last one, and more as a share of the round trip."""

GAP_SHARE = 0.125
"""Share of the round trip between two requests for the counters near the first and the last frame; at least MARGIN."""

START_GAP = 0.005
"""The shortest time between two of these requests until the start is answered: a server nearby has answered by then."""

POLL_INTERVAL, END_POLL_INTERVAL = 0.05, 0.005
"""Seconds between two polls for events during a trial, and near its end."""

POLL_TIME = 5
"""Round trips that a poll may take: events, the links of a pair of ports, loads of the cores."""


@dataclass(slots=True)
class _Traffic:
    """Running traffic. ``sending``: frames/s by port, as they are now; ``involved``: ports that send or receive."""

    trial: TrialRequest
    sending: Mapping[int, float]
    involved: list[int]
    frames: Mapping[int, int]
    """Frames that each port sends at least: rounding of durations may cost one of each stream."""
    around: CounterReading
    """The counters before :attr:`before`."""
    before: CounterReading
    started: float
    asked: float
    first: float = 0.0
    """The server's clock before the first frame."""
    began: float = 0.0
    has_sent: bool = False
    peak_load: float | None = None
    """The highest load of a core so far, in per cent; None: no period was reported."""
    ahead: float = math.inf
    """s by which the server's clock shows more when a request arrives than this machine's when it leaves."""
    snapshots: list[Snapshot] = field(default_factory=list)
    load_since: float = 0.0
    """Time from which the cores' loads count: the start, or the last change of the load."""
    next_link_check: float = 0.0

    def add(self, reading: CounterReading, asked: float) -> None:
        """Keep a *reading* during the sending, which was asked for at *asked*."""
        self.ahead = min(self.ahead, reading.earliest - asked)
        offered, received = (
            {port: reading.since(self.before, port, name) for port in self.involved}
            for name in ("opackets", "ipackets")
        )
        self.snapshots.append(Snapshot(reading.earliest, reading.latest, offered, received))


def _grown(before: CounterReading, after: CounterReading) -> dict[int, dict[str, int]]:
    """By how much the cards' own counters grew: those that did, by port."""
    grown = {}
    for port, counts in after.cards.items():
        was = before.cards.get(port, {})
        if more := {name: count - was[name] for name, count in counts.items() if count > was.get(name, count)}:
            grown[port] = more
    return grown


class RunningTraffic:
    """The part of the client's commands that sends. Times are s of the wall clock, unless stated otherwise."""

    def __init__(self, library: ClientLibrary, cancelled: threading.Event) -> None:
        self._library = library
        library.check_cancelled = self._check_cancelled
        self._cancelled = cancelled
        self._gone = False
        self._held: list[int] = []
        self._streams: dict[int, list[dict[str, Any]]] = {}
        self._counted: list[dict[str, Any]] | None = []
        """The counts of the packet groups until now; empty: of new streams, None: of frames that no trial counted."""
        self._running: _Traffic | None = None
        self._start_delay = 0.0
        """s from the last start's first reading to its first frame."""
        self._clocks = list[tuple[float, float, float, float]]()
        """The first and the last reading: when asked and answered by this machine, and its ends by the server."""

    # -- commands ------------------------------------------------------------------------------------------------------

    def prepare(self, streams: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
        """Replace all streams: by port number, a list of :class:`lineproof.generators.streams.Stream` as data."""
        library = self._connected()
        self._streams, self._counted = dict(streams), []
        library.replace_streams(self._held, streams)
        return {}

    def begin(self, **request: Any) -> LoadStep:
        """Begin a :class:`.service.TrialRequest`: its traffic ends after its duration, or is stopped."""
        return self._begin(TrialRequest(**request))

    def _begin(self, trial: TrialRequest) -> LoadStep:
        self._connected()
        involved, rates = sorted({*trial.rates, *(port for pair in trial.directions for port in pair)}), trial.rates
        count = {
            port: round(rate * (trial.duration or 0.0)) if trial.frames is None else trial.frames
            for port, rate in rates.items()
        }
        least = {port: number - len(self._streams.get(port, (port,))) for port, number in count.items()}
        # outside of what is counted: some cards clear counters by it that the server reads too
        around, before = self._counters(), self._counters(cards=involved)
        self._library.events.clear()
        self._counted = None
        self._running = running = _Traffic(trial, rates, involved, least, around, before, time.time(), time.monotonic())
        limit = -1 if trial.duration is None or trial.frames is not None else trial.duration
        running.first, fresh = self._library.start(rates, limit, self._held, max(START_GAP, self._gap))
        running.began = running.load_since = time.monotonic()
        running.ahead = running.first - running.asked
        running.add(self._kept(fresh, running.asked), running.asked)
        return LoadStep(before, before, running.asked, running.began)

    def change(self, rates: Mapping[int, float]) -> LoadStep:
        """Change to *rates* without a pause. Counters right before, and when the new rates are certainly sent."""
        running = self._require_running()
        before, asked = self._counters(), time.monotonic()
        running.sending = rates
        running.frames = dict.fromkeys(running.sending, 0)  # the caller knows the intended frames now
        self._library.update(running.sending)
        # a fast clock is a simulated one, whose server changes at once
        time.sleep(CHANGE_DELAY / running.trial.clock_speed)
        running.load_since = answered = time.monotonic()
        running.peak_load = None
        return LoadStep(before, self._counters(), asked, answered)

    def sample(self, seconds: float, interval: float) -> list[CounterReading]:
        """Wait *seconds*; counters every *interval* s, each with its ``moment``."""
        running, found = self._require_running(), list[CounterReading]()
        begin = time.monotonic()
        end, due = begin + seconds, begin + interval
        while True:
            self._check_progress(running)
            now = time.monotonic()
            if now >= min(due, end):
                found.append(replace(self._counters(running.trial.group_numbers), moment=time.monotonic()))
                # if reading takes longer than the interval: as often as possible
                due = max(due + interval, time.monotonic())
            if time.monotonic() >= end or self._has_ended(running):
                return found
            time.sleep(max(0.0, min(due, end, time.monotonic() + 0.05) - time.monotonic()))

    def finish(self) -> TrialCounts:
        """Wait for the end of a trial, which has a duration, then for its drain; return what it counted."""
        counts, _ = self._finish()
        return counts

    def _finish(self) -> tuple[TrialCounts, Mapping[str, Any]]:
        """:meth:`finish`, and what the server counted of the packet groups."""
        running, events = self._require_running(), self._library.events
        trial, duration, self._running = running.trial, running.trial.duration or 0.0, None
        self._await_end(running, duration / trial.clock_speed)
        finished = self._has_ended(running)
        if not finished:
            self._library.stop_traffic(list(running.sending))
        ended = max(events.ended.values()) if finished else time.monotonic()
        while self._library.under_way:
            self._keep_reading(running, POLL_INTERVAL)
        first = self._counters()
        took = (ended - running.load_since) * trial.clock_speed
        self._record_core_load(running, took)
        after, waited = wait_for_drain(
            first, self._counters, running.before, trial.directions, running.frames, trial.drain, trial.clock_speed
        )
        if trial.clock_speed == 1 and SHORT_TRIAL <= duration < took / LATE_RATIO < 2 * LOAD_PERIOD / LATE_RATIO:
            self._record_late_core_load(running, ended, took)
        if waited >= LOAD_PERIOD:
            # frames are missing; the period in which the sending ended has been reported since
            self._record_core_load(running, took + waited + LOAD_PERIOD)
        self._library.check_links(running.involved)
        around = self._counters(trial.group_numbers, running.involved)
        counts = TrialCounts(
            started=running.started,
            first=running.first,
            before=running.before,
            at_end=first,
            after=after,
            finished=finished,
            drained=waited,
            clocks=self._clocks_went(),
            links={port: port not in events.links_down for port in running.involved},
            cpu_util=running.peak_load,
            complaints=tuple(events.complaints),
            clock_jump=(time.time() - running.started) - (time.monotonic() - running.asked),
            snapshots=running.snapshots,
            cards=_grown(running.before, around),
            received_around={port: around.since(running.around, port, "ipackets") for port in running.involved},
        )
        return counts, around.groups

    def idle(self, seconds: float, keep: int = 0) -> dict[int, dict[str, Any]]:
        """``frames`` that each held port receives in *seconds* without traffic; up to *keep* of them are ``kept``.

        ``group_frames``: those to a group among them, as the card itself counts them.
        """
        library, held = self._connected(), self._held
        before = self._counters(cards=held)
        with library.capturing(held, keep * len(held)) as capture:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0:
                self._check_cancelled()
                time.sleep(min(left, POLL_INTERVAL))
            after, of_cards = self._counters(), _grown(before, self._counters(cards=held))
            kept = library.captured(capture, keep * len(held))
        return {
            port: {
                "frames": after.since(before, port, "ipackets"),
                "kept": [data.hex() for data in kept.get(port, ())[-keep:]],
                "group_frames": group_frames(of_cards.get(port, {})),
            }
            for port in held
        }

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _require_running(self) -> _Traffic:
        if self._running is None:
            raise Refusal("request", "no traffic is running; expected a 'begin' first")
        return self._running

    def _has_ended(self, running: _Traffic) -> bool:
        return all(port in self._library.events.ended for port in running.sending)

    def _check_progress(self, running: _Traffic) -> None:
        """Check events, links and core load. Raises Refusal if the trial is lost."""
        self._library.poll_events()
        self._check_cancelled()
        if self._has_ended(running):
            return
        events = self._library.events
        if self._library.lost:
            raise Refusal("lost", "; ".join(events.complaints) or "the server no longer answers")
        if any("taken" in item for item in events.complaints):
            raise Refusal("taken", "; ".join(events.complaints))
        if time.monotonic() >= running.next_link_check or events.links_in_doubt:
            events.links_in_doubt = False
            self._library.check_links(running.involved)
            if (seconds := time.monotonic() - running.load_since) >= 2 * LOAD_PERIOD:
                self._record_core_load(running, seconds)
            running.next_link_check = time.monotonic() + LINK_CHECK_INTERVAL

    def _record_core_load(self, running: _Traffic, seconds: float) -> None:
        """Record the load of the cores in the periods that are completely within the last *seconds*."""
        self._keep_load(running, peak_load(self._library.core_loads(), seconds / LOAD_PERIOD - 1))

    @staticmethod
    def _keep_load(running: _Traffic, load: float | None) -> None:
        if load is not None:
            running.peak_load = max(running.peak_load or 0.0, load)

    def _record_late_core_load(self, running: _Traffic, ended: float, took: float) -> None:
        """Record the core load of a short trial that took too long, where the periods also cover other times.

        A core that was never idle in a trial of less than two periods shows less than its real load. So wait for the
        period in which the trial *ended*, and count its work as far as possible for the *took* s of the trial.
        """
        first = self._library.core_loads()
        while (loads := self._library.core_loads()) == first and time.monotonic() < ended + LOAD_PERIOD:
            self._check_cancelled()
            time.sleep(POLL_INTERVAL)
        self._keep_load(running, peak_load_during(loads, time.monotonic() - ended, took, LOAD_PERIOD))

    def _await_end(self, running: _Traffic, seconds: float) -> None:
        """Wait until all ports have ended, due *seconds* after the start; at most 1.5 x *seconds* + 5 s.

        Meanwhile the counters are read: for the first frame, at SNAPSHOT_SHARES of the time, and for the last frame.
        """
        events, begin = self._library.events, running.snapshots[0].earliest + self._start_delay
        moments, last_asked = [begin + share * seconds for share in SNAPSHOT_SHARES], -math.inf
        while not self._has_ended(running):
            now, late = time.monotonic(), time.monotonic() - running.began - seconds
            if late >= 0.5 * seconds + 5:
                return
            # by the server's clock: when a request arrives that leaves now, and when the next one shall
            arrival, way = now + running.ahead, self._round_trip
            last = self._next_reading(running, seconds, last_asked)
            # where one waits for the answer to another: none that is under way when the one leaves that shows the end
            left = min([*(moment for moment in moments if moment < last - 1.25 * way), last]) - arrival
            if left <= 0:
                self._library.ask_counters(self._held)
                last_asked, moments = arrival, [moment for moment in moments if moment > arrival + READING_GAP]
            elif left > POLL_TIME * way and not self._library.under_way:
                self._check_progress(running)
            # poll an overdue trial less often: the machine is busy
            wait = min(POLL_INTERVAL, max(END_POLL_INTERVAL, -late, late / 100))
            wait = min(wait, max(0.0, now + left - time.monotonic()))
            if self._library.under_way:
                self._keep_reading(running, wait)
                continue
            with events.changed:
                if not self._has_ended(running):
                    events.changed.wait(wait)

    def _keep_reading(self, running: _Traffic, wait: float) -> None:
        """Keep the next reading that was asked for, if it comes within *wait* s."""
        self._check_cancelled()
        if come := self._library.counters_come(self._held, wait):
            asked, reading = come
            running.add(self._kept(reading, asked), asked)

    def _next_reading(self, running: _Traffic, seconds: float, asked: float) -> float:
        """When to read the counters for the first frame, or the last one, by the server's clock; infinite: it was read.

        *asked*: when the last reading arrives that was asked for. The one after the last frame is due when the rest of
        the frames is sent at the same rate as all of them in *seconds*.
        """

        def unsent(reading: Snapshot, port: int) -> int:
            return running.frames[port] - reading.offered[port]

        def due(reading: Snapshot) -> float:
            share = max(unsent(reading, port) / max(1, running.frames[port]) for port in running.sending)
            return reading.latest + share * seconds

        last, started = running.snapshots[-1], running.snapshots[0].earliest
        none_sent = any(unsent(last, port) == running.frames[port] for port in running.sending)
        margin, latest = MARGIN + MARGIN_SHARE * self._round_trip, max(last.latest, asked)
        passed = latest - started
        if none_sent and passed < START_WINDOW:
            return max(latest + max(self._gap, passed / 20), started + self._start_delay - margin)
        if not running.has_sent:
            running.has_sent, self._start_delay = True, max(0.0, due(last) - seconds - started)
        if all(unsent(last, port) <= 0 for port in running.sending):
            return math.inf
        # frames leave in lumps: a reading just before one shows too few
        gap = max(self._gap, (passed - self._start_delay - seconds) / 4)
        return max(min(map(due, running.snapshots[-4:])) + margin, latest + gap)

    # -- clocks --------------------------------------------------------------------------------------------------------

    @property
    def _round_trip(self) -> float:
        """s of the last request for counters."""
        asked, answered, *_ = self._clocks[-1]
        return answered - asked

    @property
    def _gap(self) -> float:
        """Seconds between two requests for the counters near the first and the last frame."""
        return max(MARGIN, GAP_SHARE * self._round_trip)

    def _clocks_went(self) -> tuple[float, float, float]:
        """By how many s the server's clock went on since the first reading, and this machine's at least and at most."""
        (asked, answered, _, latest), (last_asked, last_answered, earliest, _) = self._clocks[0], self._clocks[-1]
        return earliest - latest, last_asked - answered, last_answered - asked

    # -- counters and the connection -----------------------------------------------------------------------------------

    def _counters(self, groups: Sequence[int] = (), cards: Sequence[int] = ()) -> CounterReading:
        self._check_cancelled()
        library, asked = self._connected(), time.monotonic()
        return self._kept(library.read_counters(self._held, groups, cards), asked)

    def _kept(self, reading: CounterReading, asked: float) -> CounterReading:
        """Return *reading*, asked for at *asked*, as the last one of the clocks."""
        self._clocks[1:] = [(asked, time.monotonic(), reading.earliest, reading.latest)]
        return reading

    def _reachable(self) -> bool:
        return not self._gone and self._library.reachable

    def _connected(self) -> ClientLibrary:
        if self._gone:
            raise Refusal("lost", "the connection was lost before")
        if not self._library.reachable:
            raise Refusal("lost", f"not connected to the server: {self._library.disconnect_cause}")
        return self._library

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            self._library.stop_traffic(self._held)
            raise Refusal("cancelled", "stopped on request")


MIN_WAIT = 0.1
"""Minimum in s of the wall clock of a drain with missing frames, for every clock speed."""

QUIET_TIME = 1.6
"""Seconds of the testbed's clock without a further frame after which none is expected: longer than the second in which
cards and servers update their counters."""

STEADY_TIME = 0.1
"""Seconds of the testbed's clock without a change of counters, if fewer frames than at least were sent and none is
missing: the sender's counters may lag."""


def wait_for_drain(
    first: CounterReading,
    count: Callable[[], CounterReading],
    before: CounterReading,
    directions: Sequence[tuple[int, int]],
    least: Mapping[int, int],
    drain: float,
    clock_speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[CounterReading, float]:
    """The counters when no frame is in transit any more, and the wall s of the wait.

    *first*: counters after sending, *before*: counters before it, *count* reads them again.
    *directions*: pairs of a sending and a receiving port; *least*: frames that each port sends at least.

    If a frame of any direction is missing, the wait lasts as long as frames come, until QUIET_TIME without any; at most
    *drain* (s of the testbed's clock; RFC 2544 23: 2 s for residual frames), at least MIN_WAIT. Extra frames of one
    direction do not replace missing ones of another. If none is missing there is no wait.
    """
    began = changed = clock()
    limit, steady = max(drain / clock_speed, MIN_WAIT), max(STEADY_TIME / clock_speed, 0.005)
    quiet = max(QUIET_TIME / clock_speed, MIN_WAIT)
    now = first
    last: tuple[tuple[int, int], ...] = ()
    while True:
        found = tuple((now.since(before, tx, "opackets"), now.since(before, rx, "ipackets")) for tx, rx in directions)
        moment = clock()
        if found != last:
            last, changed = found, moment
        complete = all(received >= sent for sent, received in found) and (
            all(sent >= least[tx] for (tx, _), (sent, _) in zip(directions, found, strict=True))
            or moment - changed >= steady
        )
        if complete or moment - began >= limit or moment - changed >= quiet:
            return now, clock() - began
        # the longer nothing comes, the less often it is looked for
        still = moment - changed
        sleep(min(max(MIN_WAIT, still) / 5, quiet - still, limit - (moment - began)))
        now = count()


UPDATE_PERIOD = 0.6
"""Seconds after which TRex has certainly counted what it received before: ``total_max``, and whether the bucket 0 is
there, follow every 0.5 s of its main loop (``publish_async_data``)."""


def group_counts(answer: Mapping[str, Any], group: int, tx_port: int, rx_port: int) -> dict[str, Any] | None:
    """Counts of *group*, sent by *tx_port* and received at *rx_port*; None without a report."""
    flow = (answer.get("flow_stats") or {}).get(str(group))
    delays = (answer.get("latency") or {}).get(str(group))
    if not flow or not delays:
        return None
    measured, errors = delays.get("lat") or {}, delays.get("er") or {}
    least = measured.get("total_min")
    received = {int(port): int(frames or 0) for port, frames in (flow.get("rp") or {}).items()}
    return {
        "tx_port": tx_port,
        "rx_port": rx_port,
        "sent": int((flow.get("tp") or {}).get(str(tx_port)) or 0),
        "received": received.get(rx_port, 0),
        "mean": float(measured.get("average") or 0.0),
        "maximum": float(measured.get("total_max") or 0.0),
        "minimum": float(least) if least else None,
        "histogram": {str(key): int(count) for key, count in (measured.get("histogram") or {}).items() if count},
        "hdrh": str(measured.get("hdrh") or ""),
        "out_of_order": int(errors.get("ooo") or 0),
        "duplicates": int(errors.get("dup") or 0),
        "elsewhere": sum(frames for port, frames in received.items() if port != rx_port),
    }


COUNT_PERIOD = 0.05
"""Seconds in which the core that counts probe frames has taken those that the card has counted."""


def all_back(found: Mapping[str, Any]) -> bool:
    """Return whether as many frames of :func:`counted_since` came as were sent."""
    return bool(found["received"] + found["elsewhere"] >= found["sent"])


COUNTS = ("sent", "received", "out_of_order", "duplicates", "elsewhere")
"""Fields of :func:`group_counts` that only grow until the streams are removed, also from one trial to the next."""


def counted_since(earlier: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what :func:`group_counts` of each group grew by since *earlier*, without times; empty: by all of it.

    Nothing, if not the same directions are reported, or a count fell.
    """
    earlier = earlier or [{**row, **dict.fromkeys(COUNTS, 0)} for row in now]
    directions, before = ([(row["tx_port"], row["rx_port"]) for row in rows] for rows in (now, earlier))
    if directions != before:
        return []
    groups = []
    for row, was in zip(now, earlier, strict=True):
        counts = {key: row[key] - was[key] for key in COUNTS}
        if min(counts.values()) < 0:
            return []
        groups.append({"tx_port": row["tx_port"], "rx_port": row["rx_port"], **counts})
    return groups


EMPTY_HISTOGRAM = 80
"""Characters of a fine histogram that may be empty, as those of a TRex with ``--software`` and several cores are."""


def all_placed(found: Mapping[str, Any]) -> bool:
    """Return whether each received frame of :func:`group_counts` is in a fine bucket, or one of 10 µs or more."""
    placed = sum(frames for key, frames in found["histogram"].items() if key != "0")
    return len(found["hdrh"]) > EMPTY_HISTOGRAM or bool(placed == found["received"] + found["elsewhere"])
