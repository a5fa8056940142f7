"""``ip`` of iproute2 on a simulated Linux router: links, addresses, neighbours and routes, shown and changed.

Commands are taken as they are written out in full, with an interface behind ``dev``.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..state import InterfaceState, RouterConfiguration
from .machine import CommandLine, CommandOutput

Words = Mapping[str, str]
"""The words of a command by their names; "" for one that may be left out, and was."""

_OPTIONS = ("-4", "-o", "-s", "-j", "-d")


class IpError(Exception):
    """The message of ``ip`` on standard error, and its status."""

    def __init__(self, text: str, status: int = 2) -> None:
        super().__init__(text)
        self.status = status


def ip(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ip [options] OBJECT [show|set|add|replace|del] …``"""
    text = " ".join(word for word in arguments if word not in _OPTIONS)
    if text == "link show" and "-j" in arguments:
        return CommandOutput(_counters(line))
    for pattern, handler in _COMMANDS:
        if found := pattern.fullmatch(text):
            words = found.groupdict("")
            name = words.get("name")
            try:
                if name and name not in [one.name for one in line.state.interfaces]:
                    unknown = 'Device "{}" does not exist.' if "show" in text else 'Cannot find device "{}"'
                    raise IpError(unknown.format(name), 1)
                return CommandOutput(handler(words, line))
            except IpError as complaint:
                return CommandOutput("", f"{complaint}\n", complaint.status)
    return CommandOutput("", f'Object "{text}" is unknown, try "ip help".\n', 1)


def _flags(interface: InterfaceState, up: bool) -> list[str]:
    flags = ["BROADCAST", "MULTICAST"]
    if not up:
        return flags
    return [*flags, "UP", "LOWER_UP"] if interface.link_up else ["NO-CARRIER", *flags, "UP"]


def _check(words: Words, there: bool, missing: str) -> None:
    """Raise IpError where what is to be added is there, or what is to be deleted is not."""
    if words["verb"] == "del" and not there:
        raise IpError(f"RTNETLINK answers: {missing}")
    if words["verb"] == "add" and there:
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
    up = line.state.configuration.up
    return "".join(
        _link_lines(index, one, one.name in up)
        for index, one in enumerate(line.state.interfaces, 2)
        if words["name"] in ("", one.name)
    )


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
    configuration = line.state.configuration
    try:
        row = (words["name"], str(ipaddress.IPv4Interface(words["address"])))
    except ValueError:
        raise IpError(f'Error: any valid prefix is expected rather than "{words["address"]}".', 1) from None
    _check(words, row in configuration.addresses, "Cannot assign requested address")
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
    _check(words, any(row[:2] == key for row in configuration.neighbours), "No such file or directory")
    if words["verb"] == "del":
        line.change(configuration.without_neighbour(*key))
    else:
        line.change(configuration.with_neighbour((*key, words["mac"]), learned=words["state"] != "permanent"))
    return ""


def _routes(words: Words, line: CommandLine) -> str:
    wanted = _prefix(words["prefix"]) if words["prefix"] else ""
    return "".join(f"{text}\n" for prefix, text in routes(line.state.configuration) if wanted in ("", prefix))


def _route(words: Words, line: CommandLine) -> str:
    configuration, prefix, hop = line.state.configuration, _prefix(words["prefix"]), words["hop"]
    others = tuple(row for row in configuration.routes if row[0] != prefix)
    is_end = words["verb"] == "del"
    there = any(row[0] == prefix and (not is_end or row[1] == hop) for row in configuration.routes)
    _check(words, there, "No such process")
    if not is_end and not interface_towards(configuration, hop):
        raise IpError("Error: Nexthop has invalid gateway.")
    line.change(replace(configuration, routes=others if is_end else (*others, (prefix, hop))))
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
