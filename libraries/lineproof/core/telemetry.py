"""A router's sides, and one reading of it: counters, why it lost frames by them, links, entries of neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .json_types import NamedEnum, NotKept


class Stage(NamedEnum):
    """Where in the router the frames were lost."""

    ARRIVING = "on arrival"
    """Before the interface counted them as received."""
    PASSING = "in passing"
    """Counted as received, not handed to the sending interface."""
    LEAVING = "on leaving"
    """Handed to the sending interface, not counted as sent."""


class Role(NamedEnum):
    """How a count relates to others of the same stage; several counters may count the same frame."""

    LOSS = "frames that no other LOSS counts"
    OVERLAPPING = "frames that the LOSS of this stage may count too: only the excess is added"
    REASON = "repeats or explains other counts, or counts events, not frames: never added"


@dataclass(frozen=True, slots=True)
class Cause:
    """A counter of lost frames since the router started. ``interface``: "" for the router as a whole.

    ``name``: the router's own word for it. ``meaning``: a phrase that explains it.
    """

    stage: Stage
    name: str
    interface: str
    count: int
    role: Role = Role.LOSS
    meaning: str = ""

    @property
    def label(self) -> str:
        """``rx-miss at TenGigabitEthernet3/0/0``."""
        return f"{self.name} at {self.interface}" if self.interface else self.name


def risen(before: int, after: int, most: int) -> int | None:
    """Return by how much a counter rose between two readings; None: it began anew, so that nobody knows.

    One of 32 bits goes on at 0 after 2^32 - 1 (``Counter32`` of SNMP, systems of 32 bits): that is taken for the reason
    where it is no more than *most*, which may have been counted.
    """
    rise = after - before
    return rise if rise >= 0 else rise + 2**32 if before < 2**32 and rise + 2**32 <= most else None


def unsent_by_interface(causes: Iterable[Cause], interface: str) -> int:
    """Return frames handed to *interface* and not sent: its LOSS on leaving, or a larger OVERLAPPING count."""
    leaving = [cause for cause in causes if cause.stage is Stage.LEAVING and cause.interface == interface]
    sums = (sum(cause.count for cause in leaving if cause.role is role) for role in (Role.LOSS, Role.OVERLAPPING))
    return max(sums)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the router: the interface cabled to a generator port, and what is reached through it.

    ``address`` as ``100.65.1.1/24``; ``peer`` is the generator port's address, ``peer_mac`` its MAC;
    ``network`` the prefix routed towards it, as ``16.0.0.0/8``.
    """

    interface: str
    address: str
    peer: str
    peer_mac: str
    network: str


@dataclass(frozen=True, slots=True)
class LinkState:
    """``mac`` in lower case, "" if unknown; ``up``: administratively; ``carrier``: there is a link. None: unknown.

    ``speed_bps``: of the link that it has, as ``speed_from`` shows; None: not known, or only a convention's.
    """

    interface: str
    mac: str = ""
    up: bool | None = None
    carrier: bool | None = None
    speed_bps: float | None = None
    speed_from: str = ""


@dataclass(frozen=True, slots=True)
class NeighbourEntry:
    """The router's entry of ``address``, a port of the generator behind ``interface``.

    ``expected``: its MAC address, "" if it is not known here; ``mac``: the one of the router's entry, "" if it has none
    that it can use. ``permanent``: it was set, not learned; None: not known. ``found_at``: the interface of the entry.
    ``fix``: the command on the router that sets it for good; "" if that is not known.
    """

    interface: str
    address: str
    expected: str
    mac: str = ""
    permanent: bool | None = None
    found_at: str = ""
    fix: str = ""
    others: NotKept[str | None] = None
    """Other MAC addresses in entries of ``address``, as ``02:00:00:00:00:99 on eth2``."""

    @property
    def problem(self) -> str:
        """Why frames to it do not arrive, in words; "" if they do, as far as this shows."""
        if not self.mac:
            return f"the router has no neighbour entry for {self.address} on {self.interface}"
        if self.expected and self.mac != self.expected:
            return (
                f"the router's neighbour entry for {self.address} on {self.found_at or self.interface} has {self.mac},"
                f" and the generator's port has {self.expected}"
            )
        return ""

    @property
    def remedy(self) -> str:
        """Return what to do about it, "" if the command is not known."""
        return f"'{self.fix}' on the router sets it" if self.fix else ""

    @property
    def warning(self) -> str:
        """Return why an entry that is right may not stay in use, and what to do; "" where nothing shows that."""
        entry = f"the router's neighbour entry for {self.address} on {self.found_at or self.interface}"
        if self.problem:
            return ""
        if self.others:
            return f"{entry} has {self.mac}, and another one has {self.others}; remove the wrong one"
        if self.permanent is not False:
            return ""
        return (
            f"{entry} was learned, not set: it goes when it ages, because TRex answers ARP in service mode only, and"
            f" frames are lost from then on; {self.remedy} for good"
        )


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Frames of one interface since the router started, as the router counts them.

    ``tx_packets``: really sent; frames that the router counted and then failed to send are subtracted.
    """

    rx_packets: int = 0
    tx_packets: int = 0


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """One VPP graph node on one thread, from ``show runtime``. ``clocks`` are TSC cycles per vector."""

    thread: str
    name: str
    state: str
    calls: int
    vectors: int
    suspends: int
    clocks: float
    vectors_per_call: float


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A reading of the router. ``uptime`` in s, None: not known; ``raw``: output by command.

    ``causes``: every counter of lost frames, zeros included. VPP only: ``runtime`` and ``since_clear``, the seconds
    that it covers (0: not known). ``neighbours``: its entries of the generator's ports; empty: not asked for, or
    ``neighbours_unread`` says why they are not known.
    """

    uptime: float | None
    interfaces: Mapping[str, InterfaceCounters]
    runtime: tuple[NodeRuntime, ...] = ()
    raw: NotKept[Mapping[str, str]] = field(default_factory=dict)
    since_clear: float = 0.0
    causes: tuple[Cause, ...] = ()
    neighbours: tuple[NeighbourEntry, ...] = ()
    neighbours_unread: str = ""
    taken_back: tuple[str, ...] = ()
    """Changes of the run that the router did not show any more; they are looked at before a FAIL."""
    pauses: Mapping[str, int] = field(default_factory=dict)
    """Pause frames that an interface received, where its card counts them."""
