"""A Linux router: ``/proc``, ``ip`` and ``sysctl``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds
from ..core.under_load import RouterLoad, SampledStacks
from ..platforms import Tuning
from .base import Side
from .fact_reading import Answers, kernel_facts, linux_boot_id
from .linux_facts import read_linux_facts
from .linux_frames import LinuxFrameSetup
from .linux_load import linux_load
from .linux_losses import (
    interface_counters,
    linux_causes,
    parse_ethtool,
    parse_ethtool_pauses,
    parse_links,
    parse_qdiscs,
)
from .linux_output import parse_snmp, parse_softnet, parse_uptime
from .linux_settings import set_forwarding, set_neighbour, set_route, set_sysctl, set_up
from .neighbours import linux_neighbours
from .shell_router import ShellRouter
from .sides import validated_side
from .stacks import perf_stacks
from .tuning import tune_linux

_LINKS = ("ip", "-j", "-s", "-s", "link", "show")


class Linux(ShellRouter):
    """A :class:`~lineproof.routers.base.Router` that is a Linux kernel."""

    def identify(self) -> Mapping[str, str]:
        """Distribution and kernel."""
        output = self._commands.run_all({"kernel": ("uname", "-a"), "os": ("cat", "/etc/os-release")}, optional=("os",))
        facts = kernel_facts("Linux", output["kernel"])
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', output["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        return facts

    def boot_id(self) -> str:
        """See :meth:`..base.Router.boot_id`."""
        return linux_boot_id(self._commands)

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_linux_facts(Answers(self._commands), self._interfaces)

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        """See :meth:`..base.Router.under_load`."""
        return linux_load(Answers(self._commands), self._interfaces, wait)

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """See :meth:`..base.Router.sample_stacks`."""
        return perf_stacks(self._commands, seconds)

    def tune(self, tuning: Tuning) -> None:
        """Set queues, rings, offloads and kernel variables of *tuning*, and read them back."""
        tune_linux(self._commands, self._interfaces, tuning, self._notes)

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Set addresses, permanent neighbours and routes; forwarding on, reverse-path filter off."""
        checked = tuple(map(validated_side, sides))
        for side in checked:
            self._configure_side(side)
        # first forwarding: in some kernels it resets each interface's rp_filter to the default
        set_forwarding(self._commands, "net/ipv4/ip_forward", self._notes)
        for name in dict.fromkeys(("all", *(side.interface for side in checked))):
            # the kernel uses the larger value of 'all' and the interface
            set_sysctl(self._commands, f"net/ipv4/conf/{name}/rp_filter", "0", self._notes)

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Let the kernel forward *frames* as well; frames whose module is missing are in :attr:`not_forwarded`."""
        checked = tuple(map(validated_side, sides))
        self._not_forwarded = LinuxFrameSetup(self._commands, checked, self._notes).configure(frames)

    def _configure_side(self, side: Side) -> None:
        name, run = side.interface, self._commands
        output = run.run_all(
            {
                "link": ("ip", "link", "show", "dev", name),
                "address": ("ip", "-4", "addr", "show", "dev", name),
                "neighbour": ("ip", "neigh", "show", side.peer, "dev", name),
                "route": ("ip", "-4", "route", "show", side.network),
            }
        )
        set_up(run, name, output["link"])
        if not re.search(rf"\binet {re.escape(side.address)} ", output["address"]):
            address = (side.address, "dev", name)
            run.change(("ip", "addr", "add", *address), ("ip", "addr", "del", *address))
        set_neighbour(run, side.peer, side.peer_mac, name, output["neighbour"])
        set_route(run, (), (side.network, "via", side.peer, "dev", name), output["route"])

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        return linux_neighbours(self._commands, sides)

    def read(self) -> Telemetry:
        """Read counters now."""
        cards = {name: ("ethtool", "-S", name) for name in self._interfaces}
        needed = [("cat", "/proc/uptime"), _LINKS]
        helpful: list[tuple[str, ...]] = [("cat", f"/proc/net/{name}") for name in ("snmp", "netstat", "softnet_stat")]
        helpful += [("tc", "-s", "qdisc", "show"), *cards.values()]
        commands = {" ".join(argv): argv for argv in (*needed, *helpful)}
        output = self._commands.run_all(commands, optional=[" ".join(argv) for argv in helpful])
        links = parse_links(output[" ".join(_LINKS)])
        interfaces = {name: interface_counters(link) for name, link in links.items()}
        self._require_interfaces(interfaces, hint=" (Linux does not have what VPP holds: for that 'shell: vpp')")
        ip = {**parse_snmp(output["cat /proc/net/snmp"]), **parse_snmp(output["cat /proc/net/netstat"], "IpExt")}
        drops = {f"ip {name}": count for name, count in ip.items()}
        softnet = output["cat /proc/net/softnet_stat"]
        if softnet:
            drops["softnet backlog full"] = sum(row[1] for row in parse_softnet(softnet))
        causes = linux_causes(
            links,
            ip,
            drops.get("softnet backlog full", 0),
            [row for row in parse_qdiscs(output["tc -s qdisc show"]) if row.interface in self._interfaces],
            {name: parse_ethtool(output[" ".join(argv)]) for name, argv in cards.items()},
        )
        pauses = {name: parse_ethtool_pauses(output[" ".join(argv)]) for name, argv in cards.items()}
        uptime = parse_uptime(output["cat /proc/uptime"])
        return Telemetry(uptime, interfaces, drops, (), output, causes=causes, pauses=pauses)
