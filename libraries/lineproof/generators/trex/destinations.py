"""Checks the destination MAC addresses of the streams of a user's own file."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ...errors import TestbedError
from ...traffic.profiles import Profile
from ..base import Direction, GeneratorPort
from .next_hops import MAC_FROM_PACKET


def check_destinations(profile: Profile, directions: Sequence[Direction], ports: Sequence[GeneratorPort]) -> None:
    """Raise TestbedError if a stream of *profile* goes to another MAC address than the router's.

    The router ignores such frames, and they would count as its loss. A direction with a destination of its own replaces
    them.
    """
    routers = {port.index: port.destination.lower() for port in ports}
    for direction in (direction for direction in directions if not direction.destination):
        router = routers.get(direction.tx_port, "")
        for number, stream in enumerate(profile.program.directions[direction.swapped] if profile.program else (), 1):
            data = json.loads(stream.text)
            written = any(item.get("pkt_offset", 6) < 6 for item in data["vm"]["instructions"])
            to = stream.frame[:6].hex(":")
            if data["flags"] >> 1 & 3 != MAC_FROM_PACKET or written or stream.frame[0] & 1 or not router:
                continue
            if to != router:
                raise TestbedError(
                    f"'{profile.name}' was not sent: its stream {number} goes to the MAC address {to}, and the"
                    f" generator's port {direction.tx_port} sends to {router}; expected 'mac_dst: port' in the entry of"
                    " the word, or 'Ether()' without 'dst'"
                )
