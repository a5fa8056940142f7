"""Private keys in files: OpenSSH's format and PEM, with a passphrase or without; a locked one may be in ssh-agent."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from ..errors import TestbedError
from ..files import write_whole
from .identity import ELSEWHERE

_KINDS = (
    (Ed25519PrivateKey, paramiko.Ed25519Key),
    (EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (RSAPrivateKey, paramiko.RSAKey),
)
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")
_FIX = "fix 'key' in the testbed file"
_NAMED = "'passphrase_from' in the testbed file, the name of an environment variable that holds it"


def load_key(path: Path, passphrase: Callable[[], str] | None) -> paramiko.PKey:
    """The private key in *path*. *passphrase* is asked only for a key that has one; None: ssh-agent must hold it.

    A public key: ssh-agent must hold its private half. Raises TestbedError, which never contains the passphrase.
    """
    data = _read(path)
    if data.startswith(_PUBLIC):
        return _from_agent(f"the key '{path}' is a public one", _blob(data), "the private half in ssh-agent")
    try:
        key = _parsed(str(path), data, None)
    except TypeError:
        if passphrase is None:
            what = f"the key '{path}' has a passphrase"
            return _from_agent(what, _beside(path), f"{_NAMED}, or the key in ssh-agent", path)
        key = _unlocked(str(path), data, passphrase())
    certificate = path.with_name(path.name + "-cert.pub")
    if certificate.is_file():
        try:
            key.load_certificate(str(certificate))
        except (OSError, ValueError, IndexError, paramiko.SSHException):
            raise TestbedError(f"{certificate}: is not a certificate of '{path}'; fix or remove it") from None
    return key


def parse_key(text: str, name: str, passphrase: Callable[[], str] | None) -> paramiko.PKey:
    """The private key in *text*, the content of the secret *name*, as :func:`load_key`.

    Raises TestbedError, which never contains the secrets.
    """
    data = text.strip().encode() + b"\n"
    try:
        return _parsed(name, data, None)
    except TypeError:
        if passphrase is None:
            raise TestbedError(f"the key '{name}' has a passphrase; expected {_NAMED}") from None
        return _unlocked(name, data, passphrase())


def _read(path: Path) -> bytes:
    try:
        if not path.is_file() and path.exists():
            raise TestbedError(f"the key '{path}' is not a file; {_FIX}")
        return path.read_bytes()
    except OSError as error:
        # not shown where there is no such file: it may be the secret itself, put in the place of its path
        shown = f" '{path}'" if os.path.exists(path) else ""  # noqa: PTH110  (no error for what cannot be a path)
        raise TestbedError(f"the key{shown} cannot be read ({error.strerror}); {_FIX}") from None


def _unlocked(name: str, data: bytes, passphrase: str) -> paramiko.PKey:
    try:
        return _parsed(name, data, os.fsencode(passphrase))
    except (TestbedError, TypeError):
        raise TestbedError(
            f"the passphrase for the key '{name}' is wrong (or the key is damaged); fix the variable that"
            " 'passphrase_from' in the testbed file names"
        ) from None


def _parsed(name: str, data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    """Raises TypeError for a key that has a passphrase where none is given, else TestbedError."""
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        key = load(data, passphrase)
    except UnsupportedAlgorithm:
        raise TestbedError(
            f"the key '{name}' is of a kind or encrypted in a way that is not supported; expected an ed25519, ecdsa or"
            f" rsa key; {_FIX}"
        ) from None
    except ValueError:
        raise TestbedError(f"the key '{name}' is damaged, or not a private key; {_FIX}") from None
    for kind, make in _KINDS:
        if isinstance(key, kind):
            text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")
            return make.from_private_key(io.StringIO(text))
    raise TestbedError(f"the key '{name}' is of a kind that is not supported; expected ed25519, ecdsa or rsa; {_FIX}")


def _from_agent(what: str, public: bytes | None, expected: str, path: Path | None = None) -> paramiko.PKey:
    """The key with the half *public* as ssh-agent holds it: this one, never another. Raises TestbedError."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        why = "SSH_AUTH_SOCK is not set, so there is no ssh-agent"
    elif public is None:
        why = f"it cannot be looked for there without its public half: ssh-keygen -yf '{path}' > '{path}.pub'"
    else:
        why = "which does not answer, or does not hold it: ssh-add " + (
            f"'{path}'" if path else "with its private half"
        )
        try:
            for key in paramiko.Agent().get_keys():
                if key.asbytes() == public:
                    return key
        except (OSError, ValueError, paramiko.SSHException):
            why = "which does not speak an agent's language: fix SSH_AUTH_SOCK"
    raise TestbedError(f"{what}; expected {expected} ({why})")


def _beside(path: Path) -> bytes | None:
    """The public key in the file ``….pub`` beside *path*."""
    try:
        return _blob(path.with_name(path.name + ".pub").read_bytes())
    except OSError:
        return None


def _blob(public: bytes) -> bytes | None:
    """The key in a line ``ssh-ed25519 AAAA… comment``."""
    try:
        return base64.b64decode(public.split()[1])
    except (ValueError, IndexError):
        return None


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
