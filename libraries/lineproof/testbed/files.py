"""Reads testbed files, ``variables/testbeds/*.yaml``, by the schema of their kind, and makes their paths absolute."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from pydantic import create_model

from ..config import read_yaml, shown_key, validate_config
from ..errors import ConfigError
from ..generators.kinds import generator_kind
from ..generators.settings import GeneratorSettings
from ..platforms import named_file
from ..power.meter import CsvMeterSettings
from ..project import Folder
from ..visible import shortened
from .settings import (
    DEFAULT,
    HardwareSettings,
    NetnsSettings,
    PoolSettings,
    SimulatedSettings,
    Testbed,
)
from .trex.settings import client_with_path

KINDS: Mapping[str, type[SimulatedSettings] | type[NetnsSettings] | type[HardwareSettings] | type[PoolSettings]] = {
    "simulated": SimulatedSettings,
    "netns": NetnsSettings,
    "hardware": HardwareSettings,
    "pool": PoolSettings,
}

WORDS_ON_NETNS = ("embedded", DEFAULT)
"""What a testbed of namespaces may say of its generator in place of a kind's keys."""


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
    """As :func:`read_testbed`, also of a file of ``kind: pool``. Raises ConfigError."""
    path = named_file(folder, name, "testbed")
    data, lines = read_yaml(path)
    kind: Any = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        problem = f"unknown kind '{shortened(kind)}'" if kind is not None else "the key 'kind' is missing"
        raise ConfigError(f"{problem}; expected one of {', '.join(KINDS)}", path, lines.get(("kind",), 1))
    model, data = _model(kind, data, path, lines.get(("generator", "type"), lines.get(("generator",))))
    found: Testbed | PoolSettings = validate_config(data, model, path, lines)
    if found.testbed != name:
        line = lines.get(("testbed",))
        raise ConfigError(
            f"says 'testbed: {shortened(found.testbed)}'; in a file of this name expected '{name}'", path, line
        )
    if isinstance(found, PoolSettings):
        return found
    if len(found.cabled_sides) != 2 * found.pair_count:
        raise ConfigError(
            f"'sides' are {len(found.cabled_sides)}, and the generator's ports are {2 * found.pair_count}; expected"
            " one side for each port, in the order of the ports",
            path,
            lines.get(("sides",)),
        )
    return _with_absolute_paths(found, path.parent)


def _model(
    kind: str, data: dict[str, Any], path: Path, line: int | None
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
        found = generator_kind(name)
    except ConfigError as error:
        raise ConfigError(str(error), path, line) from None
    keys = found.settings if kind == "hardware" else found.on_netns
    if keys is None:
        raise ConfigError(f"a generator of type '{name}' is for testbeds of kind 'hardware' only", path, line)
    return _with_generator(cast(type[Testbed], model), keys), {**data, "generator": given}


@cache
def _with_generator(model: type[Testbed], keys: type[GeneratorSettings]) -> type[Testbed]:
    # mypy takes what it returns for the base alone
    made: Any = create_model(model.__name__, __base__=model, generator=(keys, ...))
    return cast(type[Testbed], made)


def _with_absolute_paths(found: Testbed, folder: Path) -> Testbed:
    absolute = partial(_absolute, folder=folder)
    if isinstance(found.power, CsvMeterSettings):
        meter = found.power.model_copy(update={"file": absolute(found.power.file)})
        found = found.model_copy(update={"power": meter})
    update: dict[str, Any] = {}
    if not isinstance(found, HardwareSettings):
        update["client"] = client_with_path(found.client, absolute)
    elif found.router is not None:
        update["router"] = found.router.with_paths(absolute)
    if not isinstance(found, SimulatedSettings) and isinstance(found.generator, GeneratorSettings):
        update["generator"] = found.generator.with_paths(absolute)
    return found.model_copy(update=update)


def _absolute(path: Path, folder: Path) -> Path:
    try:
        return Path(os.path.normpath(folder.resolve() / path.expanduser()))
    except RuntimeError:
        return path
