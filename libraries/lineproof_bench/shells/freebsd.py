"""Files and commands of a simulated FreeBSD or pfSense machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import replace

from lineproof.simulation.habits import BY_A_MODEL

from ..state import InterfaceState, RouterState
from . import freebsd_frames, posix
from .freebsd_frames import FreeBsdFrames
from .iproute import interface_towards
from .machine import CommandLine, CommandOutput, Commands, Memory

FORWARDING = "net.inet.ip.forwarding"
STATHZ = 127
"""Ticks per second of ``kern.cp_times``."""
ARP_SECONDS = 1182
"""Seconds that a learned entry says it still lasts; it lasts net.link.ether.inet.max_age = 1200 s (arp(4))."""


def software() -> Commands:
    """A FreeBSD kernel that routes."""
    files = {
        "/etc/platform": lambda line: "pfSense\n" if is_pfsense(line.state) else "FreeBSD\n",
        "/etc/version": lambda line: f"{_number(line.state.version)}-SIMULATED\n",
    }
    frames = FreeBsdFrames()

    def ifconfig(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        names = [one.name for one in line.state.interfaces]
        known = arguments and arguments[0] in names
        if list(arguments) == ["-l"]:
            return CommandOutput(" ".join([*names, "lo0", *frames.vlans]) + "\n")
        if arguments and re.fullmatch(r"vlan\d+", arguments[0]):
            return frames.vlan(arguments[0], arguments[1:], names)
        if known and arguments[1:2] == ["inet6"]:
            return frames.interface(arguments[0], arguments[2:])
        shown = _ifconfig(arguments, line)
        own = frames.of_interface(arguments[0]) if known and len(arguments) == 1 else ""
        return replace(shown, stdout=shown.stdout + own)

    def netstat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        return CommandOutput(frames.shown_routes()) if "inet6" in arguments else _netstat(arguments, line)

    def route(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        if "-6" not in arguments:
            return _route(arguments, line)
        return frames.route([word for word in arguments if not word.startswith("-")])

    return {
        **posix.commands(files),
        "uname": _uname,
        "sysctl": _sysctl,
        "netstat": netstat,
        "ifconfig": ifconfig,
        "ndp": frames.ndp,
        "arp": _arp,
        "setfib": lambda arguments, line: frames.setfib(arguments, line.memory.sysctl["net.fibs"]),
        "route": route,
        "pfctl": _pfctl,
    }


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Return what pfSense starts with: forwarding, with its packet filter on."""
    return Memory(sysctl={FORWARDING: "1", freebsd_frames.FORWARDING: "0", "net.fibs": "1"}, packet_filter=True)


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
    if not arguments or arguments[0] == "-s":
        return CommandOutput("FreeBSD\n")
    if arguments[0] == "-r":
        return CommandOutput(release + "\n")
    return CommandOutput(f"FreeBSD {line.state.hostname} {release} FreeBSD {release} {BY_A_MODEL}  amd64\n")


def _boottime(line: CommandLine) -> str:
    return f"{{ sec = {int(line.now) - int(line.state.uptime)}, usec = 0 }} SIMULATED"


