"""Passwords, passphrases and keys by their names: of Robot's variables of type Secret, or of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ..errors import TestbedError

SHORTEST_MASKED = 4
"""Characters of a secret that is masked; a shorter one, or one of digits, would be found in too much else."""


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
                f" into its logs; expected one of type Secret: ${{{name}: Secret}}"
            )
        raise TestbedError(
            f"the testbed takes the {what} for {who} from the environment variable '{name}', which is"
            f" {'empty' if name in os.environ else 'not set'}; set it: read -rs {name}; export {name}"
        )

    def masked(self, text: str, names: Iterable[str]) -> str:
        """Return *text* with ``***`` in place of the secrets *names*, which a machine may have echoed."""
        for secret in self._texts(names):
            if len(secret) >= SHORTEST_MASKED and not secret.isdecimal() and secret in text:
                text = re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", "***", text)
        return text

    def _texts(self, names: Iterable[str]) -> Iterator[str]:
        """Secrets, and the lines of those that are keys: an echo is read line by line."""
        for name in names:
            secret = self.get(name)
            yield secret.strip()
            if "\n" in secret.strip():
                yield from (line for line in map(str.strip, secret.splitlines()) if not line.startswith("-----"))


ENVIRONMENT = Secrets()
"""Those of the environment alone."""
