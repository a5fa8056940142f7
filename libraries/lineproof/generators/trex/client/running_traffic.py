"""The client's commands about traffic: a trial, whose load may change once, and listening without traffic."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....core.counter_names import group_frames
from .answers import peak_load, peak_load_during
from .library import ClientLibrary, Survey
from .service import CounterReading, LoadChange, Refusal, TrialCounts, TrialRequest

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

CAPTURED = 1.25
"""Frames that a capture of several ports keeps, as a ratio to those that are wanted of all together."""

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
    earlier: Survey
    """Before the start: its last reading are the counters then."""
    started: float
    """When the start was asked for, s since the epoch."""
    first: float
    """The server's clock before the first frame."""
    asked: float
    began: float
    """When the start was asked for, and when it was answered."""
    load_since: float
    """Time from which the cores' loads count: the start, or the last change of the load."""
    has_sent: bool = False
    peak_load: float | None = None
    """The highest load of a core so far, in per cent; None: no period was reported."""
    ahead: float = math.inf
    """s by which the server's clock shows more when a request arrives than this machine's when it leaves."""
    snapshots: list[CounterReading] = field(default_factory=list)
    next_link_check: float = 0.0

    @property
    def before(self) -> CounterReading:
        """The counters before the start."""
        return self.earlier.last

    def add(self, reading: CounterReading) -> None:
        """Keep a *reading* during the sending."""
        self.ahead = min(self.ahead, reading.earliest - reading.asked)
        self.snapshots.append(reading)

    def unsent(self, reading: CounterReading) -> float:
        """Return the share of its frames that a port had still to send, of the port with most of them."""
        sent = {port: reading.since(self.before, port, "opackets") for port in self.sending}
        return max((self.frames[port] - frames) / max(1, self.frames[port]) for port, frames in sent.items())

    def keep_loads(self, loads: Sequence[Sequence[float]], seconds: float) -> None:
        """Keep the highest of the *loads* of the cores in the periods that are completely within the last *seconds*."""
        self.keep_load(peak_load(loads, seconds / LOAD_PERIOD - 1))

    def keep_load(self, load: float | None) -> None:
        """Keep the *load* of a core if it is the highest so far."""
        if load is not None:
            self.peak_load = max(self.peak_load or 0.0, load)


