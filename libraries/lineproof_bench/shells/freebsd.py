"""Files and commands of a simulated FreeBSD or pfSense machine."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from functools import partial

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, RouterState
from .machine import (
    CommandLine,
    CommandOutput,
    Commands,
    Memory,
    Patterns,
    Words,
    answer_of,
    common_commands,
)

STATHZ = 127
"""Ticks per second of ``kern.cp_times``."""
ARP_SECONDS = 1182
"""Seconds that a learned entry says it still lasts; it lasts net.link.ether.inet.max_age = 1200 s (arp(4))."""
UP, DOWN = "8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST>", "8802<BROADCAST,SIMPLEX,MULTICAST>"


def software() -> Commands:
    """Return the commands of a FreeBSD kernel that routes IPv4."""
    files = {
        "/etc/platform": lambda line: "pfSense\n" if _is_pfsense(line.state) else "FreeBSD\n",
        "/etc/version": lambda line: f"{_number(line.state.version)}-SIMULATED\n",
    }
    programs = {name: partial(_run, name) for name in ("ifconfig", "netstat", "arp", "ndp", "route", "pfctl", "uptime")}
    return {**common_commands(files), **programs, "uname": _uname, "sysctl": _sysctl}


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Return what pfSense starts with: forwarding, with its packet filter on."""
    variables = {"net.inet.ip.forwarding": "1", "net.inet6.ip6.forwarding": "0", "net.fibs": "1"}
    return Memory(sysctl=variables, packet_filter=True)


