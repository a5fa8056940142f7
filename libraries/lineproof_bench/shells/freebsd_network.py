"""Interfaces, neighbours, routes and VLANs of a simulated FreeBSD, as its commands take and show them.

IPv4 is the model's. IPv6 and tags are kept here and by no model: which such frames are forwarded is the testbed's
``set_up``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ..state import InterfaceState, RouterConfiguration
from .iproute import interface_towards
from .machine import CommandLine, CommandOutput

ARP_SECONDS = 1182
"""Seconds that a learned entry says it still lasts; it lasts net.link.ether.inet.max_age = 1200 s (arp(4))."""
IPV6 = "inet6"
UP, DOWN = "8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST>", "8802<BROADCAST,SIMPLEX,MULTICAST>"


@dataclass
class Vlan:
    """A VLAN interface: its tag and ``parent``, FIB, IPv4 addresses with prefix length, and whether it is up."""

    tag: str
    parent: str
    fib: str = "0"
    inet: list[str] = field(default_factory=list)
    up: bool = False


@dataclass
class FreeBsdNetwork:
    """``enabled``: interfaces without IFDISABLED; ``tables``: what no model keeps, of IPv6 and by FIB."""

    enabled: set[str] = field(default_factory=set)
    vlans: dict[str, Vlan] = field(default_factory=dict)
    tables: dict[str, RouterConfiguration] = field(default_factory=dict)

    def _table(self, name: str, line: CommandLine) -> RouterConfiguration:
        """Return the table *name*: IPV6, or a FIB, of which 0 is the model's."""
        if name == "0":
            return line.state.configuration
        found = self.tables.get(name, RouterConfiguration())
        vlans = tuple((vlan, row) for vlan, one in self.vlans.items() if one.fib == name for row in one.inet)
        return found if name == IPV6 else replace(found, addresses=vlans)

    def _set(self, name: str, line: CommandLine, configuration: RouterConfiguration) -> CommandOutput:
        if name == "0":
            line.change(configuration)
        else:
            self.tables[name] = configuration
        return CommandOutput()

    def ifconfig(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``ifconfig [-l | NAME [WORDS]]``."""
        interfaces = {one.name: one for one in line.state.interfaces}
        match list(arguments):
            case ["-l"]:
                return CommandOutput(" ".join([*interfaces, "lo0", *self.vlans]) + "\n")
            case []:
                rows = (self._shown(one, line) for one in interfaces.values())
                return CommandOutput("".join(rows))
            case [name, *words] if re.fullmatch(r"vlan\d+", name):
                return self._vlan(name, words, interfaces)
            case [name] if name in interfaces:
                return CommandOutput(self._shown(interfaces[name], line))
            case [name, *words] if name in interfaces:
                return self._interface(name, words, line)
        return refused(f"ifconfig: interface {arguments[0]} does not exist")

    def _interface(self, name: str, words: Sequence[str], line: CommandLine) -> CommandOutput:
        configuration = line.state.configuration
        match words:
            case ["up" | "down" as word]:
                up = tuple(other for other in configuration.up if other != name)
                line.change(replace(configuration, up=(*up, name) if word == "up" else up))
            case ["inet6", "-ifdisabled"]:
                self.enabled.add(name)
            case ["inet6", "ifdisabled"]:
                self.enabled.discard(name)
            case ["inet" | "inet6" as family, address, *mask, "alias" | "-alias" as verb]:
                table = "0" if family == "inet" else IPV6
                configuration = self._table(table, line)
                own, length = configuration.addresses, f"/{int(mask[1], 16).bit_count()}" if mask else ""
                wanted = ipaddress.ip_interface(address + length)
                others = tuple(row for row in own if row[0] != name or ipaddress.ip_interface(row[1]).ip != wanted.ip)
                if verb == "-alias" and others == own:
                    return refused("ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address")
                own = (*others, (name, str(wanted))) if verb == "alias" else others
                up = tuple(dict.fromkeys((*configuration.up, *([name] if verb == "alias" else []))))
                return self._set(table, line, replace(configuration, addresses=own, up=up))
            case _:
                return refused(f"ifconfig: {' '.join(words)}: bad value")
        return CommandOutput()

    def _shown(self, one: InterfaceState, line: CommandLine) -> str:
        configuration = line.state.configuration
        flags = UP if one.name in configuration.up else DOWN
        options = "21<PERFORMNUD,AUTO_LINKLOCAL>" if one.name in self.enabled else "29<PERFORMNUD,IFDISABLED>"
        text = f"{one.name}: flags={flags} metric 0 mtu 1500\n\tether {one.mac}\n"
        for _, address in (row for row in configuration.addresses if row[0] == one.name):
            text += _inet(address)
        for _, address in (row for row in self._table(IPV6, line).addresses if row[0] == one.name):
            text += f"\tinet6 {address.replace('/', ' prefixlen ')}\n"
        status = "active" if one.link_up else "no carrier"
        media = f"Ethernet autoselect ({one.speed_bps / 1e9:g}Gbase-SIMULATED)"
        return f"{text}\tmedia: {media}\n\tstatus: {status}\n\tnd6 options={options}\n"

    def _vlan(self, name: str, words: Sequence[str], others: Collection[str]) -> CommandOutput:
        """``ifconfig vlanN WORDS``; *others*: interfaces that are none."""
        there = self.vlans.get(name)
        match words:
            case ["create", "vlan", tag, *protocol, "vlandev", parent] if there is None and protocol in (
                [],
                ["vlanproto", "802.1ad"],
            ):
                if parent not in (*others, *self.vlans):
                    return refused(f"ifconfig: interface {parent} does not exist")
                self.vlans[name] = Vlan(tag, parent)
            case _ if there is None:
                return refused(f"ifconfig: interface {name} does not exist")
            case ["destroy"]:
                del self.vlans[name]
            case ["up" | "down" as word]:
                there.up = word == "up"
            case ["fib", number]:
                there.fib = number
            case ["inet", address, "alias"]:
                there.inet.append(address)
            case ["inet", address, "-alias"] if any(row.partition("/")[0] == address for row in there.inet):
                there.inet = [row for row in there.inet if row.partition("/")[0] != address]
            case []:
                flags, inet = UP if there.up else DOWN, "".join(map(_inet, there.inet))
                fib = f"\tfib: {there.fib}\n" if there.fib != "0" else ""
                vlan = f"\tvlan: {there.tag} parent interface: {there.parent}\n"
                return CommandOutput(f"{name}: flags={flags} metric 0 mtu 1500\n{inet}{fib}{vlan}")
            case _:
                return refused(f"ifconfig: {' '.join(words)}: bad value")
        return CommandOutput()

    def arp(self, arguments: Sequence[str], line: CommandLine, fib: str = "0") -> CommandOutput:
        """``arp -an``, ``-S ADDRESS MAC [temp]``, ``-d ADDRESS``."""
        configuration, text = self._table(fib, line), ""
        rows = configuration.neighbours
        match list(arguments):
            case ["-an"]:
                for name, address, mac in rows:
                    learned = configuration.is_learned(name, address)
                    lasts = f"expires in {ARP_SECONDS} seconds" if learned else "permanent"
                    text += f"? ({address}) at {mac} on {name} {lasts} [ethernet]\n"
            case ["-S", address, mac, *temporary]:
                towards = interface_towards(configuration, address)
                if towards is None:
                    return refused(f"arp: cannot intuit interface index and type for {address}")
                self._set(fib, line, configuration.with_neighbour((towards, address, mac), learned=bool(temporary)))
            case ["-d", address] if known := [row for row in rows if row[1] == address]:
                for name, *_ in known:
                    configuration = configuration.without_neighbour(name, address)
                self._set(fib, line, configuration)
                text = f"{address} ({address}) deleted\n"
            case _:
                return refused(f"arp: {' '.join(arguments)} -- no entry")
        return CommandOutput(text)

    def ndp(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``ndp -an``, ``-s ADDRESS MAC``, ``-d ADDRESS``."""
        configuration = self._table(IPV6, line)
        match list(arguments):
            case ["-an"]:
                head = f"{'Neighbor':36} {'Linklayer Address':18} {'Netif':>6} {'Expire':10} S Flags\n"
                rows = configuration.neighbours
                return CommandOutput(
                    head + "".join(f"{at:36} {mac:18} {by:>6} {'permanent':10} R\n" for by, at, mac in rows)
                )
            case ["-s", address, mac] if towards := interface_towards(configuration, address):
                return self._set(IPV6, line, configuration.with_neighbour((towards, address, mac), learned=False))
            case ["-s", address, _]:
                return refused(f"ndp: cannot intuit interface index and type for {address}")
            case ["-d", address] if names := [row[0] for row in configuration.neighbours if row[1] == address]:
                return self._set(IPV6, line, configuration.without_neighbour(names[0], address))
        return refused("usage: ndp -an | -d host | -s host ether_addr")

    def route(self, arguments: Sequence[str], line: CommandLine, fib: str = "0") -> CommandOutput:
        """``route [-6] add|change|delete -net NETWORK HOP``."""
        table, words = IPV6 if "-6" in arguments else fib, [word for word in arguments if not word.startswith("-")]
        configuration = self._table(table, line)
        routes = dict(configuration.routes)
        network = str(ipaddress.ip_network("0.0.0.0/0" if words[1:2] == ["default"] else "".join(words[1:2])))
        answer = f"{words[0]} net {network.partition('/')[0]}"
        match [words[0], *words[2:]]:
            case ["add" | "change", hop] if interface_towards(configuration, hop) is None:
                return refused("route: writing to routing socket: Network is unreachable")
            case ["add", hop] if network in routes:
                return refused("route: writing to routing socket: File exists")
            case ["add" | "change", hop]:
                routes[network] = hop
                answer += f": gateway {hop}"
            case ["delete", *_] if network in routes:
                del routes[network]
            case ["delete", *_]:
                return refused("route: route has not been found")
            case _:
                return refused("usage: route [-n] add|delete|change [-net] network gateway")
        self._set(table, line, replace(configuration, routes=tuple(routes.items())))
        return CommandOutput(f"{answer}\n")

    def shown_routes(self, family: str, line: CommandLine, fib: str = "0") -> str:
        """``netstat -rnW -f FAMILY``."""
        configuration = self._table(IPV6 if family == "inet6" else fib, line)
        rows = [(net, hop, "UGS", interface_towards(configuration, hop)) for net, hop in configuration.routes]
        for number, (name, address) in enumerate(configuration.addresses if family == "inet" else (), 1):
            rows.append((str(ipaddress.ip_interface(address).network), f"link#{number}", "U", name))
        head = f"Routing tables\n\n{family}:\n{'Destination':36} {'Gateway':30} {'Flags':7} {'Netif':>7} Expire\n"
        return head + "".join(f"{net:36} {hop:30} {flags:7} {name or '-':>7}\n" for net, hop, flags, name in rows)

    def setfib(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``setfib FIB arp|route|netstat WORDS``."""
        fib, *words = arguments or [""]
        if not fib.isdigit() or int(fib) >= int(line.memory.sysctl["net.fibs"]):
            return refused(f"setfib: {fib}: invalid FIB (max {int(line.memory.sysctl['net.fibs']) - 1})")
        match words:
            case ["arp", *more]:
                return self.arp(more, line, fib)
            case ["route", *more]:
                return self.route(more, line, fib)
            case ["netstat", "-rnW", "-f", "inet"]:
                return CommandOutput(self.shown_routes("inet", line, fib))
        return refused(f"setfib: {' '.join(words)}: not found")


def refused(words: str) -> CommandOutput:
    """Return the answer of a command that fails with *words*."""
    return CommandOutput("", f"{words}\n", 1)


def _inet(address: str) -> str:
    own = ipaddress.IPv4Interface(address)
    return f"\tinet {own.ip} netmask {int(own.netmask):#010x} broadcast {own.network.broadcast_address}\n"
