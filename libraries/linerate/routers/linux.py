"""A router that is a Linux kernel: ``/proc``, ``ip`` and ``sysctl``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..counts.telemetry import InterfaceCounters, Telemetry
from ..errors import TestbedError
from ..traffic.frame_kinds import FrameKinds
from .base import Side
from .linux_frames import LinuxFrames
from .linux_losses import IP_DROPS, folded, linux_causes, parse_ethtool, parse_link, parse_qdiscs
from .linux_settings import neighbour, route, sysctl
from .remote import RemoteRouter, checked_side
from .text import first_line


class Linux(RemoteRouter):
    """A :class:`~linerate.routers.base.Router` that is a Linux kernel."""

    def identify(self) -> Mapping[str, str]:
        """Distribution and kernel."""
        said = self._remote.gather({"kernel": ("uname", "-a"), "os": ("cat", "/etc/os-release")}, optional=("os",))
        facts = {"software": "Linux", "kernel": said["kernel"].strip()}
        words = facts["kernel"].split()
        if len(words) < 3:
            raise TestbedError(f"'uname -a' was not understood: '{first_line(said['kernel']) or 'no output'}'")
        facts["version"] = words[2]
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', said["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        return facts

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Addresses, permanent neighbours, routes, forwarding on, reverse-path filter off. Earlier values come back."""
        checked = tuple(map(checked_side, sides))
        for side in checked:
            self._configure(side)
        # after the interfaces: turning forwarding on resets their rp_filter to the default's in some kernels
        sysctl(self._remote, "net/ipv4/ip_forward", "1", self._notes)
        for name in dict.fromkeys(("all", *(side.interface for side in checked))):
            # the kernel takes the larger of 'all' and the interface's own
            sysctl(self._remote, f"net/ipv4/conf/{name}/rp_filter", "0", self._notes)

    def set_up(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Ways for *frames* as well, after :meth:`configure`; what the kernel lacks modules for is :attr:`lacking`."""
        checked = tuple(map(checked_side, sides))
        self._lacking = LinuxFrames(self._remote, checked, self._notes).set_up(frames)

    def _configure(self, side: Side) -> None:
        name, run = side.interface, self._remote
        said = run.gather(
            {
                "link": ("ip", "link", "show", "dev", name),
                "address": ("ip", "-4", "addr", "show", "dev", name),
                "neighbour": ("ip", "neigh", "show", side.peer, "dev", name),
                "route": ("ip", "-4", "route", "show", side.network),
            }
        )
        flags = re.search(r"<([^>]*)>", said["link"])
        if not flags:
            raise TestbedError(f"'ip link show dev {name}' was not understood: '{first_line(said['link'])}'")
        if "UP" not in flags[1].split(","):
            run.change(("ip", "link", "set", "dev", name, "up"), ("ip", "link", "set", "dev", name, "down"))
        if not re.search(rf"\binet {re.escape(side.address)} ", said["address"]):
            change = ("dev", name)
            run.change(("ip", "addr", "add", side.address, *change), ("ip", "addr", "del", side.address, *change))
        neighbour(run, side.peer, side.peer_mac, name, said["neighbour"])
        route(run, (), (side.network, "via", side.peer, "dev", name), said["route"])

    def clear(self) -> None:
        """Nothing: a kernel's counters cannot be reset; their readers take differences."""

    def read(self) -> Telemetry:
        """Counters now."""
        links = {name: ("ip", "-s", "-s", "link", "show", "dev", name) for name in self._interfaces}
        cards = {name: ("ethtool", "-S", name) for name in self._interfaces}
        needed = [("cat", "/proc/uptime"), ("cat", "/proc/net/dev")]
        helpful: list[tuple[str, ...]] = [("cat", f"/proc/net/{name}") for name in ("snmp", "netstat", "softnet_stat")]
        helpful += [*links.values(), ("tc", "-s", "qdisc", "show"), *cards.values()]
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        said = self._remote.gather(commands, optional=[" ".join(argv) for argv in helpful])
        interfaces = parse_net_dev(said["cat /proc/net/dev"])
        for name in self._interfaces:
            if name not in interfaces:
                raise TestbedError(f"the router has no interface '{name}'; it has {', '.join(sorted(interfaces))}")
        ip = {**parse_snmp(said["cat /proc/net/snmp"]), **parse_snmp(said["cat /proc/net/netstat"], "IpExt")}
        drops = {f"ip {name}": count for name, count in ip.items()}
        softnet = said["cat /proc/net/softnet_stat"]
        if softnet:
            drops["softnet backlog full"] = sum(row[1] for row in parse_softnet(softnet))
        causes = linux_causes(
            {**folded(interfaces), **parse_link("".join(said[" ".join(argv)] for argv in links.values()))},
            ip,
            drops.get("softnet backlog full", 0),
            parse_qdiscs(said["tc -s qdisc show"]),
            {name: parse_ethtool(said[" ".join(argv)]) for name, argv in cards.items()},
        )
        return Telemetry(parse_uptime(said["cat /proc/uptime"]), interfaces, drops, (), said, causes=causes)


def parse_uptime(text: str) -> float:
    """``/proc/uptime``: s since boot."""
    found = re.match(r"\s*(\d+\.\d+)\s+\d+\.\d+\s*$", text)
    if not found:
        raise TestbedError(f"/proc/uptime was not understood: '{first_line(text) or 'empty'}'")
    return float(found[1])


def parse_net_dev(text: str) -> Mapping[str, InterfaceCounters]:
    """``/proc/net/dev``. ``drop`` is what the kernel and the NIC's ring dropped (rx_dropped + rx_missed_errors)."""
    found = {}
    lines = text.splitlines()
    if len(lines) < 2 or "face |bytes" not in lines[1]:
        raise TestbedError(f"/proc/net/dev was not understood: '{first_line(text) or 'empty'}'")
    for line in lines[2:]:
        name, colon, rest = line.rpartition(":")
        fields = rest.split()
        if not colon or len(fields) != 16 or not all(field.isdigit() for field in fields):
            raise TestbedError(f"a row of /proc/net/dev was not understood: '{line.strip()}'")
        n = [int(field) for field in fields]
        found[name.strip()] = InterfaceCounters(
            rx_bytes=n[0],
            rx_packets=n[1],
            rx_errors=n[2],
            rx_drops=n[3],
            tx_bytes=n[8],
            tx_packets=n[9],
            tx_errors=n[10],
            tx_drops=n[11],
        )
    return found


def parse_snmp(text: str, protocol: str = "Ip") -> Mapping[str, int]:
    """The :data:`IP_DROPS` of ``/proc/net/snmp`` of this namespace; empty where the kernel does not show them.

    Those of *protocol* ``IpExt`` stand in ``/proc/net/netstat``.
    """
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")]
    if len(rows) != 2:
        return {}
    values = dict(zip(*rows, strict=False))
    return {name: int(values[name]) for name in IP_DROPS if name in values}


def parse_softnet(text: str) -> tuple[tuple[int, ...], ...]:
    """``/proc/net/softnet_stat``: per CPU frames processed, dropped (backlog full), time squeezes, …"""
    try:
        rows = tuple(tuple(int(word, 16) for word in line.split()) for line in text.splitlines() if line.strip())
    except ValueError:
        rows = ()
    if not rows or min(map(len, rows)) < 3:
        raise TestbedError(f"/proc/net/softnet_stat was not understood: '{first_line(text) or 'empty'}'")
    return rows