def _run(program: str, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """Run what _COMMANDS have. Raises ValueError for what cannot be done."""
    text, unknown = " ".join((program, *arguments)), f"{' '.join(arguments)}: not known to this simulated shell"
    return answer_of(_COMMANDS, text, line, "interface {} does not exist", unknown)


def _is_pfsense(state: RouterState) -> bool:
    """Return whether the platform calls the software pfSense, or its version is pfSense's with FreeBSD's behind it."""
    return "pfsense" in f"{state.software} {state.version}".lower() or "(FreeBSD" in state.version


def _number(version: str) -> str:
    number = re.search(r"\d+(\.\d+)+", version)
    return number[0] if number else "0.0"


def _release(state: RouterState) -> str:
    base = re.search(r"FreeBSD (\d+\.\d+)", state.version)
    return f"{base[1] if base else _number(state.version)}-SIMULATED"


def _uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    release = _release(line.state)
    whole = f"FreeBSD {line.state.hostname} {release} FreeBSD {release} {BY_A_MODEL}  amd64\n"
    return CommandOutput(whole if "-a" in arguments else "FreeBSD\n")


def _read_only(line: CommandLine) -> dict[str, str]:
    """Return what the kernel and the drivers show; the processors' time is that spent on packets, and idle."""
    state = line.state
    ticks = [(0, 0, 0, *thread.ticks(STATHZ)) for thread in state.threads]
    shown = {
        "kern.ostype": "FreeBSD",
        "kern.osrelease": _release(state),
        "hw.model": BY_A_MODEL,
        "hw.ncpu": str(len(state.threads)),
        "kern.clockrate": f"{{ hz = 1000, tick = 1000, profhz = 8128, stathz = {STATHZ} }}",
        "kern.cp_times": " ".join(str(count) for times in ticks for count in times),
    }
    for one in state.interfaces:
        device = _device(one.name)
        shown |= {f"{device}.%desc": BY_A_MODEL, f"{device}.%driver": re.sub(r"\d+$", "", one.name)}
        # as igb and ix name them
        shown[f"{device}.mac_stats.xoff_recvd"] = str(one.pauses_received)
        shown[f"{device}.mac_stats.crc_errs"] = str(one.rx_damaged)
        shown[f"{device}.mac_stats.xoff_txd"] = str(one.pauses_sent)
    for thread in state.threads:
        for name, queue in thread.queues:
            shown[f"{_device(name)}.iflib.rxq{queue}.cpu"] = str(thread.lcore)
            # the model counts by thread: a queue's own count is known only where its thread has no other
            if len(thread.queues) == 1:
                shown[f"{_device(name)}.queue{queue}.rx_packets"] = str(thread.packets)
    return shown


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


def _counters(words: Words, line: CommandLine) -> str:
    """``netstat -ibndW``: the row of each link."""
    text = f"{'Name':9} {'Mtu':>5} {'Network':13} {'Address':17} {'Ipkts':>8} {'Ierrs':>5} {'Idrop':>5} {'Ibytes':>10}"
    text += f" {'Opkts':>8} {'Oerrs':>5} {'Obytes':>10} {'Coll':>5}  Drop\n"
    for number, one in enumerate(line.state.interfaces, 1):
        name = one.name if one.name in line.configuration.up else f"{one.name}*"
        text += f"{name:9} {1500:5d} {f'<Link#{number}>':13} {one.mac:17} {one.rx_packets:8d} {one.rx_damaged:5d}"
        text += f" {one.rx_missed:5d} {one.rx_bytes:10d} {one.tx_packets:8d} {0:5d} {one.tx_bytes:10d} {0:5d}"
        text += f" {one.tx_dropped:5d}\n"
    return text


def _ip_statistics(words: Words, line: CommandLine) -> str:
    received, forwarded, lost, dropped = (
        # of those received some may still wait, or find no route later
        sum(getattr(one, name) for one in line.state.interfaces)
        for name in ("rx_packets", "handed", "no_route", "tx_dropped")
    )
    counts = {"received-packets": received, "forwarded-packets": forwarded, "packets-cannot-forward": lost}
    counts |= {"received-unknown-multicast-group": 0, "discard-no-mbufs": dropped, "discard-no-route": 0}
    return json.dumps({"statistics": {"ip": counts}}) + "\n"


def _packet_filter(words: Words, line: CommandLine) -> str:
    if words["way"]:
        line.memory.packet_filter = words["way"] == "e"
        return ""
    is_on = "Enabled" if line.memory.packet_filter else "Disabled"
    return f"Status: {is_on} for 0 days 00:00:00  SIMULATED\n"


def _interfaces(words: Words, line: CommandLine) -> str:
    return "".join(_shown(one, line) for one in line.state.interfaces if words["name"] in ("", one.name))


def _shown(one: InterfaceState, line: CommandLine) -> str:
    flags = UP if one.name in line.configuration.up else DOWN
    text = f"{one.name}: flags={flags} metric 0 mtu 1500\n\tether {one.mac}\n"
    for own in (ipaddress.IPv4Interface(row[1]) for row in line.configuration.addresses if row[0] == one.name):
        text += f"\tinet {own.ip} netmask {int(own.netmask):#010x} broadcast {own.network.broadcast_address}\n"
    media = f"Ethernet autoselect ({one.speed_bps / 1e9:g}Gbase-SIMULATED)"
    status = "active" if one.link_up else "no carrier"
    return f"{text}\tmedia: {media}\n\tstatus: {status}\n\tnd6 options=29<PERFORMNUD,IFDISABLED>\n"


def _link(words: Words, line: CommandLine) -> str:
    others = tuple(name for name in line.configuration.up if name != words["name"])
    line.change(up=(*others, words["name"]) if words["way"] == "up" else others)
    return ""


def _address(words: Words, line: CommandLine) -> str:
    name, up = words["name"], line.configuration.up
    length = f"/{int(words['mask'], 16).bit_count()}" if words["mask"] else ""
    wanted = ipaddress.IPv4Interface(words["address"] + length)
    # the same address with another prefix gets the new one
    kept = tuple(
        row for row in line.configuration.addresses if row[0] != name or ipaddress.ip_interface(row[1]).ip != wanted.ip
    )
    if words["off"]:
        line.change(addresses=kept)
    else:
        line.change(addresses=(*kept, (name, str(wanted))), up=tuple(dict.fromkeys((*up, name))))
    return ""


def _neighbours(words: Words, line: CommandLine) -> str:
    text = ""
    for name, address, mac in line.configuration.neighbours:
        learned = line.configuration.is_learned(name, address)
        lasts = f"expires in {ARP_SECONDS} seconds" if learned else "permanent"
        text += f"? ({address}) at {mac} on {name} {lasts} [ethernet]\n"
    return text


def _neighbour(words: Words, line: CommandLine) -> str:
    configuration, address = line.configuration, words["address"]
    if "mac" in words:
        if (towards := configuration.interface_towards(address)) is None:
            raise ValueError(f"cannot intuit interface index and type for {address}")
        row = towards, address, words["mac"]
        line.configure(configuration.with_neighbour(row, learned=bool(words["temporary"])))
        return ""
    if not (names := [row[0] for row in configuration.neighbours if row[1] == address]):
        raise ValueError(f"{address} -- no entry")
    line.configure(configuration.without_neighbour(names[0], address))
    return f"{address} ({address}) deleted\n"


def _route(words: Words, line: CommandLine) -> str:
    routes, hop = dict(line.configuration.routes), words["hop"]
    network = str(ipaddress.IPv4Network("0.0.0.0/0" if words["network"] == "default" else words["network"]))
    shown = f"{words['verb']} net {network.partition('/')[0]}"
    if words["verb"] == "delete" and network in routes:
        del routes[network]
    elif words["verb"] != "delete" and line.configuration.interface_towards(hop):
        routes[network] = hop
        shown += f": gateway {hop}"
    else:
        raise ValueError("writing to routing socket: Network is unreachable, or not in table")
    line.change(routes=tuple(routes.items()))
    return f"{shown}\n"


def _routes(words: Words, line: CommandLine) -> str:
    configuration = line.configuration
    rows = [(net, hop, "UGS", configuration.interface_towards(hop)) for net, hop in configuration.routes]
    for number, (name, address) in enumerate(configuration.addresses, 1):
        rows.append((str(ipaddress.ip_interface(address).network), f"link#{number}", "U", name))
    head = f"Routing tables\n\ninet:\n{'Destination':36} {'Gateway':30} {'Flags':7} {'Netif':>7} Expire\n"
    return head + "".join(f"{net:36} {hop:30} {flags:7} {name or '-':>7}\n" for net, hop, flags, name in rows)


_NAME, _ADDRESS = r"(?P<name>\S+)", r"(?P<address>[\d.]+)"
_COMMANDS: Patterns = {
    "ifconfig -l": lambda words, line: " ".join([*(one.name for one in line.state.interfaces), "lo0"]) + "\n",
    rf"ifconfig(?: {_NAME})?": _interfaces,
    rf"ifconfig {_NAME} (?P<way>up|down)": _link,
    rf"ifconfig {_NAME} inet (?P<address>[\d./]+)(?: netmask (?P<mask>0x\w+))? (?P<off>-)?alias": _address,
    "uptime --libxo json": lambda words, line: f'{{"uptime-information": {{"uptime": {int(line.state.uptime)}}}}}\n',
    "netstat -ibndW": _counters,
    "netstat --libxo json -s -f inet": _ip_statistics,
    "netstat -rnW -f inet": _routes,
    "arp -an": _neighbours,
    rf"arp -S {_ADDRESS} (?P<mac>\S+)(?P<temporary> temp)?": _neighbour,
    rf"arp -d {_ADDRESS}": _neighbour,
    # no model has IPv6 neighbours
    "ndp -an": lambda words, line: f"{'Neighbor':36} {'Linklayer Address':18} {'Netif':>6} {'Expire':10} S Flags\n",
    r"route (?P<verb>add|change|delete) -net (?P<network>\S+)(?: (?P<hop>\S+))?": _route,
    r"pfctl (?:-s info|-(?P<way>[ed]))": _packet_filter,
}
