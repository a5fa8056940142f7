"""A Linux router: ``/proc``, ``ip`` and ``sysctl``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...core.neighbours import NeighbourEntry
from ...core.router_facts import RouterFacts
from ...core.telemetry import Telemetry
from ...core.traffic.frame_kinds import FrameKinds
from ...core.under_load import UnderLoad
from ..base import Side
from ..described import Described, Words
from ..fact_reading import Answers, kernel_facts, linux_boot_id
from ..link_state import LinkState, parse_ip_link, with_sysfs_speed
from ..linux_facts import read_linux_facts
from ..linux_load import busy_seconds, linux_load, parse_snmp, parse_softnet, parse_uptime
from ..linux_losses import (
    interface_counters,
    linux_causes,
    parse_ethtool,
    parse_ethtool_pauses,
    parse_links,
    parse_qdiscs,
)
from ..neighbours import linux_neighbours

_LINKS = ("ip", "-j", "-s", "-s", "link", "show")


class Linux(Described):
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
        return read_linux_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`."""
        return busy_seconds(self._commands.run("cat", "/proc/stat"))

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        return linux_load(Answers(self._commands), self.interfaces, wait)

    def contexts(self, scope: str, sides: Sequence[Side], frames: FrameKinds, given: Words) -> Iterator[Words]:
        """Yield also what the kernel changes by itself where it begins to forward, and how ethtool names settings."""
        family, _, what = scope.partition(" ")
        if what in ("links", "switch"):
            yield from self._forwarding(family, what)
        elif scope == "queues":
            shown = self._commands.show_all(f"ethtool -l {name}" for name in self.interfaces)
            for name, text in zip(self.interfaces, shown.values(), strict=True):
                # some cards have separate queues for each direction
                combined = re.search(r"^Combined:\s+[0-9]+\s*$", text or "", re.MULTILINE)
                yield {**given, "interface": name, "kind": "combined" if combined else "rx"}
        elif scope == "offload":
            shown = self._commands.show_all(f"ethtool -k {name}" for name in self.interfaces)
            for name, text in zip(self.interfaces, shown.values(), strict=True):
                yield {**given, "interface": name, **_offload_words(given["key"], text or "")}
        else:
            for words in super().contexts(scope, sides, frames, given):
                yield {**words, "onlink": "onlink" if words.get("within") else ""}

    def _forwarding(self, family: str, what: str) -> Iterator[Words]:
        """Yield what a switch of all interfaces changes beside itself where it is off.

        On, the kernel switches off what receives several frames as one (Linux, net/ipv4/devinet.c:
        ``inet_forward_change``) and leaves it so. Off, it leaves no interface that forwards, and redirects taken,
        whatever was there before (Documentation/networking/ip-sysctl.rst: ``ip_forward``).
        """
        switch = {"ipv4": "net/ipv4/ip_forward", "ipv6": "net/ipv6/conf/all/forwarding"}[family]
        listing = "ip -o link show" if what == "links" else f"sysctl net/{family}/conf"
        state, listed = (text or "" for text in self._commands.show_all((f"sysctl -n {switch}", listing)).values())
        listed = listed if state.strip() == "0" else ""
        if what == "links":
            yield from ({"link": name} for name in re.findall(r"^\d+: ([^:@\s]+)", listed, re.MULTILINE))
        else:
            yield {"also": " ".join(filter(_IS_RESET.fullmatch, _assignments(listed)))}

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        return linux_neighbours(self._commands, sides)

    def link_states(self) -> tuple[LinkState, ...]:
        """See :meth:`..base.Router.link_states`."""
        links = {name: ("ip", "link", "show", "dev", name) for name in self.interfaces}
        # an interface without a card (veth, bridge, tap) has no 'device'
        speeds, devices = (
            {f"{name} {file}": ("cat", f"/sys/class/net/{name}/{file}") for name in self.interfaces}
            for file in ("speed", "device/uevent")
        )
        shown = self._commands.run_all({**links, **speeds, **devices}, optional=(*speeds, *devices))
        return tuple(
            with_sysfs_speed(parse_ip_link(shown[name], name), shown[f"{name} speed"], shown[f"{name} device/uevent"])
            for name in self.interfaces
        )

    def read(self) -> Telemetry:
        """Read counters now."""
        cards = {name: ("ethtool", "-S", name) for name in self.interfaces}
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
            [row for row in parse_qdiscs(output["tc -s qdisc show"]) if row.interface in self.interfaces],
            {name: parse_ethtool(output[" ".join(argv)]) for name, argv in cards.items()},
        )
        pauses = {name: parse_ethtool_pauses(output[" ".join(argv)]) for name, argv in cards.items()}
        uptime = parse_uptime(output["cat /proc/uptime"])
        return Telemetry(uptime, interfaces, drops, (), output, causes=causes, pauses=pauses)


_IS_RESET = re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")

_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


def _offload_words(offload: str, shown: str) -> Words:
    """Return how ``ethtool -k`` names *offload*, and the words of ``ethtool -K`` that set what it has *shown*."""
    feature = _OFFLOADS[offload]
    # a card may have some parts of tso on and others off
    names = r"^\s+(tx-tcp[\w-]*)" if offload == "tso" else rf"^({feature})"
    parts = re.findall(rf"{names}: (on|off)(?! \[fixed\])", shown, re.MULTILINE)
    before = " ".join(f"{offload if name == feature else name} {value}" for name, value in parts)
    return {"feature": feature, "before": before}


def _assignments(shown: str) -> Iterator[str]:
    """``net.ipv4.conf.eth1/5.forwarding = 1`` as ``net/ipv4/conf/eth1.5/forwarding=1``."""
    for line in shown.splitlines():
        name, _, value = line.partition(" = ")
        yield f"{name.translate(str.maketrans('./', '/.'))}={value.strip()}"
