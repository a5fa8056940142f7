"""Files and commands of a simulated Linux machine, in the format of procfs and procps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from lineproof.simulation.habits import BY_A_MODEL

from ..state import InterfaceState, RouterState
from . import linux_machine, posix
from .iproute import ip
from .machine import Builtin, CommandLine, CommandOutput, MachineSoftware, Memory


def software() -> MachineSoftware:
    """A Linux kernel that routes."""
    files = linux_files(own=True)
    return MachineSoftware("# ", {**linux_commands(files, own=True), "ip": ip}, files)


def first_memory(interfaces: Sequence[str]) -> Memory:
    """Kernel variables as a distribution leaves them: no forwarding, loose reverse-path filter."""
    names = ("all", "default", "lo", *interfaces)
    return Memory(
        sysctl={"net.ipv4.ip_forward": "0"}
        | {f"net.ipv4.conf.{name}.rp_filter": "0" if name in ("all", "lo") else "2" for name in names}
    )


def linux_files(own: bool) -> dict[str, Callable[[CommandLine], str]]:
    """Readable files. *own*: the kernel forwards (else its interfaces belong to VPP)."""

    def mine(line: CommandLine) -> tuple[InterfaceState, ...]:
        return line.state.interfaces if own else ()

    return {
        "/proc/uptime": lambda line: f"{line.state.uptime:.2f} {line.state.uptime * len(line.state.threads):.2f}\n",
        "/proc/cmdline": lambda line: "BOOT_IMAGE=/simulated ro\n",
        "/etc/os-release": lambda line: f'PRETTY_NAME="{distribution(line.state)} (SIMULATED)"\nID=simulated\n',
        "/proc/net/softnet_stat": lambda line: softnet(line.state if own else None),
        "/proc/net/snmp": lambda line: snmp(mine(line)),
        "/proc/net/netstat": lambda line: netstat(mine(line)),
        **(linux_machine.files() if own else {}),
    }


def linux_commands(files: Mapping[str, Callable[[CommandLine], str]], own: bool) -> dict[str, Builtin]:
    """Commands besides ``ip``."""
    common = posix.commands(files)

    def cat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        shown = linux_machine.card_file(arguments[0], line.state) if own and len(arguments) == 1 else None
        return common["cat"](arguments, line) if shown is None else CommandOutput(shown)

    return {**common, **linux_machine.commands(own), "cat": cat, "uname": _uname, "sysctl": _sysctl}


def kernel(state: RouterState) -> str:
    """The kernel's release from the platform's file, else a made-up one."""
    found = re.search(r"kernel (\S+)", state.version)
    return f"{found[1] if found else '5.15'}-simulated"


def distribution(state: RouterState) -> str:
    """The distribution that the platform's file names."""
    return re.sub(r",? *kernel \S+", "", state.version) if state.software != "vpp" else "Linux"


def softnet(state: RouterState | None) -> str:
    """``/proc/net/softnet_stat``: frames handled by each CPU, 32 bits in hexadecimal."""
    threads = state.threads if state else ()
    rows = [[thread.packets & 0xFFFFFFFF, *([0] * 11), thread.lcore, 0, 0] for thread in threads]
    return "".join(" ".join(f"{n:08x}" for n in row) + "\n" for row in rows or [[0] * 15])


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
