"""Reads testbed files, ``variables/testbeds/*.yaml``, by the schema of their kind, with absolute paths.

What no check of one key can see is here, too: whether a file's addresses fit the traffic and each other.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import create_model

from ..config import read_yaml, shown_key, validate_config
from ..core.traffic.profiles import AddressRange, Profile
from ..errors import ConfigError
from ..generators.kinds import generator_kind
from ..generators.site import GeneratorSettings
from ..platforms import named_file
from ..project import Folder, Layers, packaged_variables
from ..visible import shortened
from .settings import (
    DEFAULT,
    EMBEDDED,
    HardwareSettings,
    NetnsSettings,
    PoolSettings,
    SimulatedSettings,
    Testbed,
    default_side,
)

KINDS: Mapping[str, type[SimulatedSettings] | type[NetnsSettings] | type[HardwareSettings] | type[PoolSettings]] = {
    "simulated": SimulatedSettings,
    "netns": NetnsSettings,
    "hardware": HardwareSettings,
    "pool": PoolSettings,
}

WORDS_ON_NETNS = (EMBEDDED, DEFAULT)
"""The keys that a testbed of namespaces may have of its generator in place of a kind's keys."""


def read_testbed(folder: Folder, name: str) -> Testbed:
    """The testbed *name* of *folder*. Raises ConfigError naming file, line, key and remedy.

    Relative paths in the file start at its folder; ``~`` is the user's home.
    """
    found = read_testbed_or_pool(folder, name)
    if isinstance(found, PoolSettings):
        raise ConfigError(
            "is a pool of testbeds, of which a suite gets one ('Open Testbed For'); here expected one of them",
            folder / f"{name}.yaml",
        )
    return found


def read_testbed_or_pool(folder: Folder, name: str) -> Testbed | PoolSettings:
    """Return it as :func:`read_testbed` does, also of a file of ``kind: pool``. Raises ConfigError."""
    path = named_file(folder, name, "testbed")
    data, lines = read_yaml(path)
    kind: Any = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        problem = f"unknown kind '{shortened(kind)}'" if kind is not None else "the key 'kind' is missing"
        raise ConfigError(f"{problem}; expected one of {', '.join(KINDS)}", path, lines.get(("kind",), 1))
    layers = folder if isinstance(folder, Layers) else Layers(folder, packaged_variables() / "testbeds")
    line = lines.get(("generator", "type"), lines.get(("generator",)))
    model, data = _model(kind, data, path, line, layers.beside("programs"))
    found: Testbed | PoolSettings = validate_config(data, model, path, lines, "testbed")
    if isinstance(found, PoolSettings):
        return found
    if len(found.cabled_sides) != 2 * found.pair_count:
        raise ConfigError(
            f"'sides' are {len(found.cabled_sides)}, and the generator's ports are {2 * found.pair_count}; expected"
            " one side for each port, in the order of the ports",
            path,
            lines.get(("sides",)),
        )
    return found


def _model(
    kind: str, data: dict[str, Any], path: Path, line: int | None, programs: Folder
) -> tuple[type[Testbed] | type[PoolSettings], dict[str, Any]]:
    """The model that reads *data*, with the keys of its kind of generator; and *data*, its words for one written out.

    Raises ConfigError for a type of generator that is not installed, or cannot be on such a testbed.
    """
    model, given = KINDS[kind], data.get("generator")
    if kind == "netns" and isinstance(given, str) and given not in WORDS_ON_NETNS:
        given = {"type": given}
    if kind == "netns" and isinstance(given, dict) and given.get("type", DEFAULT) in WORDS_ON_NETNS:
        if more := [key for key in given if key != "type"]:
            raise ConfigError(f"'{shown_key(more[0])}' is not a key of a TRex on namespaces; remove it", path, line)
        given = given.get("type", DEFAULT)
    if kind in ("simulated", "pool") or not isinstance(given, dict):
        return model, {**data, "generator": given} if kind == "netns" and given is not None else data
    name = given.get("type", DEFAULT)
    if not isinstance(name, str):
        raise ConfigError(f"'type' is the name of a kind of generator, as '{DEFAULT}'", path, line)
    try:
        keys = generator_kind(name, programs)
    except ConfigError as error:
        raise ConfigError(str(error), path, line) from None
    if kind == "netns":
        if keys.on_netns is None:
            raise ConfigError(f"a generator of type '{name}' is for testbeds of kind 'hardware' only", path, line)
        keys = keys.on_netns
    return _with_generator(cast(type[Testbed], model), keys), {**data, "generator": given}


@cache
def _with_generator(model: type[Testbed], keys: type[GeneratorSettings]) -> type[Testbed]:
    # mypy takes what it returns for the base alone
    made: Any = create_model(model.__name__, __base__=model, generator=(keys, ...))
    return cast(type[Testbed], made)


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
        """Return it as an error with file and line. Raises ConfigError if the file cannot be read any more."""
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
                ends = list(dict.fromkeys((addresses.first, addresses.last)))
                words = (
                    f"{networks[side]} does not hold {' to '.join(ends)}, where '{profile.name}' is sent through this"
                    f" side; expected 'network: {_expected(side, addresses)}'"
                )
                yield Misfit(side, "network", words, testbed.prepare == "configure" and not profile.has_own_addresses)


def _expected(side: int, addresses: AddressRange) -> str:
    """The side's default network, if it holds *addresses*; else the smallest that does."""
    usual = ipaddress.IPv4Network(default_side(side).network)
    first, last = (ipaddress.IPv4Address(end) for end in (addresses.first, addresses.last))
    length = 32 - (int(first) ^ int(last)).bit_length()
    return str(usual if _holds(usual, addresses) else ipaddress.IPv4Network((int(first), length), strict=False))


def _holds(network: ipaddress.IPv4Network, addresses: AddressRange) -> bool:
    return all(ipaddress.IPv4Address(end) in network for end in (addresses.first, addresses.last))
