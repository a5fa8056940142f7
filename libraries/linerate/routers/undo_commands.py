"""Which commands may be run on a router because a journal says so: the opposites of the changes that are made here.

Those of a described router are in its file: an ``undo`` with any values in place of the words in braces, ``restore``.

A journal is a file, and whoever could write it would otherwise run what they like on the router. A change whose
opposite is not of these kinds is not made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .command_file import CommandFile
from .queries import WORD_IN_BRACES

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.:/@,+-]*"
_ADDRESS = r"[0-9A-Fa-f.:]+(?:/\d{1,3})?"
_MAC = r"[0-9A-Fa-f:]{17}"
_OURS = r"lr\d{1,2}(?:\.s?\d{1,4})+"
"""The VLAN interfaces that are made for tagged frames."""
_NUMBERS = r"-?\d+(?: -?\d+)*"
"""Kernel variables that hold a program's path (``kernel.core_pattern``, ``kernel.modprobe``) take no number for one."""

_UNDO = tuple(
    re.compile(pattern)
    for pattern in (
        # Linux
        rf"ip link set dev {_WORD} (?:up|down)",
        rf"ip link del dev {_OURS}",
        rf"ip addr del {_ADDRESS} dev {_WORD}",
        rf"ip neigh del {_ADDRESS} dev {_WORD}",
        rf"ip neigh replace {_ADDRESS} lladdr {_MAC} nud permanent dev {_WORD}",
        rf"ip (?:-[46] |-f mpls )?route (?:del|replace)(?: {_WORD})+",
        rf"ip -[46] rule del iif {_OURS} lookup \d{{1,10}}",
        rf"sysctl -w [a-z0-9_]+(?:[./][A-Za-z0-9_.:@-]+)+={_NUMBERS}",
        r"modprobe -q -r mpls_router",
        rf"ethtool -[LG] {_WORD}(?: (?:combined|rx|tx) \d+)+",
        rf"ethtool -K {_WORD}(?: (?:lro|gro|gso|tso|tx-tcp[a-z0-9-]*) (?:on|off))+",
        # FreeBSD
        rf"ifconfig {_WORD}(?: -?(?:lro|tso[46]?))+",
        rf"ifconfig {_WORD} (?:up|down)",
        rf"ifconfig {_WORD} inet {_ADDRESS} -?alias",
        rf"arp -d {_ADDRESS}",
        rf"arp -S {_ADDRESS} {_MAC}",
        rf"route (?:delete|change) -net {_ADDRESS} {_WORD}",
        rf"sysctl [a-z0-9_]+(?:\.[A-Za-z0-9_%-]+)+={_NUMBERS}",
        r"pfctl -e",
        # VPP
        rf"vppctl set interface state {_WORD} (?:up|down)",
        rf"vppctl set interface ip address del {_WORD} {_ADDRESS}",
        rf"vppctl set ip neighbor (?:del {_WORD} {_ADDRESS} {_MAC}|{_WORD} {_ADDRESS} {_MAC} static)",
        rf"vppctl ip route del {_ADDRESS} via {_ADDRESS}",
    )
)


def is_undo(argv: Sequence[str]) -> bool:
    """Whether *argv* is of the kinds that are run to undo a change. No word may hold a space but a variable's value."""
    if any(re.search(r"\s", word) and not re.fullmatch(rf"[^\s=]+={_NUMBERS}", word) for word in argv):
        return False
    line = " ".join(argv)
    return any(pattern.fullmatch(line) for pattern in _UNDO)


_VALUE = r"[A-Za-z0-9_./:@-]{1,80}"
"""What :func:`.generic.side_words` gives: nothing of it has a meaning in a shell or a command line."""


def is_described_undo(lines: Sequence[str], file: CommandFile) -> bool:
    """Whether *lines* are those that undo a change of *file*."""
    text = "\n".join(lines)
    return any(
        _expression("\n".join(undo)).fullmatch(text)
        for undo in (file.restore, *(change.undo for change in file.configure))
        if undo
    )


def _expression(text: str) -> re.Pattern[str]:
    parts = WORD_IN_BRACES.split(text)
    seen: set[str] = set()
    found = re.escape(parts[0])
    for word, after in zip(parts[1::2], parts[2::2], strict=True):
        # a word has one value in all lines of a change
        found += (rf"(?P={word})" if word in seen else rf"(?P<{word}>{_VALUE})") + re.escape(after)
        seen.add(word)
    return re.compile(found)
