"""``vppctl`` of a simulated VPP router. Like the real one it prints errors to standard output and exits with 0."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lineproof.simulation.habits import BY_A_MODEL

from ..state import InterfaceState
from . import vpp_render as render
from .iproute import interface_towards
from .linux import linux_commands, linux_files
from .machine import CommandLine, CommandOutput, Commands
from .vpp_frames import FrameError, VppFrames

Handler = Callable[[list[str], CommandLine], str]
MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


class VppError(Exception):
    """VPP's message for a command that it refuses."""


def software() -> Commands:
    """A Linux machine whose interfaces under test belong to VPP."""
    files, frames = linux_files(own=False), VppFrames()
    return {**linux_commands(files, own=False), "vppctl": partial(vppctl, frames)}


def vppctl(frames: VppFrames, arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """One VPP command. Words may be abbreviated as long as they are unique, but of those of *frames*."""
    words = " ".join(arguments).split()
    if not words:
        return CommandOutput(
            "", "vppctl: give a command, as in 'vppctl show runtime'; the prompt needs a terminal\n", 1
        )
    try:
        own = frozenset(interface.name for interface in line.state.interfaces)
        answer = frames.run(" ".join(words), own)
        text = _run(words, line) if answer is None else answer
        if words == ["show", "interface", "address"]:
            text += frames.shown_addresses()
        elif words == ["show", "ip", "neighbors"]:
            text += frames.shown_neighbours(line.state.uptime)
    except (VppError, FrameError) as complaint:
        text = f"{complaint}\n"
    return CommandOutput(text.replace("\n", "\r\n"))


def _run(words: list[str], line: CommandLine) -> str:
    found = [path for path in COMMANDS if _matches(path.split(), words)]
    if not found:
        heads = {path.split()[0] for path in COMMANDS if path.split()[0].startswith(words[0])}
        if len(heads) == 1 and len(words) > 1:
            raise VppError(f"{heads.pop()}: unknown input `{' '.join(words[1:])}'")
        raise VppError(f"unknown input `{' '.join(words)}'")
    longest = max(len(path.split()) for path in found)
    paths = [path for path in found if len(path.split()) == longest]
    exact = [path for path in paths if path.split() == words[:longest]]
    path = (exact or paths)[0]
    return COMMANDS[path](words[longest:], line)


def _matches(path: list[str], words: list[str]) -> bool:
    return len(words) >= len(path) and all(full.startswith(word) for full, word in zip(path, words, strict=False))


def _check_no_more(arguments: list[str], what: str, most: int = 0) -> None:
    if len(arguments) > most:
        raise VppError(f"{what}: unknown input `{' '.join(arguments[most:])}'")


def _known(name: str, line: CommandLine, what: str) -> InterfaceState:
    found = next((interface for interface in line.state.interfaces if interface.name == name), None)
    if found is None:
        raise VppError(f"{what}: unknown interface `{name}'")
    return found


def _version(arguments: list[str], line: CommandLine) -> str:
    _check_no_more(arguments, "show version")
    version = line.state.version.removeprefix("v")
    return f"vpp v{version} built by SIMULATED on {line.state.hostname} at 1970-01-01T00:00:00\n"


def _runtime(arguments: list[str], line: CommandLine) -> str:
    _check_no_more(arguments, "show runtime")
    return render.runtime(line.state)


def _interface(arguments: list[str], line: CommandLine) -> str:
    for name in arguments:
        if name != "local0":
            _known(name, line, "show interface")
    return render.interfaces(line.state, arguments)


def _addresses(arguments: list[str], line: CommandLine) -> str:
    _check_no_more(arguments, "show interface address", 1)
    configuration, text = line.state.configuration, ""
    for name in sorted([*(interface.name for interface in line.state.interfaces), "local0"]):
        if arguments and name != arguments[0]:
            continue
        text += f"{name} ({'up' if name in configuration.up else 'dn'}):\n"
        text += "".join(f"  L3 {address}\n" for owner, address in configuration.addresses if owner == name)
    return text


def _neighbours(arguments: list[str], line: CommandLine) -> str:
    text = f"{'Age':>8}{'IP':>27}{'Flags':>21}{'Ethernet':>14}{'Interface':>23}       \n"
    configuration = line.state.configuration
    for name, address, mac in configuration.neighbours:
        flag = "D" if configuration.is_learned(name, address) else "S"
        text += f"{line.state.uptime:12.4f}{address:>25}{flag:>19}{mac:>21} {name}\n"
    return text


def _fib(arguments: list[str], line: CommandLine) -> str:
    configuration = line.state.configuration
    head = (
        "ipv4-VRF:0, fib_index:0, flow hash:[src dst sport dport proto flowlabel ] epoch:0 flags:none"
        " locks:[adjacency:1, default-route:1, ]\n"
    )
    found = [(ipaddress.ip_network(prefix), hop) for prefix, hop in configuration.routes]
    if arguments:
        try:
            wanted = ipaddress.ip_network(arguments[0], strict=False)
        except ValueError:
            raise VppError(f"show ip fib: unknown input `{' '.join(arguments)}'") from None
        covering = [row for row in found if isinstance(wanted, ipaddress.IPv4Network) and _covers(row[0], wanted)]
        found = sorted(covering, key=lambda row: row[0].prefixlen)[-1:]
    else:
        head += "0.0.0.0/0\n  unicast-ip4-chain\n  [@0]: dpo-drop ip4\n"
    text = "".join(
        f"{prefix} fib:0 index:{18 + at} locks:2\n  CLI refs:1 src-flags:added,contributing,active,\n"
        f"      path:[{28 + at}] pl-index:{24 + at} ip4 weight=1 pref=0 attached-nexthop:  oper-flags:resolved,\n"
        f"        {hop} {interface_towards(configuration, hop) or 'unresolved'}\n"
        for at, (prefix, hop) in enumerate(found)
    )
    return head + (text or "0.0.0.0/0 fib:0 index:0 locks:2\n  default-route refs:1\n  [@0]: dpo-drop ip4\n")


def _covers(prefix: ipaddress.IPv4Network | ipaddress.IPv6Network, wanted: ipaddress.IPv4Network) -> bool:
    return isinstance(prefix, ipaddress.IPv4Network) and wanted.subnet_of(prefix)


def _clear_runtime(arguments: list[str], line: CommandLine) -> str:
    _check_no_more(arguments, "clear runtime")
    line.clear()
    return ""


def _set_state(arguments: list[str], line: CommandLine) -> str:
    if len(arguments) != 2 or arguments[1] not in ("up", "down"):
        raise VppError(f"set interface state: unknown input `{' '.join(arguments)}'")
    name = _known(arguments[0], line, "set interface state").name
    configuration = line.state.configuration
    up = tuple(other for other in configuration.up if other != name)
    line.change(replace(configuration, up=(*up, name) if arguments[1] == "up" else up))
    return ""


def _set_address(arguments: list[str], line: CommandLine) -> str:
    remove = arguments[:1] == ["del"]
    rest = arguments[1:] if remove else arguments
    what = "set interface ip address"
    if len(rest) != 2 or "/" not in rest[1] or not _is_valid(ipaddress.ip_interface, rest[1]):
        raise VppError(f"{what}: unknown input `{' '.join(rest)}'")
    row = (_known(rest[0], line, what).name, rest[1])
    configuration = line.state.configuration
    if remove:
        if row not in configuration.addresses:
            raise VppError(f"{what}: Address not found on interface {row[0]}: {row[1]}")
        kept = tuple(other for other in configuration.addresses if other != row)
        line.change(replace(configuration, addresses=kept))
        return ""
    new = ipaddress.ip_interface(row[1])
    for name, address in configuration.addresses:
        if ipaddress.ip_interface(address).network.overlaps(new.network):
            against = f"{address} for interface {name}"
            raise VppError(f"{what}: failed to add {row[1]} on {row[0]} which conflicts with {against}")
    line.change(replace(configuration, addresses=(*configuration.addresses, row)))
    return ""


def _set_neighbour(arguments: list[str], line: CommandLine) -> str:
    remove = arguments[:1] == ["del"]
    rest = [word for word in (arguments[1:] if remove else arguments) if word not in ("static", "no-fib-entry")]
    if len(rest) != 3 or not _is_valid(ipaddress.ip_address, rest[1]) or not MAC.fullmatch(rest[2]):
        raise VppError(f"set ip neighbor: unknown input `{' '.join(rest)}'")
    row = (_known(rest[0], line, "set ip neighbor").name, rest[1], rest[2].lower())
    configuration = line.state.configuration
    # as VPP: what is not 'static' is as if it were learned
    found = configuration.with_neighbour(row, learned="static" not in arguments)
    line.change(configuration.without_neighbour(*row[:2]) if remove else found)
    return ""


def _route(arguments: list[str], line: CommandLine) -> str:
    if len(arguments) < 4 or arguments[0] not in ("add", "del") or arguments[2] != "via":
        raise VppError(f"ip route: unknown input `{' '.join(arguments)}'")
    if not _is_valid(ipaddress.ip_network, arguments[1]) or not _is_valid(ipaddress.ip_address, arguments[3]):
        raise VppError(f"ip route: unknown input `{' '.join(arguments[1:])}'")
    row = (arguments[1], arguments[3])
    configuration = line.state.configuration
    kept = tuple(other for other in configuration.routes if other != row)
    if arguments[0] == "del" and kept == configuration.routes:
        raise VppError("ip route: no such route")
    line.change(replace(configuration, routes=kept if arguments[0] == "del" else (*kept, row)))
    return ""


def _is_valid(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


COMMANDS: dict[str, Handler] = {
    "show version": _version,
    "show runtime": _runtime,
    "show interface": _interface,
    "show interface address": _addresses,
    "show interface rx-placement": lambda arguments, line: render.placement(line.state),
    "show hardware-interfaces": lambda arguments, line: render.hardware(line.state),
    "show errors": lambda arguments, line: render.errors(line.state),
    "show clock": lambda arguments, line: f"Time now {line.state.uptime:.6f}, SIMULATED\n",
    "show cpu": lambda arguments, line: (
        f"Model name:               {BY_A_MODEL}\nBase frequency:           {line.state.clock_hz / 1e9:.4f} GHz\n"
    ),
    "show ip neighbors": _neighbours,
    "show ip fib": _fib,
    "show ip fib summary": lambda arguments, line: render.fib_summary(line.state),
    "show threads": lambda arguments, line: render.threads(line.state),
    "clear runtime": _clear_runtime,
    "set interface state": _set_state,
    "set interface ip address": _set_address,
    "set ip neighbor": _set_neighbour,
    "ip route": _route,
}
