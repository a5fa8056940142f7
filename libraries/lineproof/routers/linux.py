"""A Linux router: ``/proc``, ``ip`` and ``sysctl``."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds, NotForwarded, ipv6_address, ipv6_network
from ..core.under_load import UnderLoad
from ..platforms import Tuning
from .base import Side, validated_side
from .changes import NONE, Setting
from .changing_commands import ChangingCommands
from .fact_reading import Answers, kernel_facts, linux_boot_id
from .link_state import LinkState, parse_ip_link, with_sysfs_speed
from .linux_facts import read_linux_facts
from .linux_load import busy_seconds, linux_load, parse_snmp, parse_softnet, parse_uptime
from .linux_losses import (
    interface_counters,
    linux_causes,
    parse_ethtool,
    parse_ethtool_pauses,
    parse_links,
    parse_qdiscs,
)
from .neighbours import linux_neighbours
from .shell_commands import CommandRefused
from .shell_router import FrameSetup, ShellRouter, labels_by_side, one_label_table, take_up, variable

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
        return read_linux_facts(Answers(self._commands), self.interfaces)

    def work(self) -> Mapping[str, float]:
        """See :meth:`..base.Router.work`."""
        return busy_seconds(self._commands.run("cat", "/proc/stat"))

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """See :meth:`..base.Router.under_load`."""
        return linux_load(Answers(self._commands), self.interfaces, wait)

    def tune(self, tuning: Tuning) -> None:
        """Set queues, rings, offloads and kernel variables of *tuning*, and read them back."""
        for name in self.interfaces:
            if tuning.queues is not None:
                shown = self._commands.run("ethtool", "-l", name)
                # some cards have separate queues for each direction
                key = "Combined" if re.search(r"^Combined:\s+[0-9]+\s*$", shown, re.MULTILINE) else "RX"
                self._tune(f"queues of {name} set", numbers(name, "-l", key), str(tuning.queues), shown)
            for key, size in (("RX", tuning.rx_ring), ("TX", tuning.tx_ring)):
                if size:
                    self._tune(f"{key} ring of {name} set", numbers(name, "-g", key), str(size))
            for offload, wanted in tuning.offloads.items():
                shown = self._commands.run("ethtool", "-k", name)
                # a card may have some parts of tso on and others off
                parts = re.findall(r"^\s+(tx-tcp[\w-]*): (on|off)(?! \[fixed\])", shown, re.MULTILINE)
                words = [word for part in parts for word in part] if offload == "tso" else []
                undo = ("ethtool", "-K", name, *words) if words else ()
                self._tune(f"{offload} of {name} switched {wanted}", offload_of(name, offload), wanted, shown, undo)
        self._tune_variables(tuning, "-w")

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
        take_up(run, output["link"], "ip", "link", "set", "dev", name)
        if not re.search(rf"\binet {re.escape(side.address)} ", output["address"]):
            address = (side.address, "dev", name)
            run.change(("ip", "addr", "add", *address), ("ip", "addr", "del", *address))
        run.put(neighbour(side.peer, name), side.peer_mac, output["neighbour"])
        set_route(run, (), (side.network, "via", side.peer, "dev", name), output["route"])

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


FIRST_TABLE = 29700
"""Routing table of the first stack of tags; the next stack has the next number."""

QUIET_IPV6 = {"addr_gen_mode": "1", "accept_ra": "0", "router_solicitations": "0"}
"""``/proc/sys/net/ipv6/conf/*``: no link-local address, no router advertisements, no solicitations."""

_PROTOCOLS = {0x8100: ("802.1Q", ""), 0x88A8: ("802.1ad", "s")}

Words = tuple[str, ...]
_NO_SUCH_TYPE = re.compile(r"Unknown device type|not supported", re.IGNORECASE)


class LinuxFrameSetup(FrameSetup):
    """Sets a Linux kernel up for IPv6, tagged and labelled frames.

    IPv6: a static neighbour and a route on each side; no address, so that the kernel announces nothing. Tags: a VLAN
    interface on each side, with a routing table for each stack of tags, so that tagged frames leave tagged. Labels:
    each is swapped for itself, towards the side that its direction leads to.
    """

    def configure(self, frames: FrameKinds) -> NotForwarded:
        """Configure what the kernel supports; return what it does not, with the missing module."""
        interfaces = tuple(side.interface for side in self._sides)
        prefixes = self._configure_ipv6(interfaces, frames.prefixes)
        if frames.tags:
            self._configure_tags(frames.tags, prefixes)
        if frames.labels:
            self._configure_labels(frames.labels)
        if frames.tags and frames.labels and not {frozenset({"vlan"}), frozenset({"mpls"})} & set(self._not_forwarded):
            self._mark_not_forwarded(one_label_table("a Linux kernel"), "vlan", "mpls")
        return self._not_forwarded

    # -- IPv6 ----------------------------------------------------------------------------------------------------------

    def _configure_ipv6(self, interfaces: Sequence[str], prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the *prefixes* that are configured: all or none."""
        if not prefixes:
            return ()
        key = "net/ipv6/conf/all/forwarding"
        if not self._commands.run_all({"forwarding": ("sysctl", "-n", key)}, optional=("forwarding",))["forwarding"]:
            self._mark_not_forwarded(
                "the router's kernel has no IPv6 (there is no /proc/sys/net/ipv6): its module ipv6 is missing or loaded"
                " with ipv6.disable=1",
                "ipv6",
            )
            return ()
        set_forwarding(self._commands, key, self._notes)
        self._add_ipv6_routes(interfaces, prefixes, self._notes)
        return prefixes

    def _add_ipv6_routes(
        self, interfaces: Sequence[str], prefixes: Iterable[str], notes: list[str], table: int | None = None
    ) -> None:
        for name in interfaces:
            conf = f"net/ipv6/conf/{name}"
            if self._commands.run("sysctl", "-n", f"{conf}/disable_ipv6").strip() != "0":
                for key, value in QUIET_IPV6.items():
                    set_sysctl(self._commands, f"{conf}/{key}", value, notes)
                set_sysctl(self._commands, f"{conf}/disable_ipv6", "0", notes)
        for prefix in prefixes:
            for side, name in zip(self._sides, interfaces, strict=True):
                network, peer = ipv6_network(prefix, side.network), ipv6_address(prefix, side.peer)
                self._add_route_by_neighbour("-6", network, peer, side.peer_mac, name, table)

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _configure_tags(self, stacks: Iterable[tuple[tuple[int, int], ...]], prefixes: tuple[str, ...]) -> None:
        existing = set(link_names(self._commands))
        ignored: list[str] = []  # settings of interfaces created here are not changes of the router
        for table, stack in enumerate(stacks, FIRST_TABLE):
            interfaces = []
            for index, side in enumerate(self._sides):
                try:
                    interfaces.append(self._tagged_interface(index, side.interface, stack, existing))
                except CommandRefused as error:
                    if not _NO_SUCH_TYPE.search(str(error)):
                        raise
                    self._mark_not_forwarded(
                        "the router's kernel supports no VLAN tags: its module 8021q is missing"
                        f" ({_refusal_text(error)})",
                        "vlan",
                    )
                    return
            for side, name in zip(self._sides, interfaces, strict=True):
                set_sysctl(self._commands, f"net/ipv4/conf/{name}/rp_filter", "0", ignored)
                self._add_route_by_neighbour("-4", side.network, side.peer, side.peer_mac, name, table)
                self._add_rule("-4", name, table)
            if prefixes:
                self._add_ipv6_routes(interfaces, prefixes, ignored, table)
                for name in interfaces:
                    self._add_rule("-6", name, table)

    def _tagged_interface(self, index: int, link: str, stack: Iterable[tuple[int, int]], existing: set[str]) -> str:
        """The interface for *stack* on *link*, created unless it exists: ``lr0.100``, ``lr1.s200.100``."""
        name = f"lr{index}"
        for kind, vlan in stack:
            protocol, letter = _PROTOCOLS[kind]
            name += f".{letter}{vlan}"
            if name not in existing:
                made = ("name", name, "type", "vlan", "proto", protocol, "id", str(vlan))
                self._commands.change(("ip", "link", "add", "link", link, *made), ("ip", "link", "del", "dev", name))
                existing.add(name)
                self._commands.change(
                    ("ip", "link", "set", "dev", name, "up"), ("ip", "link", "set", "dev", name, "down")
                )
            else:
                shown = self._commands.run("ip", "link", "show", "dev", name)
                take_up(self._commands, shown, "ip", "link", "set", "dev", name)
            link = name
        return name

    def _add_rule(self, family: str, name: str, table: int) -> None:
        rule = ("iif", name, "lookup", str(table))
        if not re.search(rf"\b{re.escape(' '.join(rule))}(\s|$)", self._commands.run("ip", family, "rule", "show")):
            self._commands.change(("ip", family, "rule", "add", *rule), ("ip", family, "rule", "del", *rule))

    # -- labels --------------------------------------------------------------------------------------------------------

    def _configure_labels(self, pairs: Sequence[tuple[int, int]]) -> None:
        limit = "net/mpls/platform_labels"
        output = self._commands.run_all(
            {
                "before": ("sysctl", "-n", limit),
                "load": ("true",) if self._commands.rehearsing else ("modprobe", "-q", "mpls_router"),
                "now": ("sysctl", "-n", limit),
            },
            optional=("before", "load", "now"),
        )
        if not output["now"].strip().isdigit():
            self._mark_not_forwarded(
                "the router's kernel supports no MPLS labels: its module mpls_router is missing (there is no"
                " /proc/sys/net/mpls)",
                "mpls",
            )
            return
        if not output["before"]:
            self._notes.append("the module mpls_router was loaded, and stays loaded")
        exits = labels_by_side(pairs, len(self._sides))
        used = [label for labels in exits for label in labels]
        set_sysctl(self._commands, limit, str(max(int(output["now"]), 1 + max(used))), self._notes)
        for index, side in enumerate(self._sides):
            set_sysctl(self._commands, f"net/mpls/conf/{side.interface}/input", "1", self._notes)
            for label in map(str, exits[index]):
                words = (label, "as", "to", label, "via", "inet", side.peer, "dev", side.interface)
                self._add_route(("-f", "mpls"), words)

    # -- routes ------------------------------------------------------------------------------------------------

    def _add_route_by_neighbour(
        self, family: str, network: str, peer: str, mac: str, name: str, table: int | None
    ) -> None:
        """Set a permanent neighbour and the route through it; ``onlink``: no address of the interface covers it."""
        self._commands.put(neighbour(peer, name), mac)
        in_table = ("table", str(table)) if table else ()
        self._add_route((family,), (network, "via", peer, "dev", name), ("onlink",), in_table)

    def _add_route(self, family: Words, wanted: Words, options: Words = (), table: Words = ()) -> None:
        # showing a table without routes is an error
        shown = {"route": ("ip", *family, "route", "show", wanted[0], *table)}
        before = self._commands.run_all(shown, optional=("route",))["route"]
        set_route(self._commands, family, wanted, before, (*options, *table))


def _refusal_text(error: CommandRefused) -> str:
    """The output of the command, without the advice."""
    found = re.search(r"\(status \d+\): (?:Error: )?(.*?)\.?; check the user's rights", str(error))
    return f"'ip link add … type vlan' reports: {found[1]}" if found else str(error)


def neighbour(peer: str, interface: str) -> Setting:
    """Return the setting of the MAC address of a permanent neighbour; any other kind of entry is the kernel's own."""

    def command(mac: str, now: str) -> Words:
        if mac == NONE:
            return ("ip", "neigh", "del", peer, "dev", interface)
        return ("ip", "neigh", "replace", peer, "lladdr", mac, "nud", "permanent", "dev", interface)

    pattern = r"\blladdr (?P<value>\S+)(?: \S+)* PERMANENT\s*$"
    return Setting(("ip", "neigh", "show", peer, "dev", interface), pattern, command)


_NOT_ACCEPTED = frozenset({"dead", "linkdown", "offload", "rt_offload", "trap", "rt_trap", "pervasive"})
"""Words that ``ip route show`` prints and ``ip route replace`` does not take."""


def set_route(commands: ChangingCommands, family: Words, wanted: Words, before: str, options: Words = ()) -> None:
    """Set the route *wanted* (in the words of ``ip route show``); *options*: words that only setting it needs.

    *family*: options of ``ip``. *before*: ``ip route show`` of the destination, in the same table.
    """
    destination, table = wanted[0], options[options.index("table") :] if "table" in options else ()

    def command(hops: str, now: str) -> Words:
        if hops == NONE:
            return ("ip", *family, "route", "del", *wanted, *options)
        if hops == " ".join(wanted[1:]):
            return ("ip", *family, "route", "replace", *wanted, *options)
        words = [word for word in hops.split() if word not in _NOT_ACCEPTED]
        return ("ip", *family, "route", "replace", destination, *words, *table)

    if not re.search(rf"^{re.escape(' '.join(wanted))}\b", before, re.MULTILINE):
        # a route with another metric stays beside the new one; several next hops are lines of their own, indented
        replaced = r"(?=.* metric 1024\b)" if "-6" in family else r"(?!.* metric [1-9])"
        pattern = rf"^\S+{replaced}(?!.* tos ) (?P<value>.*(?:\n\s+\S.*)*)"
        show = ("ip", *(family or ("-4",)), "route", "show", destination, *table)
        commands.put(Setting(show, pattern, command), " ".join(wanted[1:]), before)


def numbers(interface: str, option: str, key: str) -> Setting:
    """Return the setting of a card's queues (``-l``) or of a ring (``-g``) that ``ethtool`` shows as *key*."""
    pattern = rf"(?s:Current hardware settings:.*?)^{key}:\s+(?P<value>[0-9]+)\s*$"
    setter = ("ethtool", option.upper(), interface, key.lower())
    return Setting(("ethtool", option, interface), pattern, lambda value, now: (*setter, value), always=True)


_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}


def offload_of(interface: str, offload: str) -> Setting:
    """Return the setting of ``ethtool -K``."""
    pattern = rf"^{_OFFLOADS[offload]}: (?P<value>on|off)\b"
    setter = ("ethtool", "-K", interface, offload)
    return Setting(("ethtool", "-k", interface), pattern, lambda value, now: (*setter, value), always=True)


def set_sysctl(
    commands: ChangingCommands, key: str, value: str, notes: list[str], also_reset: re.Pattern[str] | None = None
) -> None:
    """Set *key* (separated by ``/``: names of interfaces have dots) to *value*; *notes* receives the change.

    *also_reset*: assignments, as ``net/ipv4/conf/eth1/forwarding=1``, that the kernel undoes when *key* is put back.
    """
    setting = variable(key, "-w")
    before = commands.run(*setting.show)
    undo: Words = ()
    if also_reset and before.strip() != value:
        others = _assignments(commands.run("sysctl", "/".join(key.split("/")[:2]) + "/conf"))
        again = [other for other in others if also_reset.fullmatch(other)]
        undo = (*setting.command(before.strip(), value), *again)
    if commands.put(setting, value, before, undo=undo):
        notes.append(f"{key} set from {before.strip()} to {value} for the test")


def link_names(commands: ChangingCommands) -> tuple[str, ...]:
    """Return the names of all interfaces."""
    return tuple(re.findall(r"^\d+: ([^:@\s]+)", commands.run("ip", "-o", "link", "show"), re.MULTILINE))


def set_forwarding(commands: ChangingCommands, key: str, notes: list[str]) -> None:
    """Let the router forward: *key* is the switch of all its interfaces, of IPv4 or IPv6.

    Switched off again it would leave no interface that forwards, and redirects taken, whatever was there before
    (Linux, Documentation/networking/ip-sysctl.rst: ``ip_forward``).
    """
    if commands.run("sysctl", "-n", key).strip() == "0":
        _switch_lro_off(commands, notes)
    set_sysctl(
        commands, key, "1", notes, re.compile(r".*/(?!all/)[^/]+/forwarding=[^0].*|.*/ipv4/conf/all/accept_redirects=0")
    )


def _switch_lro_off(commands: ChangingCommands, notes: list[str]) -> None:
    """Set what the kernel sets on all interfaces when it begins to forward, but so that it is undone.

    It leaves them so when it forwards no longer (Linux, net/ipv4/devinet.c: ``inet_forward_change``).
    """
    names = link_names(commands)
    # a router may lack ethtool, and an interface what it shows
    shown = commands.run_all({name: ("ethtool", "-k", name) for name in names}, optional=names)
    for name, text in shown.items():
        # a card that keeps it keeps it from the kernel, too
        with contextlib.suppress(CommandRefused):
            if f"{_OFFLOADS['lro']}: on" in text:
                commands.put(offload_of(name, "lro"), "off", text)
                notes.append(f"{name}: lro switched off for the test, as the kernel does where it forwards")


def _assignments(shown: str) -> Iterator[str]:
    """``net.ipv4.conf.eth1/5.forwarding = 1`` as ``net/ipv4/conf/eth1.5/forwarding=1``."""
    for line in shown.splitlines():
        name, _, value = line.partition(" = ")
        yield f"{name.translate(str.maketrans('./', '/.'))}={value.strip()}"
