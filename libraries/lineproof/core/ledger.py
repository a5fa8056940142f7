"""Where the frames of a trial went: what the generator sent, what the router counted, what came back.

Each direction enters the router by one interface and leaves it by another. Their counters give three differences:
offered less received by the router, received less sent by the router, sent by the router less forwarded. Each
difference, less the drops that the router counts there, is *unexplained*. A negative one means that the router dropped
other frames too, or counts some twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .causes import Cause, Role, Stage
from .telemetry import Telemetry
from .trial import Trial


@dataclass(frozen=True, slots=True)
class Drop:
    """*frames* that the router counted as lost between two readings; or a reason for such drops, which adds nothing."""

    stage: Stage
    name: str
    interface: str
    frames: int
    meaning: str = ""

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
        """The drops of *stage*."""
        return tuple(drop for drop in self.drops if drop.stage is stage)

    @property
    def gaps(self) -> tuple[int | None, int | None, int | None]:
        """Unexplained frames before the router counts them as received, in it, and after it counts them as sent."""
        arriving, *inside = (sum(drop.frames for drop in self.drops_at(stage)) for stage in Stage)
        rx, tx = self.router_rx, self.router_tx
        return (
            None if rx is None else self.offered - arriving - rx,
            None if rx is None or tx is None else rx - sum(inside) - tx,
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
    def lost(self) -> int:
        """Frames that did not come back, all directions."""
        return sum(direction.lost for direction in self.directions)

    @property
    def drops(self) -> tuple[Drop, ...]:
        """All that the router counts as lost, largest first."""
        found = [*(drop for direction in self.directions for drop in direction.drops), *self.shared]
        return tuple(sorted(found, key=lambda drop: -drop.frames))

    @property
    def explained(self) -> int:
        """Frames that the router counts as dropped."""
        return sum(drop.frames for drop in self.drops)

    @property
    def unexplained(self) -> int:
        """Frames lost and not counted by the router; negative: it counted more drops than were lost."""
        return self.lost - self.explained

    @property
    def gaps(self) -> tuple[int | None, int | None, int | None]:
        """:attr:`DirectionAccount.gaps` of all directions, less the shared drops; None where a count is missing."""
        before, inside, after = (sum_if_known([row.gaps[place] for row in self.directions]) for place in range(3))
        return before, None if inside is None else inside - sum(drop.frames for drop in self.shared), after


def make_ledger(trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]) -> Ledger:
    """The ledger of *trials*: all between the two readings. *interfaces*: the router's, by the generator's port."""
    directions = _direction_counts(trials, interfaces)
    first, last = trials[0].number, trials[-1].number
    names = set(interfaces.values())
    for name in names:
        old, new = before.interfaces.get(name), after.interfaces.get(name)
        if old and new and (new.rx_packets < old.rx_packets or new.tx_packets < old.tx_packets):
            return Ledger(
                first, last, directions, missing=f"the router's counters of {name} went backwards; they were reset"
            )
    drops, reasons = _drops_and_reasons(before.causes, after.causes, names)
    directions = tuple(
        replace(
            direction,
            router_rx=_increase(before, after, direction.ingress, "rx_packets"),
            router_tx=_increase(before, after, direction.egress, "tx_packets"),
            drops=tuple(
                drop
                for drop in drops
                if drop.interface
                and drop.interface == (direction.egress if drop.stage is Stage.LEAVING else direction.ingress)
            ),
        )
        for direction in directions
    )
    shared = tuple(drop for drop in drops if not drop.interface)
    if len(directions) == 1:
        directions = (replace(directions[0], drops=(*directions[0].drops, *shared)),)
        shared = ()
    return Ledger(first, last, directions, shared, reasons)


def ledger_without_router(trials: Sequence[Trial], interfaces: Mapping[int, str], why: str) -> Ledger:
    """The ledger where the router's counters could not be read, and *why*."""
    return Ledger(trials[0].number, trials[-1].number, _direction_counts(trials, interfaces), missing=why)


def lost_at_router(before: Telemetry, after: Telemetry, interfaces: Iterable[str]) -> dict[str, int]:
    """Frames that the router's own counters show as dropped between two readings, by cause, without zeros."""
    drops, _ = _drops_and_reasons(before.causes, after.causes, set(interfaces))
    return {drop.label: drop.frames for drop in drops}


def _direction_counts(trials: Sequence[Trial], interfaces: Mapping[int, str]) -> tuple[DirectionAccount, ...]:
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for trial in trials:
        for count in trial.outcome.directions:
            key = (count.tx_port, count.rx_port)
            offered, forwarded = sums.get(key, (0, 0))
            sums[key] = (offered + count.offered, forwarded + count.received)
    return tuple(
        DirectionAccount(tx, rx, interfaces.get(tx, ""), interfaces.get(rx, ""), *frames)
        for (tx, rx), frames in sums.items()
    )


def _increase(before: Telemetry, after: Telemetry, interface: str, counter: str) -> int | None:
    old, new = before.interfaces.get(interface), after.interfaces.get(interface)
    return None if old is None or new is None else getattr(new, counter) - getattr(old, counter)


def _drops_and_reasons(
    before: Iterable[Cause], after: Iterable[Cause], interfaces: set[str]
) -> tuple[tuple[Drop, ...], tuple[Drop, ...]]:
    """Drops that add up, and reasons, between two readings; of *interfaces* and of the router as a whole."""
    old = {(cause.stage, cause.name, cause.interface): cause.count for cause in before}
    drops: list[Drop] = []
    reasons: list[Drop] = []
    overlapping: list[Drop] = []
    for cause in after:
        increase = cause.count - old.get((cause.stage, cause.name, cause.interface), 0)
        # a counter that was cleared in between proves nothing
        if increase < 0 or (cause.interface and cause.interface not in interfaces):
            continue
        drop = Drop(cause.stage, cause.name, cause.interface, increase, cause.meaning)
        {Role.LOSS: drops, Role.OVERLAPPING: overlapping, Role.REASON: reasons}[cause.role].append(drop)
    for drop in overlapping:
        counted = sum(
            other.frames for other in drops if other.stage is drop.stage and drop.interface in ("", other.interface)
        )
        extra = max(0, drop.frames - counted)
        drops.append(replace(drop, frames=extra))
        reasons.append(replace(drop, frames=drop.frames - extra))
    reasons = [reason for reason in reasons if reason.frames]
    return tuple(_with_reason(drop, reasons) for drop in drops if drop.frames), tuple(reasons)


def _with_reason(drop: Drop, reasons: Iterable[Drop]) -> Drop:
    """*drop* with the name of its largest reason as its meaning, where it has none."""
    matching = [reason for reason in reasons if reason.stage is drop.stage and reason.interface in ("", drop.interface)]
    if drop.meaning or not matching:
        return drop
    return replace(drop, meaning=f"mostly {max(matching, key=lambda reason: reason.frames).name}")


def sum_if_known(numbers: Sequence[int | None]) -> int | None:
    """The sum of *numbers*; None where one of them is missing, or all."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None
