"""A router that is FreeBSD or pfSense: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from ..counts.telemetry import InterfaceCounters, Telemetry
from ..errors import TestbedError
from .base import Side
from .freebsd_losses import device_of, freebsd_causes, parse_device, parse_expired, parse_ip
from .remote import RemoteRouter, checked_side
from .text import first_line

FORWARDING = "net.inet.ip.forwarding"


class FreeBsd(RemoteRouter):
    """A :class:`~linerate.routers.base.Router` that is FreeBSD. *interfaces*: those under test, which must exist."""

    def identify(self) -> Mapping[str, str]:
        """Kernel, and on pfSense its version."""
        said = self._remote.gather(
            {"kernel": ("uname", "-a"), "platform": ("cat", "/etc/platform"), "version": ("cat", "/etc/version")},
            optional=("platform", "version"),
        )
        facts = {"software": "FreeBSD", "kernel": said["kernel"].strip()}
        words = facts["kernel"].split()
        if len(words) < 3:
            raise TestbedError(f"'uname -a' was not understood: '{first_line(said['kernel']) or 'no output'}'")
        facts["version"] = words[2]
        # pfSense 2.2 and later write their name here; a plain FreeBSD has no such file
        if said["platform"].strip().lower().startswith("pfsense"):
            facts |= {
                "software": "pfSense",
                "version": said["version"].strip(),
                "operating system": " ".join(words[:3:2]),
            }
        return facts

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Addresses (as aliases: none is replaced), static neighbours, routes, forwarding on, packet filter off."""
        for side in map(checked_side, sides):
            self._configure(side)
        said = self._remote.gather(
            {"forwarding": ("sysctl", "-n", FORWARDING), "pf": ("pfctl", "-s", "info")}, optional=("pf",)
        )
        before = said["forwarding"].strip()
        if not before.isdigit():
            raise TestbedError(f"'sysctl -n {FORWARDING}' was not understood: '{before}'")
        if before != "1":
            self._remote.change(("sysctl", f"{FORWARDING}=1"), ("sysctl", f"{FORWARDING}={before}"))
            self._notes.append(f"{FORWARDING} set from {before} to 1 for the test")
        if re.search(r"^Status: Enabled", said["pf"], re.MULTILINE):
            self._remote.change(("pfctl", "-d"), ("pfctl", "-e"))
            self._notes.append("the packet filter was switched off for the test (pfctl -d): forwarding without pf")

    def _configure(self, side: Side) -> None:
        name, run = side.interface, self._remote
        said = run.gather(
            {
                "interface": ("ifconfig", name),
                "neighbours": ("arp", "-an"),
                "routes": ("netstat", "-rnW", "-f", "inet"),
            }
        )
        flags = re.search(r"flags=[0-9a-f]+<([^>]*)>", said["interface"])
        if not flags:
            raise TestbedError(f"'ifconfig {name}' was not understood: '{first_line(said['interface'])}'")
        if "UP" not in flags[1].split(","):
            run.change(("ifconfig", name, "up"), ("ifconfig", name, "down"))
        address = ipaddress.IPv4Interface(side.address)
        if (str(address.ip), address.network.prefixlen) not in parse_inet(said["interface"]):
            alias = ("ifconfig", name, "inet", str(address.ip))
            run.change(("ifconfig", name, "inet", side.address, "alias"), (*alias, "-alias"))
        entry = re.search(rf"\({re.escape(side.peer)}\) at (\S+) on \S+( permanent)?", said["neighbours"])
        if not (entry and entry[1].lower() == side.peer_mac and entry[2]):
            undo: tuple[str, ...] = ("arp", "-d", side.peer)
            if entry and entry[2]:
                undo = ("arp", "-S", side.peer, entry[1])
            run.change(("arp", "-S", side.peer, side.peer_mac), undo)
        self._route(side, said["routes"])

    def _route(self, side: Side, table: str) -> None:
        gateway = next((row[1] for row in map(str.split, table.splitlines()) if row[:1] == [side.network]), None)
        if gateway == side.peer:
            return
        if gateway is None:
            run, undo = "add", ("route", "delete", "-net", side.network, side.peer)
        else:
            run, undo = "change", ("route", "change", "-net", side.network, gateway)
        self._remote.change(("route", run, "-net", side.network, side.peer), undo)

    def clear(self) -> None:
        """Nothing: a kernel's counters cannot be reset; their readers take differences."""

    def read(self) -> Telemetry:
        """Counters now. ``uptime`` to the second."""
        devices = {name: ("sysctl", device) for name in self._interfaces if (device := device_of(name))}
        needed: list[tuple[str, ...]] = [("date", "+%s"), ("sysctl", "-n", "kern.boottime"), ("netstat", "-ibndW")]
        helpful: list[tuple[str, ...]] = [
            ("netstat", "-s", "-p", "ip"),
            ("netstat", "-s", "-p", "icmp"),
            *devices.values(),
        ]
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        said = self._remote.gather(commands, optional=[" ".join(argv) for argv in helpful])
        interfaces = parse_netstat(said["netstat -ibndW"])
        for name in self._interfaces:
            if name not in interfaces:
                raise TestbedError(f"the router has no interface '{name}'; it has {', '.join(sorted(interfaces))}")
        ip = parse_ip(said["netstat -s -p ip"])
        return Telemetry(
            uptime=parse_boottime(said["sysctl -n kern.boottime"], said["date +%s"]),
            interfaces=interfaces,
            drops={f"ip {words}": count for words, count in ip.items()},
            raw=said,
            causes=freebsd_causes(
                interfaces,
                ip,
                parse_expired(said["netstat -s -p icmp"]),
                {name: parse_device(said[" ".join(argv)], name) for name, argv in devices.items()},
            ),
        )


