"""Where the frames of a trial went: what the generator sent, what the router counted, what came back.

Each direction enters the router by one interface and leaves it by another. Their counters give three differences:
offered less received by the router, received less sent by the router, sent by the router less forwarded. Each
difference, less the drops that the router counts there, is *unexplained*. A negative one means that the router dropped
other frames too, or counts some twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .foreign import SLACK_FRAMES, SLACK_RATIO, most_counted
from .telemetry import Cause, Role, Stage, Telemetry, risen
from .trial import LATE, Trial
from .under_load import Confidence


@dataclass(frozen=True, slots=True)
class Drop:
    """*frames* that the router counted as lost between two readings; or a reason for such drops, which adds nothing.

    ``began_anew``: the counter did, so that nobody knows how many; *frames* is 0.
    """

    stage: Stage
    name: str
    interface: str
    frames: int
    meaning: str = ""
    began_anew: bool = False

    @property
    def label(self) -> str:
        """``rx-miss at TenGigabitEthernet3/0/0``."""
        return f"{self.name} at {self.interface}" if self.interface else self.name


@dataclass(frozen=True, slots=True)
class DirectionAccount:
    """Frames of one direction, from ``tx_port`` through *ingress* and *egress* to ``rx_port``.

    ``router_rx``, ``router_tx``: counts of these interfaces, None: not read. ``drops``: those certainly of this
    direction.
    """

    tx_port: int
    rx_port: int
    ingress: str
    egress: str
    offered: int
    forwarded: int
    router_rx: int | None = None
    router_tx: int | None = None
    drops: tuple[Drop, ...] = ()

    @property
    def lost(self) -> int:
        """Frames that did not come back; negative where more came than were sent."""
        return self.offered - self.forwarded

    @property
    def explained(self) -> int:
        """Frames of this direction that the router counts as dropped."""
        return sum(drop.frames for drop in self.drops)

    @property
    def unexplained(self) -> int:
        """Lost and not counted by the router; may include drops that are in :attr:`Ledger.shared`."""
        return self.lost - self.explained

    def drops_at(self, stage: Stage) -> tuple[Drop, ...]:
        """Return the drops of *stage*."""
        return tuple(drop for drop in self.drops if drop.stage is stage)

    @property
    def gaps(self) -> tuple[int | None, int | None, int | None]:
        """Unexplained frames before the router counts them as received, in it, and after it counts them as sent."""
        arriving, *inside = (sum_of(self.drops_at(stage)) for stage in Stage)
        rx, tx = self.router_rx, self.router_tx
        return (
            None if rx is None or arriving is None else self.offered - arriving - rx,
            None if rx is None or tx is None or None in inside else rx - sum(filter(None, inside)) - tx,
            None if tx is None else tx - self.forwarded,
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of the trials ``first_trial`` to ``last_trial``; the last one was bad.

    ``shared``: drops that may be of any direction. ``reasons``: add nothing to what the drops count. ``missing``: why
    the router's counts are missing, "" where they are not.
    """

    first_trial: int
    last_trial: int
    directions: tuple[DirectionAccount, ...]
    shared: tuple[Drop, ...] = ()
    reasons: tuple[Drop, ...] = ()
    missing: str = ""

    @property
    def drops(self) -> tuple[Drop, ...]:
        """All that the router counts as lost, largest first."""
        dropped = [*(drop for direction in self.directions for drop in direction.drops), *self.shared]
        return tuple(sorted(dropped, key=lambda drop: -drop.frames))

    @property
    def whole(self) -> DirectionAccount:
        """All directions together, without ports, and with the shared drops; None: a count that one of them lacks."""
        rows = self.directions
        counts = ([getattr(row, name) for row in rows] for name in ("router_rx", "router_tx"))
        rx, tx = (sum(known) if known and None not in known else None for known in counts)
        offered, forwarded = sum(row.offered for row in rows), sum(row.forwarded for row in rows)
        return DirectionAccount(0, 0, "", "", offered, forwarded, rx, tx, self.drops)

    @property
    def lost(self) -> int:
        """Frames that did not come back, of which more in one direction make up for none of another."""
        return sum(max(0, row.lost) for row in self.directions)

    def largest(self, name: str) -> Drop:
        """Return the largest drops whose name begins with *name*."""
        return next((drop for drop in self.drops if drop.name.startswith(name)), Drop(Stage.PASSING, "", "", 0))

    def are_lost_ones(self, frames: int, counted: bool = True) -> Confidence | None:
        """Return how sure it is that *frames* dropped at one place are lost ones; None: other drops explain these.

        A router's counters have the frames of others too: counts of the same frames may differ by a hundredth.
        *counted*: by one of the counters, not as a difference.
        """
        lost, noise = self.lost, 0.01
        others = self.whole.explained - (frames if counted else 0)
        if lost - others <= noise * min(frames, lost) and abs(frames - lost) > noise * lost:
            return None
        is_all = not any(drop.began_anew for drop in self.drops)
        return Confidence.CERTAIN if is_all and frames + others <= (1 + noise) * lost else Confidence.LIKELY

    def are_most(self, frames: int, counted: bool = True) -> bool:
        """Return whether *frames* dropped at one place are most of the lost ones."""
        return 0 < self.lost / 2 < frames and self.are_lost_ones(frames, counted) is not None

    @property
    def contradiction(self) -> str:
        """Why the router's counts cannot be those of frames that came back through it, in words; "": they can."""
        for row in self.directions:
            counts = {f"received at {row.ingress}": row.router_rx, f"sent at {row.egress}": row.router_tx}
            counts[f"came back at port {row.rx_port}"] = row.forwarded
            known = [(place, count) for place, count in counts.items() if count is not None]
            for (place, count), (next_place, later) in pairwise(known):
                if later > count + SLACK_FRAMES + SLACK_RATIO * row.offered:
                    return f"fewer frames were {place} ({count:,}) than {next_place} ({later:,})"
        return ""

    @property
    def unused_words(self) -> str:
        """Return that the router's own counters cannot be those of these frames, in a line; "": they may be."""
        if wrong := self.contradiction:
            return f"the router's own counters do not agree with the generator's, and were not used: {wrong}"
        return f"the router's own counters were not used: {self.missing}" if self.missing else ""

    def without_counts(self) -> Ledger:
        """Return the ledger without what the router counts."""
        directions = [replace(row, router_rx=None, router_tx=None, drops=()) for row in self.directions]
        return Ledger(self.first_trial, self.last_trial, tuple(directions), missing=self.missing or self.contradiction)


