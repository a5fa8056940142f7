"""Judging after the trials: doubts that are known only then, and ledgers of lost frames."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.counter_names import pause_seconds
from ..core.deciding import KEEPS, Standing
from ..core.doubts import OwnPart
from ..core.foreign import SLACK_FRAMES, SLACK_RATIO
from ..core.ledger import Ledger, ledger_without_router, make_ledger
from ..core.telemetry import Stage, Telemetry
from ..core.traffic.frame_kinds import kinds_of
from ..core.traffic.profiles import Profile
from ..core.trial import Fault, Problem, Trial
from ..errors import BREAKDOWN_ERRORS, in_words

Ports = tuple[int, int]
"""Sending and receiving port of a direction."""


def ports_of(trials: Sequence[Trial]) -> list[Ports]:
    """Return the directions of *trials*."""
    return sorted({(row.tx_port, row.rx_port) for trial in trials for row in trial.outcome.directions})


def lost_neighbours(
    trials: Sequence[Trial], after: Telemetry, interfaces: Mapping[int, str], profile: Profile
) -> Iterator[Problem]:
    """Yield that a router which has lost the address of the generator's port could not address its frames.

    Where its entries could not be read any more, nobody knows.
    """
    if after.neighbours_unread:
        yield Problem(Fault.NEIGHBOUR, f"whether it has is not known: {after.neighbours_unread}")
    # labelled frames leave through the IPv4 neighbour
    ipv6 = kinds_of(profile) & {"ipv6", "mpls"} == {"ipv6"}
    gone = {entry.interface: entry for entry in after.neighbours if entry.problem and (":" in entry.address) is ipv6}
    for ports in ports_of(trials):
        if (entry := gone.get(interfaces.get(ports[1], ""))) is not None:
            remedy = entry.remedy or "set it for good"
            yield Problem(Fault.NEIGHBOUR, f"{entry.problem}; {remedy}", directions=(ports,))


def pauses(
    trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str], link_bps: float
) -> Iterator[Problem]:
    """Yield that an interface of the router that received pause frames did not send meanwhile.

    Its card counts them where the generator's does not show them.
    """
    pps = max((trial.outcome.load.pps for trial in trials), default=0.0)
    for ports in ports_of(trials):
        name = interfaces.get(ports[1], "")
        # counters that began anew give none
        if (received := after.pauses.get(name, 0) - before.pauses.get(name, 0)) > 0:
            words = f"the router's {name} received {received}; switch flow control off"
            yield Problem(Fault.PAUSING, words, math.ceil(pause_seconds(received, link_bps) * pps), (ports,))


def damaged_frames(
    trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]
) -> Iterator[Problem]:
    """Yield that frames which the router's card took for damaged are the cable's loss. In which trials is not known."""
    damaged = damaged_since(before, after, interfaces.values())
    for ports in ports_of(trials):
        if (count := damaged.get(interfaces.get(ports[0], ""))) is not None:
            words = "frames that arrived damaged, by the router's own count of CRC errors"
            words += f": {interfaces[ports[0]]} {count}; change the cable or modules"
            yield Problem(Fault.DAMAGED, words, count, (ports,))


def lost_after_router(ledgers: Sequence[Ledger], own: OwnPart, risk: float) -> Iterator[tuple[range, Problem]]:
    """Yield that missing frames which the router counts as sent may not be its loss, with the trials' numbers.

    They are, where the generator was watched clean, or where the router's counts contradict each other.
    """
    if own.is_clean(risk):
        return
    for ledger in ledgers:
        for row in () if ledger.contradiction else ledger.directions:
            if row.router_tx is None:
                continue
            # a control, or what else was sent beside the trials, passes the router without being a trial's
            beside = -(row.gaps[0] or 0)
            beside = beside if beside > SLACK_FRAMES + SLACK_RATIO * row.offered else 0
            if (after := min(row.lost, row.router_tx - row.forwarded - beside)) > 0:
                words = f"port {row.tx_port} to {row.rx_port}: {after} of {row.lost}; look at cables and the generator"
                trials = range(ledger.first_trial, ledger.last_trial + 1)
                yield trials, Problem(Fault.AFTER_ROUTER, words, after, ((row.tx_port, row.rx_port),))


_DAMAGED = re.compile(r"crc|fcs|symbol_?err|illegal_?byte|align", re.IGNORECASE)
"""Names of counters of frames whose check sum (IEEE 802.3 3.2.9) or line code was wrong, and of nothing else."""


def damaged_since(before: Telemetry, after: Telemetry, interfaces: Iterable[str]) -> Mapping[str, int]:
    """By interface the frames that its card took for damaged between two readings; only where there were any.

    Drivers repeat a count by another name, so the largest counts. Counters that began anew give none.
    """
    old = {(cause.name, cause.interface): cause.count for cause in before.causes if cause.stage is Stage.ARRIVING}
    found = dict.fromkeys(interfaces, 0)
    for cause in after.causes:
        if cause.stage is Stage.ARRIVING and cause.interface in found and _DAMAGED.search(cause.name):
            new = cause.count - old.get((cause.name, cause.interface), 0)
            found[cause.interface] = max(found[cause.interface], new)
    return {name: count for name, count in found.items() if count}


MAX_LEDGERS = 8
"""Ledgers of one sentence: each costs a reading, and more of them show nothing new."""


@dataclass
class Bookkeeper:
    """The ledgers of one sentence. *read* the router at a moment; *last_reading*: the one before the trials.

    *interfaces*: the router's, by generator port. *settle*: wait until counters that lag are up to date; None if none
    do. If a reading fails, ledgers say why they lack the router's counts (*unread*), and no more readings are tried; so
    from the beginning if *unread* is given.
    """

    read: Callable[[str], Telemetry]
    last_reading: Telemetry
    interfaces: Mapping[int, str]
    settle: Callable[[], None] | None = None
    unread: str = ""
    ledgers: list[Ledger] = field(default_factory=list)
    _trials: list[Trial] = field(default_factory=list)
    _due: bool = False

    def add_trial(self, trial: Trial, standing: Standing) -> None:
        """Note that a trial is over, and how all stand. One that may miss the limit is accounted for."""
        self._trials.append(trial)
        self._due = standing.last != KEEPS and trial.lost > 0 and len(self.ledgers) < MAX_LEDGERS

    def account(self, after: Telemetry | None = None) -> None:
        """Add the ledger of the last trial if it was bad, with the reading *after* it; None: the router is read."""
        if not self._due:
            return
        self._due, last = False, self._trials[-1:]
        if not self.unread:
            try:
                self.ledgers.append(self._ledger(after))
            except BREAKDOWN_ERRORS as error:
                self.unread = f"the router could not be read after trial {last[0].number}: {in_words(error)}"
            else:
                self._trials = []
                return
        self.ledgers.append(ledger_without_router(last, self.interfaces, self.unread))

    def close_without_reading(self, why: str) -> None:
        """Add the ledger of the last bad trial without a reading after it, because of *why*."""
        self.unread = self.unread or why
        self.account()

    def _ledger(self, after: Telemetry | None) -> Ledger:
        moment = f"trial {self._trials[-1].number}"
        now = after or self.read(moment)
        found = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        is_odd = found.contradiction or abs(found.whole.unexplained) > SLACK_FRAMES + SLACK_RATIO * found.whole.offered
        if self.settle and is_odd:
            self.settle()
            now = self.read(moment)
            found = make_ledger(self._trials, self.last_reading, now, self.interfaces)
        self.last_reading = now
        return found
