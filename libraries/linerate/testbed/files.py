"""Reads testbed files, ``variables/testbeds/*.yaml``, by the schema of their kind, and makes their paths absolute."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..config import read_yaml, validate_config
from ..errors import ConfigError
from ..platforms import named_file
from ..power.settings import CsvMeterSettings
from ..project import Folder
from ..visible import shortened
from .login_settings import LoginSettings
from .settings import HardwareSettings, NetnsSettings, SimulatedSettings, Testbed

KINDS: Mapping[str, type[SimulatedSettings] | type[NetnsSettings] | type[HardwareSettings]] = {
    "simulated": SimulatedSettings,
    "netns": NetnsSettings,
    "hardware": HardwareSettings,
}


def read_testbed(folder: Folder, name: str) -> Testbed:
    """The testbed *name* of *folder*. Raises ConfigError naming file, line, key and remedy.

    Relative paths in the file start at its folder; ``~`` is the user's home.
    """
    path = named_file(folder, name, "testbed")
    data, lines = read_yaml(path)
    kind: Any = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        problem = f"unknown kind '{shortened(kind)}'" if kind is not None else "the key 'kind' is missing"
        raise ConfigError(f"{problem}; expected one of {', '.join(KINDS)}", path, lines.get(("kind",), 1))
    found: Testbed = validate_config(data, KINDS[kind], path, lines)
    if found.testbed != name:
        line = lines.get(("testbed",))
        raise ConfigError(
            f"says 'testbed: {shortened(found.testbed)}'; in a file of this name expected '{name}'", path, line
        )
    if len(found.cabled_sides) != 2 * found.pair_count:
        raise ConfigError(
            f"'sides' are {len(found.cabled_sides)}, and the generator's ports are {2 * found.pair_count}; expected"
            " one side for each port, in the order of the ports",
            path,
            lines.get(("sides",)),
        )
    return _with_absolute_paths(found, path.parent)


def _with_absolute_paths(found: Testbed, folder: Path) -> Testbed:
    if isinstance(found.power, CsvMeterSettings):
        meter = found.power.model_copy(update={"file": _absolute(found.power.file, folder)})
        found = found.model_copy(update={"power": meter})
    if not isinstance(found, HardwareSettings):
        return found.model_copy(update={"client": _client(found.client, folder)})
    generator = found.generator
    changed: dict[str, Any] = {"client": _client(generator.client, folder)}
    if generator.ssh is not None:
        changed["ssh"] = _login_with_paths(generator.ssh, folder)
    update: dict[str, Any] = {"generator": generator.model_copy(update=changed)}
    if found.router is not None:
        update["router"] = _login_with_paths(found.router, folder)
    return found.model_copy(update=update)


def _login_with_paths(login: LoginSettings, folder: Path) -> LoginSettings:
    changed: dict[str, Any] = {"known_hosts": _absolute(login.known_hosts, folder)}
    if login.key is not None:
        changed["key"] = _absolute(login.key, folder)
    if login.jump is not None:
        changed["jump"] = _login_with_paths(login.jump, folder)
    return login.model_copy(update=changed)


def _client(named: str, folder: Path) -> str:
    return named if named in ("", "pypi", "from server") else str(_absolute(Path(named), folder))


def _absolute(path: Path, folder: Path) -> Path:
    try:
        return Path(os.path.normpath(folder.resolve() / path.expanduser()))
    except RuntimeError:
        return path
