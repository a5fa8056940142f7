"""Robot's variables of type Secret, which it writes into no log, as secrets of the testbed."""

from __future__ import annotations

from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn

from ..system.login import Secrets


def secrets_of_variables() -> Secrets:
    """The secrets that the running suite has: ``${ROUTER_PASSWORD: Secret}`` is ROUTER_PASSWORD."""
    given, plain = dict[str, str](), set[str]()
    for name, value in BuiltIn().get_variables(no_decoration=True).items():
        if isinstance(value, Secret):
            given[_capitals(name)] = str(value.value)
        elif isinstance(value, str):
            plain.add(_capitals(name))
    return Secrets(given, frozenset(plain))


def _capitals(name: str) -> str:
    """A variable's name as the testbed file has it: Robot does not tell 'router password' from 'ROUTER_PASSWORD'."""
    return name.upper().replace(" ", "_")
