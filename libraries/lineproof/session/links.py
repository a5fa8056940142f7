"""Both ends of each cable: their link, the MAC addresses that they send to, and whether slow traffic comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..core.telemetry import LinkState, Side
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.frame_kinds import FrameKind, FrameKinds, ipv6_address
from ..core.trial import Outcome
from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..generators.site import GeneratorEndpoint

T = TypeVar("T")

POLL = 0.1
"""Seconds between two looks at the links."""


@dataclass
class LinkWait:
    """A wait of at most *limit* s (real time), which begins when something was brought up, or a link is not there.

    *setting*: ``link_wait`` of the testbed's file in s, for messages.
    """

    limit: float
    setting: float
    noted: dict[str, float] = field(default_factory=dict)
    """Seconds after which each end had its link, in the last wait; by its name."""

    _began: float = 0.0

    @property
    def pending(self) -> bool:
        """Return whether something was brought up, and no traffic has come through since."""
        return self._began > 0

    def begin(self) -> None:
        """Something was brought up now."""
        self._began = time.monotonic()

    def end(self) -> None:
        """Traffic came through: there is nothing to wait for."""
        self._began = 0.0

    @property
    def _waited(self) -> float:
        return time.monotonic() - self._began if self.pending else 0.0

    def await_all(self, ends: Callable[[], Mapping[str, bool]]) -> None:
        """Wait until all *ends* of cables, by name, have a link. Raises TestbedError that names those without."""
        self.noted = {}
        while True:
            is_up = ends()
            self.noted = {end: self.noted.get(end, self._waited) for end, up in is_up.items() if up}
            if not (late := [end for end in is_up if end not in self.noted]):
                return
            if not self.pending:
                # it may be coming up: another run has just ended, or the generator was just started
                self.begin()
            if self._waited >= self.limit:
                raise TestbedError(
                    f"no link at {' and '.join(late)}, after {self.setting:g} s; check the cable, the modules, and"
                    " speed and FEC of both ends, or raise 'link_wait' in the testbed's file"
                )
            time.sleep(min(POLL, self.limit))

    def retried(self, probe: Callable[[], T]) -> T:
        """Call *probe*, and while something that was brought up is awaited, again if it raises NothingArrives.

        Frames of such a try may wait at the router and come with the next one's, which is made once more, too.
        """
        waiting = False
        while True:
            try:
                result = probe()
            except OthersArrive:
                if not waiting:
                    raise
                waiting = False
            except NothingArrives as error:
                waiting = True
                if not self.pending:
                    raise
                if self._waited >= self.limit:
                    self.end()
                    raise TestbedError(
                        f"{error}; both ends of each cable have a link{self.noted_words}, and this is so after"
                        f" {self.setting:g} s ('link_wait' in the testbed's file)"
                    ) from error
                time.sleep(min(POLL, self.limit))
            else:
                self.end()
                return result

    @property
    def noted_words(self) -> str:
        """Which end had its link when, as `` (the router's eth1 after 3.1 s)``; "" if all had it at once."""
        slow = [f"{end} after {seconds:.1f} s" for end, seconds in self.noted.items() if seconds >= POLL]
        return f" ({', '.join(slow)})" if slow else ""


def is_down(state: LinkState) -> bool:
    """Return whether *state* is certainly that of an interface without a link."""
    return False in (state.up, state.carrier)


def ipv6_sides(sides: Sequence[Side], catalogue: Catalogue) -> tuple[Side, ...]:
    """Return *sides* with the IPv6 address that the traffic words of *catalogue* have for each ``peer``."""
    kinds: tuple[FrameKind, ...] = ("ipv6",)
    prefixes = FrameKinds.of(catalogue, kinds).prefixes
    return tuple(replace(side, peer=ipv6_address(prefix, side.peer)) for prefix in prefixes for side in sides)


def wrong_destination(state: LinkState, port: GeneratorPort | None, endpoint: GeneratorEndpoint) -> str:
    """Return what is wrong where *port* sends to another MAC address than its interface, *state*, has; "": nothing is.

    A next hop of the testbed file is asked before the first frame, whatever the port sends to now.
    """
    if port is None or not port.destination or not state.mac or port.index in endpoint.next_hops:
        return ""
    if port.destination.lower() == state.mac:
        return ""
    return (
        f"has {state.mac}, and the generator's port {port.index}, which is to be cabled to it, sends to"
        f" {port.destination}; fix the port's destination in trex_cfg.yaml, 'ports' in the testbed file or"
        " 'interfaces' of the platform"
    )


def dropped_by_card(port: GeneratorPort, addressed: str) -> str:
    """Return why the card of *port* drops frames to the MAC address *addressed*; "": it does not."""
    own = port.card_mac.lower()
    if not own or addressed.lower() == own or port.promiscuous:
        return ""
    return (
        f"the router sends to {addressed.lower()}, and the card is {own}: it drops such frames; leave out 'src_mac'"
        " in trex_cfg.yaml and 'peer_mac' in the testbed file, or write 'promiscuous: true' for its generator"
    )


DIRECTION_STEP = 0.25
"""Each further direction has so many more frames (ratio), so that their counts identify them."""

FOREIGN_RATIO = 0.08
"""Ratio of a direction's frames that may be of other protocols (LLDP); more are another direction's."""

NONE_RATIO = 0.02
"""So few of the frames (ratio) are none of them: a switch (spanning tree) or the router sends some of its own."""

ALL_RATIO = 1 - FOREIGN_RATIO
"""So many of the frames (ratio) are all of them."""

FOREIGN_FRAMES = 20
"""Foreign frames that are always allowed."""


class NothingArrives(TestbedError):
    """Slow traffic does not come back: a router that has not noticed its link yet drops it, too."""


class OthersArrive(TestbedError):
    """More frames come back than were sent: another direction's, or those of slow traffic that was held up before."""


CHECK = (
    "check the cables and which leads where, the router's addresses, routes and neighbours, and the destination MAC of"
    " TRex's port"
)
"""Parts to look at where no frames come back."""


def check_arrival(
    name: str, outcome: Outcome, likely: Callable[[], str] = lambda: CHECK, least: float = NONE_RATIO
) -> None:
    """Raise TestbedError where no more than *least* (ratio) of the frames of *name* come back, or at another port.

    *likely*: tells what the router shows, or what to look at. Swapped cables, a wrong next hop or an unconfigured
    router are the testbed's fault and must not count as loss. A part that arrives: trials judge it.
    """
    for direction in outcome.directions:
        if not direction.offered:
            raise TestbedError(
                f"the generator's port {direction.tx_port} sends no frames of '{name}'; look at the TRex server's"
                " console, and at the MTU of that port"
            )
        if direction.forwarded <= least * direction.offered:
            problems = "".join(f"; meanwhile: {problem}" for problem in outcome.problems)
            raise NothingArrives(
                f"{direction.forwarded or 'none'} of {direction.offered} frames of '{name}' sent slowly from the"
                f" generator's port {direction.tx_port} came back at port {direction.rx_port}{problems}; what is not"
                f" set up is not lost: {likely()}"
            )
    surplus = (item for item in outcome.directions if item.surplus > max(FOREIGN_FRAMES, FOREIGN_RATIO * item.offered))
    if (row := next(surplus, None)) is not None:
        sent = ", ".join(f"{direction.offered} to port {direction.rx_port}" for direction in outcome.directions)
        raise OthersArrive(
            f"the generator's port {row.rx_port} received {row.forwarded} frames, and {row.offered} of '{name}'"
            f" were to arrive there (sent: {sent}): some belong to another direction, or come from elsewhere;"
            f" {likely()}"
        )
