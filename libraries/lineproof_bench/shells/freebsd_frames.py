"""IPv6 and tags as a simulated FreeBSD takes and shows them: addresses, neighbours, routes, VLAN interfaces, FIBs.

It is kept here and by no model: which such frames are forwarded is the testbed's ``set_up``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from .machine import CommandLine, CommandOutput

FORWARDING = "net.inet6.ip6.forwarding"


@dataclass
class Vlan:
    """A VLAN interface: its tag and ``parent``, FIB, IPv4 addresses with prefix length, and whether it is up."""

    tag: str
    parent: str
    fib: str = "0"
    inet: list[str] = field(default_factory=list)
    up: bool = False


@dataclass
class FreeBsdFrames:
    """``enabled``: interfaces without IFDISABLED; ``addresses``: (interface, address); ``routes``: network to hop."""

    enabled: set[str] = field(default_factory=set)
    addresses: set[tuple[str, str]] = field(default_factory=set)
    vlans: dict[str, Vlan] = field(default_factory=dict)
    tables: dict[tuple[str, str], str] = field(default_factory=dict)
    """(FIB, address or network) to MAC address or next hop."""
    neighbours: dict[str, str] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)

    def of_interface(self, name: str) -> str:
        """Return its rows of ``ifconfig``."""
        rows = [ipaddress.IPv6Interface(address) for owner, address in sorted(self.addresses) if owner == name]
        text = "".join(f"\tinet6 {row.ip} prefixlen {row.network.prefixlen}\n" for row in rows)
        options = (
            "21<PERFORMNUD,AUTO_LINKLOCAL>" if name in self.enabled else "29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>"
        )
        return f"{text}\tnd6 options={options}\n"

    def interface(self, name: str, words: Sequence[str]) -> CommandOutput:
        """``ifconfig NAME inet6 WORDS``."""
        match list(words):
            case ["-ifdisabled"]:
                self.enabled.add(name)
            case ["ifdisabled"]:
                self.enabled.discard(name)
            case [address, "alias"] if _is_interface(address):
                self.addresses.add((name, address))
            case [address, "-alias" | "delete"]:
                same = {row for row in self.addresses if row[0] == name and row[1].partition("/")[0] == address}
                if not same:
                    return CommandOutput("", "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address\n", 1)
                self.addresses -= same
            case _:
                return CommandOutput("", f"ifconfig: {' '.join(words)}: bad value\n", 1)
        return CommandOutput()

    def vlan(self, name: str, words: Sequence[str], others: Sequence[str]) -> CommandOutput:
        """``ifconfig vlanN WORDS``; *others*: interfaces that are none."""
        there = self.vlans.get(name)
        match list(words):
            case ["create", "vlan", tag, *protocol, "vlandev", parent] if (
                there is None and tag.isdigit() and protocol in ([], ["vlanproto", "802.1ad"])
            ):
                if parent not in (*others, *self.vlans):
                    return CommandOutput("", f"ifconfig: interface {parent} does not exist\n", 1)
                self.vlans[name] = Vlan(tag, parent)
            case _ if there is None:
                return CommandOutput("", f"ifconfig: interface {name} does not exist\n", 1)
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
                return CommandOutput(_shown_vlan(name, there))
            case _:
                return CommandOutput("", f"ifconfig: {' '.join(words)}: bad value\n", 1)
        return CommandOutput()

    def setfib(self, arguments: Sequence[str], fibs: str) -> CommandOutput:
        """``setfib FIB arp|route WORDS``, as far as tagged frames need it; *fibs*: how many there are."""
        fib, *words = arguments or [""]
        if not fib.isdigit() or int(fib) >= int(fibs):
            return CommandOutput("", f"setfib: {fib}: not a valid fib\n", 1)
        match words:
            case ["arp", "-S", address, value] | ["route", "add", "-net", address, value]:
                hop = address if words[0] == "arp" else value
                if not any(one.fib == fib and _covers(one.inet, hop) for one in self.vlans.values()):
                    return CommandOutput("", f"{words[0]}: {hop}: Network is unreachable\n", 1)
                self.tables[fib, address] = value
            case ["arp", "-an"]:
                rows = [row for row in self.tables.items() if row[0][0] == fib and "/" not in row[0][1]]
                return CommandOutput("".join(f"? ({row[0][1]}) at {row[1]} on vlan permanent [vlan]\n" for row in rows))
            case ["netstat", "-rnW", "-f", "inet"]:
                rows = [row for row in self.tables.items() if row[0][0] == fib and "/" in row[0][1]]
                return CommandOutput("".join(f"{row[0][1]:18} {row[1]:18} UGS\n" for row in rows))
            case ["arp", "-d", address] | ["route", "delete", "-net", address, _] if (fib, address) in self.tables:
                del self.tables[fib, address]
            case _:
                return CommandOutput("", f"{' '.join(words)}: not in table\n", 1)
        return CommandOutput()

    def towards(self, hop: str) -> str | None:
        """The interface with a prefix that covers *hop*."""
        for name, address in sorted(self.addresses):
            if ipaddress.IPv6Address(hop) in ipaddress.IPv6Interface(address).network:
                return name
        return None

    def shown_routes(self) -> str:
        """``netstat -rn -f inet6``."""
        head = f"Routing tables\n\nInternet6:\n{'Destination':36} {'Gateway':30} {'Flags':7} {'Netif':>7} Expire\n"
        rows = (f"{network:36} {hop:30} {'UGS':7} {self.towards(hop):>7}\n" for network, hop in self.routes.items())
        return head + "".join(rows)

    def route(self, words: Sequence[str]) -> CommandOutput:
        """``route -6 WORDS`` without ``-net``."""
        match list(words):
            case ["add", network, hop] if network not in self.routes and self.towards(hop):
                self.routes[network] = hop
            case ["change", network, hop] if network in self.routes and self.towards(hop):
                self.routes[network] = hop
            case ["delete", network, *_] if network in self.routes:
                del self.routes[network]
            case _:
                return CommandOutput("", "route: writing to routing socket: Network is unreachable\n", 1)
        return CommandOutput(f"{words[0]} net {words[1]}\n")

    def ndp(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``ndp -an``, ``-s ADDRESS MAC``, ``-d ADDRESS``."""
        match list(arguments):
            case ["-an"]:
                head = f"{'Neighbor':36} {'Linklayer Address':18} {'Netif':>6} {'Expire':10} S Flags\n"
                rows = (
                    f"{address:36} {mac:18} {self.towards(address):>6} {'permanent':10} R\n"
                    for address, mac in self.neighbours.items()
                )
                return CommandOutput(head + "".join(rows))
            case ["-s", address, mac] if self.towards(address):
                self.neighbours[address] = mac
            case ["-s", address, _]:
                return CommandOutput("", f"ndp: cannot intuit interface index and type for {address}\n", 1)
            case ["-d", address] if address in self.neighbours:
                del self.neighbours[address]
            case _:
                return CommandOutput("", "usage: ndp -an | -d host | -s host ether_addr\n", 1)
        return CommandOutput()


def _covers(networks: Sequence[str], address: str) -> bool:
    return any(ipaddress.IPv4Address(address) in ipaddress.IPv4Interface(each).network for each in networks)


def _shown_vlan(name: str, one: Vlan) -> str:
    flags = "8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST>" if one.up else "8002<BROADCAST,MULTICAST>"
    rows = (ipaddress.IPv4Interface(address) for address in one.inet)
    inet = "".join(f"\tinet {row.ip} netmask {int(row.netmask):#010x}\n" for row in rows)
    fib = f"\tfib: {one.fib}\n" if one.fib != "0" else ""
    return f"{name}: flags={flags} metric 0 mtu 1500\n{inet}{fib}\tvlan: {one.tag} parent interface: {one.parent}\n"


def _is_interface(text: str) -> bool:
    try:
        ipaddress.IPv6Interface(text)
    except ValueError:
        return False
    return True
