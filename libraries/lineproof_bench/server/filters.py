"""Capture filters: the part of the Berkeley packet filter's language that TRex's clients use to resolve addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .params import refused

Filter = Callable[[bytes], bool]

TAGS = (0x8100, 0x88A8, 0x9100)
TYPES = {"arp": 0x0806, "ip": 0x0800, "ip6": 0x86DD}


class HeaderOffsets(NamedTuple):
    """Where a frame's headers are. ``l3``: offset behind the Ethernet header and its tags, whose type is ``kind``.

    ``tags``: the EtherTypes of the tags.
    """

    tags: tuple[int, ...]
    kind: int
    l3: int


def headers_of(frame: bytes) -> HeaderOffsets:
    """Return the headers of an Ethernet frame."""
    at, tags = 12, list[int]()
    kind = int.from_bytes(frame[at : at + 2], "big")
    while kind in TAGS and len(frame) >= at + 6:
        at += 4
        tags.append(kind)
        kind = int.from_bytes(frame[at : at + 2], "big")
    return HeaderOffsets(tuple(tags), kind, at + 2)


def filter_of(text: str) -> Filter:
    """Return the filter that *text* says: arp, ip, ip6 and vlan, with ``and`` before ``or``. An empty one takes all.

    ``arp`` also means a tagged ARP frame. Raises RpcError if *text* is not understood.
    """
    if not text.strip():
        return lambda frame: True
    terms = [set(re.split(r"\s+and\s+", term.strip(" ()"))) for term in re.split(r"\s+or\s+", text)]
    if set[str]().union(*terms) - {*TYPES, "vlan"}:
        known = ", ".join([*TYPES, "vlan"])
        raise refused(f"the capture filter '{text:.80}' is not understood here; known are {known}, and, or")
    return lambda frame: any(term <= _words_of(frame) for term in terms)


def _words_of(frame: bytes) -> set[str]:
    headers = headers_of(frame)
    words = {word for word, kind in TYPES.items() if kind == headers.kind}
    return words | {"vlan"} if headers.tags else words