def _read_only(line: CommandLine) -> dict[str, str]:
    """Return what the kernel and the drivers show; the processors' time is that spent on packets, and idle."""
    state, times = line.state, []
    for thread in state.threads:
        times += [0, 0, 0, *thread.ticks(STATHZ)]
    found = {
        "kern.boottime": _boottime(line),
        "kern.ostype": "FreeBSD",
        "kern.osrelease": _release(state),
        "hw.model": BY_A_MODEL,
        "hw.ncpu": str(len(state.threads)),
        "kern.clockrate": f"{{ hz = 1000, tick = 1000, profhz = 8128, stathz = {STATHZ} }}",
        "kern.cp_times": " ".join(map(str, times)),
    }
    for one in state.interfaces:
        device = re.sub(r"(\d+)$", r".\1", one.name)
        found |= {f"dev.{device}.%desc": BY_A_MODEL, f"dev.{device}.%driver": re.sub(r"\d+$", "", one.name)}
        # as igb and ix name them
        found[f"dev.{device}.mac_stats.xoff_recvd"] = str(one.pauses_received)
        found[f"dev.{device}.mac_stats.crc_errs"] = str(one.rx_damaged)
        found[f"dev.{device}.mac_stats.xoff_txd"] = str(one.pauses_sent)
    for thread in state.threads:
        for name, queue in thread.queues:
            device = re.sub(r"(\d+)$", r".\1", name)
            found[f"dev.{device}.iflib.rxq{queue}.cpu"] = str(thread.lcore)
            # the model counts by thread: a queue's own count is known only where its thread has no other
            if len(thread.queues) == 1:
                found[f"dev.{device}.queue{queue}.rx_packets"] = str(thread.packets)
    return found


def _sysctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    out, bare = "", "-n" in arguments
    read_only = _read_only(line)
    for word in (word for word in arguments if not word.startswith("-")):
        key, sets, value = word.partition("=")
        known = line.memory.sysctl | read_only
        below = [name for name in known if name.startswith(f"{key}.")]
        if below:
            out += "".join(f"{name}: {known[name]}\n" for name in below)
            continue
        if key not in known and "-i" in arguments:
            continue
        if key not in known:
            return CommandOutput(out, f"sysctl: unknown oid '{key}'\n", 1)
        shown = known[key]
        if sets:
            if key not in line.memory.sysctl:
                return CommandOutput(out, f"sysctl: oid '{key}' is read only\n", 1)
            line.memory.sysctl[key] = value
            shown = f"{shown} -> {value}"
        out += f"{shown}\n" if bare else f"{key}: {shown}\n"
    return CommandOutput(out)


def _netstat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    words = list(arguments)
    flags = "".join(word[1:] for word in words if word.startswith("-"))
    if "s" in flags:
        return CommandOutput(_ip_statistics(line.state))
    if "r" in flags:
        return CommandOutput(_routes(line.state))
    name = words[words.index("-I") + 1] if "-I" in words[:-1] else None
    if name is None and "i" not in flags:
        return CommandOutput("", "netstat: this simulated shell shows -i, -I, -r and -s\n", 1)
    rows = [one for one in line.state.interfaces if name in (None, one.name)]
    if not rows:
        return CommandOutput("", f"netstat: {name}: no such interface\n", 1)
    return CommandOutput(interface_table(line.state, rows, "b" in flags, "d" in flags))


def interface_table(state: RouterState, rows: Sequence[InterfaceState], octets: bool, drops: bool) -> str:
    """``netstat -i``: a row for the link and one per address; *octets* as ``-b``, *drops* as ``-d``."""
    wide = max(5, *(len(one.name) + 1 for one in rows))
    text = f"{'Name':{wide}} {'Mtu':>5} {'Network':13} {'Address':17} {'Ipkts':>8} {'Ierrs':>5} {'Idrop':>5}"
    text += f" {'Ibytes':>10}" * octets + f" {'Opkts':>8} {'Oerrs':>5}" + f" {'Obytes':>10}" * octets
    text += f" {'Coll':>5}" + " Drop" * drops + "\n"
    for number, one in enumerate(state.interfaces, 1):
        if one not in rows:
            continue
        name = one.name if one.name in state.configuration.up else one.name + "*"
        text += f"{name:{wide}} {1500:5d} {f'<Link#{number}>':13} {one.mac:17}"
        text += f" {one.rx_packets:8d} {one.rx_damaged:5d} {one.rx_missed:5d} " + f"{one.rx_bytes:10d} " * octets
        text += f"{one.tx_packets:8d} {0:5d} " + f"{one.tx_bytes:10d} " * octets + f"{0:5d} "
        text += f"{one.tx_dropped:4d} " * drops + "\n"
        for owner, address in state.configuration.addresses:
            if owner == one.name:
                interface = ipaddress.IPv4Interface(address)
                text += f"{name:{wide}} {'-':>5} {interface.network!s:13} {interface.ip!s:17} {0:8d} {'-':>5} {'-':>5} "
                text += f"{0:10d} " * octets + f"{0:8d} {'-':>5} " + f"{0:10d} " * octets + f"{'-':>5} "
                text += f"{'-':>4} " * drops + "\n"
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


