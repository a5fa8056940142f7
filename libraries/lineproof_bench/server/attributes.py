"""Port attributes that clients set; those that a card does not have are refused in TRex's words."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from .params import Params, bad_parameter, refused

OF_SOME_CARDS: dict[str, Callable[[Params], Any]] = {
    "link_status": lambda row: row.boolean("up"),
    "led_status": lambda row: row.boolean("on"),
    "flow_ctrl_mode": lambda row: row.integer("mode", most=3),
}
"""Attributes that only some cards have, and how a value is read."""


class PortAttributes:
    """``promiscuous``, ``multicast``, ``link`` (False: switched off), ``flow_control`` (RTE_ETH_FC_*; -1: not known).

    *refuses*: those of OF_SOME_CARDS, and ``vxlan_fs``, that the card does not have.
    """

    def __init__(self, refuses: Collection[str], flow_control: int) -> None:
        self._refuses = refuses
        self.promiscuous = False
        self.multicast = False
        self.link = True
        self.flow_control = flow_control

    def set(self, attributes: Params) -> None:
        """``set_port_attr``, one after the other. Raises RpcError at the first that cannot be set."""
        for name in attributes.data:
            if name == "promiscuous":
                self.promiscuous = attributes.object(name).boolean("enabled")
            elif name == "multicast":
                self.multicast = attributes.object(name).boolean("enabled")
            elif name in OF_SOME_CARDS:
                self._set(name, OF_SOME_CARDS[name](attributes.object(name)))
            elif name == "vxlan_fs":
                if attributes.integers(name) and name in self._refuses:
                    raise _unsupported(name)
            else:
                raise refused(f"unknown attribute type: '{name:.40}'")

    def _set(self, name: str, value: Any) -> None:
        if name in self._refuses:
            raise _unsupported(name)
        if name == "link_status":
            self.link = value
        elif name == "flow_ctrl_mode":
            self.flow_control = value


def _unsupported(name: str) -> Exception:
    return refused(f"Error applying {name}: operation is not supported for this NIC.")


class VlanTags:
    """VLAN tags of a port's own services (ARP, ping): streams carry theirs in their frames."""

    def __init__(self) -> None:
        self.tags: list[int] = []

    def set(self, params: Params) -> None:
        """``set_vlan``. Raises RpcError for more than two tags, or those outside 1…4095."""
        tags = params.integers("vlan")
        if len(tags) > 2:
            raise bad_parameter(f"invalid number of VLAN tags: {len(tags)}")
        for tag in tags:
            if not 1 <= tag <= 4095:
                raise bad_parameter(f"invalid VLAN tag: '{tag}'")
        self.tags = tags
