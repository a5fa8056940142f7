"""Keys of SSH: a user's private ones, and the host keys that a ``known_hosts`` file holds.

Private keys are in OpenSSH's format or PEM, with a passphrase or without; a locked one may be in ssh-agent.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
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
from ..files import exists, write_whole
from .folders import ELSEWHERE
from .login import Login

_KINDS = (
    (Ed25519PrivateKey, paramiko.Ed25519Key),
    (EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (RSAPrivateKey, paramiko.RSAKey),
)
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")
_FIX = "fix 'key' in the testbed file"


def private_key(login: Login, who: str) -> paramiko.PKey | None:
    """Return the key that *login* to *who* names, if need be from ssh-agent; None: it names a password.

    Raises TestbedError, which never contains a secret.
    """
    if login.key_from:
        name, data, public = login.key_from, login.secret(login.key_from, f"key for {who}").strip().encode(), None
    elif login.key is not None:
        name, data, public = str(login.key), _content(login.key, who), login.key.with_name(f"{login.key.name}.pub")
    else:
        return None
    if data.startswith(_PUBLIC):
        return _held_by_agent(login.key, f"the key '{name}' is a public one; expected its private half in ssh-agent")
    load = load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY" in data else load_pem_private_key
    problem = f"the key '{name}' is damaged, or not a private key; {_FIX}"
    try:
        try:
            loaded = load(data + b"\n", None)
        except TypeError:  # it has a passphrase
            if login.passphrase_from is None:
                expected = f"in 'passphrase_from' of the testbed file, or the key in ssh-agent, with '{public}' here"
                return _held_by_agent(public, f"the key '{name}' has a passphrase; expected its variable {expected}")
            problem = f"the passphrase in '{login.passphrase_from}' for the key '{name}' is wrong; fix that variable"
            passphrase = login.secret(login.passphrase_from, f"passphrase of '{name}'")
            loaded = load(data + b"\n", os.fsencode(passphrase))
    except (TypeError, ValueError):
        raise TestbedError(problem) from None
    except UnsupportedAlgorithm:
        loaded = None
    for kind, make in _KINDS:
        if isinstance(loaded, kind):
            text = loaded.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode("ascii")
            return make.from_private_key(io.StringIO(text))
    raise TestbedError(
        f"the key '{name}' is of a kind or encrypted in a way that is not supported; expected ed25519, ecdsa or rsa;"
        f" {_FIX}"
    )


def _content(path: Path, who: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        # a path of no file is shown as far as it exists: the rest may be the secret itself, put in its place
        known = next(each for each in (path, *path.parents) if exists(each))
        inside = "" if known == path else "in "
        raise TestbedError(f"the key for {who} cannot be read ({error.strerror}: {inside}'{known}'); {_FIX}") from None


def _held_by_agent(public: Path | None, problem: str) -> paramiko.PKey:
    """Return ssh-agent's key for the half in the file *public*. Raises TestbedError: *problem*."""
    # ValueError, SSHException: what listens there speaks no agent's language
    with contextlib.suppress(OSError, ValueError, paramiko.SSHException):
        blob = PublicBlob.from_file(str(public)).key_blob
        for key in paramiko.Agent().get_keys():
            if key.asbytes() == blob:
                return key
    raise TestbedError(f"{problem}, which holds no such key (ssh-add -l)")


def make_key(path: Path) -> str:
    """Write a new Ed25519 key to *path*; return its half ``ssh-ed25519 AAAA…``. Raises TestbedError."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(path, private, ELSEWHERE, 0o600)
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")


_REVOKED = "@revoked"

_SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""The algorithms that a server may sign with, by the kind of its key; every other kind: what it is called itself."""


def host_name(host: str, port: int) -> str:
    """Return a host as ``known_hosts`` writes it: ``[host]:2222``, or ``host`` where the port is 22."""
    return (host if port == 22 else f"[{host}]:{port}").lower()


