"""Private keys in files: OpenSSH's format and PEM, with a passphrase or without; a locked one may be in ssh-agent."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
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
    load_pem_private_key,
    load_ssh_private_key,
)

from ..errors import TestbedError

LARGEST = 1 << 20
"""Bytes of a file that may be a key."""

_KINDS = (
    (Ed25519PrivateKey, paramiko.Ed25519Key),
    (EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (RSAPrivateKey, paramiko.RSAKey),
)
_FIX = "fix 'key' in the testbed file"


def load_key(path: Path, passphrase: Callable[[], bytes] | None) -> paramiko.PKey:
    """The private key in *path*. *passphrase* is asked only for a key that has one; None: ssh-agent must hold it.

    Raises TestbedError, which never contains the passphrase.
    """
    data = _read(path)
    try:
        key = _parsed(path, data, None)
    except TypeError:  # it has a passphrase
        if passphrase is None:
            return _from_agent(path, data)
        key = _unlocked(path, data, passphrase())
    certificate = path.with_name(path.name + "-cert.pub")
    if certificate.is_file():
        try:
            key.load_certificate(str(certificate))
        except (OSError, ValueError, IndexError, paramiko.SSHException):
            raise TestbedError(f"{certificate}: is not a certificate of '{path}'; fix or remove it") from None
    return key


def _read(path: Path) -> bytes:
    try:
        if not path.is_file() and path.exists():
            raise TestbedError(f"the key '{path}' is not a file; {_FIX}")
        with path.open("rb") as file:
            data = file.read(LARGEST)
    except OSError as error:
        raise TestbedError(f"the key '{path}' cannot be read ({error.strerror}); {_FIX}") from None
    if data.startswith(b"PuTTY-User-Key-File"):
        raise TestbedError(
            f"the key '{path}' is in PuTTY's format; expected OpenSSH's: puttygen '{path}' -O private-openssh -o …"
        )
    if data.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise TestbedError(f"the key '{path}' is a public key; expected the private half, in the file without '.pub'")
    return data


def _unlocked(path: Path, data: bytes, passphrase: bytes) -> paramiko.PKey:
    try:
        return _parsed(path, data, passphrase)
    except (TestbedError, TypeError):
        raise TestbedError(
            f"the passphrase for the key '{path}' is wrong (or the key is damaged); fix the variable that"
            " 'passphrase_from' in the testbed file names"
        ) from None


def _parsed(path: Path, data: bytes, passphrase: bytes | None) -> paramiko.PKey:
    """Raises TypeError for a key that has a passphrase where none is given, else TestbedError."""
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        key = load(data, passphrase)
    except UnsupportedAlgorithm:
        raise TestbedError(
            f"the key '{path}' is of a kind or encrypted in a way that is not supported; expected an ed25519, ecdsa or"
            f" rsa key; {_FIX}"
        ) from None
    except ValueError:
        raise TestbedError(f"the key '{path}' is damaged, or not a private key; {_FIX}") from None
    for kind, make in _KINDS:
        if isinstance(key, kind):
            text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")
            return make.from_private_key(io.StringIO(text))
    raise TestbedError(f"the key '{path}' is of a kind that is not supported; expected ed25519, ecdsa or rsa; {_FIX}")


def _from_agent(path: Path, data: bytes) -> paramiko.PKey:
    """The key of *path* as ssh-agent holds it: this one, never another. Raises TestbedError."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        why = "SSH_AUTH_SOCK is not set, so there is no ssh-agent"
    elif (public := _public_half(path, data)) is None:
        why = f"it cannot be looked for there without its public half: ssh-keygen -yf '{path}' > '{path}.pub'"
    else:
        why = f"which does not answer, or does not hold it: ssh-add '{path}'"
        try:
            for key in paramiko.Agent().get_keys():
                if key.asbytes() == public:
                    return key
        except (OSError, ValueError, paramiko.SSHException):
            why = "which does not speak an agent's language: fix SSH_AUTH_SOCK"
    raise TestbedError(
        f"the key '{path}' has a passphrase; expected 'passphrase_from' in the testbed file, the name of an environment"
        f" variable that holds it, or the key in ssh-agent ({why})"
    )


def _public_half(path: Path, data: bytes) -> bytes | None:
    """The public key: in OpenSSH's format it is readable in a locked key, too; else the file ``….pub`` beside it."""
    try:
        if b"BEGIN OPENSSH PRIVATE KEY" in data:
            body = b"".join(line for line in data.splitlines() if not line.startswith(b"-----"))
            message = paramiko.Message(base64.b64decode(body).removeprefix(b"openssh-key-v1\0"))
            for _ in ("cipher", "kdf", "kdf options"):
                message.get_binary()
            message.get_int()
            return message.get_binary()
        return base64.b64decode(path.with_name(path.name + ".pub").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
