"""Passwords, passphrases and keys by their names: of Robot's variables of type Secret, or of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from ..errors import TestbedError


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a testbed file names and never holds. Nothing shows the values, not even ``repr``.

    ``given``: by name, before the environment. ``plain``: variables of Robot that are no secrets, and are not used.
    """

    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    plain: Set[str] = field(default_factory=frozenset, repr=False, compare=False)

    def get(self, name: str) -> str:
        """The secret *name*, or ""."""
        return self.given.get(name) or os.environ.get(name, "")

    def read(self, name: str, what: str, who: str) -> str:
        """The secret *name*: the *what* for *who*. Raises TestbedError if nothing has it."""
        if found := self.get(name):
            return found
        if name in self.plain:
            raise TestbedError(
                f"the testbed takes the {what} for {who} from '{name}', and ${{{name}}} is a variable that Robot writes"
                f" into its logs; expected one of type Secret (Robot Framework 7.4): ${{{name}: Secret}}"
            )
        raise TestbedError(
            f"the testbed takes the {what} for {who} from the environment variable '{name}', which is"
            f" {'empty' if name in os.environ else 'not set'}; set it: read -rs {name}; export {name}"
        )


ENVIRONMENT = Secrets()
"""Those of the environment alone."""
