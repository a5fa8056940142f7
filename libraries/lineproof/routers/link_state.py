"""The state of a router's interfaces before configuration: MAC address, up or down, link or no link, its speed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import TestbedError
from ..visible import shortened
from .shell_output import parser

_MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"


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


_BY_CONVENTION = re.compile(
    r"virtio|vtnet|vmxnet|vmx[0-9]|netvsc|hn[0-9]|xen|xn[0-9]|epair|af_packet|veth", re.IGNORECASE
)
"""Names of interfaces and drivers whose speed is a number by convention, and no link's."""


def with_sysfs_speed(state: LinkState, speed: str, device: str) -> LinkState:
    """*state* with the speed that Linux shows: *speed* in Mbit/s, and ``device/uevent`` of its card. "": not read."""
    driver = re.search(r"^DRIVER=(\S+)", device, re.MULTILINE)
    mbps = re.fullmatch(r"\s*([0-9]{1,7})\s*", speed)
    if driver is None or _BY_CONVENTION.search(driver[1]) or not mbps or not int(mbps[1]):
        return state
    return replace(state, speed_bps=int(mbps[1]) * 1e6, speed_from=f"/sys/class/net/{state.interface}/speed")


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
    state = LinkState(interface, mac[1].lower() if mac else "", up, carrier)
    media = re.search(r"^\s*media: (.+)$", text, re.MULTILINE)
    # what is in use is in brackets, after what was chosen
    words = re.search(r"\(([^)]*)\)", media[1]) if media else None
    shown = re.search(r"\b([0-9]{1,6}(?:\.[0-9])?)(G?)base", words[1] if words else media[1] if media else "", re.I)
    if shown is None or _BY_CONVENTION.match(interface):
        return state
    return replace(state, speed_bps=float(shown[1]) * (1e9 if shown[2] else 1e6), speed_from=f"ifconfig {interface}")


@parser("'vppctl show hardware-interfaces'")
def parse_link_states(text: str, interfaces: Sequence[str]) -> tuple[LinkState, ...]:
    """``show hardware-interfaces`` of VPP, which shows the link but not the administrative state."""
    found: dict[str, LinkState] = {}
    name, carrier = "", None
    conventional: set[str] = set()
    for line in text.splitlines():
        if row := re.match(r"(\S+)\s+\d+\s+(up|down)\b", line):
            name, carrier = row[1], row[2] == "up"
            found[name] = LinkState(name, carrier=carrier)
        elif name and (mac := re.search(rf"Ethernet address {_MAC}", line)):
            found[name] = replace(found[name], mac=mac[1].lower())
        elif name and (speed := re.fullmatch(r"\s*Link speed: ([0-9]{1,7}(?:\.[0-9]+)?) ([GMK])bps\s*", line)):
            bps = float(speed[1]) * {"G": 1e9, "M": 1e6, "K": 1e3}[speed[2]]
            found[name] = replace(found[name], speed_bps=bps or None, speed_from="show hardware-interfaces")
        elif name and _BY_CONVENTION.search(line):
            conventional.add(name)
    for each in conventional:
        found[each] = replace(found[each], speed_bps=None, speed_from="")
    # VPP shortens long names in this table
    return tuple(found.get(name, found.get(name[:32], LinkState(name))) for name in interfaces)