def parse_inet(text: str) -> frozenset[tuple[str, int]]:
    """The IPv4 (address, prefix length) pairs that ``ifconfig`` shows; netmask in hexadecimal, dotted or CIDR form."""
    found = set()
    for row in re.finditer(r"\binet (\d+\.\d+\.\d+\.\d+)(?:/(\d+)|.*? netmask (\S+))", text):
        mask = row[3]
        if row[2]:
            length = int(row[2])
        elif mask.startswith("0x"):
            length = int(mask, 16).bit_count()
        else:
            length = int(ipaddress.IPv4Address(mask)).bit_count()
        found.add((row[1], length))
    return frozenset(found)


def parse_boottime(boottime: str, now: str) -> float:
    """s since boot, from ``kern.boottime`` and the router's own ``date +%s``."""
    boot, clock = re.search(r"sec = (\d+)", boottime), now.strip()
    if not boot or not clock.isdigit():
        raise TestbedError(f"kern.boottime was not understood: '{first_line(boottime) or 'no output'}'")
    return float(int(clock) - int(boot[1]))


def parse_netstat(text: str) -> Mapping[str, InterfaceCounters]:
    """``netstat -ibnd``: the link-level row of each interface. Columns are found by their titles, from the right.

    ``Idrop`` counts frames that the NIC's ring or the input queue lost, ``Drop`` those of the output queue.
    """
    lines = text.splitlines()
    titles = lines[0].split() if lines else []
    if titles[:4] != ["Name", "Mtu", "Network", "Address"] or "Ibytes" not in titles:
        raise TestbedError(f"'netstat -ibnd' was not understood: '{first_line(text) or 'no output'}'")
    columns = titles[4:]
    found = {}
    for line in lines[1:]:
        words = line.split()
        # the address may be missing, and rows of IP addresses repeat the interface with counts of their own
        if len(words) < 3 or not words[2].startswith("<Link#"):
            continue
        try:
            values = dict(zip(columns, map(int, words[-len(columns) :]), strict=True))
        except ValueError:
            raise TestbedError(f"a row of 'netstat -ibnd' was not understood: '{line.strip()}'") from None
        found[words[0].rstrip("*")] = InterfaceCounters(
            rx_packets=values["Ipkts"],
            rx_bytes=values["Ibytes"],
            tx_packets=values["Opkts"],
            tx_bytes=values["Obytes"],
            rx_drops=values.get("Idrop", 0),
            tx_drops=values.get("Drop", 0),
            rx_errors=values["Ierrs"],
            tx_errors=values["Oerrs"],
        )
    return found