def make_ledger(trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]) -> Ledger:
    """Return the ledger of *trials*: all between two readings. *interfaces*: the router's, by the generator's port."""
    directions = _direction_counts(trials, interfaces)
    first, last = trials[0].number, trials[-1].number
    names, most = set(interfaces.values()), most_counted(sum(row.offered for row in directions))
    for name in sorted(names & {*before.interfaces} & {*after.interfaces}):
        if None in (_increase(before, after, name, counter, most) for counter in ("rx_packets", "tx_packets")):
            why = f"the router's counters of {name} went backwards; they were reset"
            return Ledger(first, last, directions, missing=why)
    drops, reasons = _drops_and_reasons(before.causes, after.causes, names, most)
    shared, accounts = list(drops), list[DirectionAccount]()
    for row in directions:
        own = [drop for drop in drops if drop.interface == row.ingress and drop.stage is not Stage.LEAVING]
        leaving = [drop for drop in drops if drop.interface == row.egress and drop.stage is Stage.LEAVING]
        # which interface a frame is to leave by is the router's choice: more than are missing there were to leave there
        if sum(drop.frames for drop in leaving) <= max(0, row.lost) + SLACK_FRAMES + SLACK_RATIO * row.offered:
            own += leaving
        if len(directions) == 1:
            own += [drop for drop in drops if not drop.interface]
        rx = _increase(before, after, row.ingress, "rx_packets", most)
        tx = _increase(before, after, row.egress, "tx_packets", most)
        accounts.append(replace(row, router_rx=rx, router_tx=tx, drops=tuple(own)))
        shared = [drop for drop in shared if drop not in own]
    # frames arrive at an interface by which no direction enters without being of any
    entered = {"", *(row.ingress for row in directions)}
    shared = [drop for drop in shared if drop.stage is Stage.LEAVING or drop.interface in entered]
    return Ledger(first, last, tuple(accounts), tuple(shared), reasons)