def _routes(state: RouterState) -> str:
    configuration = state.configuration
    text = f"Routing tables\n\nInternet:\n{'Destination':18} {'Gateway':18} {'Flags':>7} {'Netif':>7} Expire\n"
    for prefix, hop in configuration.routes:
        text += f"{prefix:18} {hop:18} {'UGS':7} {interface_towards(configuration, hop) or '-':>7}\n"
    for number, (name, address) in enumerate(configuration.addresses, 1):
        text += f"{ipaddress.IPv4Interface(address).network!s:18} {f'link#{number}':18} {'U':7} {name:>7}\n"
    return text


def _ifconfig(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    if not arguments or arguments[0] == "-a":
        return CommandOutput("".join(_interface(one, line.state) for one in line.state.interfaces))
    one = next((one for one in line.state.interfaces if one.name == arguments[0]), None)
    if one is None:
        return CommandOutput("", f"ifconfig: interface {arguments[0]} does not exist\n", 1)
    configuration, rest = line.state.configuration, list(arguments[1:])
    others = tuple(name for name in configuration.up if name != one.name)
    if not rest:
        return CommandOutput(_interface(one, line.state))
    if rest == ["up"]:
        line.change(replace(configuration, up=(*others, one.name)))
    elif rest == ["down"]:
        line.change(replace(configuration, up=others))
    elif rest[0] == "inet" and len(rest) >= 2:
        return _inet(one, rest[1], rest[2:], line)
    else:
        return CommandOutput("", f"ifconfig: {rest[0]}: bad value\n", 1)
    return CommandOutput()


def _inet(one: InterfaceState, text: str, rest: Sequence[str], line: CommandLine) -> CommandOutput:
    configuration = line.state.configuration
    mine = [row for row in configuration.addresses if row[0] == one.name]
    if rest[:1] == ["netmask"] and len(rest) > 1:
        text, rest = f"{text}/{int(rest[1], 16).bit_count()}", rest[2:]
    try:
        address = ipaddress.IPv4Interface(text)
    except ValueError:
        return CommandOutput("", f"ifconfig: {text}: bad value\n", 1)
    same = [row for row in mine if ipaddress.IPv4Interface(row[1]).ip == address.ip]
    others = tuple(row for row in configuration.addresses if row not in same)
    if rest and rest[0] in ("-alias", "delete"):
        if not same:
            return CommandOutput("", "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address\n", 1)
        line.change(replace(configuration, addresses=others))
        return CommandOutput()
    if not rest:
        # without 'alias' the first address is replaced
        others = tuple(row for row in others if row not in mine[:1])
    up = tuple(dict.fromkeys((*configuration.up, one.name)))
    line.change(replace(configuration, addresses=(*others, (one.name, str(address))), up=up))
    return CommandOutput()


def _interface(one: InterfaceState, state: RouterState) -> str:
    up = one.name in state.configuration.up
    flags = "flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST>" if up else "flags=8802<BROADCAST,SIMPLEX,MULTICAST>"
    text = f"{one.name}: {flags} metric 0 mtu 1500\n\tether {one.mac}\n"
    for name, address in state.configuration.addresses:
        if name == one.name:
            inet = ipaddress.IPv4Interface(address)
            text += f"\tinet {inet.ip} netmask {int(inet.netmask):#010x} broadcast {inet.network.broadcast_address}\n"
    status = "active" if one.link_up else "no carrier"
    return f"{text}\tmedia: Ethernet autoselect ({one.speed_bps / 1e9:g}Gbase-SIMULATED)\n\tstatus: {status}\n"


def _arp(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    configuration, words = line.state.configuration, list(arguments)
    rows = configuration.neighbours

    def shown(name: str, ip: str, mac: str) -> str:
        lasts = f"expires in {ARP_SECONDS} seconds" if configuration.is_learned(name, ip) else "permanent"
        return f"? ({ip}) at {mac} on {name} {lasts} [ethernet]\n"

    if words and words[0].startswith("-") and "a" in words[0]:
        return CommandOutput("".join(shown(*row) for row in rows))
    if len(words) >= 3 and words[0] in ("-S", "-s"):
        name = interface_towards(configuration, words[1])
        if name is None:
            return CommandOutput("", f"arp: cannot intuit interface index and type for {words[1]}\n", 1)
        line.change(configuration.with_neighbour((name, words[1], words[2]), learned="temp" in words[3:]))
        return CommandOutput()
    if len(words) == 2 and words[0] in ("-d", "-n"):
        found = [row for row in rows if row[1] == words[1]]
        if not found:
            return CommandOutput("", f"arp: {words[1]} ({words[1]}) -- no entry\n", 1)
        if words[0] == "-n":
            return CommandOutput(shown(*found[0]))
        for name, address, _ in found:
            configuration = configuration.without_neighbour(name, address)
        line.change(configuration)
        return CommandOutput(f"{words[1]} ({words[1]}) deleted\n")
    return CommandOutput("", "usage: arp -a | -n host | -d host | -S host ether_addr\n", 1)


def _route(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    words = [word for word in arguments if word not in ("-n", "-net", "-inet")]
    if len(words) < 2 or words[0] not in ("add", "delete", "del", "change"):
        return CommandOutput("", "usage: route [-n] add|delete|change [-net] network gateway\n", 64)
    try:
        prefix = str(ipaddress.IPv4Network("0.0.0.0/0" if words[1] == "default" else words[1]))
    except ValueError:
        return CommandOutput("", f"route: bad address: {words[1]}\n", 68)
    configuration, short = line.state.configuration, words[1].partition("/")[0]
    there = any(row[0] == prefix for row in configuration.routes)
    others = tuple(row for row in configuration.routes if row[0] != prefix)
    if words[0] in ("delete", "del"):
        if not there:
            return CommandOutput(f"delete net {short} fib 0: not in table\n", "route: route has not been found\n", 1)
        line.change(replace(configuration, routes=others))
        return CommandOutput(f"delete net {short}\n")
    gateway = words[2] if len(words) > 2 else ""
    if interface_towards(configuration, gateway) is None:
        answer = f"{words[0]} net {short}: gateway {gateway} fib 0: Network is unreachable\n"
        return CommandOutput(answer, "route: writing to routing socket: Network is unreachable\n", 1)
    if words[0] == "add" and there:
        answer = f"add net {short}: gateway {gateway} fib 0: route already in table\n"
        return CommandOutput(answer, "route: writing to routing socket: File exists\n", 1)
    line.change(replace(configuration, routes=(*others, (prefix, gateway))))
    return CommandOutput(f"{words[0]} net {short}: gateway {gateway}\n")


def _pfctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    memory, words = line.memory, list(arguments)
    if words in (["-s", "info"], ["-si"]):
        return CommandOutput(
            f"Status: {'Enabled' if memory.packet_filter else 'Disabled'} for 0 days 00:00:00  SIMULATED\n"
        )
    if words not in (["-d"], ["-e"]):
        return CommandOutput("", "usage: pfctl -d | -e | -s info\n", 1)
    wanted = words == ["-e"]
    if memory.packet_filter == wanted:
        return CommandOutput("", f"pfctl: pf {'already' if wanted else 'not'} enabled\n", 1)
    memory.packet_filter = wanted
    return CommandOutput("", f"pf {'enabled' if wanted else 'disabled'}\n")
