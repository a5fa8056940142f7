"""Frames other than plain IPv4 that a router must be configured for: IPv6, VLAN tags, MPLS labels."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from ...errors import TestbedError
from .catalogue import Catalogue
from .profiles import LABEL_STEP, Profile

FrameKind = Literal["ipv6", "vlan", "mpls"]
"""Words that a testbed file may name in ``set_up``."""

NotForwarded = Mapping[frozenset[FrameKind], str]
"""Kinds and a reason: the router does not forward frames that are of all these kinds."""


@dataclass(frozen=True, slots=True)
class FrameKinds:
    """Return what all traffic words need, each once.

    ``prefixes``: the 96 bits before the IPv4 address in IPv6 addresses. ``tags``: stacks of (EtherType, VLAN),
    outermost first. ``labels``: the outermost MPLS labels of first and second direction.
    """

    prefixes: tuple[str, ...] = ()
    tags: tuple[tuple[tuple[int, int], ...], ...] = ()
    labels: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, catalogue: Catalogue, kinds: Collection[FrameKind]) -> FrameKinds:
        """Return what the words of *catalogue* need, limited to *kinds*."""
        headers = catalogue.headers.values()
        tags = [word.changes["tags"] for word in headers if word.tags]
        labels = [(word.labels[0], word.labels_back[0]) for word in headers if word.labels]
        return cls(
            tuple(dict.fromkeys(word.prefix for word in headers if word.prefix)) if "ipv6" in kinds else (),
            tuple(dict.fromkeys(tags)) if "vlan" in kinds else (),
            tuple(dict.fromkeys(labels)) if "mpls" in kinds else (),
        )

    def exits(self, sides: int) -> list[tuple[int, ...]]:
        """Return the labels that leave by each of so many *sides*; those of the first direction by the second side.

        Each pair of sides has its own labels. Raises TestbedError if a label would have to leave by two.
        """
        ahead, back = zip(*self.labels, strict=True) if self.labels else ((), ())
        exits = [
            tuple(dict.fromkeys(label + index // 2 * LABEL_STEP for label in (ahead if index % 2 else back)))
            for index in range(sides)
        ]
        used = Counter(label for labels in exits for label in labels)
        if both := sorted(label for label, times in used.items() if times > 1):
            hint = f" ({LABEL_STEP} more for each further pair of ports)" if sides > 2 else ""
            raise TestbedError(
                f"label {both[0]} is among the words' 'labels' and 'labels_back'{hint}, and a router forwards each"
                " label in one direction only; expected different labels"
            )
        return exits


def ipv6_address(prefix: str, address: str) -> str:
    """Return the IPv6 address that ends with the IPv4 *address*: ``2001:2::1000:1`` of 2001:2:: and 16.0.0.1."""
    return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | int(ipaddress.IPv4Address(address))))


def ipv6_network(prefix: str, network: str) -> str:
    """Return the IPv6 network that ends with an IPv4 one: ``2001:2::1000:0/104`` of 2001:2:: and 16.0.0.0/8."""
    ipv4 = ipaddress.IPv4Network(network)
    return f"{ipv6_address(prefix, str(ipv4.network_address))}/{96 + ipv4.prefixlen}"


def kinds_of(profile: Profile) -> frozenset[FrameKind]:
    """Return the kinds of *profile*'s frames; empty for plain IPv4."""
    headers = profile.headers
    kinds: list[tuple[FrameKind, object]] = [("ipv6", headers.prefix), ("vlan", headers.tags), ("mpls", headers.labels)]
    return frozenset(kind for kind, needed in kinds if needed)


def reason_not_forwarded(profile: Profile, not_forwarded: NotForwarded) -> str:
    """Return why the router cannot forward *profile*; "" where it can, as far as known."""
    kinds = kinds_of(profile)
    return "; ".join(reason for needed, reason in not_forwarded.items() if needed <= kinds)


def refuse_not_forwarded(profile: Profile, not_forwarded: NotForwarded) -> None:
    """Raise TestbedError where the router cannot forward *profile*: its loss would prove nothing."""
    if reason := reason_not_forwarded(profile, not_forwarded):
        raise TestbedError(f"'{profile.name}' was not sent: {reason}")
