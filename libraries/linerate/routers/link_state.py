"""The state of a router's interfaces before configuration: MAC address, up or down, link or no link."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import TestbedError
from ..visible import shortened
from .base import Shell
from .changes import Change
from .shell_commands import EXCHANGE_LIMIT, ShellCommands
from .shell_output import parser
from .sides import validated_interface

_MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"


@dataclass(frozen=True, slots=True)
class LinkState:
    """``mac`` in lower case, "" if unknown; ``up``: administratively; ``carrier``: there is a link. None: unknown."""

    interface: str
    mac: str = ""
    up: bool | None = None
    carrier: bool | None = None


_MOVES_LINKS = re.compile(
    r"ip link set dev \S+ up|ethtool -[LGK] .*|ifconfig \S+ (?:up|-?(?:lro|tso).*)|vppctl set interface state \S+ up"
)
"""Changes after which a link may be negotiated anew: cards are reset for other queues, rings and offloads."""


def moves_link(change: Change) -> bool:
    """Whether a link may have gone or come by *change*; of a described router nothing is known, so that it may."""
    return change.lines or _MOVES_LINKS.fullmatch(" ".join(change.do)) is not None


def read_link_states(
    kind: Literal["vpp", "linux", "freebsd", "generic", "none"],
    shell: Shell,
    interfaces: Sequence[str],
    sudo: bool = False,
) -> tuple[LinkState, ...]:
    """The state of each of *interfaces* of a router of *kind*; of ``generic`` nothing is known.

    Raises TestbedError if the router does not answer.
    """
    if kind in ("generic", "none"):
        return tuple(map(LinkState, interfaces))
    names, commands = [validated_interface(name) for name in interfaces], ShellCommands(shell, EXCHANGE_LIMIT, sudo)
    if kind == "vpp":
        return parse_hardware(commands.run("vppctl", "show", "hardware-interfaces"), names)
    argv = ("ip", "link", "show", "dev") if kind == "linux" else ("ifconfig",)
    output = commands.run_all({name: (*argv, name) for name in names})
    read = parse_ip_link if kind == "linux" else parse_ifconfig
    return tuple(read(output[name], name) for name in names)


@parser("'ip link show'")
def parse_ip_link(text: str, interface: str) -> LinkState:
    """``ip link show dev X``. Raises TestbedError for other text."""
    flags = re.search(r"<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ip link show dev {interface}' was not understood: '{shortened(text.strip())}'")
    words, mac = flags[1].split(","), re.search(rf"link/ether {_MAC}", text)
    up = "UP" in words
    return LinkState(interface, mac[1].lower() if mac else "", up, "NO-CARRIER" not in words if up else None)


@parser("'ifconfig'")
def parse_ifconfig(text: str, interface: str) -> LinkState:
    """``ifconfig X`` of FreeBSD. Raises TestbedError for other text."""
    flags = re.search(r"flags=[0-9a-fA-F]+<([^>]*)>", text)
    if flags is None:
        raise TestbedError(f"'ifconfig {interface}' was not understood: '{shortened(text.strip())}'")
    mac, status = re.search(rf"\bether {_MAC}", text), re.search(r"^\s*status: (.+?)\s*$", text, re.MULTILINE)
    up = "UP" in flags[1].split(",")
    carrier = status[1] == "active" if status and up else None
    return LinkState(interface, mac[1].lower() if mac else "", up, carrier)


@parser("'vppctl show hardware-interfaces'")
def parse_hardware(text: str, interfaces: Sequence[str]) -> tuple[LinkState, ...]:
    """``show hardware-interfaces`` of VPP, which shows the link but not the administrative state."""
    found: dict[str, LinkState] = {}
    name, carrier = "", None
    for line in text.splitlines():
        if row := re.match(r"(\S+)\s+\d+\s+(up|down)\b", line):
            name, carrier = row[1], row[2] == "up"
            found[name] = LinkState(name, carrier=carrier)
        elif name and (mac := re.search(rf"Ethernet address {_MAC}", line)):
            found[name] = LinkState(name, mac[1].lower(), carrier=carrier)
    # VPP shortens long names in this table
    return tuple(found.get(name, found.get(name[:32], LinkState(name))) for name in interfaces)
