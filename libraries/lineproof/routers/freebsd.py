"""A FreeBSD or pfSense router: ``netstat``, ``sysctl``, ``ifconfig``, ``route``, ``arp``, ``pfctl``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import InterfaceCounters, Telemetry
from ..core.traffic.frame_kinds import FrameKinds
from ..core.under_load import RouterLoad, SampledStacks
from ..errors import TestbedError
from ..platforms import Tuning
from .base import Side
from .configured_output import parse_inet
from .fact_reading import Answers, kernel_facts
from .freebsd_facts import read_freebsd_facts
from .freebsd_frames import FreeBsdFrameSetup, set_forwarding
from .freebsd_load import freebsd_load
from .freebsd_losses import freebsd_causes, parse_device, parse_device_pauses, parse_expired, parse_ip, sysctl_subtree
from .neighbours import freebsd_neighbours
from .shell_output import counter_value, first_line, parser
from .shell_router import ShellRouter
from .sides import validated_side
from .stacks import pmcstat_stacks
from .tuning import tune_freebsd

FORWARDING = "net.inet.ip.forwarding"


class FreeBsd(ShellRouter):
    """A :class:`~lineproof.routers.base.Router` that is FreeBSD."""

    def identify(self) -> Mapping[str, str]:
        """Kernel; on pfSense also its version."""
        output = self._commands.run_all(
            {"kernel": ("uname", "-a"), "platform": ("cat", "/etc/platform"), "version": ("cat", "/etc/version")},
            optional=("platform", "version"),
        )
        facts = kernel_facts("FreeBSD", output["kernel"])
        # pfSense 2.2 and later write their name here; a plain FreeBSD has no such file
        if output["platform"].strip().lower().startswith("pfsense"):
            system = " ".join(facts["kernel"].split()[:3:2])
            facts |= {"software": "pfSense", "version": output["version"].strip(), "operating system": system}
        return facts

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_freebsd_facts(Answers(self._commands), self._interfaces)

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        """See :meth:`..base.Router.under_load`."""
        return freebsd_load(Answers(self._commands), self._interfaces, wait)

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """See :meth:`..base.Router.sample_stacks`."""
        return pmcstat_stacks(self._commands, seconds)

    def tune(self, tuning: Tuning) -> None:
        """Set queues, rings, offloads and kernel variables of *tuning*, and read them back."""
        tune_freebsd(self._commands, self._interfaces, tuning, self._notes)

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Set addresses (as aliases, none is replaced), static neighbours, routes; forwarding on, packet filter off."""
        for side in map(validated_side, sides):
            self._configure_side(side)
        output = self._commands.run_all(
            {"forwarding": ("sysctl", "-n", FORWARDING), "pf": ("pfctl", "-s", "info")}, optional=("pf",)
        )
        set_forwarding(self._commands, FORWARDING, output["forwarding"], self._notes)
        if re.search(r"^Status: Enabled", output["pf"], re.MULTILINE):
            self._commands.change(("pfctl", "-d"), ("pfctl", "-e"))
            self._notes.append("the packet filter was switched off for the test (pfctl -d): forwarding without pf")

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Let the kernel forward IPv6 as well; frames that are not set up are in :attr:`not_forwarded`."""
        checked = tuple(map(validated_side, sides))
        self._not_forwarded = FreeBsdFrameSetup(self._commands, checked, self._notes).configure(frames)

    def _configure_side(self, side: Side) -> None:
        name, run = side.interface, self._commands
        output = run.run_all(
            {"interface": ("ifconfig", name), "neighbours": ("arp", "-an"), "routes": ("netstat", "-rnW", "-f", "inet")}
        )
        flags = re.search(r"flags=[0-9a-f]+<([^>]*)>", output["interface"])
        if not flags:
            raise TestbedError(f"'ifconfig {name}' was not understood: '{first_line(output['interface'])}'")
        if "UP" not in flags[1].split(","):
            run.change(("ifconfig", name, "up"), ("ifconfig", name, "down"))
        address = ipaddress.IPv4Interface(side.address)
        there = parse_inet(output["interface"])
        if (str(address.ip), address.network.prefixlen) not in there:
            # the address with another prefix is not added, but gets the new one
            former = next((f"{ip}/{length}" for ip, length in there if ip == str(address.ip)), None)
            undo = (former, "alias") if former else (str(address.ip), "-alias")
            run.change(("ifconfig", name, "inet", side.address, "alias"), ("ifconfig", name, "inet", *undo))
        entry = re.search(rf"\({re.escape(side.peer)}\) at (\S+) on \S+( permanent)?", output["neighbours"])
        if not (entry and entry[1].lower() == side.peer_mac and entry[2]):
            forget: tuple[str, ...] = ("arp", "-d", side.peer)
            if entry and entry[2]:
                forget = ("arp", "-S", side.peer, entry[1])
            run.change(("arp", "-S", side.peer, side.peer_mac), forget)
        self._route(side, output["routes"])

    def _route(self, side: Side, table: str) -> None:
        gateways = [row[1] for row in map(str.split, table.splitlines()) if row[:1] == [side.network]]
        if len(gateways) > 1:
            raise TestbedError(
                f"FreeBSD has {len(gateways)} routes to {side.network}, via {', '.join(gateways)}, and shares the"
                " traffic between them; remove them for the test ('route delete'), or choose another 'network' of this"
                " side"
            )
        gateway = next(iter(gateways), None)
        if gateway == side.peer:
            return
        if gateway is None:
            run, undo = "add", ("route", "delete", "-net", side.network, side.peer)
        else:
            run, undo = "change", ("route", "change", "-net", side.network, gateway)
        self._commands.change(("route", run, "-net", side.network, side.peer), undo)

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        return freebsd_neighbours(self._commands, sides)

    def read(self) -> Telemetry:
        """Read counters now. ``uptime`` to the second."""
        devices = {name: ("sysctl", device) for name in self._interfaces if (device := sysctl_subtree(name))}
        needed: list[tuple[str, ...]] = [("date", "+%s"), ("sysctl", "-n", "kern.boottime"), ("netstat", "-ibndW")]
        helpful: list[tuple[str, ...]] = [("netstat", "-s", "-p", name) for name in ("ip", "icmp")]
        helpful += devices.values()
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        output = self._commands.run_all(commands, optional=[" ".join(argv) for argv in helpful])
        interfaces = parse_netstat(output["netstat -ibndW"])
        self._require_interfaces(interfaces)
        ip = parse_ip(output["netstat -s -p ip"])
        return Telemetry(
            uptime=parse_boottime(output["sysctl -n kern.boottime"], output["date +%s"]),
            interfaces=interfaces,
            drops={f"ip {words}": count for words, count in ip.items()},
            raw=output,
            causes=freebsd_causes(
                interfaces,
                ip,
                parse_expired(output["netstat -s -p icmp"]),
                {name: parse_device(output[" ".join(argv)], name) for name, argv in devices.items()},
            ),
            pauses={name: parse_device_pauses(output[" ".join(argv)], name) for name, argv in devices.items()},
        )


@parser("kern.boottime")
def parse_boottime(boottime: str, now: str) -> float:
    """s since boot, from ``kern.boottime`` and the router's own ``date +%s``."""
    boot, clock = re.search(r"sec = (\d+)", boottime), now.strip()
    if not boot or not clock.isdigit():
        raise TestbedError(f"kern.boottime was not understood: '{first_line(boottime) or 'no output'}'")
    since = counter_value(clock) - counter_value(boot[1])
    if since < 0:
        raise ValueError("a boot in the future")
    return float(since)


@parser("'netstat -ibnd'")
def parse_netstat(text: str) -> Mapping[str, InterfaceCounters]:
    """``netstat -ibnd``: the link-level row of each interface. Columns are found by their titles, from the right.

    ``Idrop``: frames lost by the NIC's ring or the input queue; ``Drop``: by the output queue.
    """
    lines = text.splitlines()
    titles = lines[0].split() if lines else []
    if titles[:4] != ["Name", "Mtu", "Network", "Address"] or "Ibytes" not in titles:
        raise TestbedError(f"'netstat -ibnd' was not understood: '{first_line(text) or 'no output'}'")
    columns = titles[4:]
    found = {}
    for line in lines[1:]:
        words = line.split()
        # the address may be missing; rows of IP addresses repeat the interface with other counts
        if len(words) < 3 or not words[2].startswith("<Link#"):
            continue
        try:
            values = dict(zip(columns, map(counter_value, words[-len(columns) :]), strict=True))
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
