"""Capture filters: the part of the Berkeley packet filter's language that TRex's clients use.

Protocols (arp, ip, ip6, icmp, udp, tcp, vlan), ``port N``, ``host A``, ``udp[8:4] = 0x1234``, with not, and, or and
brackets. ``arp`` also means a tagged ARP frame.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .params import refused

Filter = Callable[[bytes], bool]

TAGS = (0x8100, 0x88A8, 0x9100)
TYPES = {"arp": 0x0806, "ip": 0x0800, "ip6": 0x86DD}
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}
_TOKEN = re.compile(r"\s*(&&|\|\||[!=]=|[()!=]|\w+\s*\[\s*\d+\s*(?::\s*\d+\s*)?\]|[\w.:]+)")
_INDEX = re.compile(r"(\w+)\s*\[\s*(\d+)\s*(?::\s*(\d+)\s*)?\]")
DEEPEST = 50


@dataclass(frozen=True, slots=True)
class HeaderOffsets:
    """Where a frame's headers are. ``l4``: offset behind an IPv4 header, or None; ``protocol``: of that header."""

    tagged: bool
    kind: int
    l3: int
    l4: int | None
    protocol: int | None


def headers_of(frame: bytes) -> HeaderOffsets:
    """The headers of an Ethernet frame."""
    at, tagged = 12, False
    kind = int.from_bytes(frame[at : at + 2], "big")
    while kind in TAGS and len(frame) >= at + 6:
        at, tagged = at + 4, True
        kind = int.from_bytes(frame[at : at + 2], "big")
    l3 = at + 2
    if kind == TYPES["ip"] and len(frame) >= l3 + 20:
        return HeaderOffsets(tagged, kind, l3, l3 + 4 * (frame[l3] & 15), frame[l3 + 9])
    return HeaderOffsets(tagged, kind, l3, None, None)


def filter_of(text: str) -> Filter:
    """The filter that *text* says; an empty one takes every frame. Raises RpcError if it is not understood."""
    if not text.strip():
        return lambda frame: True
    parser = _Parser(text)
    found = parser.alternatives(0)
    if parser.left():
        raise parser.wrong()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split(text))
        self._at = 0

    def _split(self, text: str) -> Iterator[str]:
        text, at = text.strip(), 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise self.wrong()
            at = found.end()
            yield found[1]

    def wrong(self) -> Exception:
        known = ", ".join([*TYPES, *PROTOCOLS, "vlan", "port N", "host A", "udp[8:4] = N"])
        return refused(f"the capture filter '{self._text:.80}' is not understood here; known are {known}, not, and, or")

    def left(self) -> bool:
        return self._at < len(self._tokens)

    def _next(self) -> str:
        if not self.left():
            raise self.wrong()
        self._at += 1
        return self._tokens[self._at - 1]

    def _taken(self, *words: str) -> bool:
        if self.left() and self._tokens[self._at] in words:
            self._at += 1
            return True
        return False

    def alternatives(self, depth: int) -> Filter:
        found = [self._all(depth)]
        while self._taken("or", "||"):
            found.append(self._all(depth))
        return found[0] if len(found) == 1 else lambda frame: any(each(frame) for each in found)

    def _all(self, depth: int) -> Filter:
        found = [self._one(depth)]
        while self._taken("and", "&&"):
            found.append(self._one(depth))
        return found[0] if len(found) == 1 else lambda frame: all(each(frame) for each in found)

    def _one(self, depth: int) -> Filter:
        if depth > DEEPEST:
            raise self.wrong()
        if self._taken("not", "!"):
            other = self._one(depth + 1)
            return lambda frame: not other(frame)
        if self._taken("("):
            inner = self.alternatives(depth + 1)
            if not self._taken(")"):
                raise self.wrong()
            return inner
        return self._primitive(self._next())

    def _primitive(self, word: str) -> Filter:
        if word in TYPES:
            return lambda frame: headers_of(frame).kind == TYPES[word]
        if word in PROTOCOLS:
            if self._taken("port"):
                return self._port(PROTOCOLS[word])
            return lambda frame: headers_of(frame).protocol == PROTOCOLS[word]
        if word == "vlan":
            return lambda frame: headers_of(frame).tagged
        if word == "port":
            return self._port(None)
        if word == "host":
            return self._host()
        if index := _INDEX.fullmatch(word):
            return self._bytes(index[1], int(index[2]), int(index[3] or 1))
        raise self.wrong()

    def _number(self) -> int:
        try:
            return int(self._next(), 0)
        except ValueError:
            raise self.wrong() from None

    def _port(self, protocol: int | None) -> Filter:
        number = self._number()

        def fits(frame: bytes) -> bool:
            found = headers_of(frame)
            if found.l4 is None or found.protocol not in (6, 17) or protocol not in (None, found.protocol):
                return False
            return number in (int.from_bytes(frame[found.l4 + at : found.l4 + at + 2], "big") for at in (0, 2))

        return fits

    def _host(self) -> Filter:
        try:
            address = ipaddress.IPv4Address(self._next()).packed
        except ValueError:
            raise self.wrong() from None

        def fits(frame: bytes) -> bool:
            found = headers_of(frame)
            places = {TYPES["ip"]: (12, 16), TYPES["arp"]: (14, 24)}.get(found.kind, ())
            return any(frame[found.l3 + at : found.l3 + at + 4] == address for at in places)

        return fits

    def _bytes(self, protocol: str, offset: int, size: int) -> Filter:
        operation = self._next()
        number = self._number()
        if protocol not in ("ether", *TYPES, *PROTOCOLS) or size not in (1, 2, 4) or operation not in ("=", "==", "!="):
            raise self.wrong()

        def fits(frame: bytes) -> bool:
            found = headers_of(frame)
            at: int | None = 0
            if protocol in TYPES:
                at = found.l3 if found.kind == TYPES[protocol] else None
            elif protocol in PROTOCOLS:
                at = found.l4 if found.protocol == PROTOCOLS[protocol] else None
            if at is None or at + offset + size > len(frame):
                return False
            same = int.from_bytes(frame[at + offset : at + offset + size], "big") == number
            return same is (operation != "!=")

        return fits
