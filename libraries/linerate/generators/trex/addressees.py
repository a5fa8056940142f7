"""To whom the streams of a user's own file are sent, where they name MAC addresses themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...errors import BenchError
from ...profiles import Profile
from ..base import GeneratorPort, Way

FROM_PACKET = 1
"""TRex's mode of the destination MAC address (bits 1 and 2 of ``flags``): the packet's own."""


def check_addressees(profile: Profile, ways: Sequence[Way], ports: Sequence[GeneratorPort]) -> None:
    """Raise BenchError where a stream of *profile* goes to another MAC address than the router's.

    No router takes such frames: all of them would seem lost by it.
    """
    routers = {port.index: port.destination.lower() for port in ports}
    for way in ways:
        router = routers.get(way.tx_port, "")
        for number, stream in enumerate(profile.program.ways[way.swapped] if profile.program else (), 1):
            data = json.loads(stream.text)
            written = any(item.get("pkt_offset", 6) < 6 for item in data["vm"]["instructions"])
            to = stream.frame[:6].hex(":")
            if data["flags"] >> 1 & 3 != FROM_PACKET or written or stream.frame[0] & 1 or not router:
                continue
            if to != router:
                raise BenchError(
                    f"'{profile.name}' was not sent: its stream {number} goes to the MAC address {to}, and the"
                    f" generator's port {way.tx_port} sends to {router}; right would be 'mac_dst: port' in the entry of"
                    " the word, or 'Ether()' without 'dst'"
                )
