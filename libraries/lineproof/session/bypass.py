"""Is the router really bypassed? The frames that came back show it.

A router counts their time to live down (RFC 1812 5.3.1) and replaces the sender's MAC address by its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.traffic.ip_header import ip_header
from ..core.traffic.profiles import Profile
from ..errors import TestbedError
from ..generators.base import Direction, GeneratorPort
from ..generators.streams import profile_streams

_TTL_OFFSET = 8
_SOURCE_MAC = slice(6, 12)

BYPASS_REMEDY = "connect the generator's two ports to each other, without the router, and run this again"


def check_router_bypassed(
    frames: Mapping[int, Sequence[bytes]],
    profile: Profile,
    directions: Sequence[Direction],
    ports: Sequence[GeneratorPort],
) -> None:
    """Raise TestbedError unless *frames* (by receiving port, without FCS) of *profile*, one flow, came back as sent."""
    macs = {port.index: port.mac.lower() for port in ports}
    for direction in directions:
        sent = bytes.fromhex(profile_streams(profile, direction)[0].frame)
        header = ip_header(sent)
        if header is None or header.version != 4:
            raise TestbedError(f"'{profile.name}' cannot show whether the router is bypassed; expected IPv4")
        source, destination = header.addresses()
        received = [
            frame
            for frame in frames.get(direction.rx_port, ())
            if len(frame) >= len(sent) and frame[source] + frame[destination] == sent[source] + sent[destination]
        ]
        ports_words = f"from the generator's port {direction.tx_port} to its port {direction.rx_port}"
        if not received:
            raise TestbedError(f"no frame came {ports_words}; {BYPASS_REMEDY}")
        for frame in received:
            was, found = sent[header.offset + _TTL_OFFSET], frame[header.offset + _TTL_OFFSET]
            if found != was:
                raise TestbedError(
                    f"a router is still between the generator's ports: frames {ports_words} came with time to live"
                    f" {found}, sent with {was}; {BYPASS_REMEDY}"
                )
            sender, expected = frame[_SOURCE_MAC].hex(":"), macs[direction.tx_port]
            if sender != expected:
                raise TestbedError(
                    f"something is still between the generator's ports: frames {ports_words} came from {sender}, sent"
                    f" by {expected}; {BYPASS_REMEDY}"
                )
