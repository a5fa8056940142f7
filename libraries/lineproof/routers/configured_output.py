"""Parsers of how Linux and FreeBSD show what is configured on them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

from .shell_output import counter_value, parser

_LINUX_OFFLOADS = {
    "lro": "large-receive-offload",
    "gro": "generic-receive-offload",
    "gso": "generic-segmentation-offload",
    "tso": "tcp-segmentation-offload",
}
_NOT_ACCEPTED = frozenset({"dead", "linkdown", "offload", "rt_offload", "trap", "rt_trap", "pervasive"})
"""Words that ``ip route show`` prints and ``ip route replace`` does not take."""


def route_rows(text: str) -> list[list[str]]:
    """The words of each route of ``ip route show`` that ``ip route replace`` takes."""
    # the next hops of a route that has several are lines of their own, indented
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    return [[word for word in line.split() if word not in _NOT_ACCEPTED] for line in lines]


def replaced_rows(rows: Iterable[Sequence[str]], ipv6: bool) -> list[Sequence[str]]:
    """Return those of *rows*, to one destination, whose place ``ip route replace`` without a metric takes."""
    return [row for row in rows if _is_replaced(row, ipv6)]


def _is_replaced(row: Sequence[str], ipv6: bool) -> bool:
    metric = next(iter(row[row.index("metric") + 1 :]), "") if "metric" in row else "0"
    return bool(row) and metric == ("1024" if ipv6 else "0") and "tos" not in row


@parser("'ethtool -l' or '-g'")
def parse_current(text: str) -> dict[str, int]:
    """The second half of it: queues or frames by their name in lower case."""
    _, found, current = text.partition("Current hardware settings:")
    if not found:
        raise ValueError("without current settings")
    rows = re.findall(r"^(\w+):\s+([0-9]+)\s*$", current, re.MULTILINE)
    return {key.lower(): counter_value(count) for key, count in rows}


@parser("'ethtool -k'")
def parse_linux_offload(text: str, offload: str) -> str:
    """Return whether *offload* is ``on`` or ``off``."""
    found = re.search(rf"^{_LINUX_OFFLOADS[offload]}: (on|off)\b", text, re.MULTILINE)
    if not found:
        raise ValueError(f"without {_LINUX_OFFLOADS[offload]}")
    return found[1]


@parser("'ifconfig'")
def parse_freebsd_offloads(text: str) -> dict[str, tuple[str, ...]]:
    """The words of ``ifconfig`` for those that are on: ``options=…<…,LRO,TSO4>``; it prints none where none is."""
    if not re.match(r"\S+: flags=", text):
        raise ValueError("without flags")
    found = re.search(r"^\s+options=[0-9a-f]+<([^>]*)>", text, re.MULTILINE)
    on = set(found[1].split(",")) if found else set()
    words = {"lro": ("lro",), "tso": ("tso4", "tso6")}
    return {offload: tuple(word for word in parts if word.upper() in on) for offload, parts in words.items()}


@parser("'ifconfig'")
def parse_inet(text: str) -> frozenset[tuple[str, int]]:
    """IPv4 (address, prefix length) pairs of ``ifconfig``; the netmask is hexadecimal, dotted or CIDR."""
    found = set()
    for row in re.finditer(r"\binet (\d+\.\d+\.\d+\.\d+)(?:/(\d+)|.*? netmask (\S+))", text):
        address, length, mask = row.groups()
        if not length:
            length = (int(mask, 16) if mask.startswith("0x") else int(ipaddress.IPv4Address(mask))).bit_count()
        found.add((address, int(length)))
    return frozenset(found)
