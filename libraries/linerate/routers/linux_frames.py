"""What a Linux router needs to forward IPv6, tagged and labelled frames as it does plain IPv4, and how it is told.

IPv6: a static neighbour and a route on each side; no address, so that the kernel has nothing to announce there. Tags: a
VLAN interface on each side, and a routing table of their own that frames from these enter and leave tagged. Labels:
each is swapped for itself, towards the side that its direction leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..errors import TestbedError
from ..traffic.frame_kinds import FrameKind, FrameKinds, Lacking, mapped, mapped_network
from ..traffic.profiles import LABEL_STEP
from .base import Side
from .linux_settings import neighbour, route, sysctl
from .remote import Refused, Remote

TABLE = 29700
"""The routing table of the first stack of tags; each further one has the next."""

QUIET = {"addr_gen_mode": "1", "accept_ra": "0", "router_solicitations": "0"}
"""``/proc/sys/net/ipv6/conf/*``: no address of the kernel's own, nothing believed, nothing asked."""

_PROTOCOLS = {0x8100: ("802.1Q", ""), 0x88A8: ("802.1ad", "s")}

_NO_SUCH_TYPE = re.compile(r"Unknown device type|not supported", re.IGNORECASE)


class LinuxFrames:
    """Sets up *remote* for *sides*, whose plain IPv4 is configured already.

    *notes* gets what is changed beyond interfaces, neighbours and routes.
    """

    def __init__(self, remote: Remote, sides: Sequence[Side], notes: list[str]) -> None:
        self._remote, self._sides, self._notes = remote, sides, notes
        self._lacking: dict[frozenset[FrameKind], str] = {}

    def set_up(self, frames: FrameKinds) -> Lacking:
        """Do it as far as the kernel can; returns what it cannot, with the module that it lacks."""
        own = tuple(side.interface for side in self._sides)
        prefixes = self._ipv6(own, frames.prefixes)
        if frames.tags:
            self._tags(frames.tags, prefixes)
        if frames.labels:
            self._labels(frames.labels)
        if frames.tags and frames.labels and not {frozenset({"vlan"}), frozenset({"mpls"})} & set(self._lacking):
            self._lack(
                "a Linux kernel has one table of labels for all its interfaces, and would send labelled frames on"
                " without the tags that they came in",
                "vlan",
                "mpls",
            )
        return self._lacking

    def _lack(self, reason: str, *kinds: FrameKind) -> None:
        self._lacking[frozenset(kinds)] = reason
        self._notes.append(f"not set up for {' with '.join(kinds)}: {reason}")

    # -- IPv6 ----------------------------------------------------------------------------------------------------------

    def _ipv6(self, interfaces: Sequence[str], prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """Returns those *prefixes* that have a way now: all or none."""
        if not prefixes:
            return ()
        key = "net/ipv6/conf/all/forwarding"
        if not self._remote.gather({"forwarding": ("sysctl", "-n", key)}, optional=("forwarding",))["forwarding"]:
            self._lack(
                "the router's kernel has no IPv6 (there is no /proc/sys/net/ipv6): its module ipv6 is missing or told"
                " ipv6.disable=1",
                "ipv6",
            )
            return ()
        sysctl(self._remote, key, "1", self._notes)
        self._routes6(interfaces, prefixes, self._notes)
        return prefixes

    def _routes6(
        self, interfaces: Sequence[str], prefixes: Iterable[str], notes: list[str], table: int | None = None
    ) -> None:
        for name in interfaces:
            conf = f"net/ipv6/conf/{name}"
            if self._remote.run("sysctl", "-n", f"{conf}/disable_ipv6").strip() != "0":
                for key, value in QUIET.items():
                    sysctl(self._remote, f"{conf}/{key}", value, notes)
                sysctl(self._remote, f"{conf}/disable_ipv6", "0", notes)
        for prefix in prefixes:
            for side, name in zip(self._sides, interfaces, strict=True):
                network, peer = mapped_network(prefix, side.network), mapped(prefix, side.peer)
                self._route_by_neighbour("-6", network, peer, side.peer_mac, name, table)

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _tags(self, stacks: Iterable[tuple[tuple[int, int], ...]], prefixes: tuple[str, ...]) -> None:
        there = set(re.findall(r"^\d+: ([^:@\s]+)", self._remote.run("ip", "-o", "link", "show"), re.MULTILINE))
        made: list[str] = []  # how the interfaces made here are set is no news of the router
        for table, stack in enumerate(stacks, TABLE):
            interfaces = []
            for index, side in enumerate(self._sides):
                try:
                    interfaces.append(self._tagged(index, side.interface, stack, there))
                except Refused as error:
                    if not _NO_SUCH_TYPE.search(str(error)):
                        raise
                    self._lack(
                        f"the router's kernel takes no VLAN tags: its module 8021q is missing ({_said(error)})", "vlan"
                    )
                    return
            for side, name in zip(self._sides, interfaces, strict=True):
                sysctl(self._remote, f"net/ipv4/conf/{name}/rp_filter", "0", made)
                self._route_by_neighbour("-4", side.network, side.peer, side.peer_mac, name, table)
                self._rule("-4", name, table)
            if prefixes:
                self._routes6(interfaces, prefixes, made, table)
                for name in interfaces:
                    self._rule("-6", name, table)

    def _tagged(self, index: int, link: str, stack: Iterable[tuple[int, int]], there: set[str]) -> str:
        """The interface for *stack* on *link*, made where it is not *there*: ``lr0.100``, ``lr1.s200.100``."""
        name = f"lr{index}"
        for kind, vlan in stack:
            protocol, letter = _PROTOCOLS[kind]
            name += f".{letter}{vlan}"
            if name not in there:
                made = ("name", name, "type", "vlan", "proto", protocol, "id", str(vlan))
                self._remote.change(("ip", "link", "add", "link", link, *made), ("ip", "link", "del", "dev", name))
                there.add(name)
            self._remote.run("ip", "link", "set", "dev", name, "up")
            link = name
        return name

    def _rule(self, family: str, name: str, table: int) -> None:
        rule = ("iif", name, "lookup", str(table))
        if not re.search(rf"\b{re.escape(' '.join(rule))}(\s|$)", self._remote.run("ip", family, "rule", "show")):
            self._remote.change(("ip", family, "rule", "add", *rule), ("ip", family, "rule", "del", *rule))

    # -- labels --------------------------------------------------------------------------------------------------------

    def _labels(self, pairs: Sequence[tuple[int, int]]) -> None:
        limit = "net/mpls/platform_labels"
        said = self._remote.gather(
            {
                "before": ("sysctl", "-n", limit),
                "load": ("modprobe", "-q", "mpls_router"),
                "now": ("sysctl", "-n", limit),
            },
            optional=("before", "load", "now"),
        )
        if not said["now"].strip().isdigit():
            self._lack(
                "the router's kernel routes no MPLS labels: its module mpls_router is missing (there is no"
                " /proc/sys/net/mpls)",
                "mpls",
            )
            return
        if not said["before"]:
            self._notes.append("the module mpls_router was loaded, and stays")
        # each pair of sides has labels of its own: those of the first direction leave by its second side
        there, back = zip(*pairs, strict=True)
        exits = [
            tuple(label + index // 2 * LABEL_STEP for label in (there if index % 2 else back))
            for index in range(len(self._sides))
        ]
        used = [label for labels in exits for label in dict.fromkeys(labels)]
        both = sorted(label for label in set(used) if used.count(label) > 1)
        if both:
            raise TestbedError(
                f"label {both[0]} is among the words' 'labels' and 'labels_back'{_of_pairs(len(self._sides))}, and a"
                " router sends each label one way; expected different ones"
            )
        sysctl(self._remote, limit, str(max(int(said["now"]), 1 + max(used))), self._notes)
        for index, side in enumerate(self._sides):
            sysctl(self._remote, f"net/mpls/conf/{side.interface}/input", "1", self._notes)
            for label in dict.fromkeys(map(str, exits[index])):
                words = (label, "as", "to", label, "via", "inet", side.peer, "dev", side.interface)
                self._route(("-f", "mpls"), words)

    # -- routes ------------------------------------------------------------------------------------------------

    def _route_by_neighbour(self, family: str, network: str, peer: str, mac: str, name: str, table: int | None) -> None:
        """A permanent neighbour, and the route through it; ``onlink``: no address of the interface tells of it."""
        before = self._remote.run("ip", "neigh", "show", peer, "dev", name)
        neighbour(self._remote, peer, mac, name, before)
        where = ("table", str(table)) if table else ()
        self._route((family,), (network, "via", peer, "dev", name), ("onlink",), where)

    def _route(
        self, family: tuple[str, ...], wanted: tuple[str, ...], more: tuple[str, ...] = (), where: tuple[str, ...] = ()
    ) -> None:
        # a table without routes does not exist, and is an error
        shown = {"route": ("ip", *family, "route", "show", wanted[0], *where)}
        before = self._remote.gather(shown, optional=("route",))["route"]
        route(self._remote, family, wanted, before, (*more, *where))


def _of_pairs(sides: int) -> str:
    return f" ({LABEL_STEP} more for each further pair of ports)" if sides > 2 else ""


def _said(error: Refused) -> str:
    """What the command itself said, without the advice around it."""
    found = re.search(r"\(status \d+\): (?:Error: )?(.*?)\.?; check the user's rights", str(error))
    return f"'ip link add … type vlan' says: {found[1]}" if found else str(error)
