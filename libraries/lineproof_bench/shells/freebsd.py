"""Files and commands of a simulated FreeBSD or pfSense machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, RouterConfiguration, RouterState
from .machine import CommandLine, CommandOutput, Commands, Memory, common_commands

STATHZ = 127
"""Ticks per second of ``kern.cp_times``."""


def software() -> Commands:
    """A FreeBSD kernel that routes."""
    files = {
        "/etc/platform": lambda line: "pfSense\n" if is_pfsense(line.state) else "FreeBSD\n",
        "/etc/version": lambda line: f"{_number(line.state.version)}-SIMULATED\n",
    }
    network = FreeBsdNetwork()

    def netstat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        match list(arguments):
            case ["-ibndW"]:
                return CommandOutput(_interfaces(line.state))
            case ["-s", "-f", "inet"]:
                return CommandOutput(_ip_statistics(line.state))
            case ["-rnW", "-f", "inet" | "inet6" as family]:
                return CommandOutput(network.shown_routes(family, line))
        return refused("netstat: this simulated shell shows -ibndW, -s -f inet, -rnW -f inet and -rnW -f inet6")

    return {
        **common_commands(files),
        "uname": _uname,
        "sysctl": _sysctl,
        "netstat": netstat,
        "ifconfig": network.ifconfig,
        "ndp": network.ndp,
        "arp": network.arp,
        "setfib": network.setfib,
        "route": network.route,
        "pfctl": _pfctl,
    }


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Return what pfSense starts with: forwarding, with its packet filter on."""
    variables = {"net.inet.ip.forwarding": "1", "net.inet6.ip6.forwarding": "0", "net.fibs": "1"}
    return Memory(sysctl=variables, packet_filter=True)


def is_pfsense(state: RouterState) -> bool:
    """Return whether the platform calls the software pfSense, or its version is pfSense's with FreeBSD's behind it."""
    return "pfsense" in f"{state.software} {state.version}".lower() or "(FreeBSD" in state.version


def _number(version: str) -> str:
    found = re.search(r"\d+(\.\d+)+", version)
    return found[0] if found else "0.0"


def _release(state: RouterState) -> str:
    found = re.search(r"FreeBSD (\d+\.\d+)", state.version)
    return f"{found[1] if found else _number(state.version)}-SIMULATED"


def _uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    release = _release(line.state)
    whole = f"FreeBSD {line.state.hostname} {release} FreeBSD {release} {BY_A_MODEL}  amd64\n"
    return CommandOutput(whole if "-a" in arguments else "FreeBSD\n")


def _read_only(line: CommandLine) -> dict[str, str]:
    """Return what the kernel and the drivers show; the processors' time is that spent on packets, and idle."""
    state, times = line.state, list[int]()
    for thread in state.threads:
        times += [0, 0, 0, *thread.ticks(STATHZ)]
    found = {
        "kern.boottime": f"{{ sec = {int(line.now) - int(line.state.uptime)}, usec = 0 }} SIMULATED",
        "kern.ostype": "FreeBSD",
        "kern.osrelease": _release(state),
        "hw.model": BY_A_MODEL,
        "hw.ncpu": str(len(state.threads)),
        "kern.clockrate": f"{{ hz = 1000, tick = 1000, profhz = 8128, stathz = {STATHZ} }}",
        "kern.cp_times": " ".join(map(str, times)),
    }
    for one in state.interfaces:
        device = _device(one.name)
        found |= {f"{device}.%desc": BY_A_MODEL, f"{device}.%driver": re.sub(r"\d+$", "", one.name)}
        # as igb and ix name them
        found[f"{device}.mac_stats.xoff_recvd"] = str(one.pauses_received)
        found[f"{device}.mac_stats.crc_errs"] = str(one.rx_damaged)
        found[f"{device}.mac_stats.xoff_txd"] = str(one.pauses_sent)
    for thread in state.threads:
        for name, queue in thread.queues:
            found[f"{_device(name)}.iflib.rxq{queue}.cpu"] = str(thread.lcore)
            # the model counts by thread: a queue's own count is known only where its thread has no other
            if len(thread.queues) == 1:
                found[f"{_device(name)}.queue{queue}.rx_packets"] = str(thread.packets)
    return found


def _device(interface: str) -> str:
    return "dev." + re.sub(r"(\d+)$", r".\1", interface)


def _sysctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    out, read_only = "", _read_only(line)
    for word in (word for word in arguments if not word.startswith("-")):
        key, sets, value = word.partition("=")
        known = line.memory.sysctl | read_only
        shown = [name for name in known if name == key or name.startswith(f"{key}.")]
        if not shown and "-i" not in arguments:
            return CommandOutput(out, f"sysctl: unknown oid '{key}'\n", 1)
        if sets:
            line.memory.sysctl[key] = value
            known[key] += f" -> {value}"
        out += "".join(f"{known[name]}\n" if "-n" in arguments else f"{name}: {known[name]}\n" for name in shown)
    return CommandOutput(out)


def _interfaces(state: RouterState) -> str:
    """``netstat -ibndW``: the row of each link."""
    text = f"{'Name':9} {'Mtu':>5} {'Network':13} {'Address':17} {'Ipkts':>8} {'Ierrs':>5} {'Idrop':>5} {'Ibytes':>10}"
    text += f" {'Opkts':>8} {'Oerrs':>5} {'Obytes':>10} {'Coll':>5}  Drop\n"
    for number, one in enumerate(state.interfaces, 1):
        name = one.name if one.name in state.configuration.up else f"{one.name}*"
        text += f"{name:9} {1500:5d} {f'<Link#{number}>':13} {one.mac:17} {one.rx_packets:8d} {one.rx_damaged:5d}"
        text += f" {one.rx_missed:5d} {one.rx_bytes:10d} {one.tx_packets:8d} {0:5d} {one.tx_bytes:10d} {0:5d}"
        text += f" {one.tx_dropped:5d}\n"
    return text


