"""Configures a Linux router to forward IPv6, tagged and labelled frames.

IPv6: a static neighbour and a route on each side; no address, so that the kernel announces nothing. Tags: a VLAN
interface on each side, with a routing table for each stack of tags, so that tagged frames leave tagged. Labels: each
is swapped for itself, towards the side that its direction leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core.traffic.frame_kinds import FrameKinds, NotForwarded, ipv6_address, ipv6_network
from .frame_setup import FrameSetup, labels_by_side, one_label_table
from .linux_settings import link_names, set_forwarding, set_neighbour, set_route, set_sysctl, set_up
from .refusals import CommandRefused

FIRST_TABLE = 29700
"""Routing table of the first stack of tags; the next stack has the next number."""

QUIET_IPV6 = {"addr_gen_mode": "1", "accept_ra": "0", "router_solicitations": "0"}
"""``/proc/sys/net/ipv6/conf/*``: no link-local address, no router advertisements, no solicitations."""

_PROTOCOLS = {0x8100: ("802.1Q", ""), 0x88A8: ("802.1ad", "s")}

Words = tuple[str, ...]
_NO_SUCH_TYPE = re.compile(r"Unknown device type|not supported", re.IGNORECASE)


class LinuxFrameSetup(FrameSetup):
    """Sets a Linux kernel up."""

    def configure(self, frames: FrameKinds) -> NotForwarded:
        """Configure what the kernel supports; return what it does not, with the missing module."""
        interfaces = tuple(side.interface for side in self._sides)
        prefixes = self._configure_ipv6(interfaces, frames.prefixes)
        if frames.tags:
            self._configure_tags(frames.tags, prefixes)
        if frames.labels:
            self._configure_labels(frames.labels)
        if frames.tags and frames.labels and not {frozenset({"vlan"}), frozenset({"mpls"})} & set(self._not_forwarded):
            self._mark_not_forwarded(one_label_table("a Linux kernel"), "vlan", "mpls")
        return self._not_forwarded

    # -- IPv6 ----------------------------------------------------------------------------------------------------------

    def _configure_ipv6(self, interfaces: Sequence[str], prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the *prefixes* that are configured: all or none."""
        if not prefixes:
            return ()
        key = "net/ipv6/conf/all/forwarding"
        if not self._commands.run_all({"forwarding": ("sysctl", "-n", key)}, optional=("forwarding",))["forwarding"]:
            self._mark_not_forwarded(
                "the router's kernel has no IPv6 (there is no /proc/sys/net/ipv6): its module ipv6 is missing or loaded"
                " with ipv6.disable=1",
                "ipv6",
            )
            return ()
        set_forwarding(self._commands, key, self._notes)
        self._add_ipv6_routes(interfaces, prefixes, self._notes)
        return prefixes

    def _add_ipv6_routes(
        self, interfaces: Sequence[str], prefixes: Iterable[str], notes: list[str], table: int | None = None
    ) -> None:
        for name in interfaces:
            conf = f"net/ipv6/conf/{name}"
            if self._commands.run("sysctl", "-n", f"{conf}/disable_ipv6").strip() != "0":
                for key, value in QUIET_IPV6.items():
                    set_sysctl(self._commands, f"{conf}/{key}", value, notes)
                set_sysctl(self._commands, f"{conf}/disable_ipv6", "0", notes)
        for prefix in prefixes:
            for side, name in zip(self._sides, interfaces, strict=True):
                network, peer = ipv6_network(prefix, side.network), ipv6_address(prefix, side.peer)
                self._add_route_by_neighbour("-6", network, peer, side.peer_mac, name, table)

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _configure_tags(self, stacks: Iterable[tuple[tuple[int, int], ...]], prefixes: tuple[str, ...]) -> None:
        existing = set(link_names(self._commands))
        ignored: list[str] = []  # settings of interfaces created here are not changes of the router
        for table, stack in enumerate(stacks, FIRST_TABLE):
            interfaces = []
            for index, side in enumerate(self._sides):
                try:
                    interfaces.append(self._tagged_interface(index, side.interface, stack, existing))
                except CommandRefused as error:
                    if not _NO_SUCH_TYPE.search(str(error)):
                        raise
                    self._mark_not_forwarded(
                        "the router's kernel supports no VLAN tags: its module 8021q is missing"
                        f" ({_refusal_text(error)})",
                        "vlan",
                    )
                    return
            for side, name in zip(self._sides, interfaces, strict=True):
                set_sysctl(self._commands, f"net/ipv4/conf/{name}/rp_filter", "0", ignored)
                self._add_route_by_neighbour("-4", side.network, side.peer, side.peer_mac, name, table)
                self._add_rule("-4", name, table)
            if prefixes:
                self._add_ipv6_routes(interfaces, prefixes, ignored, table)
                for name in interfaces:
                    self._add_rule("-6", name, table)

    def _tagged_interface(self, index: int, link: str, stack: Iterable[tuple[int, int]], existing: set[str]) -> str:
        """The interface for *stack* on *link*, created unless it exists: ``lr0.100``, ``lr1.s200.100``."""
        name = f"lr{index}"
        for kind, vlan in stack:
            protocol, letter = _PROTOCOLS[kind]
            name += f".{letter}{vlan}"
            if name not in existing:
                made = ("name", name, "type", "vlan", "proto", protocol, "id", str(vlan))
                self._commands.change(("ip", "link", "add", "link", link, *made), ("ip", "link", "del", "dev", name))
                existing.add(name)
                self._commands.change(
                    ("ip", "link", "set", "dev", name, "up"), ("ip", "link", "set", "dev", name, "down")
                )
            else:
                set_up(self._commands, name, self._commands.run("ip", "link", "show", "dev", name))
            link = name
        return name

    def _add_rule(self, family: str, name: str, table: int) -> None:
        rule = ("iif", name, "lookup", str(table))
        if not re.search(rf"\b{re.escape(' '.join(rule))}(\s|$)", self._commands.run("ip", family, "rule", "show")):
            self._commands.change(("ip", family, "rule", "add", *rule), ("ip", family, "rule", "del", *rule))

    # -- labels --------------------------------------------------------------------------------------------------------

    def _configure_labels(self, pairs: Sequence[tuple[int, int]]) -> None:
        limit = "net/mpls/platform_labels"
        output = self._commands.run_all(
            {
                "before": ("sysctl", "-n", limit),
                "load": ("true",) if self._commands.rehearsing else ("modprobe", "-q", "mpls_router"),
                "now": ("sysctl", "-n", limit),
            },
            optional=("before", "load", "now"),
        )
        if not output["now"].strip().isdigit():
            self._mark_not_forwarded(
                "the router's kernel supports no MPLS labels: its module mpls_router is missing (there is no"
                " /proc/sys/net/mpls)",
                "mpls",
            )
            return
        if not output["before"]:
            self._notes.append("the module mpls_router was loaded, and stays loaded")
        exits = labels_by_side(pairs, len(self._sides))
        used = [label for labels in exits for label in labels]
        set_sysctl(self._commands, limit, str(max(int(output["now"]), 1 + max(used))), self._notes)
        for index, side in enumerate(self._sides):
            set_sysctl(self._commands, f"net/mpls/conf/{side.interface}/input", "1", self._notes)
            for label in map(str, exits[index]):
                words = (label, "as", "to", label, "via", "inet", side.peer, "dev", side.interface)
                self._add_route(("-f", "mpls"), words)

    # -- routes ------------------------------------------------------------------------------------------------

    def _add_route_by_neighbour(
        self, family: str, network: str, peer: str, mac: str, name: str, table: int | None
    ) -> None:
        """Set a permanent neighbour and the route through it; ``onlink``: no address of the interface covers it."""
        before = self._commands.run("ip", "neigh", "show", peer, "dev", name)
        set_neighbour(self._commands, peer, mac, name, before)
        in_table = ("table", str(table)) if table else ()
        self._add_route((family,), (network, "via", peer, "dev", name), ("onlink",), in_table)

    def _add_route(self, family: Words, wanted: Words, options: Words = (), table: Words = ()) -> None:
        # showing a table without routes is an error
        shown = {"route": ("ip", *family, "route", "show", wanted[0], *table)}
        before = self._commands.run_all(shown, optional=("route",))["route"]
        set_route(self._commands, family, wanted, before, (*options, *table))


def _refusal_text(error: CommandRefused) -> str:
    """The output of the command, without the advice."""
    found = re.search(r"\(status \d+\): (?:Error: )?(.*?)\.?; check the user's rights", str(error))
    return f"'ip link add … type vlan' reports: {found[1]}" if found else str(error)