def write_known_hosts(path: Path, host: str, port: int, public: str) -> None:
    """Write a ``known_hosts`` file with one server's *public* key, ``ssh-ed25519 AAAA… comment``."""
    write_whole(path, f"{host_name(host, port)} {' '.join(public.split()[:2])}\n", ELSEWHERE)


def known_keys(login: Login) -> Mapping[int, paramiko.PKey]:
    """Return the keys in ``known_hosts`` for the machine of *login*, by the number of the line.

    Its name is there as it is, or hashed; a line with a pattern is of no host. Raises TestbedError.
    """
    name = host_name(login.address, login.port)

    def is_meant(written: str) -> bool:
        hashed = written.startswith("|1|") and paramiko.HostKeys.hash_host(name, written) == written
        return hashed or written.lower() == name

    keys = dict[int, paramiko.PKey]()
    for number, line in _lines(login.known_hosts):
        with contextlib.suppress(*_BROKEN):
            entry = HostKeyEntry.from_line(" ".join(line.split()[:3]))
            if entry and entry.key and any(map(is_meant, entry.hostnames or ())):
                keys[number] = entry.key
    return keys


_BROKEN = (paramiko.SSHException, InvalidHostKey, ValueError, LookupError, AssertionError)
"""Errors of paramiko's at a line that is broken: it is of no host, as for ssh(1)."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a ``known_hosts`` file, from 1; none if it is missing. Raises TestbedError."""
    try:
        yield from enumerate(path.read_text(errors="replace").split("\n"), 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TestbedError(
            f"{path}: the known_hosts file cannot be read ({error.strerror}); fix 'known_hosts' in the testbed file"
        ) from None


class HostKeyCheck(paramiko.MissingHostKeyPolicy):
    """Lets a client log in only to a host whose key the testbed file or its known_hosts file holds."""

    def __init__(self, login: Login, machine: str) -> None:
        """Read the known keys; *machine*: the host in words. Raises TestbedError for an unreadable file."""
        self._login, self._machine = login, machine
        self._known = {} if login.host_key else known_keys(login)

    def in_order(self, kinds: Sequence[str]) -> list[str]:
        """Return *kinds* of signatures, known keys' first, so that a host with several shows a known one."""
        known = [key.get_name() for key in self._known.values()]
        first = {name for kind in known for name in _SIGNATURES.get(kind, (kind,))}
        return sorted(kinds, key=lambda kind: kind not in first)

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise TestbedError unless *key* is known, and nobody has revoked it."""
        path, kind = self._login.known_hosts, key.get_name()
        another = f"{self._machine} shows another host key than"
        if self._login.host_key:
            is_known = key.fingerprint in self._login.host_key
            problem, fix = f"{another} 'host_key' of the testbed file says", "write its fingerprint into 'host_key'"
        else:
            is_known, new = key in self._known.values(), key.get_base64()
            revoked = [number for number, line in _lines(path) if line.startswith(_REVOKED) and new in line.split()]
            if revoked:
                raise TestbedError(
                    f"{self._machine} shows a host key that line {revoked[0]} of '{path}' revokes ({key.fingerprint}):"
                    " whoever has it may be somebody else; give the machine a new one, and put that into the file"
                )
            problem = f"the host key of {self._machine} is not in '{path}'"
            fix = f"add this line to the file: {host_name(self._login.address, self._login.port)} {kind} {new}"
            # the line of its own kind, if there is one
            for number, known in sorted(self._known.items(), key=lambda line: line[1].get_name() != kind)[:1]:
                held = f"{known.get_name()} {known.fingerprint}"
                problem = f"{another} '{path}' holds in line {number}, {held}"
                fix = fix.replace("add this line to the file", "replace that line by")
        if not is_known:
            name = f"ssh_host_{kind.removeprefix('ssh-').partition('-')[0]}_key.pub"
            raise TestbedError(
                f"{problem}: {kind} {key.fingerprint}; compare with 'ssh-keygen -lf /etc/ssh/{name}', or with what such"
                " a router shows of its key, at its console, and only if that shows the same, so that nobody is in the"
                f" middle, {fix}"
            )
