"""Captured frames: which kinds came through the router since it was set up, and is it really bypassed?

A kind is a direction with its headers, networks and ports. Of a kind, a size is known if a frame at least as long came
through: what stops frames by their length is an MTU. Profiles with their own addresses are each a kind.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from ..core.traffic.frame_kinds import FrameKind, kinds_of
from ..core.traffic.profiles import AddressRange, Profile
from ..errors import TestbedError
from ..generators.base import Direction, GeneratorPort
from ..generators.streams import profile_streams
from ..units import FCS


class SeenFrames:
    """Frames that came through; *networks*: those behind the router, to which it has a route if it forwards any."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)
        self._longest: dict[Hashable, int] = {}

    def knows(self, profile: Profile, directions: Iterable[Direction]) -> bool:
        """Return whether all frames of *profile* are known to come through in *directions*."""
        size = longest_size(profile)
        return all(self._longest.get(self._kind(profile, direction), 0) >= size for direction in directions)

    def note(self, profile: Profile, directions: Iterable[Direction]) -> None:
        """Frames of *profile* came through in *directions*."""
        for direction in directions:
            kind = self._kind(profile, direction)
            self._longest[kind] = max(longest_size(profile), self._longest.get(kind, 0))

    def forget(self) -> None:
        """The router may be set up otherwise now."""
        self._longest.clear()

    def likely_cause(self, profile: Profile, directions: Sequence[Direction], made: Collection[FrameKind] = ()) -> str:
        """Return what to look at on a router that forwards no frame of *profile* in one of *directions*.

        *made*: kinds of frames that the run itself has set it up for.
        """
        headers, size, found = profile.headers, longest_size(profile), []
        if any(self._kind(profile, direction) in self._longest for direction in directions):
            return f"shorter ones came through: check its routes, and whether an MTU is too small {_mtu_words(profile)}"
        if headers.prefix and "ipv6" not in made:
            found.append("its forwarding of IPv6, and its IPv6 routes to their destinations")
        if headers.tags and "vlan" not in made:
            vlans = " in ".join(str(vlan) for _, vlan in reversed(headers.tags))
            found.append(f"its sub-interface for VLAN {vlans}")
        if headers.labels and "mpls" not in made:
            labels = sorted({headers.of_pair(item.pair).labels[0] for item in directions if not item.swapped})
            labels += sorted({headers.of_pair(item.pair).labels_back[0] for item in directions if item.swapped})
            found.append(f"its label route for label {' or '.join(map(str, labels))}")
        if any(isinstance(self._network(item), tuple) for item in (profile.flows.source, profile.flows.destination)):
            found.append(
                f"its routes to {profile.flows.destination.first} or {profile.flows.source.first}, which are in none of"
                " the testbed's networks"
            )
        if headers.transport == "tcp":
            found.append("its filters of TCP")
        # every router's default MTU takes the longest untagged frame of IEEE 802.3
        if size > 1518 + headers.ip - 14:
            found.append(f"whether an MTU is too small {_mtu_words(profile)}")
        own = ", ".join(sorted(kinds_of(profile) & set(made)))
        words = f"check {', and '.join(found) or 'its routes, neighbours and filters'}"
        return f"the run itself has set it up for them ('set_up': {own}); {words}" if own else words

    def _kind(self, profile: Profile, direction: Direction) -> Hashable:
        if profile.has_own_addresses:
            return profile, direction
        flows = profile.flows
        networks = (self._network(flows.source), self._network(flows.destination))
        return profile.headers, networks, flows.source_port, flows.destination_port, direction

    def _network(self, addresses: AddressRange) -> Hashable:
        """The testbed's network that *addresses* are in; else the first and the last of them."""
        ends = ipaddress.IPv4Address(addresses.first), ipaddress.IPv4Address(addresses.last)
        return next((network for network in self._networks if all(end in network for end in ends)), ends)


def longest_size(profile: Profile) -> int:
    """Bytes with FCS of the longest frames of *profile*."""
    return max(frame.size for frame in profile.frames)


def longest_frames(profile: Profile) -> Profile:
    """*profile* with its longest frames only; itself if it has only one kind of them."""
    if len(profile.frames) == 1:
        return profile
    frame = max(profile.frames, key=lambda item: item.size)
    return replace(profile, name=f"{profile.name} ({frame.size} bytes)", frames=(frame,))


def _mtu_words(profile: Profile) -> str:
    size = longest_size(profile)
    packet = size - FCS - profile.headers.ip
    return (
        f"for frames of {size} bytes with FCS (packets of {packet} bytes): of the router's interfaces, or of the"
        " generator's ports"
    )


_SOURCE_MAC, _ADDRESSES = slice(6, 12), slice(26, 34)

BYPASS_REMEDY = "connect the generator's two ports to each other, without the router, and run this again"


def check_router_bypassed(
    frames: Mapping[int, Sequence[bytes]],
    profile: Profile,
    directions: Sequence[Direction],
    ports: Sequence[GeneratorPort],
) -> None:
    """Raise TestbedError unless *frames* (by receiving port, without FCS) of *profile*, one flow, came back as sent.

    Of untagged IPv4: whatever routes a frame sends it from a MAC address of its own.
    """
    macs = {port.index: port.mac.lower() for port in ports}
    for direction in directions:
        sent = bytes.fromhex(profile_streams(profile, direction)[0].frame)
        received = (item for item in frames.get(direction.rx_port, ()) if item[_ADDRESSES] == sent[_ADDRESSES])
        senders = {frame[_SOURCE_MAC].hex(":") for frame in received}
        words = f"from the generator's port {direction.tx_port} to its port {direction.rx_port}"
        if not senders:
            raise TestbedError(f"no frame came {words}; {BYPASS_REMEDY}")
        if others := sorted(senders - {macs[direction.tx_port]}):
            raise TestbedError(
                f"a router is still between the generator's ports: frames {words} came from {' and '.join(others)},"
                f" sent by {macs[direction.tx_port]}; {BYPASS_REMEDY}"
            )
