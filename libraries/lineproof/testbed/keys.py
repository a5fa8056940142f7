"""SSH keys of one run, made new and kept in the testbed's private folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from ..files import write_whole
from ..system.identity import ELSEWHERE


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key: ``path`` of the private half (OpenSSH format, 0600), ``public`` as ``ssh-ed25519 AAAA…``."""

    path: Path
    public: str


def make_key(path: Path) -> KeyPair:
    """A new key pair. Raises TestbedError where it cannot be kept."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(path, private, ELSEWHERE, 0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return KeyPair(path, public)


def write_known_hosts(path: Path, host: str, port: int, public: str) -> None:
    """Write a ``known_hosts`` file with one server's *public* key, ``ssh-ed25519 AAAA…`` with or without a comment."""
    name = host if port == 22 else f"[{host}]:{port}"
    write_whole(path, f"{name} {' '.join(public.split()[:2])}\n", ELSEWHERE)
