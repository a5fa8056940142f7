"""The part of ``lineproof doctor`` about frames nobody sent or nobody gets: noise, flow control, a card's filter."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.foreign import ForeignFrames
from ..core.frame_origin import origins
from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..session.destinations import dropped_by_card
from ..session.session import Session
from .findings import Check, ok, warning, wrong

LISTEN_SECONDS = 10.0
"""Seconds without traffic, of the testbed's clock: five of spanning tree's hellos, and some of most other talk."""

KEPT_FRAMES = 500
"""Frames of each port that are looked at."""

SWITCHED_BY_TREX = ("net_ixgbe", "net_e1000", "net_igc")
"""DPDK's drivers of which TRex can set flow control (``is_fc_supported``; src/drivers of TRex v3.08)."""

_REMEDIES = {
    "net_mlx5": "by 'ethtool -A DEV rx off tx off' on TRex's host, which keeps the interface: TRex cannot switch it",
    "net_bnxt": "with 'ethtool -A DEV rx off tx off' before the card is bound to DPDK: TRex cannot switch it",
}
_ELSEWHERE = "at the other end of the cable: TRex cannot switch it with this driver"


def noise_checks(session: Session, seconds: float) -> Iterator[Check]:
    """Yield what comes in *seconds* in which nothing is sent; 0: nobody listens."""
    if not seconds:
        return
    try:
        heard = session.traffic.listen(seconds, KEPT_FRAMES)
    except TestbedError as error:
        yield wrong("noise", error)
        return
    budget = ForeignFrames({port: one.frames for port, one in heard.items()}, seconds)
    for port, one in heard.items():
        if not one.frames:
            yield ok("noise", f"port {port}: no frame came in {seconds:g} s without traffic")
            continue
        named = origins(one.kept, seconds) or f"{one.frames} frames that were not captured"
        more = f", and more ({one.frames} frames in all)" if one.frames > len(one.kept) else ""
        expected = budget.budget(port, 10.0)
        yield warning(
            "noise",
            f"port {port}: {named}{more}; a trial of 10 s may count {expected} of them, and as many lost ones may hide"
            " behind them: silence the sender",
        )


def flow_control_check(port: GeneratorPort) -> Iterator[Check]:
    """Return whether *port* obeys or sends pause frames, as far as its driver can tell."""
    if port.flow_control in (None, "off"):
        return
    remedy = _REMEDIES.get(port.driver, _ELSEWHERE)
    if port.driver.startswith(SWITCHED_BY_TREX):
        remedy = f"in TRex's console: 'portattr -p {port.index} --fc none'"
    yield warning(f"port {port.index}", f"flow control is on ({port.flow_control}); switch it off {remedy}")


def filter_check(port: GeneratorPort, addressed: str) -> Iterator[Check]:
    """Return whether the card of *port* drops what the router sends to the MAC address *addressed*."""
    if words := dropped_by_card(port, addressed):
        yield warning(f"port {port.index}", words)


def router_flow_control(session: Session) -> Iterator[Check]:
    """The same of the router's cards."""
    for nic in session.router.facts.nics:
        if nic.flow_control in (None, "off"):
            continue
        yield warning(
            "router facts",
            f"{nic.interface}: flow control is on ({nic.flow_control}), and a trial with pause frames does not count;"
            f" switch it off: 'ethtool -A {nic.interface} autoneg off rx off tx off' (Linux), 'sysctl dev.ix.0.fc=0'"
            " (FreeBSD)",
        )