def _ip_statistics(state: RouterState) -> str:
    received, forwarded, lost, dropped = (
        # of those received some may still wait, or find no route later
        sum(getattr(one, name) for one in state.interfaces)
        for name in ("rx_packets", "handed", "no_route", "tx_dropped")
    )
    return (
        f"ip:\n\t{received} total packets received\n\t{forwarded} packets forwarded"
        f" ({forwarded} packets fast forwarded)\n\t{lost} packets not forwardable\n"
        f"\t{dropped} output packets dropped due to no bufs, etc.\n\t0 output packets discarded due to no route\n"
    )


def _pfctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    memory, is_on = line.memory, line.memory.packet_filter
    match list(arguments):
        case ["-s", "info"]:
            return CommandOutput(f"Status: {'Enabled' if is_on else 'Disabled'} for 0 days 00:00:00  SIMULATED\n")
        case ["-e" | "-d" as word]:
            memory.packet_filter = word == "-e"
            return CommandOutput("", f"pf {'enabled' if memory.packet_filter else 'disabled'}\n")
    return refused("usage: pfctl -d | -e | -s info")


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
                return CommandOutput("".join(self._shown(one, line) for one in interfaces.values()))
            case [name, *words] if re.fullmatch(r"vlan\d+", name):
                return self._vlan(name, words)
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

    def _vlan(self, name: str, words: Sequence[str]) -> CommandOutput:
        """``ifconfig vlanN WORDS``."""
        there = self.vlans.get(name)
        match words:
            case ["create", "vlan", tag, *protocol, "vlandev", parent] if there is None and protocol in (
                [],
                ["vlanproto", "802.1ad"],
            ):
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
        if list(arguments) != ["-an"]:
            return self._neighbour(arguments, line, fib)
        for name, address, mac in configuration.neighbours:
            learned = configuration.is_learned(name, address)
            lasts = f"expires in {ARP_SECONDS} seconds" if learned else "permanent"
            text += f"? ({address}) at {mac} on {name} {lasts} [ethernet]\n"
        return CommandOutput(text)

    def ndp(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``ndp -an``, ``-s ADDRESS MAC``, ``-d ADDRESS``."""
        if list(arguments) != ["-an"]:
            return self._neighbour(arguments, line, IPV6)
        text = f"{'Neighbor':36} {'Linklayer Address':18} {'Netif':>6} {'Expire':10} S Flags\n"
        rows = self._table(IPV6, line).neighbours
        return CommandOutput(text + "".join(f"{at:36} {mac:18} {by:>6} {'permanent':10} R\n" for by, at, mac in rows))

    def _neighbour(self, arguments: Sequence[str], line: CommandLine, table: str) -> CommandOutput:
        configuration = self._table(table, line)
        match list(arguments):
            case ["-S" | "-s", address, mac, *temporary] if towards := configuration.interface_towards(address):
                row = towards, address, mac
                return self._set(table, line, configuration.with_neighbour(row, learned=bool(temporary)))
            case ["-d", address] if names := [row[0] for row in configuration.neighbours if row[1] == address]:
                self._set(table, line, configuration.without_neighbour(names[0], address))
                return CommandOutput(f"{address} ({address}) deleted\n")
        return refused(f"{' '.join(arguments)} -- no entry")

    def route(self, arguments: Sequence[str], line: CommandLine, fib: str = "0") -> CommandOutput:
        """``route [-6] add|change|delete -net NETWORK HOP``."""
        table, words = IPV6 if "-6" in arguments else fib, [word for word in arguments if not word.startswith("-")]
        configuration = self._table(table, line)
        routes = dict(configuration.routes)
        network = str(ipaddress.ip_network("0.0.0.0/0" if words[1:2] == ["default"] else "".join(words[1:2])))
        answer = f"{words[0]} net {network.partition('/')[0]}"
        match [words[0], *words[2:]]:
            case ["add" | "change", hop] if configuration.interface_towards(hop):
                routes[network] = hop
                answer += f": gateway {hop}"
            case ["delete", *_] if network in routes:
                del routes[network]
            case _:
                return refused("route: writing to routing socket: Network is unreachable")
        self._set(table, line, replace(configuration, routes=tuple(routes.items())))
        return CommandOutput(f"{answer}\n")

    def shown_routes(self, family: str, line: CommandLine, fib: str = "0") -> str:
        """``netstat -rnW -f FAMILY``."""
        configuration = self._table(IPV6 if family == "inet6" else fib, line)
        rows = [(net, hop, "UGS", configuration.interface_towards(hop)) for net, hop in configuration.routes]
        for number, (name, address) in enumerate(configuration.addresses if family == "inet" else (), 1):
            rows.append((str(ipaddress.ip_interface(address).network), f"link#{number}", "U", name))
        head = f"Routing tables\n\n{family}:\n{'Destination':36} {'Gateway':30} {'Flags':7} {'Netif':>7} Expire\n"
        return head + "".join(f"{net:36} {hop:30} {flags:7} {name or '-':>7}\n" for net, hop, flags, name in rows)

    def setfib(self, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``setfib FIB arp|route|netstat WORDS``."""
        fib, *words = arguments
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
