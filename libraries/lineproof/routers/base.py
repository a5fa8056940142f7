"""The interface of a router, and of the shell through which it is reached."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds, NotForwarded
from ..core.under_load import UnderLoad
from ..errors import TestbedError
from ..platforms import CommandPair, Tuning
from .journal import RESTORE_LIMIT as RESTORE_LIMIT
from .journal import Change, ChangeJournal
from .shell_commands import Result as Result
from .shell_commands import RouterUnreachable as RouterUnreachable
from .shell_commands import Shell as Shell

CARD_QUEUE_FULL = "its card's receive queue was full"

MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"

SPEED_BY_CONVENTION = re.compile(
    r"virtio|vtnet|vmxnet|vmx[0-9]|netvsc|hn[0-9]|xen|xn[0-9]|epair|af_packet|veth", re.IGNORECASE
)
"""Names of interfaces and drivers whose speed is a number by convention, and no link's."""

Entry = tuple[str, str, bool | None]
"""Interface ("": not shown), MAC in lower case, and whether it was set for good (None: not shown)."""

_OF_TAGS = re.compile(r"^lr\d+\.|\.297\d\d$")
"""Interfaces that are made for tagged frames, with the same peers."""


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


class Router:
    """A router. By default nothing is known of it, and nothing is changed on it.

    Every method raises TestbedError when it does not understand the router's output. *interfaces*: those under test.
    """

    has_runtime = False
    """It counts cycles and calls of each graph node: :attr:`.Telemetry.runtime`."""

    def __init__(self, interfaces: tuple[str, ...] = ()) -> None:
        self.interfaces = interfaces

    @property
    def notes(self) -> tuple[str, ...]:
        """Other changes of :meth:`configure` than addresses, neighbours and routes, in words: evidence."""
        return ()

    @property
    def not_forwarded(self) -> NotForwarded:
        """Frames of :meth:`configure_frames` that the router cannot forward, and why."""
        return {}

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that :meth:`restore` would undo, oldest first."""
        return ()

    def identify(self) -> Mapping[str, str]:
        """Return operating system, kernel and software version, as evidence."""
        raise NotImplementedError

    def facts(self) -> RouterFacts:
        """Return what machine, system and cards it is. Reads only; what fails is not read, so that it never raises."""
        return RouterFacts()

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Set addresses, static neighbours and routes of the sides. :meth:`restore` undoes it."""
        raise NotImplementedError

    def tune(self, tuning: Tuning) -> None:
        """Before :meth:`configure`: set what the platform's file has under ``tuning``. :meth:`restore` undoes it."""

    def apply(self, pairs: Sequence[CommandPair]) -> None:
        """Run the commands of a study. :meth:`withdraw` or :meth:`restore` runs their opposites."""
        raise NotImplementedError

    def withdraw(self) -> str:
        """Undo what :meth:`apply` did. Returns and raises as :meth:`restore`."""
        return ""

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """After :meth:`configure`: let the router forward *frames* as well. :meth:`restore` undoes it."""
        raise NotImplementedError

    def refusal_in(self, command: str, output: str) -> str:
        """Return a sentence where *output* of a user's *command*, which had status 0, is a refusal; "" if not."""
        return ""

    def boot_id(self) -> str:
        """Return its kernel's name for the time since it started, another one after each start; "": it has none."""
        return ""

    def keep_journal(self, journal: ChangeJournal) -> None:
        """Have each change in *journal* before it is made, from now on."""

    def rehearsal(self) -> AbstractContextManager[list[Change]]:
        """Return a context in which each change is only put on the list, and not made."""
        return nullcontext([])

    def restore(self) -> str:
        """Undo all changes, last first, within RESTORE_LIMIT. May be repeated, also after an interrupt.

        A value that somebody has changed since is not ours any more, and stays: a sentence about that, "" if none.
        """
        return ""

    def undo(self, journal: ChangeJournal, over: bool = False) -> str:
        """Undo what an earlier run has left in *journal*. Returns and raises as :meth:`restore`.

        *over*: a configuration that was saved before may be loaded over what others have changed since.
        """
        raise NotImplementedError

    def forget_changes(self) -> None:
        """Forget all changes: the router has restarted and lost them, and :meth:`restore` has nothing to undo."""

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """Return its entry of each side's peer; none where that is not known. A ``peer_mac`` of "" is any."""
        return ()

    def link_states(self) -> tuple[LinkState, ...]:
        """Return the state of its interfaces under test, in their order; what it does not show is unknown."""
        return tuple(LinkState(name) for name in self.interfaces)

    def clear(self) -> None:
        """Before a trial: reset the counters that can be reset (VPP ``clear runtime``)."""

    def read(self) -> Telemetry:
        """Read counters now."""
        return Telemetry(None, {})

    def read_runtime(self) -> Telemetry:
        """Read the runtime since :meth:`clear`, and nothing else. Only of a router that :attr:`has_runtime`."""
        return Telemetry(None, {})

    def work(self) -> Mapping[str, float]:
        """Return the work of each worker until now: seconds spent on packets, or frames taken; {}: not known.

        The names are those of a trial's readings. Resets nothing. Raises TestbedError.
        """
        return {}

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Return how busy workers, queues and processors are meanwhile: two readings around *wait*.

        What fails is not read, so that it raises only what *wait* raises. VPP: clears the runtime counters.
        """
        wait()
        return UnderLoad()


def validated_side(side: Side) -> Side:
    """Return *side* with its MAC address in lower case. Raises TestbedError where a generator reports none."""
    if not re.fullmatch(MAC, side.peer_mac):
        raise TestbedError(f"{side.peer_mac!r} is not a MAC address; expected for example '02:00:00:00:01:02'")
    return replace(side, peer_mac=side.peer_mac.lower())


def neighbour_of(side: Side, entries: Sequence[Entry], fix: Sequence[str]) -> NeighbourEntry:
    """Return the one of *entries* of the side's own interface: a router may reach it by another, as a bridge.

    *fix*: the command that sets it, with ``MAC`` for the address.
    """
    expected = side.peer_mac.lower()
    own = [entry for entry in entries if entry[0] == side.interface]
    own = own or [entry for entry in entries if not _OF_TAGS.search(entry[0])]
    found_at, mac, permanent = own[0] if own else ("", "", None)
    at = {side.interface: found_at} if found_at else {}
    words = [at.get(word, word) if word != "MAC" else expected or mac or "MAC" for word in fix]
    return NeighbourEntry(side.interface, side.peer, expected, mac, permanent, found_at, " ".join(words))
