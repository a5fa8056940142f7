"""Configures VPP to forward IPv6, tagged and labelled frames.

IPv6: enabled on each side without router advertisements, a static neighbour and a route; no address. Tags: on each side
a sub-interface for each stack of tags, with routing tables of its own, so that tagged frames leave tagged. Labels: each
is swapped for itself, towards the side that its direction leads to. Every command was tried with VPP v26.10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.traffic.frame_kinds import FrameKinds, NotForwarded, ipv6_address, ipv6_network
from ..errors import TestbedError
from .base import Side
from .frame_setup import FrameSetup, labels_by_side, one_label_table
from .vpp_output import has_route, parse_addresses, parse_neighbours

FIRST_TABLE = 29700
"""Routing tables of the first stack of tags, and the number of its sub-interfaces; the next stack has the next one."""

_TAGS = {0x8100: "dot1q", 0x88A8: "dot1ad"}


class VppFrameSetup(FrameSetup):
    """Sets VPP up."""

    _neighbours: frozenset[tuple[str, str, str, bool]] = frozenset()

    def configure(self, frames: FrameKinds) -> NotForwarded:
        """Configure everything that VPP can; return what it cannot, and why."""
        self._neighbours = parse_neighbours(self._show("ip", "neighbors"))
        if frames.prefixes:
            for side in self._sides:
                self._add_ipv6(side, side.interface, frames.prefixes, None)
        for table, stack in enumerate(frames.tags, FIRST_TABLE):
            self._add_stack(table, stack, frames.prefixes)
        if frames.labels:
            self._add_labels(frames.labels)
        if frames.tags and frames.labels:
            self._mark_not_forwarded(one_label_table("VPP, as it is set up here,"), "vlan", "mpls")
        return self._not_forwarded

    # -- IPv6 and tags -------------------------------------------------------------------------------------------------

    def _add_ipv6(self, side: Side, name: str, prefixes: tuple[str, ...], table: int | None) -> None:
        fresh = table is not None and self._commands.rehearsing
        if fresh or "IP6 disabled" in self._show("ip6", "interface", name):
            self._change(f"enable ip6 interface {name}", f"disable ip6 interface {name}")
            # VPP would send router advertisements
            self._change(f"ip6 nd {name} ra-suppress", f"ip6 nd {name} no ra-suppress")
        for prefix in prefixes:
            network, peer = ipv6_network(prefix, side.network), ipv6_address(prefix, side.peer)
            self._add_neighbour(name, peer, side.peer_mac)
            self._add_route("ip6", network, peer, name, table)

    def _add_stack(self, table: int, stack: Sequence[tuple[int, int]], prefixes: tuple[str, ...]) -> None:
        if len(stack) > 2 or any(kind != 0x8100 for kind, _ in stack[1:]):
            self._mark_not_forwarded("VPP matches at most two tags, the inner one of 802.1Q", "vlan")
            return
        families = ("ip", "ip6") if prefixes else ("ip",)
        up, addresses = parse_addresses(self._show("interface", "address"))
        for family in families:
            if f"table_id:{table} " not in self._show(family, "table"):
                self._change(f"{family} table add {table}", f"{family} table del {table}")
        for side in self._sides:
            name = f"{side.interface}.{table}"
            if name not in up:
                self._create(side.interface, name, table, stack)
                for family in families:
                    words = f"set interface {family} table {name}"
                    self._change(f"{words} {table}", f"{words} 0")
            if not up.get(name):
                self._change(f"set interface state {name} up", f"set interface state {name} down")
            if (name, side.address) not in addresses:
                # without an address it takes no IPv4; in a table of its own it may be the same one
                address = f"{name} {side.address}"
                self._change(f"set interface ip address {address}", f"set interface ip address del {address}")
            self._add_neighbour(name, side.peer, side.peer_mac)
            self._add_route("ip", side.network, side.peer, name, table)
            if prefixes:
                self._add_ipv6(side, name, prefixes, table)

    def _create(self, link: str, name: str, number: int, stack: Sequence[tuple[int, int]]) -> None:
        (kind, vlan), *inner = stack
        tags = f"{_TAGS[kind]} {vlan}" + "".join(f" inner-dot1q {inner_vlan}" for _, inner_vlan in inner)
        command = f"create sub-interfaces {link} {number} {tags} exact-match"
        # it prints the new name, so that its output says only here whether it failed
        self._commands.change(("vppctl", *command.split()), ("vppctl", "delete", "sub-interface", name))
        if not self._commands.rehearsing and name not in parse_addresses(self._show("interface", "address"))[0]:
            raise TestbedError(
                f"VPP did not make {name} for {tags} ('{command}'): another sub-interface of {link} may have these"
                " tags; remove it, or leave 'vlan' out of 'set_up' in the testbed's file"
            )

    # -- labels --------------------------------------------------------------------------------------------------------

    def _add_labels(self, pairs: Sequence[tuple[int, int]]) -> None:
        exits = labels_by_side(pairs, len(self._sides))
        if "MPLS-VRF:0" not in self._show("mpls", "fib", str(pairs[0][0])):
            self._change("mpls table add 0", "mpls table del 0")
        enabled = set(re.findall(r"^(\S+)\s*$", self._show("mpls", "interface"), re.MULTILINE))
        for side in self._sides:
            if side.interface not in enabled:
                words = f"set interface mpls {side.interface}"
                self._change(f"{words} enable", f"{words} disable")
        for side, labels in zip(self._sides, exits, strict=True):
            for label in labels:
                shown = self._show("mpls", "fib", str(label))
                for bottom in ("eos", "non-eos"):
                    if not _has_label(shown, label, bottom, side):
                        row = f"{bottom} {label} via {side.peer} {side.interface} out-labels {label}"
                        self._change(f"mpls local-label add {row}", f"mpls local-label del {row}")

    # -- neighbours and routes -----------------------------------------------------------------------------------------

    def _add_neighbour(self, name: str, peer: str, mac: str) -> None:
        if (name, peer, mac, True) in self._neighbours:
            return
        before = next((row[2] for row in self._neighbours if row[:2] == (name, peer) and row[3]), None)
        undo = f"{name} {peer} {before} static" if before else f"del {name} {peer} {mac}"
        self._change(f"set ip neighbor {name} {peer} {mac} static", f"set ip neighbor {undo}")

    def _add_route(self, family: str, network: str, peer: str, name: str, table: int | None) -> None:
        within = ("table", str(table)) if table else ()
        shown = "" if within and self._commands.rehearsing else self._show(family, "fib", *within, network)
        if not has_route(shown, network, peer, table or 0):
            row = " ".join((network, *within, "via", peer, name))
            self._change(f"ip route add {row}", f"ip route del {row}")

    def _show(self, *words: str) -> str:
        return self._commands.run("vppctl", "show", *words)

    def _change(self, command: str, undo: str) -> None:
        self._commands.change(("vppctl", *command.split()), ("vppctl", *undo.split()), silent=True)


def _has_label(shown: str, label: int, bottom: str, side: Side) -> bool:
    """Whether ``show mpls fib LABEL`` has this label, of the bottom of the stack or not, towards the side's peer."""
    kind = {"eos": "eos", "non-eos": "neos"}[bottom]
    for block in re.split(r"^(?=\d+:)", shown, flags=re.MULTILINE):
        if block.startswith(f"{label}:{kind}/"):
            return f"{side.peer} {side.interface}" in block and f"labels:[[{label} " in block
    return False
