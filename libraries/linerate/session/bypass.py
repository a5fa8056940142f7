"""Is the router really bypassed? Told by frames that came back.

A router counts their time to live down (RFC 1812 5.3.1) and puts its own address in place of the sender's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import TestbedError
from ..generators.base import Direction, GeneratorPort
from ..generators.streams import streams
from ..traffic.ip_header import ip_header
from ..traffic.profiles import Profile

_TTL = 8
_SOURCE = slice(6, 12)

REMEDY = "connect the generator's two ports to each other, without the router, and run this again"


def check_bypassed(
    frames: Mapping[int, Sequence[bytes]],
    profile: Profile,
    directions: Sequence[Direction],
    ports: Sequence[GeneratorPort],
) -> None:
    """Raise TestbedError unless *frames* (by receiving port, without FCS) of *profile*, one flow, came back as sent."""
    macs = {port.index: port.mac.lower() for port in ports}
    for direction in directions:
        sent = bytes.fromhex(streams(profile, direction)[0].frame)
        header = ip_header(sent)
        if header is None or header.version != 4:
            raise TestbedError(f"'{profile.name}' cannot show whether the router is bypassed; expected IPv4")
        source, destination = header.addresses()
        alike = [
            frame
            for frame in frames.get(direction.rx_port, ())
            if len(frame) >= len(sent) and frame[source] + frame[destination] == sent[source] + sent[destination]
        ]
        between = f"from the generator's port {direction.tx_port} to its port {direction.rx_port}"
        if not alike:
            raise TestbedError(f"no frame came {between}; {REMEDY}")
        for frame in alike:
            was, found = sent[header.offset + _TTL], frame[header.offset + _TTL]
            if found != was:
                raise TestbedError(
                    f"a router is still between the generator's ports: frames {between} came with time to live {found},"
                    f" sent with {was}; {REMEDY}"
                )
            sender, right = frame[_SOURCE].hex(":"), macs[direction.tx_port]
            if sender != right:
                raise TestbedError(
                    f"something is still between the generator's ports: frames {between} came from {sender}, sent by"
                    f" {right}; {REMEDY}"
                )
