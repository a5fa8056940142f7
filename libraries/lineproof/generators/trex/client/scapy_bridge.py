# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Applies TRex's changes of its own Scapy to the Scapy of PyPI. Only for the process that loads profiles.

TRex's patch gives packets fixed default addresses (not from this machine's routes or ARP requests), and keeps the
offsets by which its field engine finds ``"IP.src"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TO_MAC, FROM_MAC = "00:00:00:01:00:00", "00:00:00:02:00:00"
FROM_IPV4, TO_IPV4, FROM_IPV6 = "16.0.0.1", "48.0.0.1", "::2"
"""Default addresses of packets."""


def fix_addresses() -> None:
    """Set TRex's default addresses, before the first packet, which would keep the old ones."""
    from scapy.config import conf
    from scapy.fields import Emph, IP6Field, IPField, MACField, SourceIPField
    from scapy.layers import inet, inet6, l2

    _replace(l2.Ether, dst=MACField("dst", TO_MAC), src=MACField("src", FROM_MAC))
    _replace(inet.IP, src=Emph(IPField("src", FROM_IPV4)), dst=Emph(IPField("dst", TO_IPV4)))
    _replace(inet6.IPv6, src=IP6Field("src", FROM_IPV6))
    # other layers (ARP) would use the addresses of this machine
    for kind in (l2.SourceMACField, l2.DestMACField):
        kind.i2h, kind.i2m = MACField.i2h, MACField.i2m

    def to_machine(field: Any, packet: Any, value: Any) -> Any:
        return IPField.i2m(field, packet, FROM_IPV4 if value is None else value)

    SourceIPField.i2m = to_machine
    SourceIPField.i2h = lambda field, packet, value: FROM_IPV4 if value is None else value
    conf.verb = 0


def _replace(kind: Any, **fields: Any) -> None:
    for place, field in enumerate(kind.fields_desc):
        if field.name in fields:
            kind.fields_desc[place] = fields[field.name]
            fields[field.name].register_owner(kind)


def read_captures_whole() -> None:
    """Give Scapy's raw capture reader ``read_all`` back."""
    from scapy.utils import RawPcapReader

    if not hasattr(RawPcapReader, "read_all"):
        RawPcapReader.read_all = lambda self, count=-1: list(self)[: count if count >= 0 else None]


def find_offsets(builder: Any) -> None:
    """Let the library's module *builder* find layers and fields in packets of this Scapy."""
    utility, unknown = builder.CTRexScapyPktUtl, builder.CTRexPacketBuildException

    def layer(self: Any, name: str, count: int = 0) -> tuple[Any, int]:
        for found, at in _layers(self.pkt):
            if name in (found.name, type(found).__name__):
                if not count:
                    return found, at
                count -= 1
        existing = ", ".join(type(found).__name__ for found, _ in _layers(self.pkt))
        raise unknown(-11, f"the packet has no layer '{name}'; it has {existing}")

    def field(self: Any, name: str, count: int, wanted: str) -> tuple[int, int]:
        found, at = layer(self, name, count)
        for known, offset in _fields(found):
            if known.name == wanted:
                return at + offset, 0 if hasattr(known, "size") else known.sz
        existing = ", ".join(known.name for known, _ in _fields(found))
        raise unknown(-11, f"the layer '{name}' has no field '{wanted}'; it has {existing}")

    utility._layer_offset = layer
    utility.layer_offset = lambda self, name, cnt=0: layer(self, name, cnt)[1]
    utility.get_field_offet = field


def _layers(packet: Any) -> Iterator[tuple[Any, int]]:
    """Each layer of *packet* as it is sent, and its offset."""
    from scapy.packet import NoPayload

    found, at = packet if packet.explicit else next(iter(packet)), 0
    while not isinstance(found, NoPayload):
        yield found, at
        at += len(found.self_build())
        found = found.payload


def _fields(layer: Any) -> Iterator[tuple[Any, int]]:
    """Each field of *layer* and its offset; for bit fields the offset of their byte."""
    written: Any = b""
    for field in layer.fields_desc:
        # bits of an incomplete byte are separate from the bytes
        yield field, len(written[0]) if isinstance(written, tuple) else len(written)
        written = field.addfield(layer, written, layer.getfieldval(field.name))
