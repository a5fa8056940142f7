"""Parsers of ``/proc`` on a Linux router."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import TestbedError
from .linux_losses import IP_DROPS
from .shell_output import counter_value, figure, first_line, parser


@parser("/proc/uptime")
def parse_uptime(text: str) -> float:
    """``/proc/uptime``: s since boot."""
    found = re.match(r"\s*(\d+\.\d+)\s+\d+\.\d+\s*$", text)
    if not found:
        raise TestbedError(f"/proc/uptime was not understood: '{first_line(text) or 'empty'}'")
    return figure(found[1])


@parser("/proc/net/snmp or netstat")
def parse_snmp(text: str, protocol: str = "Ip") -> Mapping[str, int]:
    """The :data:`IP_DROPS` of ``/proc/net/snmp`` of this namespace; empty if the kernel does not show them.

    *protocol* ``IpExt`` is in ``/proc/net/netstat``.
    """
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")]
    if len(rows) != 2:
        return {}
    values = dict(zip(*rows, strict=True))
    return {name: counter_value(values[name]) for name in IP_DROPS if name in values}


@parser("/proc/net/softnet_stat")
def parse_softnet(text: str) -> tuple[tuple[int, ...], ...]:
    """``/proc/net/softnet_stat``: per CPU frames processed, dropped (backlog full), time squeezes, …"""
    try:
        rows = tuple(tuple(int(word, 16) for word in line.split()) for line in text.splitlines() if line.strip())
    except ValueError:
        rows = ()
    if not rows or min(map(len, rows)) < 3:
        raise TestbedError(f"/proc/net/softnet_stat was not understood: '{first_line(text) or 'empty'}'")
    return rows
