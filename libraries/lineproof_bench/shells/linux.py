"""Files and commands of a simulated Linux machine, in the format of procfs and procps."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Sequence
from functools import partial

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, RouterState, ThreadState
from .machine import (
    Builtin,
    CommandLine,
    CommandOutput,
    Memory,
    Patterns,
    Words,
    answer_of,
    common_commands,
)

DRIVER = "simulated"
FIRST_IRQ, MOST_IRQS = 24, 256
FRAMES_PER_INTERRUPT = 64
TICKS = 100
"""Ticks of ``/proc/stat``, per second."""
_IP = "Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers"
"""Fields of ``/proc/net/snmp`` before those that are sent."""


def software(own: bool = True) -> dict[str, Builtin]:
    """Return the commands of a Linux machine whose kernel routes; not *own*: its interfaces belong to VPP."""
    files: dict[str, Callable[[CommandLine], str]] = {
        "/proc/uptime": lambda line: f"{line.state.uptime:.2f} {line.state.uptime * len(line.state.threads):.2f}\n",
        "/proc/cmdline": lambda line: "BOOT_IMAGE=/simulated ro\n",
        "/etc/os-release": lambda line: f'PRETTY_NAME="{_distribution(line.state)} (SIMULATED)"\nID=simulated\n',
    }

    def lscpu(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        count = f"CPU(s):                {len(line.state.threads)}\n" if own else ""
        return CommandOutput(f"Architecture:          x86_64\n{count}Model name:            {BY_A_MODEL}\n")

    commands = {"uname": _uname, "sysctl": _sysctl, "lscpu": lscpu}
    if not own:
        return {**common_commands(files), **commands}
    files |= {
        "/proc/net/softnet_stat": lambda line: _softnet(line.state),
        "/proc/net/snmp": lambda line: _snmp(line.state.interfaces),
        # what is forwarded without a route is InNoRoutes
        "/proc/net/netstat": lambda line: (
            f"IpExt: InNoRoutes InTruncatedPkts\nIpExt: {sum(one.no_route for one in line.state.interfaces)} 0\n"
        ),
        "/proc/interrupts": lambda line: _interrupts(line.state),
        "/proc/stat": lambda line: _stat(line.state),
        **{f"/proc/irq/{FIRST_IRQ + at}/effective_affinity_list": partial(_affinity, at) for at in range(MOST_IRQS)},
    }
    return {**common_commands(files, _card_file), **commands, "ethtool": _ethtool, "ip": _ip}


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Return the kernel variables as a distribution leaves them: no forwarding, loose reverse-path filter."""
    names = ("all", "default", "lo", *interfaces)
    filters = {f"net.ipv4.conf.{name}.rp_filter": "0" if name in ("all", "lo") else "2" for name in names}
    return Memory(sysctl={"net.ipv4.ip_forward": "0", **filters})


def _distribution(state: RouterState) -> str:
    """Return the distribution that the platform's file names."""
    return re.sub(r",? *kernel \S+", "", state.version) if state.software != "vpp" else "Linux"


def _softnet(state: RouterState) -> str:
    """``/proc/net/softnet_stat``: frames handled by each CPU, 32 bits in hexadecimal."""
    rows = [[thread.packets & 0xFFFFFFFF, *([0] * 11), thread.lcore, 0, 0] for thread in state.threads]
    return "".join(" ".join(f"{n:08x}" for n in row) + "\n" for row in rows)


def _snmp(interfaces: Sequence[InterfaceState]) -> str:
    """Return the ``Ip:`` lines of ``/proc/net/snmp``."""
    # of those received some may still wait, or find no route later
    received, forwarded, dropped = (
        sum(getattr(one, name) for one in interfaces) for name in ("rx_packets", "handed", "tx_dropped")
    )
    values = (1, 64, received, 0, 0, forwarded, 0, 0, 0, forwarded, dropped, 0)
    return f"Ip: {_IP} OutRequests OutDiscards OutNoRoutes\nIp: {' '.join(map(str, values))}\n"


def _uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    named = re.search(r"kernel (\S+)", line.state.version)
    release = f"{named[1] if named else '5.15'}-simulated"
    whole = f"Linux {line.state.hostname} {release} #1 SMP {BY_A_MODEL} x86_64 GNU/Linux"
    return CommandOutput({"": "Linux", "-s": "Linux", "-r": release}.get(" ".join(arguments), whole) + "\n")


def _sysctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    known, out = line.memory.sysctl, ""
    for word in (word for word in arguments if word not in ("-n", "-w", "-q")):
        name, sets, value = word.partition("=")
        # procps: where '/' comes before any '.', slashes separate and dots belong to interface names
        key = name.replace("/", ".") if "/" in name else name
        if not sets and (below := [one for one in known if one.startswith(f"{key}.")]):
            out += "".join(f"{one} = {known[one]}\n" for one in below)
            continue
        if key not in known:
            where = key.replace(".", "/")
            return CommandOutput(out, f"sysctl: cannot stat /proc/sys/{where}: No such file or directory\n", 255)
        if sets:
            known[key] = value.strip()
            if key == "net.ipv4.ip_forward" and known[key] != "0":
                line.memory.lro.clear()
        out += f"{known[key]}\n" if "-n" in arguments else f"{key} = {known[key]}\n"
    return CommandOutput(out)


