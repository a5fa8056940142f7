"""Keys of SSH: a user's private ones in files, and the host keys that a ``known_hosts`` file holds.

Private keys are in OpenSSH's format or PEM, with a passphrase or without; a locked one may be in ssh-agent. The format
of ``known_hosts`` is that of sshd(8).
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
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
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
from paramiko.pkey import PublicBlob

from ..errors import TestbedError
from ..files import write_whole
from .folders import ELSEWHERE
from .login import Login

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


REVOKED, AUTHORITY = "@revoked", "@cert-authority"

_SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""The algorithms that a server may sign with, by the kind of its key; every other kind: what it is called itself."""


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A line about a host: its *number*, a marker or "", and the key."""

    number: int
    marker: str
    key: paramiko.PKey


def host_name(host: str, port: int) -> str:
    """A host as ``known_hosts`` writes it: ``[host]:2222``, or ``host`` where the port is 22."""
    return (host if port == 22 else f"[{host}]:{port}").lower()


def read_known_hosts(path: Path, host: str, port: int) -> tuple[KnownHost, ...]:
    """The lines of *path* about a host; none if it is missing. Raises TestbedError where it cannot be read.

    A line that is broken, or has a key of a kind that is not supported, is of no host, as for ssh(1).
    """
    name = host_name(host, port)
    try:
        lines = path.read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TestbedError(
            f"{path}: the known_hosts file cannot be read ({error.strerror}); fix 'known_hosts' in the testbed file"
        ) from None
    entries = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        marker = words.pop(0) if words and words[0] in (REVOKED, AUTHORITY) else ""
        with contextlib.suppress(paramiko.SSHException, InvalidHostKey, ValueError, LookupError, AssertionError):
            entry = HostKeyEntry.from_line(" ".join(words[:3]))
            if entry is not None and entry.key is not None and _is_of(entry.hostnames or (), name):
                entries.append(KnownHost(number, marker, entry.key))
    return tuple(entries)


def known_fingerprints(path: Path, host: str, port: int) -> frozenset[str]:
    """Return those of the keys that *path* holds for a host. Raises TestbedError."""
    return frozenset(line.key.fingerprint for line in read_known_hosts(path, host, port) if not line.marker)


def write_known_hosts(path: Path, host: str, port: int, public: str) -> None:
    """Write a ``known_hosts`` file with one server's *public* key, ``ssh-ed25519 AAAA…`` with or without a comment."""
    write_whole(path, f"{host_name(host, port)} {' '.join(public.split()[:2])}\n", ELSEWHERE)


def _is_of(patterns: Sequence[str], name: str) -> bool:
    """Return whether *patterns* of a line are those of the host *name* (:func:`host_name`)."""
    if any(_matches(pattern[1:], name) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|"):
        return paramiko.HostKeys.hash_host(name, pattern) == pattern
    # brackets are those around a host with a port
    return fnmatchcase(name, pattern.lower().replace("[", "[[]"))


class HostKeyCheck(paramiko.MissingHostKeyPolicy):
    """Lets a client log in only where the host shows a key that the testbed file or its known_hosts file holds."""

    def __init__(self, login: Login, machine: str) -> None:
        """*machine*: the host in words. Raises TestbedError for a file that cannot be read."""
        self._path, self._name = login.known_hosts_path, host_name(login.host, login.port)
        self._machine, self._fingerprints = machine, login.host_keys
        self._lines = () if login.host_keys else read_known_hosts(self._path, login.host, login.port)

    def in_order(self, kinds: Sequence[str]) -> list[str]:
        """*kinds* of signatures, those of the known keys first: a host with several keys shows one that is known."""
        known = [line.key.get_name() for line in self._lines if not line.marker]
        first = {name for kind in known for name in _SIGNATURES.get(kind, (kind,))}
        return sorted(kinds, key=lambda kind: kind not in first)

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise TestbedError unless *key* is known."""
        kind = key.get_name()
        shown, new = f"{kind} {key.fingerprint}", f"{self._name} {kind} {key.get_base64()}"
        known = [line for line in self._lines if not line.marker]
        if revoked := [line.number for line in self._lines if line.marker == REVOKED and line.key == key]:
            raise TestbedError(
                f"{self._machine} shows a host key that line {revoked[0]} of '{self._path}' revokes ({shown}): whoever"
                " has it may be somebody else; give the machine a new host key, and put that into the file"
            )
        if key.fingerprint in self._fingerprints or any(line.key == key for line in known):
            return
        another = f"{self._machine} shows another host key than"
        if self._fingerprints:
            problem, fix = f"{another} 'host_key' of the testbed file says", "write its fingerprint into 'host_key'"
        elif known:
            line = next((line for line in known if line.key.get_name() == kind), known[0])
            held = f"{line.key.get_name()} {line.key.fingerprint}"
            problem = f"{another} '{self._path}' holds in line {line.number}, {held}"
            fix = f"replace that line by: {new}"
        else:
            authority = next((line.number for line in self._lines if line.marker == AUTHORITY), None)
            trusted = f" (line {authority} trusts an authority for it, and certificates of hosts are not supported)"
            problem = f"the host key of {self._machine} is not in '{self._path}'{trusted if authority else ''}"
            fix = f"add this line to the file: {new}"
        name = f"ssh_host_{kind.removeprefix('ssh-').partition('-')[0]}_key.pub"
        raise TestbedError(
            f"{problem}: {shown}; compare with 'ssh-keygen -lf /etc/ssh/{name}', or with what such a router shows of"
            f" its key, at its console, and only if that shows the same, so that nobody is in the middle, {fix}"
        )
