"""``ip`` of iproute2 on a simulated Linux router: link, address, neighbour and route, shown and changed."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import replace

from ..state import InterfaceState, RouterConfiguration, RouterState
from .machine import CommandLine, CommandOutput

OBJECTS = ("link", "address", "neighbour", "neighbor", "route")


class IpError(Exception):
    """The message of ``ip`` on standard error, and its status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def ip(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ip [options] OBJECT [show|set|add|replace|del] …``"""
    words = [word for word in arguments if word not in ("-4", "-o", "-s", "-j", "-d")]
    if not words:
        return CommandOutput("", "Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\n", 255)
    kind = next((name for name in OBJECTS if name.startswith(words[0]) and not words[0].startswith("-")), None)
    if kind is None:
        return CommandOutput("", f'Object "{words[0]}" is unknown, try "ip help".\n', 1)
    try:
        if kind == "link" and "-j" in arguments:
            return CommandOutput(_counters(line))
        handler = {"link": _link, "address": _address, "route": _route}.get(kind, _neighbour)
        return CommandOutput(handler(words[1:], line))
    except IpError as complaint:
        return CommandOutput("", f"{complaint}\n", complaint.status)


def _options(words: list[str], known: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Positional words, and values of those keywords that are *known*."""
    free, named, rest = [], {}, iter(words)
    for word in rest:
        if word in known:
            named[word] = next(rest, "")
        else:
            free.append(word)
    return free, named


def _verb(words: list[str], known: Sequence[str]) -> tuple[str, list[str]]:
    if not words or words[0] in ("dev", "show"):
        return "show", words[1:] if words[:1] == ["show"] else words
    found = next((name for name in known if name.startswith(words[0])), None)
    if found is None:
        raise IpError(f'Command "{words[0]}" is unknown, try "ip help".', 255)
    return found, words[1:]


def _device(state: RouterState, name: str) -> tuple[int, InterfaceState]:
    for index, interface in enumerate(state.interfaces):
        if interface.name == name:
            return index + 2, interface
    raise IpError(f'Cannot find device "{name}"', 1)


def _selected(state: RouterState, names: list[str]) -> list[tuple[int, InterfaceState]]:
    if not names:
        return [(index + 2, interface) for index, interface in enumerate(state.interfaces)]
    try:
        return [_device(state, names[-1])]
    except IpError:
        raise IpError(f'Device "{names[-1]}" does not exist.', 1) from None


def _flags(interface: InterfaceState, up: bool) -> list[str]:
    flags = ["BROADCAST", "MULTICAST"]
    if not up:
        return flags
    return [*flags, "UP", "LOWER_UP"] if interface.link_up else ["NO-CARRIER", *flags, "UP"]


def _check(verb: str, there: bool, missing: str) -> None:
    """Raise IpError where what is to be added is there, or what is to be deleted is not."""
    if verb == "del" and not there:
        raise IpError(f"RTNETLINK answers: {missing}")
    if verb == "add" and there:
        raise IpError("RTNETLINK answers: File exists")


def _link_lines(index: int, interface: InterfaceState, up: bool) -> str:
    flags = ",".join(_flags(interface, up))
    state = "UP" if up and interface.link_up else "DOWN"
    return (
        f"{index}: {interface.name}: <{flags}> mtu 1500 qdisc mq state {state} group default qlen 1000\n"
        f"    link/ether {interface.mac} brd ff:ff:ff:ff:ff:ff\n"
    )


def _counters(line: CommandLine) -> str:
    """``ip -j -s -s link show``: what of it a reader of the counters needs."""
    links = [
        {
            "ifindex": index,
            "ifname": one.name,
            "flags": _flags(one, one.name in line.state.configuration.up),
            "address": one.mac,
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


def _link(words: list[str], line: CommandLine) -> str:
    verb, rest = _verb(words, ("set",))
    free, named = _options(rest, ("dev",))
    names = [named["dev"]] if "dev" in named else free[:1]
    configuration = line.state.configuration
    if verb == "show":
        return "".join(_link_lines(i, one, one.name in configuration.up) for i, one in _selected(line.state, names))
    if not names:
        raise IpError('Not enough information: "dev" argument is required.', 255)
    _, interface = _device(line.state, names[0])
    others = tuple(name for name in configuration.up if name != interface.name)
    if "up" in free:
        line.change(replace(configuration, up=(*others, interface.name)))
    elif "down" in free:
        line.change(replace(configuration, up=others))
    return ""


def _address(words: list[str], line: CommandLine) -> str:
    verb, rest = _verb(words, ("add", "replace", "del"))
    free, named = _options(rest, ("dev", "scope", "broadcast", "brd", "label"))
    configuration = line.state.configuration
    if verb == "show":
        text = ""
        for index, interface in _selected(line.state, [named["dev"]] if "dev" in named else free[:1]):
            text += _link_lines(index, interface, interface.name in configuration.up)
            for name, address in configuration.addresses:
                if name == interface.name:
                    text += f"    inet {address} scope global {name}\n       valid_lft forever preferred_lft forever\n"
        return text
    if not free or "dev" not in named:
        raise IpError('Not enough information: "dev" argument is required.', 255)
    _, interface = _device(line.state, named["dev"])
    try:
        row = (interface.name, str(ipaddress.IPv4Interface(free[0])))
    except ValueError:
        raise IpError(f'Error: any valid prefix is expected rather than "{free[0]}".', 1) from None
    _check(verb, row in configuration.addresses, "Cannot assign requested address")
    others = tuple(other for other in configuration.addresses if other != row)
    line.change(replace(configuration, addresses=others if verb == "del" else (*others, row)))
    return ""


def _neighbour(words: list[str], line: CommandLine) -> str:
    verb, rest = _verb(words, ("add", "replace", "change", "del"))
    free, named = _options(rest, ("dev", "lladdr", "nud", "to"))
    configuration = line.state.configuration
    if verb == "show":
        text = ""
        for name, address, mac in configuration.neighbours:
            if free[:1] in ([], [address]) and named.get("dev", name) == name:
                state = "STALE" if configuration.is_learned(name, address) else "PERMANENT"
                text += f"{address} {'' if 'dev' in named else f'dev {name} '}lladdr {mac} {state} \n"
        return text
    if not free or "dev" not in named:
        raise IpError("Device and destination are required arguments.", 255)
    _, interface = _device(line.state, named["dev"])
    key = (interface.name, free[0])
    _check(verb, any(row[:2] == key for row in configuration.neighbours), "No such file or directory")
    if verb == "del":
        line.change(configuration.without_neighbour(*key))
        return ""
    if "lladdr" not in named:
        raise IpError("RTNETLINK answers: Invalid argument")
    learned = named.get("nud", "permanent") not in ("permanent", "noarp")
    line.change(configuration.with_neighbour((*key, named["lladdr"]), learned))
    return ""


def _route(words: list[str], line: CommandLine) -> str:
    verb, rest = _verb(words, ("add", "replace", "del"))
    free, named = _options(rest, ("via", "dev", "proto", "scope", "src", "metric", "table"))
    configuration = line.state.configuration
    free = [word for word in free if word not in ("exact", "root", "match")]
    if verb == "show":
        return "".join(f"{text}\n" for prefix, text in routes(configuration) if not free or prefix == _prefix(free[0]))
    if not free:
        raise IpError("RTNETLINK answers: Invalid argument")
    prefix = _prefix(free[0])
    others = tuple(row for row in configuration.routes if row[0] != prefix)
    hop = named.get("via") if verb == "del" else None
    there = any(row[0] == prefix and hop in (None, row[1]) for row in configuration.routes)
    _check(verb, there, "No such process")
    if verb == "del":
        line.change(replace(configuration, routes=others))
        return ""
    if not interface_towards(configuration, named.get("via", "")):
        raise IpError("Error: Nexthop has invalid gateway.")
    line.change(replace(configuration, routes=(*others, (prefix, named["via"]))))
    return ""


def _prefix(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network("0.0.0.0/0" if text == "default" else text))
    except ValueError:
        raise IpError(f'Error: any valid prefix is expected rather than "{text}".', 1) from None


def interface_towards(configuration: RouterConfiguration, gateway: str) -> str | None:
    """The interface through which *gateway* is directly reached."""
    try:
        hop = ipaddress.ip_address(gateway)
    except ValueError:
        return None
    nets = ((name, ipaddress.ip_interface(address).network) for name, address in configuration.addresses)
    return next((name for name, net in nets if hop in net), None)


def routes(configuration: RouterConfiguration) -> list[tuple[str, str]]:
    """(prefix, line of ``ip route``), static ones first."""
    rows = [
        (
            prefix,
            f"{'default' if prefix == '0.0.0.0/0' else prefix} via {hop} dev {interface_towards(configuration, hop)} ",
        )
        for prefix, hop in configuration.routes
    ]
    for name, text in configuration.addresses:
        address = ipaddress.IPv4Interface(text)
        rows.append((str(address.network), f"{address.network} dev {name} proto kernel scope link src {address.ip} "))
    return rows