def _queues_of(state: RouterState) -> list[tuple[str, int, ThreadState]]:
    """Return interface, queue and thread of each receive queue, in the order of their interrupts."""
    queues = [(name, queue, thread) for thread in state.threads for name, queue in thread.queues]
    return sorted(queues, key=lambda row: row[:2])


def _card_file(path: str, line: CommandLine) -> str | None:
    """Return a file of an interface under ``/sys/class/net``; None: another file."""
    for one in line.state.interfaces:
        up = one.name in line.configuration.up
        values = {
            "address": one.mac,
            "flags": f"{0x1002 + up:#x}",
            "operstate": "up" if up and one.link_up else "down",
            "device/uevent": f"DRIVER={DRIVER}",
        } | ({"speed": f"{one.speed_bps / 1e6:.0f}"} if one.link_up else {})
        if value := values.get(path.removeprefix(f"/sys/class/net/{one.name}/")):
            return f"{value}\n"
    return None


def _ethtool(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ethtool -i``, ``-k`` (also with ``--json``), ``-K`` with ``lro``, ``-l`` and ``-S``."""
    option, name, *settings = (*arguments, "", "")
    queues = [(queue, thread) for interface, queue, thread in _queues_of(line.state) if interface == name]
    match option, settings[:2]:
        case "-i", _:
            return CommandOutput(f"driver: {DRIVER}\nversion: {line.state.version}\nfirmware-version: \nbus-info: \n")
        case "-k", _:
            lro = "on" if name in line.memory.lro else "off"
            return CommandOutput(f"Features for {name}:\nlarge-receive-offload: {lro}\n")
        case "--json", [interface, _] if name == "-k":
            feature = {"large-receive-offload": {"active": interface in line.memory.lro}}
            return CommandOutput(f"{json.dumps([{'ifname': interface, **feature}])}\n")
        case "-K", ["lro", "on" | "off" as way]:
            (line.memory.lro.add if way == "on" else line.memory.lro.discard)(name)
            return CommandOutput()
        case "-l", _:
            head = f"Channel parameters for {name}:\nCurrent hardware settings:\n"
            return CommandOutput(f"{head}Combined:\t{len(queues)}\n")
        case "-S", _:
            # the model counts by thread: a queue's own count is known only where its thread has no other
            alone = [(queue, thread) for queue, thread in queues if len(thread.queues) == 1]
            counts = {f"rx_queue_{queue}_packets": thread.packets for queue, thread in alone}
            one = next(one for one in line.state.interfaces if one.name == name)
            counts |= {"rx_crc_errors": one.rx_damaged, "rx_flow_control_xoff": one.pauses_received}
            counts["tx_flow_control_xoff"] = one.pauses_sent
            rows = "".join(f"     {counter}: {count}\n" for counter, count in counts.items())
            return CommandOutput(f"NIC statistics:\n{rows}")
    return CommandOutput("", "netlink error: Operation not supported\n", 95)


def _interrupts(state: RouterState) -> str:
    """``/proc/interrupts``."""
    cpus = [thread.lcore for thread in state.threads]
    text = "     " + "".join(f"{f'CPU{cpu}':>12}" for cpu in cpus) + "\n"
    for at, (name, queue, thread) in enumerate(_queues_of(state)):
        count = thread.packets // (FRAMES_PER_INTERRUPT * len(thread.queues))
        counts = "".join(f"{count if cpu == thread.lcore else 0:12d}" for cpu in cpus)
        text += f"{FIRST_IRQ + at:4d}:{counts}  SIMULATED {at}-edge      {name}-TxRx-{queue}\n"
    return text


def _stat(state: RouterState) -> str:
    """``/proc/stat``: time in software interrupts is time spent on packets."""
    rows = [(f"cpu{thread.lcore}", *thread.ticks(TICKS)) for thread in state.threads]
    total = ("cpu", sum(row[1] for row in rows), sum(row[2] for row in rows))
    return "".join(f"{name} 0 0 0 {idle} 0 0 {softirq} 0 0 0\n" for name, softirq, idle in (total, *rows))


def _affinity(at: int, line: CommandLine) -> str:
    queues = _queues_of(line.state)
    return f"{queues[at][2].lcore}\n" if at < len(queues) else ""


# -- ip


def _ip(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ip [options] OBJECT [show|set|add|replace|del] …``. Raises ValueError for what cannot be done."""
    text = " ".join(word for word in arguments if word not in ("-4", "-o", "-s", "-j", "-d"))
    if text == "link show" and "-j" in arguments:
        return CommandOutput(_counters(line))
    unknown = f'Object "{text}" is unknown, try "ip help".'
    return answer_of(_COMMANDS, text, line, 'Device "{}" does not exist.', unknown)


def _counters(line: CommandLine) -> str:
    """``ip -j -s -s link show``: what of it a reader of the counters needs."""
    links = []
    for index, one in enumerate(line.state.interfaces, 2):
        received = {"bytes": one.rx_bytes, "packets": one.rx_packets, "errors": one.rx_damaged}
        received |= {"dropped": 0, "missed_errors": one.rx_missed}
        sent = {"bytes": one.tx_bytes, "packets": one.tx_packets, "errors": 0, "dropped": one.tx_dropped}
        links.append({"ifindex": index, "ifname": one.name, "stats64": {"rx": received, "tx": sent}})
    return f"{json.dumps(links)}\n"


def _links(words: Words, line: CommandLine) -> str:
    text = ""
    for index, one in enumerate(line.state.interfaces, 2):
        if words["name"] in ("", one.name):
            up = one.name in line.configuration.up
            flags = "BROADCAST,MULTICAST" + (f",UP,{'LOWER_UP' if one.link_up else 'NO-CARRIER'}" if up else "")
            state = "UP" if up and one.link_up else "DOWN"
            text += f"{index}: {one.name}: <{flags}> mtu 1500 qdisc mq state {state} group default qlen 1000\n"
            text += f"    link/ether {one.mac} brd ff:ff:ff:ff:ff:ff\n"
    return text


def _link(words: Words, line: CommandLine) -> str:
    others = tuple(name for name in line.configuration.up if name != words["name"])
    line.change(up=others if words["off"] else (*others, words["name"]))
    return ""


def _addresses(words: Words, line: CommandLine) -> str:
    return _links(words, line) + "".join(
        f"    inet {address} scope global {name}\n       valid_lft forever preferred_lft forever\n"
        for name, address in line.configuration.addresses
        if name == words["name"]
    )


def _address(words: Words, line: CommandLine) -> str:
    row = (words["name"], str(ipaddress.IPv4Interface(words["address"])))
    line.change(addresses=_changed(line.configuration.addresses, row, row, words["verb"]))
    return ""


def _changed(
    rows: tuple[tuple[str, str], ...], row: tuple[str, str], same: tuple[str, ...], verb: str
) -> tuple[tuple[str, str], ...]:
    """Return *rows* with or without *row*, in place of those that begin as *same*. Raises ValueError without it."""
    if verb == "del" and row not in rows:
        raise ValueError("RTNETLINK answers: No such process")
    others = tuple(other for other in rows if other[: len(same)] != same)
    return others if verb == "del" else (*others, row)


def _neighbours(words: Words, line: CommandLine) -> str:
    text = ""
    for name, address, mac in line.configuration.neighbours:
        if words["address"] in ("", address) and words["name"] in ("", name):
            state = "STALE" if line.configuration.is_learned(name, address) else "PERMANENT"
            text += f"{address} {'' if words['name'] else f'dev {name} '}lladdr {mac} {state} \n"
    return text


def _neighbour(words: Words, line: CommandLine) -> str:
    configuration, key = line.configuration, (words["name"], words["address"])
    if "mac" in words:
        line.configure(configuration.with_neighbour((*key, words["mac"]), learned=words["state"] != "permanent"))
    elif any(row[:2] == key for row in configuration.neighbours):
        line.configure(configuration.without_neighbour(*key))
    else:
        raise ValueError("RTNETLINK answers: No such process")
    return ""


def _routes(words: Words, line: CommandLine) -> str:
    configuration, wanted = line.configuration, _prefix(words["prefix"]) if words["prefix"] else ""
    rows = []
    for prefix, hop in configuration.routes:
        name = "default" if prefix == "0.0.0.0/0" else prefix
        rows.append((prefix, f"{name} via {hop} dev {configuration.interface_towards(hop)} "))
    for name, text in configuration.addresses:
        own = ipaddress.IPv4Interface(text)
        rows.append((str(own.network), f"{own.network} dev {name} proto kernel scope link src {own.ip} "))
    return "".join(f"{text}\n" for prefix, text in rows if wanted in ("", prefix))


def _route(words: Words, line: CommandLine) -> str:
    prefix = _prefix(words["prefix"])
    line.change(routes=_changed(line.configuration.routes, (prefix, words["hop"]), (prefix,), words["verb"]))
    return ""


def _prefix(text: str) -> str:
    return str(ipaddress.IPv4Network("0.0.0.0/0" if text == "default" else text))


_DEV, _ADDRESS, _PREFIX = r"dev (?P<name>\S+)", r"(?P<address>\S+)", r"(?P<prefix>\S+)"
_COMMANDS: Patterns = {
    rf"link show(?: {_DEV})?": _links,
    rf"link set {_DEV} (?:up|(?P<off>down))": _link,
    rf"addr show {_DEV}": _addresses,
    rf"addr (?P<verb>add|del) {_ADDRESS} {_DEV}": _address,
    rf"neigh show(?: {_ADDRESS} {_DEV})?": _neighbours,
    rf"neigh replace {_ADDRESS} lladdr (?P<mac>\S+) nud (?P<state>\S+) {_DEV}": _neighbour,
    rf"neigh del {_ADDRESS} {_DEV}": _neighbour,
    rf"route show(?: {_PREFIX})?": _routes,
    rf"route (?P<verb>add|replace|del) {_PREFIX} via (?P<hop>\S+)(?: {_DEV})?": _route,
}
