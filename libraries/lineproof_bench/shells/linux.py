"""Files and commands of a simulated Linux machine, in the format of procfs and procps."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lineproof.simulation import BY_A_MODEL

from ..state import InterfaceState, RouterState, ThreadState
from .machine import Builtin, CommandLine, CommandOutput, Memory, common_commands

DRIVER = "simulated"
FIRST_IRQ, MOST_IRQS = 24, 256
FRAMES_PER_INTERRUPT = 64
TICKS = 100
"""Ticks of ``/proc/stat``, per second."""


def software(own: bool = True) -> dict[str, Builtin]:
    """A Linux machine whose kernel routes; not *own*: its interfaces belong to VPP."""
    files: dict[str, Callable[[CommandLine], str]] = {
        "/proc/uptime": lambda line: f"{line.state.uptime:.2f} {line.state.uptime * len(line.state.threads):.2f}\n",
        "/proc/cmdline": lambda line: "BOOT_IMAGE=/simulated ro\n",
        "/etc/os-release": lambda line: f'PRETTY_NAME="{distribution(line.state)} (SIMULATED)"\nID=simulated\n',
    }

    def lscpu(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        count = f"CPU(s):                {len(line.state.threads)}\n" if own else ""
        return CommandOutput(f"Architecture:          x86_64\n{count}Model name:            {BY_A_MODEL}\n")

    commands = {"uname": _uname, "sysctl": _sysctl, "lscpu": lscpu}
    if not own:
        return {**common_commands(files), **commands}
    files |= {
        "/proc/net/softnet_stat": lambda line: softnet(line.state),
        "/proc/net/snmp": lambda line: snmp(line.state.interfaces),
        "/proc/net/netstat": lambda line: netstat(line.state.interfaces),
        "/proc/interrupts": lambda line: interrupts(line.state),
        "/proc/stat": lambda line: stat(line.state),
        **{f"/proc/irq/{FIRST_IRQ + at}/effective_affinity_list": _affinity_of(at) for at in range(MOST_IRQS)},
    }
    return {**common_commands(files, card_file), **commands, "ethtool": ethtool, "ip": ip}


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Kernel variables as a distribution leaves them: no forwarding, loose reverse-path filter."""
    names = ("all", "default", "lo", *interfaces)
    return Memory(
        sysctl={"net.ipv4.ip_forward": "0"}
        | {f"net.ipv4.conf.{name}.rp_filter": "0" if name in ("all", "lo") else "2" for name in names}
    )


def kernel(state: RouterState) -> str:
    """The kernel's release from the platform's file, else a made-up one."""
    found = re.search(r"kernel (\S+)", state.version)
    return f"{found[1] if found else '5.15'}-simulated"


def distribution(state: RouterState) -> str:
    """The distribution that the platform's file names."""
    return re.sub(r",? *kernel \S+", "", state.version) if state.software != "vpp" else "Linux"


def softnet(state: RouterState) -> str:
    """``/proc/net/softnet_stat``: frames handled by each CPU, 32 bits in hexadecimal."""
    rows = [[thread.packets & 0xFFFFFFFF, *([0] * 11), thread.lcore, 0, 0] for thread in state.threads]
    return "".join(" ".join(f"{n:08x}" for n in row) + "\n" for row in rows)


def netstat(interfaces: Sequence[InterfaceState]) -> str:
    """The ``IpExt:`` lines of ``/proc/net/netstat``: what is forwarded without a route is *InNoRoutes*."""
    return f"IpExt: InNoRoutes InTruncatedPkts\nIpExt: {sum(one.no_route for one in interfaces)} 0\n"


