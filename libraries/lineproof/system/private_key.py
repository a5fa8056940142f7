"""Private keys in files: OpenSSH's format and PEM, with a passphrase or without; a locked one may be in ssh-agent."""

from __future__ import annotations

import contextlib
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
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)
from paramiko.pkey import PublicBlob

from ..errors import TestbedError
from ..files import write_whole
from .folders import ELSEWHERE

_KINDS = (
    (Ed25519PrivateKey, paramiko.Ed25519Key),
    (EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (RSAPrivateKey, paramiko.RSAKey),
)
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")
_FIX = "fix 'key' in the testbed file"
_NOT_HELD = "which does not answer, or does not hold it: ssh-add"
_NAMED = "'passphrase_from' in the testbed file, the name of an environment variable that holds it"


def load_key(path: Path, passphrase: Callable[[], str] | None) -> paramiko.PKey:
    """The private key in *path*. *passphrase* is asked only for a key that has one; None: ssh-agent must hold it.

    A public key: ssh-agent must hold its private half. Raises TestbedError, which never contains the passphrase.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        # not shown where there is no such file: it may be the secret itself, put in the place of its path
        shown = f" '{path}'" if os.path.exists(path) else ""  # noqa: PTH110  (no error for what cannot be a path)
        raise TestbedError(f"the key{shown} cannot be read ({error.strerror}); {_FIX}") from None
    if data.startswith(_PUBLIC):
        problem = f"the key '{path}' is a public one; expected the private half in ssh-agent"
        return _from_agent(problem, path, f"{_NOT_HELD} with its private half")
    key = _parsed(str(path), data, passphrase)
    if key is None:
        public = path.with_name(f"{path.name}.pub")
        missing = f"it cannot be looked for there without its public half: ssh-keygen -yf '{path}' > '{public}'"
        problem = f"the key '{path}' has a passphrase; expected {_NAMED}, or the key in ssh-agent"
        return _from_agent(problem, public, f"{_NOT_HELD} '{path}'" if public.exists() else missing)
    certificate = path.with_name(f"{path.name}-cert.pub")
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
    key = _parsed(name, text.strip().encode() + b"\n", passphrase)
    if key is None:
        raise TestbedError(f"the key '{name}' has a passphrase; expected {_NAMED}")
    return key


def _parsed(name: str, data: bytes, passphrase: Callable[[], str] | None) -> paramiko.PKey | None:
    """The key in *data*; None if it has a passphrase that nobody gives. Raises TestbedError."""
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in data else load_pem_private_key
    problem = f"the key '{name}' is damaged, or not a private key; {_FIX}"
    try:
        try:
            key = load(data, None)
        except TypeError:  # it has a passphrase
            if passphrase is None:
                return None
            problem = (
                f"the passphrase for the key '{name}' is wrong (or the key is damaged); fix the variable that"
                " 'passphrase_from' in the testbed file names"
            )
            key = load(data, os.fsencode(passphrase()))
    except (TypeError, ValueError):
        raise TestbedError(problem) from None
    except UnsupportedAlgorithm:
        key = None
    for kind, make in _KINDS:
        if isinstance(key, kind):
            text = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")
            return make.from_private_key(io.StringIO(text))
    raise TestbedError(
        f"the key '{name}' is of a kind or encrypted in a way that is not supported; expected an ed25519, ecdsa or rsa"
        f" key; {_FIX}"
    )


def _from_agent(problem: str, public: Path, why: str) -> paramiko.PKey:
    """The key with the half in the file *public* as ssh-agent holds it, never another. Raises TestbedError."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        why = "SSH_AUTH_SOCK is not set, so there is no ssh-agent"
    # the last one: what is there speaks no agent's language
    with contextlib.suppress(OSError, ValueError, paramiko.SSHException):
        blob = PublicBlob.from_file(str(public)).key_blob
        for key in paramiko.Agent().get_keys():
            if key.asbytes() == blob:
                return key
    raise TestbedError(f"{problem} ({why})")


def make_key(path: Path) -> str:
    """Write a new Ed25519 key to *path*; returns its public half, ``ssh-ed25519 AAAA…``. Raises TestbedError."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(path, private, ELSEWHERE, 0o600)
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