class RunningTraffic:
    """The commands about traffic. Counters are totals; times are s of the wall clock, unless stated otherwise."""

    def __init__(self, server: ClientLibrary, announce: Callable[[float], None]) -> None:
        """Drive *server*. *announce* is called once every port sends, with the time that the start was asked for."""
        self._server, self._announce = server, announce
        self._streams: Mapping[int, Sequence[Mapping[str, Any]]] = {}
        self._start_delay = 0.0
        """s from the last start's first reading to its first frame."""
        self._readings = list[CounterReading]()
        """The first and the last one."""

    # -- commands ------------------------------------------------------------------------------------------------------

    def prepare(self, streams: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Replace all streams: by port number, a list of :class:`lineproof.generators.streams.Stream` as data."""
        self._streams = streams
        lacking = [port for port, of_port in streams.items() if not all(stream["destination"] for stream in of_port)]
        self._server.find_destinations(sorted(lacking))
        self._server.replace_streams(streams)
        return {}

    def trial(self, **request: Any) -> TrialCounts:
        """Run a :class:`.service.TrialRequest`; return what it counted, with its frames and its packet groups."""
        trial, server = TrialRequest(**request), self._server
        receivers = sorted({port for _, port in trial.directions})
        # one capture has them all, and its last frames may be a few more of one port
        most = math.ceil(trial.keep * len(receivers) * (CAPTURED if len(receivers) > 1 else 1))
        with server.capturing(receivers, most) as fetch:
            if trial.groups:
                server.replace_streams(self._streams)  # to remove streams resets the counts of their groups
            running = self._begin(trial)
            change = self._change(running) if trial.later_rates else None
            counts, groups = self._finish(running)
            latency = self._latency(trial, groups)
            kept = _by_port(fetch(), receivers, trial.keep)
        return replace(counts, latency=latency, frames=kept if trial.keep else {}, change=change)

    def _begin(self, trial: TrialRequest) -> _Traffic:
        rates, server = trial.rates, self._server
        involved = sorted({*rates, *(port for pair in trial.directions for port in pair)})
        count = {
            port: round(rate * trial.duration) if trial.frames is None else trial.frames for port, rate in rates.items()
        }
        least = {port: number - len(self._streams.get(port, (port,))) for port, number in count.items()}
        earlier = self._survey(involved)
        server.events.clear()
        server.events.links_down |= earlier.links_down
        limit = trial.duration if trial.frames is None else -1
        first, fresh = server.start(rates, limit, max(START_GAP, self._gap))
        asked, began = fresh.asked, time.monotonic()
        started = time.time() - (time.monotonic() - asked)
        running = _Traffic(trial, rates, involved, least, earlier, started, first, asked, began, began)
        running.ahead, running.next_link_check = first - asked, began + LINK_CHECK_INTERVAL
        running.add(self._noted(fresh))
        return running

    def _change(self, running: _Traffic) -> LoadChange:
        """Change to the later rates, in time and without a pause; return the counters then, and until the end.

        Where the sending has ended already, as with a fast clock on a busy machine, nothing is sent at them.
        """
        trial, speed = running.trial, running.trial.clock_speed
        self._sample(running, trial.change_after / speed)
        before, asked = self._counters(), time.monotonic()
        running.sending = trial.later_rates
        running.frames = dict.fromkeys(running.sending, 0)  # the driver knows the intended frames
        try:
            self._server.update(running.sending)
        except Refusal:
            self._server.poll_events()
            self._server.await_events()
            if not self._has_ended(running):
                raise
        # a fast clock is a simulated one, whose server changes at once
        time.sleep(CHANGE_DELAY / speed)
        running.load_since = answered = time.monotonic()
        running.peak_load = None
        after = self._counters()
        # until the generator itself has ended, after the whole duration, with a limit
        samples = self._sample(running, 1.5 * trial.duration / speed + 5, trial.interval / speed)
        return LoadChange(before, after, asked, answered, running.asked, running.began, samples)

    def _sample(self, running: _Traffic, seconds: float, interval: float = math.inf) -> list[CounterReading]:
        """Wait *seconds*, or until the sending has ended; return the counters of every *interval* s."""
        readings = list[CounterReading]()
        end, due = time.monotonic() + seconds, time.monotonic() + interval
        while True:
            self._check_progress(running)
            if time.monotonic() >= due:
                readings.append(self._counters())
                # if reading takes longer than the interval: as often as possible
                due = max(due + interval, time.monotonic())
            if time.monotonic() >= end or self._has_ended(running):
                return readings
            time.sleep(min(POLL_INTERVAL, max(0.0, min(due, end) - time.monotonic())))

    def idle(self, seconds: float, keep: int = 0) -> dict[int, dict[str, Any]]:
        """Return the ``frames`` that each held port receives in *seconds* without traffic; *keep* of them are ``kept``.

        ``group_frames``: those to a group among them, as the card itself counts them.
        """
        server, held = self._server, self._server.held
        before = self._survey(held)
        with server.capturing(held, keep * len(held)) as fetch:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0:
                server.check_cancelled()
                time.sleep(min(left, POLL_INTERVAL))
            after = self._survey(held)
            of_cards, kept = _grown(before.cards, after.cards), _by_port(fetch(), held, keep)
        return {
            port: {
                "frames": after.first.since(before.last, port, "ipackets"),
                "total": after.first.ports[port]["ipackets"],
                "kept": kept[port],
                "group_frames": group_frames(of_cards.get(port, {})),
            }
            for port in held
        }

    def distance(self) -> list[float]:
        """Return the seconds of some requests for counters and their answers."""
        return [self._round_trip for _ in range(9) if self._counters()]

    def stop(self) -> dict[str, Any]:
        """Stop all traffic."""
        self._server.cancelled.clear()
        if not self._server.lost:
            self._server.stop_traffic()
        return {}

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _finish(self, running: _Traffic) -> tuple[TrialCounts, Mapping[str, Any]]:
        """Wait for the end of the sending, then for the drain; return the counts, and the server's of packet groups."""
        server, events = self._server, self._server.events
        trial, duration = running.trial, running.trial.duration
        self._await_end(running, duration / trial.clock_speed)
        finished = self._has_ended(running)
        if not finished:
            server.stop_traffic()
        ended = max(events.ended.values()) if finished else time.monotonic()
        while server.under_way:
            self._keep_reading(running, POLL_INTERVAL)
        survey = self._survey(running.involved, trial.group_numbers)
        at_end, took = survey.first, (ended - running.load_since) * trial.clock_speed
        after, late, waited = wait_for_drain(at_end, self._counters, running, trial.drain / trial.clock_speed)
        if after is not at_end:
            survey = self._survey(running.involved, trial.group_numbers)
        # where frames are missing, the period in which the sending ended may have been reported since
        running.keep_loads(survey.loads, took + waited + (LOAD_PERIOD if waited >= LOAD_PERIOD else 0.0))
        if trial.clock_speed == 1 and SHORT_TRIAL <= duration < took / LATE_RATIO < 2 * LOAD_PERIOD / LATE_RATIO:
            self._record_late_core_load(running, ended, took)
        server.await_events()
        events.links_down |= survey.links_down
        first, last = self._readings[0], self._readings[-1]
        counts = TrialCounts(
            started=running.started,
            first=running.first,
            before=running.before,
            at_end=at_end,
            after=after,
            finished=finished,
            drained=waited,
            late=late,
            clocks=(last.earliest - first.latest, last.asked - first.moment, last.moment - first.asked),
            links={port: port not in events.links_down for port in running.involved},
            cpu_util=running.peak_load,
            complaints=tuple(events.complaints),
            clock_jump=(time.time() - running.started) - (time.monotonic() - running.asked),
            snapshots=running.snapshots,
            cards=_grown(running.earlier.cards, survey.cards),
            received_around={
                port: survey.last.since(running.earlier.first, port, "ipackets") for port in running.involved
            },
        )
        return counts, survey.groups

    def _latency(self, trial: TrialRequest, stats: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the counts of the packet groups in *stats*, or in later ones where some frames are not there yet."""
        counts = list(_group_rows(stats, trial))
        wait = 0.0 if all(map(all_back, counts)) else COUNT_PERIOD
        if trial.times and not all(map(all_placed, counts)):
            wait = UPDATE_PERIOD
        if wait:
            time.sleep(wait / trial.clock_speed)
            counts = list(_group_rows(self._server.read_counters(trial.group_numbers).groups, trial))
        return counts if trial.times else [{key: row[key] for key in COUNTS} for row in counts]

    def _has_ended(self, running: _Traffic) -> bool:
        return all(port in self._server.events.ended for port in running.sending)

    def _check_progress(self, running: _Traffic) -> None:
        """Check events, links and core load. Raises Refusal if the trial is lost."""
        server, events = self._server, self._server.events
        server.poll_events()
        server.check_cancelled()
        if self._has_ended(running):
            return
        if events.refusal:
            raise events.refusal
        if time.monotonic() >= running.next_link_check or events.links_in_doubt:
            events.links_in_doubt = False
            server.check_links(running.involved)
            if (seconds := time.monotonic() - running.load_since) >= 2 * LOAD_PERIOD:
                running.keep_loads(server.core_loads(), seconds)
            running.next_link_check = time.monotonic() + LINK_CHECK_INTERVAL

    def _record_late_core_load(self, running: _Traffic, ended: float, took: float) -> None:
        """Record the core load of a short trial that took too long, where the periods also cover other times.

        A core that was never idle in a trial of less than two periods shows less than its real load. So wait for the
        period in which the trial *ended*, and count its work as far as possible for the *took* s of the trial.
        """
        first = self._server.core_loads()
        while (loads := self._server.core_loads()) == first and time.monotonic() < ended + LOAD_PERIOD:
            self._server.check_cancelled()
            time.sleep(POLL_INTERVAL)
        running.keep_load(peak_load_during(loads, time.monotonic() - ended, took, LOAD_PERIOD))

    def _await_end(self, running: _Traffic, seconds: float) -> None:
        """Wait until all ports have ended, due *seconds* after the start; at most 1.5 x *seconds* + 5 s.

        Meanwhile the counters are read: for the first frame, at SNAPSHOT_SHARES of the time, and for the last frame.
        """
        server, begin = self._server, running.snapshots[0].earliest + self._start_delay
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
                server.ask_counters()
                last_asked, moments = arrival, [moment for moment in moments if moment > arrival + READING_GAP]
            elif left > POLL_TIME * way and not server.under_way:
                self._check_progress(running)
            # poll an overdue trial less often: the machine is busy
            wait = min(POLL_INTERVAL, max(END_POLL_INTERVAL, -late, late / 100))
            wait = min(wait, max(0.0, now + left - time.monotonic()))
            if server.under_way:
                self._keep_reading(running, wait)
                continue
            with server.events.changed:
                if not self._has_ended(running):
                    server.events.changed.wait(wait)

    def _keep_reading(self, running: _Traffic, wait: float) -> None:
        """Keep the next reading that was asked for, if it comes within *wait* s."""
        self._server.check_cancelled()
        if reading := self._server.counters_come(wait):
            running.add(self._noted(reading))

    def _next_reading(self, running: _Traffic, seconds: float, asked: float) -> float:
        """Return when to read the counters for the first frame, or the last one, by the server's clock.

        Infinite: the last one was read.

        *asked*: when the last reading arrives that was asked for. The one after the last frame is due when the rest of
        the frames is sent at the same rate as all of them in *seconds*.
        """
        started, last = running.snapshots[0].earliest, running.snapshots[-1]
        margin, latest = MARGIN + MARGIN_SHARE * self._round_trip, max(last.latest, asked)
        passed, unsent = latest - started, running.unsent(last)
        if unsent >= 1 and (passed < START_WINDOW or running.trial.announced):
            return max(latest + max(self._gap, passed / 20), started + self._start_delay - margin)
        if not running.has_sent:
            running.has_sent, self._start_delay = True, max(0.0, last.latest - started - (1 - unsent) * seconds)
            if running.trial.announced:
                self._announce(running.asked)
        if unsent <= 0:
            return math.inf
        # frames leave in lumps: a reading just before one shows too few
        due = min(reading.latest + running.unsent(reading) * seconds for reading in running.snapshots[-4:])
        return max(due + margin, latest + max(self._gap, (passed - self._start_delay - seconds) / 4))

    # -- counters ------------------------------------------------------------------------------------------------------

    @property
    def _round_trip(self) -> float:
        """s of the last request for counters."""
        return self._readings[-1].moment - self._readings[-1].asked

    @property
    def _gap(self) -> float:
        """Seconds between two requests for the counters near the first and the last frame."""
        return max(MARGIN, GAP_SHARE * self._round_trip)

    def _counters(self, groups: Sequence[int] = ()) -> CounterReading:
        return self._noted(self._server.read_counters(groups))

    def _survey(self, ports: Sequence[int], groups: Sequence[int] = ()) -> Survey:
        survey = self._server.survey(ports, groups)
        self._noted(survey.first)
        self._noted(survey.last)
        return survey

    def _noted(self, reading: CounterReading) -> CounterReading:
        """Return *reading*, now the last one."""
        self._readings[1:] = [reading]
        return reading


OfCards = Mapping[int, Mapping[str, int]]
"""The cards' own counters, by port."""


def _by_port(frames: Sequence[tuple[int, str]], ports: Sequence[int], keep: int) -> dict[int, list[str]]:
    """Return the last *keep* of *frames* of each of *ports*."""
    return {port: [frame for at, frame in frames if at == port][-keep:] for port in ports}


def _grown(before: OfCards, after: OfCards) -> dict[int, dict[str, int]]:
    """Return by how much the cards' own counters grew: those that did, by port."""
    grown = {}
    for port, counts in after.items():
        was = before.get(port, {})
        if more := {name: count - was[name] for name, count in counts.items() if count > was.get(name, count)}:
            grown[port] = more
    return grown


STEADY_TIME = 0.1
"""Seconds of the testbed's clock without a change of counters, if fewer frames than at least were sent and none is
missing: the sender's counters may lag."""

DRAIN_GAP = 0.02
"""Seconds of the wall clock between two readings in a drain, at least; of a fast clock a quarter of the drain."""


def wait_for_drain(
    first: CounterReading,
    count: Callable[[], CounterReading],
    running: _Traffic,
    drain: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[CounterReading, dict[int, int], float]:
    """Return the counters after the drain, how many frames came perhaps too late at each port, and the s of the wait.

    *first*: counters after sending; *count* reads them again.

    If a frame of any direction is missing, the wait ends *drain* s after the last one was sent. Those that came since
    the last reading before that moment may be too late. Extra frames of one direction do not replace missing ones of
    another. If none is missing there is no wait. All s are of the wall clock.
    """
    before, directions, snapshots = running.before, running.trial.directions, running.snapshots
    sent = {port: first.since(before, port, "opackets") for port, _ in directions}
    shown = {
        port: [reading.latest for reading in snapshots if reading.since(before, port, "opackets") >= frames]
        for port, frames in sent.items()
    }
    ended = max(min([*latest, first.latest]) for latest in shown.values())
    left, in_time = min(drain, ended + drain - first.latest), dict.fromkeys(sent, 0)
    for reading in snapshots:
        if reading.latest <= ended + drain:
            in_time = {port: reading.since(before, port, "ipackets") for _, port in directions}
    began, gap = clock(), min(DRAIN_GAP, drain / 4)
    steady, now, last = max(STEADY_TIME / running.trial.clock_speed, 0.005), first, list[tuple[int, int]]()
    asked = passed = changed = 0.0
    while True:
        counts = [(now.since(before, tx, "opackets"), now.since(before, rx, "ipackets")) for tx, rx in directions]
        received = {port: frames for (_, port), (_, frames) in zip(directions, counts, strict=True)}
        in_time = received if passed <= left else in_time
        if counts != last:
            last, changed = counts, passed
        still, is_whole = passed - changed, all(frames >= sent for sent, frames in counts)
        has_sent = all(sent >= running.frames[tx] for (tx, _), (sent, _) in zip(directions, counts, strict=True))
        if (is_whole and (has_sent or still >= steady)) or asked >= left:
            return now, {port: frames - in_time.get(port, 0) for port, frames in received.items()}, passed
        # the longer nothing comes, the less often it is looked for, but for a look that just comes in time
        rest, near = left - passed, gap / 8 + 2 * (passed - asked)
        sleep(min(max(gap, still / 5), rest - near) if rest > 1.01 * near else max(0.0, rest))
        asked = clock() - began
        now = count()
        passed = clock() - began


UPDATE_PERIOD, COUNT_PERIOD = 0.6, 0.05
"""Seconds after which TRex has certainly counted what it received before: ``total_max``, and whether the bucket 0 is
there, follow every 0.5 s of its main loop (``publish_async_data``); seconds in which the core that counts probe frames
has taken those that the card has counted."""

COUNTS = ("tx_port", "rx_port", "sent", "received", "out_of_order", "duplicates", "elsewhere")
"""Fields of :func:`group_counts` without the times."""


def _group_rows(stats: Mapping[str, Any], trial: TrialRequest) -> Iterator[dict[str, Any]]:
    """Yield the counts of packet groups, of each direction of *trial* that has all its groups in *stats*."""
    for tx_port, rx_port in trial.directions:
        counts = [group_counts(stats, group, tx_port, rx_port) for group in trial.groups.get(tx_port, ())]
        yield from () if None in counts else [count for count in counts if count]


def group_counts(answer: Mapping[str, Any], group: int, tx_port: int, rx_port: int) -> dict[str, Any] | None:
    """Return the counts of *group*, sent by *tx_port* and received at *rx_port*; None without a report."""
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


EMPTY_HISTOGRAM = 80
"""Characters of a fine histogram that may be empty, as those of a TRex with ``--software`` and several cores are."""


def all_placed(counts: Mapping[str, Any]) -> bool:
    """Return whether each received frame of :func:`group_counts` is in a fine bucket, or one of 10 µs or more."""
    placed = sum(frames for key, frames in counts["histogram"].items() if key != "0")
    return len(counts["hdrh"]) > EMPTY_HISTOGRAM or bool(placed == counts["received"] + counts["elsewhere"])


def all_back(counts: Mapping[str, Any]) -> bool:
    """Return whether as many frames of :func:`group_counts` came as were sent."""
    return bool(counts["received"] + counts["elsewhere"] >= counts["sent"])
