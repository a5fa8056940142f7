"""How to log in to a machine over SSH, as a testbed file says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, with the key at ``key_path`` or the password in the variable ``password_from``.

    The machine must show a key that the file ``known_hosts_path`` holds for it.
    """

    host: str
    port: int
    user: str
    key_path: Path | None
    known_hosts_path: Path
    password_from: str | None = None

    @property
    def where(self) -> str:
        """``host:port``, for messages."""
        return f"{self.host}:{self.port}"