def snmp(interfaces: Sequence[InterfaceState]) -> str:
    """The ``Ip:`` lines of ``/proc/net/snmp``."""
    # of those received some may still wait, or find no route later
    received, forwarded = (sum(getattr(one, name) for one in interfaces) for name in ("rx_packets", "handed"))
    values = {
        "Forwarding": 1,
        "DefaultTTL": 64,
        "InReceives": received,
        "InHdrErrors": 0,
        "InAddrErrors": 0,
        "ForwDatagrams": forwarded,
        "InUnknownProtos": 0,
        "InDiscards": 0,
        "InDelivers": 0,
        "OutRequests": forwarded,
        "OutDiscards": sum(one.tx_dropped for one in interfaces),
        "OutNoRoutes": 0,
    }
    return f"Ip: {' '.join(values)}\nIp: {' '.join(map(str, values.values()))}\n"


def _uname(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    release = kernel(line.state)
    if not arguments or arguments[0] == "-s":
        return CommandOutput("Linux\n")
    if arguments[0] == "-r":
        return CommandOutput(release + "\n")
    return CommandOutput(f"Linux {line.state.hostname} {release} #1 SMP {BY_A_MODEL} x86_64 GNU/Linux\n")


def _sysctl(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    known, out = line.memory.sysctl, ""
    bare, words = "-n" in arguments, [word for word in arguments if word not in ("-n", "-w", "-q")]
    for word in words:
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
        out += f"{known[key]}\n" if bare else f"{key} = {known[key]}\n"
    return CommandOutput(out)


def queues_of(state: RouterState) -> list[tuple[str, int, ThreadState]]:
    """Interface, queue and thread of each receive queue, in the order of their interrupts."""
    found = [(name, queue, thread) for thread in state.threads for name, queue in thread.queues]
    return sorted(found, key=lambda row: row[:2])


def card_file(path: str, line: CommandLine) -> str | None:
    """A file of an interface under ``/sys/class/net``; None: another file."""
    for one in line.state.interfaces:
        up = one.name in line.state.configuration.up
        values = {
            "address": one.mac,
            "flags": f"{0x1002 + up:#x}",
            "operstate": "up" if up and one.link_up else "down",
            "device/uevent": f"DRIVER={DRIVER}",
        } | ({"speed": f"{one.speed_bps / 1e6:.0f}"} if one.link_up else {})
        if value := values.get(path.removeprefix(f"/sys/class/net/{one.name}/")):
            return f"{value}\n"
    return None


def ethtool(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ethtool -i``, ``-k``, ``-K`` with ``lro``, ``-l`` and ``-S``."""
    option, name, *words = (*arguments, "", "")
    own = [(queue, thread) for interface, queue, thread in queues_of(line.state) if interface == name]
    if option == "-i":
        return CommandOutput(f"driver: {DRIVER}\nversion: {line.state.version}\nfirmware-version: \nbus-info: \n")
    if option == "-k":
        lro = "on" if name in line.memory.lro else "off"
        return CommandOutput(f"Features for {name}:\nlarge-receive-offload: {lro}\n")
    if option == "-K" and words[:2] in (["lro", "on"], ["lro", "off"]):
        (line.memory.lro.add if words[1] == "on" else line.memory.lro.discard)(name)
        return CommandOutput("")
    if option == "-l":
        return CommandOutput(f"Channel parameters for {name}:\nCurrent hardware settings:\nCombined:\t{len(own)}\n")
    if option == "-S":
        # the model counts by thread: a queue's own count is known only where its thread has no other
        alone = [(queue, thread) for queue, thread in own if len(thread.queues) == 1]
        rows = "".join(f"     rx_queue_{queue}_packets: {thread.packets}\n" for queue, thread in alone)
        state = next(one for one in line.state.interfaces if one.name == name)
        rows += f"     rx_crc_errors: {state.rx_damaged}\n"
        rows += f"     rx_flow_control_xoff: {state.pauses_received}\n     tx_flow_control_xoff: {state.pauses_sent}\n"
        return CommandOutput(f"NIC statistics:\n{rows}")
    return CommandOutput("", "netlink error: Operation not supported\n", 95)


def interrupts(state: RouterState) -> str:
    """``/proc/interrupts``."""
    cpus = [thread.lcore for thread in state.threads]
    text = "     " + "".join(f"{f'CPU{cpu}':>12}" for cpu in cpus) + "\n"
    for at, (name, queue, thread) in enumerate(queues_of(state)):
        count = thread.packets // (FRAMES_PER_INTERRUPT * len(thread.queues))
        counts = "".join(f"{count if cpu == thread.lcore else 0:12d}" for cpu in cpus)
        text += f"{FIRST_IRQ + at:4d}:{counts}  SIMULATED {at}-edge      {name}-TxRx-{queue}\n"
    return text


def stat(state: RouterState) -> str:
    """``/proc/stat``: time in software interrupts is time spent on packets."""
    rows = [("cpu", 0, 0)]
    for thread in state.threads:
        rows.append((f"cpu{thread.lcore}", *thread.ticks(TICKS)))
    rows[0] = ("cpu", sum(row[1] for row in rows), sum(row[2] for row in rows))
    return "".join(f"{name} 0 0 0 {idle} 0 0 {softirq} 0 0 0\n" for name, softirq, idle in rows)


def _affinity_of(at: int) -> Callable[[CommandLine], str]:
    def affinity(line: CommandLine) -> str:
        queues = queues_of(line.state)
        return f"{queues[at][2].lcore}\n" if at < len(queues) else ""

    return affinity


Words = Mapping[str, str]
"""The words of a command by their names; "" for one that may be left out, and was."""

_OPTIONS = ("-4", "-o", "-s", "-j", "-d")


def ip(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ip [options] OBJECT [show|set|add|replace|del] …``. Raises ValueError for what cannot be done."""
    text = " ".join(word for word in arguments if word not in _OPTIONS)
    if text == "link show" and "-j" in arguments:
        return CommandOutput(_counters(line))
    for pattern, handler in _COMMANDS:
        if found := pattern.fullmatch(text):
            words = found.groupdict("")
            if (name := words.get("name")) and name not in [one.name for one in line.state.interfaces]:
                raise ValueError(f'Device "{name}" does not exist.')
            return CommandOutput(handler(words, line))
    raise ValueError(f'Object "{text}" is unknown, try "ip help".')


def _check(words: Words, there: bool) -> None:
    """Raise ValueError where what is to be deleted is not there."""
    if words["verb"] == "del" and not there:
        raise ValueError("RTNETLINK answers: No such process")


def _counters(line: CommandLine) -> str:
    """``ip -j -s -s link show``: what of it a reader of the counters needs."""
    links = [
        {
            "ifindex": index,
            "ifname": one.name,
            "stats64": {
                "rx": {
                    "bytes": one.rx_bytes,
                    "packets": one.rx_packets,
                    "errors": one.rx_damaged,
                    "dropped": 0,
                    "missed_errors": one.rx_missed,
                },
                "tx": {"bytes": one.tx_bytes, "packets": one.tx_packets, "errors": 0, "dropped": one.tx_dropped},
            },
        }
        for index, one in enumerate(line.state.interfaces, 2)
    ]
    return f"{json.dumps(links)}\n"


def _links(words: Words, line: CommandLine) -> str:
    text = ""
    for index, one in enumerate(line.state.interfaces, 2):
        if words["name"] in ("", one.name):
            up = one.name in line.state.configuration.up
            flags = "BROADCAST,MULTICAST" + (f",UP,{'LOWER_UP' if one.link_up else 'NO-CARRIER'}" if up else "")
            state = "UP" if up and one.link_up else "DOWN"
            text += f"{index}: {one.name}: <{flags}> mtu 1500 qdisc mq state {state} group default qlen 1000\n"
            text += f"    link/ether {one.mac} brd ff:ff:ff:ff:ff:ff\n"
    return text


def _link(words: Words, line: CommandLine) -> str:
    others = tuple(name for name in line.state.configuration.up if name != words["name"])
    line.change(replace(line.state.configuration, up=others if words["off"] else (*others, words["name"])))
    return ""


def _addresses(words: Words, line: CommandLine) -> str:
    return _links(words, line) + "".join(
        f"    inet {address} scope global {name}\n       valid_lft forever preferred_lft forever\n"
        for name, address in line.state.configuration.addresses
        if name == words["name"]
    )


def _address(words: Words, line: CommandLine) -> str:
    configuration, row = line.state.configuration, (words["name"], str(ipaddress.IPv4Interface(words["address"])))
    _check(words, row in configuration.addresses)
    others = tuple(other for other in configuration.addresses if other != row)
    line.change(replace(configuration, addresses=others if words["verb"] == "del" else (*others, row)))
    return ""


def _neighbours(words: Words, line: CommandLine) -> str:
    configuration, text = line.state.configuration, ""
    for name, address, mac in configuration.neighbours:
        if words["address"] in ("", address) and words["name"] in ("", name):
            state = "STALE" if configuration.is_learned(name, address) else "PERMANENT"
            text += f"{address} {'' if words['name'] else f'dev {name} '}lladdr {mac} {state} \n"
    return text


def _neighbour(words: Words, line: CommandLine) -> str:
    configuration, key = line.state.configuration, (words["name"], words["address"])
    _check(words, any(row[:2] == key for row in configuration.neighbours))
    if words["verb"] == "del":
        line.change(configuration.without_neighbour(*key))
    else:
        line.change(configuration.with_neighbour((*key, words["mac"]), learned=words["state"] != "permanent"))
    return ""


def _routes(words: Words, line: CommandLine) -> str:
    configuration, wanted = line.state.configuration, _prefix(words["prefix"]) if words["prefix"] else ""
    rows = []
    for prefix, hop in configuration.routes:
        name = "default" if prefix == "0.0.0.0/0" else prefix
        rows.append((prefix, f"{name} via {hop} dev {configuration.interface_towards(hop)} "))
    for name, text in configuration.addresses:
        own = ipaddress.IPv4Interface(text)
        rows.append((str(own.network), f"{own.network} dev {name} proto kernel scope link src {own.ip} "))
    return "".join(f"{text}\n" for prefix, text in rows if wanted in ("", prefix))


def _route(words: Words, line: CommandLine) -> str:
    configuration, prefix, hop = line.state.configuration, _prefix(words["prefix"]), words["hop"]
    others = tuple(row for row in configuration.routes if row[0] != prefix)
    _check(words, (prefix, hop) in configuration.routes)
    line.change(replace(configuration, routes=others if words["verb"] == "del" else (*others, (prefix, hop))))
    return ""


def _prefix(text: str) -> str:
    return str(ipaddress.IPv4Network("0.0.0.0/0" if text == "default" else text))


_DEV, _ADDRESS, _PREFIX = "dev (?P<name>\\S+)", "(?P<address>\\S+)", "(?P<prefix>\\S+)"
_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[Words, CommandLine], str]], ...] = tuple(
    (re.compile(pattern), handler)
    for pattern, handler in (
        (f"link show(?: {_DEV})?", _links),
        (f"link set {_DEV} (?:up|(?P<off>down))", _link),
        (f"addr show {_DEV}", _addresses),
        (f"addr (?P<verb>add|del) {_ADDRESS} {_DEV}", _address),
        (f"neigh show(?: {_ADDRESS} {_DEV})?", _neighbours),
        (f"neigh (?P<verb>replace) {_ADDRESS} lladdr (?P<mac>\\S+) nud (?P<state>\\S+) {_DEV}", _neighbour),
        (f"neigh (?P<verb>del) {_ADDRESS} {_DEV}", _neighbour),
        (f"route show(?: {_PREFIX})?", _routes),
        (f"route (?P<verb>add|replace|del) {_PREFIX} via (?P<hop>\\S+)(?: {_DEV})?", _route),
    )
)
