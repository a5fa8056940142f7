"""For which frames beside plain IPv4 a router is to be set up: IPv6, VLAN tags, MPLS labels. From the traffic words."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import TestbedError
from .catalogue import Catalogue
from .profiles import ETHERTYPES, Profile

FrameKind = Literal["ipv6", "vlan", "mpls"]
"""What a testbed file may name in ``set_up``."""

Lacking = Mapping[frozenset[FrameKind], str]
"""Frames that are all of a key's kinds at once have no way through the router, for this reason."""


@dataclass(frozen=True, slots=True)
class FrameKinds:
    """The frames of all words together, each only once.

    ``prefixes``: IPv6 addresses are these 96 bits before the IPv4 ones. ``tags``: each a stack of (EtherType, VLAN),
    outermost first. ``labels``: the outermost MPLS labels of first and second direction.
    """

    prefixes: tuple[str, ...] = ()
    tags: tuple[tuple[tuple[int, int], ...], ...] = ()
    labels: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, catalogue: Catalogue, kinds: Collection[FrameKind]) -> FrameKinds:
        """What the words of *catalogue* need, as far as it is of *kinds*."""
        words = catalogue.headers.values()
        tags = [tuple((ETHERTYPES[tag.protocol], tag.vlan) for tag in word.tags) for word in words if word.tags]
        labels = [(word.labels[0], word.labels_back[0]) for word in words if word.labels]
        return cls(
            tuple(dict.fromkeys(word.prefix for word in words if word.prefix)) if "ipv6" in kinds else (),
            tuple(dict.fromkeys(tags)) if "vlan" in kinds else (),
            tuple(dict.fromkeys(labels)) if "mpls" in kinds else (),
        )


def mapped(prefix: str, address: str) -> str:
    """The IPv6 address whose last 32 bits are the IPv4 *address*: ``2001:2::1000:1`` of 2001:2:: and 16.0.0.1."""
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | int(ipaddress.IPv4Address(address))))


def mapped_network(prefix: str, network: str) -> str:
    """The same of a network: ``2001:2::1000:0/104`` of 2001:2:: and 16.0.0.0/8."""
    before = ipaddress.IPv4Network(network)
    return f"{mapped(prefix, str(before.network_address))}/{96 + before.prefixlen}"


def kinds_of(profile: Profile) -> frozenset[FrameKind]:
    """What the frames of *profile* are beside plain IPv4."""
    headers = profile.headers
    found: list[tuple[FrameKind, object]] = [("ipv6", headers.prefix), ("vlan", headers.tags), ("mpls", headers.labels)]
    return frozenset(kind for kind, there in found if there)


def reason_against(profile: Profile, lacking: Lacking) -> str:
    """Why the router cannot forward *profile*; empty where nothing is known against it."""
    kinds = kinds_of(profile)
    return "; ".join(reason for needs, reason in lacking.items() if needs <= kinds)


def refuse(profile: Profile, lacking: Lacking) -> None:
    """Raise TestbedError where *profile* is known to have no way through the router: its loss would prove nothing."""
    reason = reason_against(profile, lacking)
    if reason:
        raise TestbedError(f"'{profile.name}' was not sent: {reason}")
