"""Which commands may be run on a router because a journal says so: the opposites of the changes that are made here.

Those of a described router are in its file: an ``undo`` with any values in place of the words in braces, ``restore``;
and so is how to look whether what they undo is still there.

A journal is a file, and whoever could write it would otherwise run what they like on the router. A change whose
opposite is not of these kinds is not made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..platforms import VARIABLE, VARIABLE_VALUE
from . import set_values
from .command_file import CommandFile, LookQuery
from .queries import WORD_IN_BRACES, filled, plain_mac
from .set_values import NONE, Look, LookFor

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.:/@,+-]*"
_NAME = rf"(?P<name>{_WORD})"
_ADDRESS = r"[0-9A-Fa-f.:]+(?:/\d{1,3})?"
_PEER = rf"(?P<peer>{_ADDRESS})"
_MAC = r"(?P<mac>[0-9A-Fa-f:]{17})"
_OURS = r"lr\d{1,2}(?:\.s?\d{1,4})+"
"""The VLAN interfaces that are made for tagged frames."""
_VARIABLE = rf"(?P<name>{VARIABLE})=(?P<value>{VARIABLE_VALUE})"

_UNDO: tuple[tuple[re.Pattern[str], LookFor | None], ...] = tuple(
    (re.compile(pattern), look)
    for pattern, look in (
        # Linux
        (rf"ip link set dev {_WORD} down", None),
        (rf"ip link del dev {_OURS}", None),
        (rf"ip addr del {_ADDRESS} dev {_WORD}", None),
        (rf"ip neigh del {_PEER} dev {_NAME}", set_values.neighbour),
        (rf"ip neigh replace {_PEER} lladdr {_MAC} nud permanent dev {_NAME}", set_values.neighbour),
        (
            rf"ip (?P<family>-[46] |-f mpls )?route (?P<verb>del|replace) (?P<words>{_WORD}(?: {_WORD})*)",
            set_values.route,
        ),
        (rf"ip -[46] rule del iif {_OURS} lookup \d{{1,10}}", None),
        (rf"sysctl -w {_VARIABLE}(?: {VARIABLE}={VARIABLE_VALUE})*", set_values.variable),
        (
            rf"ethtool (?P<option>-[LG]) {_NAME} (?P<words>(?:combined|rx|tx) \d+(?: (?:rx|tx) \d+)*)",
            set_values.card_numbers,
        ),
        (rf"ethtool -K {_NAME}(?: (?:lro|gro|gso|tso|tx-tcp[a-z0-9-]*) (?:on|off))+", set_values.linux_offload),
        # FreeBSD
        (rf"ifconfig {_NAME}(?: -?(?:lro|tso[46]?))+", set_values.freebsd_offload),
        (rf"ifconfig {_WORD} down", None),
        (rf"ifconfig {_NAME} inet (?P<address>{_ADDRESS}) (?P<verb>-?alias)", set_values.alias),
        (rf"arp -d {_PEER}", set_values.arp),
        (rf"arp -S {_PEER} {_MAC}", set_values.arp),
        (rf"route (?P<verb>delete|change) -net (?P<network>{_ADDRESS}) (?P<gateway>{_WORD})", set_values.freebsd_route),
        (rf"sysctl {_VARIABLE}", set_values.variable),
        ("pfctl -e", None),
        # VPP
        (rf"vppctl set interface state {_WORD} down", None),
        (rf"vppctl set interface ip address del {_WORD} {_ADDRESS}", None),
        (rf"vppctl set ip neighbor (?P<verb>del ){_NAME} {_PEER} {_MAC}", set_values.vpp_neighbour),
        (rf"vppctl set ip neighbor (?P<verb>){_NAME} {_PEER} {_MAC} static", set_values.vpp_neighbour),
        # of other frames
        (rf"ifconfig {_WORD} inet6 (?:ifdisabled|{_ADDRESS} -alias)", None),
        (rf"ndp (?:-d {_ADDRESS}|-s {_ADDRESS} {_MAC})", None),
        (r"ifconfig vlan297\d\d (?:destroy|fib 0)", None),
        (rf"setfib \d{{1,2}} (?:arp -d {_ADDRESS}|route delete -net {_ADDRESS} {_ADDRESS})", None),
        (rf"route -6 (?:delete|change) -net {_ADDRESS} {_WORD}", None),
        (rf"vppctl ip route del {_ADDRESS}(?: table 297\d\d)? via {_ADDRESS}(?: {_WORD})?", None),
        (rf"vppctl disable ip6 interface {_WORD}", None),
        (rf"vppctl ip6 nd {_WORD} no ra-suppress", None),
        (rf"vppctl delete sub-interface {_WORD}\.297\d\d", None),
        (rf"vppctl set interface ip6? table {_WORD}\.297\d\d 0", None),
        (r"vppctl ip6? table del 297\d\d", None),
        ("vppctl mpls table del 0", None),
        (rf"vppctl set interface mpls {_WORD} disable", None),
        (rf"vppctl mpls local-label del (?:non-)?eos \d{{1,7}} via {_ADDRESS} {_WORD} out-labels \d{{1,7}}", None),
    )
)
"""Each with how to see whether what it undoes is still there; None: it needs no look (:mod:`.set_values`)."""


def look_before(undo: Sequence[str], do: Sequence[str]) -> Look | None:
    """How to see whether what *do* has set is still there; None: *undo* removes that, or finds nothing.

    Raises ValueError if *undo* is of no kind that is run to undo a change, or does not undo *do*. No word may hold a
    space but a variable's value.
    """
    if any(re.search(r"\s", word) and not re.fullmatch(_VARIABLE, word) for word in undo):
        raise ValueError(f"'{undo}' has a space in a word")
    line = " ".join(undo)
    for pattern, look in _UNDO:
        if found := pattern.fullmatch(line):
            return look(found, " ".join(do)) if look else None
    raise ValueError(f"'{line}' undoes no change of a run")


_VALUE = r"[A-Za-z0-9_./:@-]{1,80}"
"""What :func:`.generic.side_words` gives: nothing of it has a meaning in a shell or a command line."""


def described_look(undo: Sequence[str], do: Sequence[str], file: CommandFile) -> Look | None:
    """As :func:`look_before`, of a router that *file* describes; None: the file has no look for it.

    A value that is not found is no one else's: what the file's author expected is not there, and its undo finds ours
    or nothing.
    """
    if file.restore and tuple(undo) == file.restore:
        return _look(file.look, {})
    text, made = "\n".join(undo), "\n".join(do)
    for change in file.configure:
        lines = "\n".join(change.undo)
        if lines and change.look is None and _expression(lines).fullmatch(text):
            return None
        # a word has one value in what is done and undone
        if lines and (found := _expression(f"{lines}\0" + "\n".join(change.do)).fullmatch(f"{text}\0{made}")):
            return _look(change.look, found.groupdict())
    raise ValueError(f"'{text}' undoes no change of {file.shell}")


def _look(query: LookQuery | None, words: Mapping[str, str]) -> Look | None:
    if query is None:
        return None
    mac = query.ours is not None and "{peer_mac" in query.ours
    ours = NONE if query.ours is None else filled(query.ours, words)

    def read(text: str) -> str:
        value = query.read(text).get("value", ours)
        return ours if mac and plain_mac(value) == plain_mac(ours) else value

    return Look((filled(query.run, words),), read, ours, "")


def _expression(text: str) -> re.Pattern[str]:
    parts = WORD_IN_BRACES.split(text)
    seen: set[str] = set()
    found = re.escape(parts[0])
    for word, after in zip(parts[1::2], parts[2::2], strict=True):
        # a word has one value in all lines of a change
        found += (rf"(?P={word})" if word in seen else rf"(?P<{word}>{_VALUE})") + re.escape(after)
        seen.add(word)
    return re.compile(found)
