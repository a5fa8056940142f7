"""A FAIL under which the router had lost the address of the generator's port: not its forwarding was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.neighbours import NeighbourEntry
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Problem
from ..core.verdict import Ruling, Verdict
from ..routers.base import Router, Side
from ..traffic.catalogue import Catalogue
from ..traffic.frame_kinds import FrameKind, FrameKinds, ipv6_address, kinds_of
from .other_causes import fails_all_the_same


def ipv6_sides(sides: Sequence[Side], catalogue: Catalogue) -> tuple[Side, ...]:
    """*sides* with the IPv6 address that the traffic words of *catalogue* have for each ``peer``."""
    kinds: tuple[FrameKind, ...] = ("ipv6",)
    prefixes = FrameKinds.of(catalogue, kinds).prefixes
    return tuple(replace(side, peer=ipv6_address(prefix, side.peer)) for prefix in prefixes for side in sides)


def ipv6_entries(router: Router, sides: Sequence[Side], catalogue: Catalogue) -> tuple[NeighbourEntry, ...]:
    """The IPv6 entries of *sides* that there are: nothing shows whether more are wanted. Raises TestbedError."""
    return tuple(found for found in router.neighbours(ipv6_sides(sides, catalogue)) if found.mac)


def why_unaddressed(verdict: Verdict, after: Telemetry, interfaces: Mapping[int, str]) -> str:
    """Why *verdict*, a FAIL, proves nothing about the router: *after* it lacks a neighbour. "" if the FAIL stands.

    *interfaces*: the router's, by the generator's port. What is lost in other directions still counts.
    """
    spared, words, remedy = _unaddressed(verdict, after, interfaces)
    if not spared or _stands_without(verdict, spared):
        return ""
    return f"{words}: frames that cannot be addressed are not lost by its forwarding; {remedy}, then run again"


def lost_beside_unaddressed(verdict: Verdict, after: Telemetry, interfaces: Mapping[int, str]) -> str:
    """What has to be known of a FAIL that stands although *after* it the router lacks a neighbour; "": nothing."""
    spared, words, remedy = _unaddressed(verdict, after, interfaces)
    if not spared or not _stands_without(verdict, spared):
        return ""
    names = " and ".join(f"{tx} → {rx}" for tx, rx in spared)
    return (
        f"{words}: the loss of {names} is not its forwarding's, and the FAIL stands by that of the other directions;"
        f" {remedy}"
    )


def _unaddressed(
    verdict: Verdict, after: Telemetry, interfaces: Mapping[int, str]
) -> tuple[tuple[tuple[int, int], ...], str, str]:
    """The directions of a FAIL whose frames the router could not address, why, and the remedy."""
    # labelled frames leave through the IPv4 neighbour
    ipv6 = kinds_of(verdict.requirement.profile) & {"ipv6", "mpls"} == {"ipv6"}
    gone = {found.interface: found for found in after.neighbours if found.problem and (":" in found.address) is ipv6}
    if verdict.ruling is not Ruling.FAIL:
        return (), "", ""
    rows = {(row.tx_port, row.rx_port) for trial in verdict.trials for row in trial.outcome.directions}
    spared = tuple(sorted(row for row in rows if interfaces.get(row[1]) in gone))
    found = [gone[name] for name in dict.fromkeys(interfaces[port] for _, port in spared)]
    remedy = "; ".join(each.remedy for each in found if each.remedy) or "set it for good"
    return spared, "; ".join(each.problem for each in found), remedy


def _stands_without(verdict: Verdict, spared: tuple[tuple[int, int], ...]) -> bool:
    """Return whether *verdict* is a FAIL without what is lost in the directions *spared*."""
    rows = {(row.tx_port, row.rx_port) for trial in verdict.trials for row in trial.outcome.directions}
    problem = Problem(Fault.ROUTER, "a neighbour entry went", directions=spared)
    return rows != set(spared) and fails_all_the_same(verdict, lambda trial: (problem,))
