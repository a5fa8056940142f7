"""Who logs in where, and with what: one key or one password, known by name or path, never by its text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .secrets import Secrets


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, by the key in ``key_path`` or ``key_from``, or the password ``password_from``.

    What ends in ``from`` is the name of a secret. A key with a passphrase: that is ``passphrase_from``, or ssh-agent
    holds the key. A public key in ``key_path``: ssh-agent holds the private half. The machine's host key must be in
    the file ``known_hosts_path``, or have one of the fingerprints ``host_keys``. ``jump``: the login through which
    the connection goes.
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
    secrets: Secrets = field(default_factory=Secrets)

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

    def to_json(self) -> dict[str, Any]:
        """Without the secrets: who reads it gets them by :meth:`environment`."""
        found: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(Login) if each.name != "secrets"
        }
        paths = {name: None if found[name] is None else str(found[name]) for name in ("key_path", "known_hosts_path")}
        return found | paths | {"jump": self.jump.to_json() if self.jump else None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Login:
        """The inverse of :meth:`to_json`. Raises TypeError or KeyError on anything else."""
        key, jump = data["key_path"], data["jump"]
        return cls(
            **{
                **data,
                "key_path": None if key is None else Path(key),
                "known_hosts_path": Path(data["known_hosts_path"]),
                "host_keys": tuple(data["host_keys"]),
                "jump": None if jump is None else cls.from_json(jump),
            }
        )
