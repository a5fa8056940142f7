"""SSH keys of one run, made new and kept in the testbed's private folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key: ``path`` of the private half (OpenSSH format, 0600), ``public`` as ``ssh-ed25519 AAAA…``."""

    path: Path
    public: str


def make_key(path: Path) -> KeyPair:
    """A new key pair; *path* must not exist yet."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return KeyPair(path, public)


def write_known_hosts(path: Path, host: str, port: int, public: str) -> None:
    """Write a ``known_hosts`` file with one server's *public* key, ``ssh-ed25519 AAAA…`` with or without a comment."""
    name = host if port == 22 else f"[{host}]:{port}"
    path.write_text(f"{name} {' '.join(public.split()[:2])}\n", encoding="ascii")