def ledger_without_router(trials: Sequence[Trial], interfaces: Mapping[int, str], why: str) -> Ledger:
    """Return the ledger where the router's counters could not be read, and *why*."""
    return Ledger(trials[0].number, trials[-1].number, _direction_counts(trials, interfaces), missing=why)


def lost_at_router(before: Telemetry, after: Telemetry, interfaces: Iterable[str], offered: int) -> dict[str, int]:
    """Return frames that the router's own counters show as dropped between two readings, by cause, without zeros."""
    drops, _ = _drops_and_reasons(before.causes, after.causes, set(interfaces), most_counted(offered))
    return {drop.label: drop.frames for drop in drops if drop.frames}


def _direction_counts(trials: Sequence[Trial], interfaces: Mapping[int, str]) -> tuple[DirectionAccount, ...]:
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for trial in trials:
        for count in trial.outcome.directions:
            key = (count.tx_port, count.rx_port)
            offered, forwarded = sums.get(key, (0, 0))
            # late ones are lost, and did come back
            late = int(trial.outcome.readings.get(f"{LATE}{count.rx_port}", 0))
            sums[key] = (offered + count.offered, forwarded + count.received + late)
    return tuple(
        DirectionAccount(tx, rx, interfaces.get(tx, ""), interfaces.get(rx, ""), *frames)
        for (tx, rx), frames in sums.items()
    )


def _increase(before: Telemetry, after: Telemetry, interface: str, counter: str, most: int) -> int | None:
    old, new = before.interfaces.get(interface), after.interfaces.get(interface)
    return None if old is None or new is None else risen(getattr(old, counter), getattr(new, counter), most)


def _drops_and_reasons(
    before: Iterable[Cause], after: Iterable[Cause], interfaces: set[str], most: int
) -> tuple[tuple[Drop, ...], tuple[Drop, ...]]:
    """Return drops that add up, and reasons, between two readings; of *interfaces* and of the router as a whole."""
    old, new = ({(cause.stage, cause.name, cause.interface): cause for cause in reading} for reading in (before, after))
    drops: list[Drop] = []
    reasons: list[Drop] = []
    overlapping: list[Drop] = []
    # a counter that is not shown any more was cleared
    for place, cause in ({place: replace(cause, count=0) for place, cause in old.items()} | new).items():
        if cause.interface and cause.interface not in interfaces:
            continue
        increase = risen(old[place].count if place in old else 0, cause.count, most)
        meaning = "its counter began anew" if increase is None else cause.meaning
        drop = Drop(*place, increase or 0, meaning, began_anew=increase is None)
        {Role.LOSS: drops, Role.OVERLAPPING: overlapping, Role.REASON: reasons}[cause.role].append(drop)
    for drop in overlapping:
        counted = sum(
            other.frames for other in drops if other.stage is drop.stage and drop.interface in ("", other.interface)
        )
        extra = max(0, drop.frames - counted)
        drops.append(replace(drop, frames=extra))
        reasons.append(replace(drop, frames=drop.frames - extra))
    reasons = [reason for reason in reasons if reason.frames]
    shown = (drop for drop in drops if drop.frames or drop.began_anew)
    return tuple(_with_reason(drop, reasons) for drop in shown), tuple(reasons)


def _with_reason(drop: Drop, reasons: Iterable[Drop]) -> Drop:
    """Return *drop* with the name of its largest reason as its meaning, where it has none."""
    matching = [reason for reason in reasons if reason.stage is drop.stage and reason.interface in ("", drop.interface)]
    if drop.meaning or not matching:
        return drop
    return replace(drop, meaning=f"mostly {max(matching, key=lambda reason: reason.frames).name}")


def sum_of(drops: Iterable[Drop]) -> int | None:
    """Return the frames of *drops*; None where a counter of one began anew."""
    counted = list(drops)
    return None if any(drop.began_anew for drop in counted) else sum(drop.frames for drop in counted)
