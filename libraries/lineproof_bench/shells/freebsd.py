"""Files and commands of a simulated FreeBSD or pfSense machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lineproof.simulation.habits import BY_A_MODEL

from ..state import RouterState
from . import posix
from .freebsd_network import FreeBsdNetwork, refused
from .machine import CommandLine, CommandOutput, Commands, Memory

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
        **posix.commands(files),
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
        if sets and key not in line.memory.sysctl:
            return CommandOutput(out, f"sysctl: oid '{key}' is read only\n", 1)
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
        case ["-e" | "-d" as word] if is_on != (word == "-e"):
            memory.packet_filter = not is_on
            return CommandOutput("", f"pf {'disabled' if is_on else 'enabled'}\n")
        case ["-e" | "-d"]:
            return refused(f"pfctl: pf {'already' if is_on else 'not'} enabled")
    return refused("usage: pfctl -d | -e | -s info")
