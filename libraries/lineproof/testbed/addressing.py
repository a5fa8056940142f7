"""Whether a testbed file's addresses fit the traffic and each other: what no check of one key can see."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..config import read_yaml
from ..core.traffic.profiles import AddressRange, Profile
from ..errors import ConfigError
from ..project import Folder
from .settings import Testbed, default_side


@dataclass(frozen=True, slots=True)
class Misfit:
    """``key`` of the side in place ``side``, from 0, does not fit. ``certain``: no router makes up for it."""

    side: int
    key: str
    words: str
    certain: bool

    def __str__(self) -> str:
        return f"'sides.{self.side}.{self.key}': {self.words}"

    def located(self, folder: Folder, testbed: str) -> ConfigError:
        """As an error with file and line. Raises ConfigError if the file cannot be read any more."""
        path = folder / f"{testbed}.yaml"
        return ConfigError(str(self), path, read_yaml(path)[1].get(("sides", str(self.side), self.key)))


def network_misfits(testbed: Testbed, profile: Profile, bidirectional: bool, pairs: int = 1) -> Iterator[Misfit]:
    """Each ``network`` of *testbed* that does not hold the addresses to which *profile* is sent through its side.

    With ``prepare: configure`` these networks are the routes that the router gets. Labels are no addresses.
    """
    networks = [ipaddress.IPv4Network(side.network) for side in testbed.cabled_sides]
    if profile.headers.labels:
        return
    for pair in range(1 if profile.has_own_addresses else pairs):
        flows = profile.flows.of_pair(pair)
        ways = [(2 * pair + 1, flows.destination)]
        # of a user's streams only the first direction's addresses are known
        ways += [(2 * pair, flows.source)] if bidirectional and profile.program is None else []
        for side, addresses in ways:
            if side < len(networks) and not _holds(networks[side], addresses):
                words = _network_words(side, networks, addresses, profile.name)
                yield Misfit(side, "network", words, testbed.prepare == "configure" and not profile.has_own_addresses)


def next_hop_misfits(testbed: Testbed) -> Iterator[Misfit]:
    """Each ``next_hop`` of *testbed* that its router most likely does not have: none is certain.

    A router that is configured from here has ``address``, maybe beside others; one that is not has any address of that
    network, as a virtual one of VRRP. IPv6 addresses are in no testbed's file.
    """
    for place, side in enumerate(testbed.cabled_sides):
        own = ipaddress.IPv4Interface(side.address)
        if side.next_hop is None or ":" in side.next_hop or side.next_hop == str(own.ip):
            continue
        asked = ipaddress.IPv4Address(side.next_hop)
        if str(asked) == side.peer:
            found = "it is 'peer', the generator's own port"
        elif asked not in own.network:
            found = f"it is not in {own.network}, the network of 'address'"
        elif testbed.prepare == "configure":
            found = "right only if the router has it too (VRRP, a second address)"
        else:
            continue
        words = f"{asked} is no address of this side; the router has {own.ip} ('address'); {found}; else leave it out"
        yield Misfit(place, "next_hop", words, certain=False)


def _network_words(side: int, networks: Sequence[ipaddress.IPv4Network], addresses: AddressRange, name: str) -> str:
    other = next((place for place, network in enumerate(networks) if _holds(network, addresses)), None)
    if other is not None:
        found = f"they are in 'sides.{other}.network', {networks[other]}, so that they go to another port"
    elif _overlaps(networks[side], addresses):
        found = "it holds some of them only"
    else:
        found = "they are in no side's network, so that the router gets no route to them"
    ends = list(dict.fromkeys((addresses.first, addresses.last)))
    return (
        f"{networks[side]} does not hold {' to '.join(ends)}, where '{name}' is sent through this side; {found};"
        f" expected 'network: {_expected(side, addresses)}'"
    )


def _expected(side: int, addresses: AddressRange) -> str:
    """The side's default network, if it holds *addresses*; else the smallest that does."""
    usual = ipaddress.IPv4Network(default_side(side).network)
    first, last = (ipaddress.IPv4Address(end) for end in (addresses.first, addresses.last))
    length = 32 - (int(first) ^ int(last)).bit_length()
    return str(usual if _holds(usual, addresses) else ipaddress.IPv4Network((int(first), length), strict=False))


def _holds(network: ipaddress.IPv4Network, addresses: AddressRange) -> bool:
    return all(ipaddress.IPv4Address(end) in network for end in (addresses.first, addresses.last))


def _overlaps(network: ipaddress.IPv4Network, addresses: AddressRange) -> bool:
    first, last = (ipaddress.IPv4Address(end) for end in (addresses.first, addresses.last))
    return network.network_address <= last and first <= network.broadcast_address
