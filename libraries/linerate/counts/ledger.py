"""Where the frames of a trial went: what the generator sent, what the router counted, what came back. Pure.

Each way of the traffic has one interface of the router that it enters and one that it leaves by, so that the counters
of both give three sums: frames that never reached the router's count, frames that it took and did not send, frames that
it sent and that did not come back. From each the drops that the router owns up to are taken off, and the rest is
*unexplained*. A sum that comes out negative says that the router dropped other frames too, or counts some twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .causes import Cause, Role, Stage
from .telemetry import InterfaceCounters, Telemetry
from .trial import Trial


@dataclass(frozen=True, slots=True)
class Drop:
    """*frames* that the router counts as lost between two readings; or a reason of them, which adds nothing."""

    stage: Stage
    name: str
    interface: str
    frames: int
    meaning: str = ""

    @property
    def place(self) -> str:
        """``rx-miss at TenGigabitEthernet3/0/0``."""
        return f"{self.name} at {self.interface}" if self.interface else self.name


@dataclass(frozen=True, slots=True)
class WayAccount:
    """Frames of one way, from ``tx_port`` through *ingress* and *egress* to ``rx_port``.

    ``router_rx`` and ``router_tx``: as the interfaces count them, None where the router told nothing. ``drops``: those
    that are this way's for certain.
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
        """Frames that the router counts as dropped on this way."""
        return sum(drop.frames for drop in self.drops)

    @property
    def unexplained(self) -> int:
        """Lost and counted nowhere; what a :class:`Ledger` has in ``shared`` may be among it."""
        return self.lost - self.explained

    def at(self, stage: Stage) -> tuple[Drop, ...]:
        """The drops of *stage*."""
        return tuple(drop for drop in self.drops if drop.stage is stage)

    def _sum(self, stage: Stage) -> int:
        return sum(drop.frames for drop in self.at(stage))

    @property
    def before(self) -> int | None:
        """Unexplained between the generator and the router's count of received frames."""
        if self.router_rx is None:
            return None
        return self.offered - self._sum(Stage.ARRIVING) - self.router_rx

    @property
    def inside(self) -> int | None:
        """Unexplained between the router's two counts."""
        if self.router_rx is None or self.router_tx is None:
            return None
        return self.router_rx - self._sum(Stage.PASSING) - self._sum(Stage.LEAVING) - self.router_tx

    @property
    def behind(self) -> int | None:
        """Unexplained between the router's count of sent frames and the generator."""
        return None if self.router_tx is None else self.router_tx - self.forwarded


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of trials ``first`` to ``trial``, of which the last was bad.

    ``shared``: drops that may be any way's. ``reasons``: names and repetitions of what is counted already. ``missing``:
    why there is no account of the router, "" where there is one.
    """

    first: int
    trial: int
    directions: tuple[WayAccount, ...]
    shared: tuple[Drop, ...] = ()
    reasons: tuple[Drop, ...] = ()
    missing: str = ""

    @property
    def lost(self) -> int:
        """Frames that did not come back, all ways."""
        return sum(direction.lost for direction in self.directions)

    @property
    def drops(self) -> tuple[Drop, ...]:
        """All that the router counts as lost, the largest first."""
        found = [*(drop for direction in self.directions for drop in direction.drops), *self.shared]
        return tuple(sorted(found, key=lambda drop: -drop.frames))

    @property
    def explained(self) -> int:
        """Frames that the router counts as dropped."""
        return sum(drop.frames for drop in self.drops)

    @property
    def unexplained(self) -> int:
        """Frames lost and counted nowhere; negative: more drops were counted than frames lost."""
        return self.lost - self.explained

    @property
    def before(self) -> int | None:
        """Unexplained before the router, all ways; None where a count is missing."""
        return _total([direction.before for direction in self.directions])

    @property
    def inside(self) -> int | None:
        """Unexplained in the router, all ways."""
        found = _total([direction.inside for direction in self.directions])
        return None if found is None else found - sum(drop.frames for drop in self.shared)

    @property
    def behind(self) -> int | None:
        """Unexplained behind the router, all ways."""
        return _total([direction.behind for direction in self.directions])

    def to_json(self) -> dict[str, Any]:
        """The account as JSON data, sums written out."""

        def rows(drops: Iterable[Drop]) -> list[dict[str, Any]]:
            return [{**asdict(drop), "stage": drop.stage.value} for drop in drops]

        sums = ("lost", "explained", "unexplained", "before", "inside", "behind")
        return {
            "trials": [self.first, self.trial],
            "missing": self.missing,
            **{name: getattr(self, name) for name in sums},
            "directions": [
                {
                    **asdict(direction),
                    "drops": rows(direction.drops),
                    **{name: getattr(direction, name) for name in sums},
                }
                for direction in self.directions
            ],
            "shared": rows(self.shared),
            "reasons": rows(self.reasons),
        }


def account(trials: Sequence[Trial], before: Telemetry, after: Telemetry, interfaces: Mapping[int, str]) -> Ledger:
    """The ledger of *trials*, all there were between two readings. *interfaces*: the router's, by generator port."""
    directions = _offered(trials, interfaces)
    first, last = trials[0].number, trials[-1].number
    sides = set(interfaces.values())
    for name in sides:
        old, new = before.interfaces.get(name), after.interfaces.get(name)
        if old and new and (new.rx_packets < old.rx_packets or new.tx_packets < old.tx_packets):
            return Ledger(
                first, last, directions, missing=f"the router's counters of {name} went backwards; they were reset"
            )
    drops, reasons = _since(before.causes, after.causes, sides)
    filled = tuple(
        WayAccount(
            direction.tx_port,
            direction.rx_port,
            direction.ingress,
            direction.egress,
            direction.offered,
            direction.forwarded,
            _grown(before.interfaces.get(direction.ingress), after.interfaces.get(direction.ingress), "rx_packets"),
            _grown(before.interfaces.get(direction.egress), after.interfaces.get(direction.egress), "tx_packets"),
            tuple(drop for drop in drops if drop.interface and drop.interface == _end(direction, drop.stage)),
        )
        for direction in directions
    )
    shared = tuple(drop for drop in drops if not drop.interface)
    if len(filled) == 1:
        only = filled[0]
        filled = (WayAccount(**{**_fields(only), "drops": (*only.drops, *shared)}),)
        shared = ()
    return Ledger(first, last, filled, shared, reasons)


