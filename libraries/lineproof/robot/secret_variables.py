"""Robot's variables of type Secret (Robot Framework 7.4), which it writes into no log, as secrets of the testbed."""

from __future__ import annotations

from typing import Any

from robot.libraries.BuiltIn import BuiltIn

from ..system.secrets import Secrets

try:
    from robot.api.types import Secret as _Secret
except ImportError:  # an older one
    _Secret = None

Secret: Any = _Secret


def secrets_of_variables() -> Secrets:
    """The secrets that the running suite has: ``${ROUTER_PASSWORD: Secret}`` is ROUTER_PASSWORD."""
    given, plain = dict[str, str](), set[str]()
    for name, value in BuiltIn().get_variables(no_decoration=True).items():
        if Secret is not None and isinstance(value, Secret):
            given[_capitals(name)] = str(value.value)
        elif isinstance(value, str):
            plain.add(_capitals(name))
    return Secrets(given, frozenset(plain))


def _capitals(name: str) -> str:
    """A variable's name as the testbed file has it: Robot does not tell 'router password' from 'ROUTER_PASSWORD'."""
    return name.upper().replace(" ", "_")
