"""Routers under test: telemetry, configure, restore. A router knows nothing of generators.

Each is a folder with its description, ``NAME/NAME.yaml`` (keys: docs/any-router.md; examples of what routers print:
utest/data/router_examples), and Python for what no file can say.
"""

from __future__ import annotations

import functools
from pathlib import Path

from ..system.ssh_shell import Shell
from .described import Router
from .description import RouterDescription, load_description
from .freebsd import FreeBsd
from .linux import Linux
from .vpp import Vpp

BUILT_IN: dict[str, type[Router]] = {"vpp": Vpp, "linux": Linux, "freebsd": FreeBsd}
"""Routers with Python of their own, which can be simulated."""


def make_router(
    name: str,
    shell: Shell,
    interfaces: tuple[str, ...] = (),
    sudo: bool = False,
    file: RouterDescription | None = None,
) -> Router:
    """Return the router *name* behind *shell*, as *file* describes it, or else the file in its folder.

    *sudo*: the user is not root but may ``sudo -n``.
    """
    file = file or described(name)
    return router_class(name, file)(shell, file, interfaces, sudo)


def router_class(name: str, file: RouterDescription | None) -> type[Router]:
    """Return the class of the router *name*, or of the one that *file* is like."""
    return BUILT_IN.get(file.like if file and file.like else name, Router)


@functools.cache
def described(name: str) -> RouterDescription:
    """Return the description in the router's folder."""
    return load_description(Path(__file__).parent / name / f"{name}.yaml")[0]