def without_router(trials: Sequence[Trial], interfaces: Mapping[int, str], why: str) -> Ledger:
    """The ledger where the router could not be read, and *why*."""
    return Ledger(trials[0].number, trials[-1].number, _offered(trials, interfaces), missing=why)


def lost_at_router(before: Telemetry, after: Telemetry, interfaces: Iterable[str]) -> dict[str, int]:
    """What the router's own counters say it dropped between two readings, by cause, without the zeros."""
    drops, _ = _since(before.causes, after.causes, set(interfaces))
    return {drop.place: drop.frames for drop in drops}


def _offered(trials: Sequence[Trial], interfaces: Mapping[int, str]) -> tuple[WayAccount, ...]:
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for trial in trials:
        for count in trial.outcome.directions:
            key = (count.tx_port, count.rx_port)
            offered, forwarded = sums.get(key, (0, 0))
            sums[key] = (offered + count.offered, forwarded + count.forwarded)
    return tuple(
        WayAccount(tx, rx, interfaces.get(tx, ""), interfaces.get(rx, ""), *frames) for (tx, rx), frames in sums.items()
    )


def _end(direction: WayAccount, stage: Stage) -> str:
    return direction.egress if stage is Stage.LEAVING else direction.ingress


def _fields(direction: WayAccount) -> dict[str, Any]:
    return {name: getattr(direction, name) for name in WayAccount.__slots__}


def _grown(old: InterfaceCounters | None, new: InterfaceCounters | None, name: str) -> int | None:
    return None if old is None or new is None else getattr(new, name) - getattr(old, name)


def _since(
    before: Iterable[Cause], after: Iterable[Cause], sides: set[str]
) -> tuple[tuple[Drop, ...], tuple[Drop, ...]]:
    """Drops that add up, and reasons, between two readings; of the interfaces under test and the router as a whole."""
    old = {(cause.stage, cause.name, cause.interface): cause.count for cause in before}
    drops: list[Drop] = []
    reasons: list[Drop] = []
    beyond: list[Drop] = []
    for cause in after:
        grown = cause.count - old.get((cause.stage, cause.name, cause.interface), 0)
        # one that was cleared meanwhile says nothing
        if grown < 0 or (cause.interface and cause.interface not in sides):
            continue
        drop = Drop(cause.stage, cause.name, cause.interface, grown, cause.meaning)
        {Role.LOSS: drops, Role.BEYOND: beyond, Role.REASON: reasons}[cause.role].append(drop)
    for drop in beyond:
        counted = sum(
            other.frames for other in drops if other.stage is drop.stage and drop.interface in ("", other.interface)
        )
        extra = max(0, drop.frames - counted)
        drops.append(Drop(drop.stage, drop.name, drop.interface, extra, drop.meaning))
        reasons.append(Drop(drop.stage, drop.name, drop.interface, drop.frames - extra, drop.meaning))
    reasons = [reason for reason in reasons if reason.frames]
    return tuple(_with_reason(drop, reasons) for drop in drops if drop.frames), tuple(reasons)


def _with_reason(drop: Drop, reasons: Iterable[Drop]) -> Drop:
    """*drop* with what its largest reason says, where its own name says nothing."""
    own = [one for one in reasons if one.stage is drop.stage and one.interface in ("", drop.interface)]
    if drop.meaning or not own:
        return drop
    most = max(own, key=lambda one: one.frames)
    return Drop(drop.stage, drop.name, drop.interface, drop.frames, f"mostly {most.name}")


def _total(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None
