"""A router's interfaces as they are before anything is configured: MAC address, up or down, link or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import TestbedError
from .base import Shell
from .remote import LIMIT, Remote, checked_interface

_MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"


@dataclass(frozen=True, slots=True)
class LinkState:
    """``mac`` in lower case, "" where it is not told; ``up``: taken up by somebody; ``carrier``: the cable's other end
    is there. None: not told.
    """

    interface: str
    mac: str = ""
    up: bool | None = None
    carrier: bool | None = None


def link_states(
    kind: Literal["vpp", "linux", "freebsd"], shell: Shell, interfaces: Sequence[str], sudo: bool = False
) -> tuple[LinkState, ...]:
    """The state of each of *interfaces* of a router of *kind*. Raises TestbedError where it cannot be asked."""
    names, remote = [checked_interface(name) for name in interfaces], Remote(shell, LIMIT, sudo)
    if kind == "vpp":
        return parse_hardware(remote.run("vppctl", "show", "hardware-interfaces"), names)
    argv = ("ip", "link", "show", "dev") if kind == "linux" else ("ifconfig",)
    said = remote.gather({name: (*argv, name) for name in names})
    read = parse_ip_link if kind == "linux" else parse_ifconfig
    return tuple(read(said[name], name) for name in names)


def parse_ip_link(text: str, interface: str) -> LinkState:
    """``ip link show dev X``. Raises TestbedError where it is not understood."""
    flags = re.search(r"<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ip link show dev {interface}' was not understood: '{text.strip()[:80]}'")
    words, mac = flags[1].split(","), re.search(rf"link/ether {_MAC}", text)
    up = "UP" in words
    return LinkState(interface, mac[1].lower() if mac else "", up, "NO-CARRIER" not in words if up else None)


def parse_ifconfig(text: str, interface: str) -> LinkState:
    """``ifconfig X`` of FreeBSD. Raises TestbedError where it is not understood."""
    flags = re.search(r"flags=[0-9a-fA-F]+<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ifconfig {interface}' was not understood: '{text.strip()[:80]}'")
    mac, status = re.search(rf"\bether {_MAC}", text), re.search(r"^\s*status: (.+?)\s*$", text, re.MULTILINE)
    up = "UP" in flags[1].split(",")
    carrier = status[1] == "active" if status and up else None
    return LinkState(interface, mac[1].lower() if mac else "", up, carrier)


def parse_hardware(text: str, interfaces: Sequence[str]) -> tuple[LinkState, ...]:
    """``show hardware-interfaces`` of VPP, which tells the link and not whether an interface was taken up."""
    found: dict[str, LinkState] = {}
    name, carrier = "", None
    for line in text.splitlines():
        if row := re.match(r"(\S+)\s+\d+\s+(up|down)\b", line):
            name, carrier = row[1], row[2] == "up"
            found[name] = LinkState(name, carrier=carrier)
        elif name and (mac := re.search(rf"Ethernet address {_MAC}", line)):
            found[name] = LinkState(name, mac[1].lower(), carrier=carrier)
    # VPP cuts long names in this table
    return tuple(found.get(name, found.get(name[:32], LinkState(name))) for name in interfaces)
