"""Who logs in where, and with what: one key or one password, known by name or path, never by its text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..errors import TestbedError

SHORTEST_MASKED = 4
"""Characters of a secret that is masked; a shorter one, or one of digits, would be found in too much else."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets, which a testbed file names and never holds. Nothing shows the values, not even ``repr``.

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
"""The secrets of the environment alone."""


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, by the key in ``key_path`` or ``key_from``, or the password ``password_from``.

    What ends in ``from`` is the name of a secret. A key with a passphrase: that is ``passphrase_from``, or ssh-agent
    holds the key. A public key in ``key_path``: ssh-agent holds the private half. The machine's host key must be in
    the file ``known_hosts_path``, or have one of the fingerprints ``host_keys``. ``jump``: the login through which
    the connection goes. As JSON it has no secrets: who reads it gets them by :meth:`environment`.
    """

    host: str
    port: int
    user: str
    key_path: Path | None
    known_hosts_path: Path
    password_from: str | None = None
    passphrase_from: str | None = None
    key_from: str | None = None
    host_keys: tuple[str, ...] = ()
    jump: Login | None = None
    secrets: Annotated[Secrets, Field(exclude=True)] = field(default_factory=Secrets)

    @property
    def where(self) -> str:
        """``host:port``, for messages."""
        through = f" through {self.jump.where}" if self.jump else ""
        return f"{self.host}:{self.port}{through}"

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return what its secrets are called, and those of its jump host."""
        own = tuple(name for name in (self.password_from, self.passphrase_from, self.key_from) if name)
        return own + (self.jump.secret_names if self.jump else ())

    def environment(self) -> dict[str, str]:
        """The variables that a process needs to log in: those of the secrets, and the way to ssh-agent."""
        found = {name: self.secrets.get(name) for name in self.secret_names}
        found["SSH_AUTH_SOCK"] = os.environ.get("SSH_AUTH_SOCK", "")
        return {name: value for name, value in found.items() if value}

    def masked(self, text: str) -> str:
        """*text* with ``***`` in place of this login's secrets, which a machine may have echoed."""
        return self.secrets.masked(text, self.secret_names)
