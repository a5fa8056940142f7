"""Host keys: what a ``known_hosts`` file says of a host, in the format of sshd(8), and what to do where it says no."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko

from ..errors import TestbedError
from .login import Login

REVOKED, AUTHORITY = "@revoked", "@cert-authority"

_SIGNATURES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""What a server may sign with, by the kind of its key; every other kind: what it is called itself."""


@dataclass(frozen=True, slots=True)
class KnownHost:
    """One line: its *number*, a marker or "", patterns of host names, kind of key, the key itself."""

    number: int
    marker: str
    patterns: tuple[str, ...]
    kind: str
    blob: bytes

    def is_of(self, name: str) -> bool:
        """Return whether the line is of the host *name* (:func:`host_name`)."""
        if any(_matches(pattern[1:], name) for pattern in self.patterns if pattern.startswith("!")):
            return False
        return any(_matches(pattern, name) for pattern in self.patterns)


def host_name(host: str, port: int) -> str:
    """A host as ``known_hosts`` writes it: ``[host]:2222``, or ``host`` where the port is 22."""
    return (host if port == 22 else f"[{host}]:{port}").lower()


def fingerprint(blob: bytes) -> str:
    """The fingerprint of a public key as ``ssh`` shows it: ``SHA256:…``."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def read_known_hosts(path: Path) -> tuple[KnownHost, ...]:
    """The lines of *path*; none if it is missing. Raises TestbedError naming the line that is broken."""
    try:
        text = path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TestbedError(
            f"{path}: the known_hosts file cannot be read ({error.strerror}); fix 'known_hosts' in the testbed file"
        ) from None
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            found.append(_parsed(number, words))
        except ValueError as error:
            raise TestbedError(
                f"{path}:{number}: this line of the known_hosts file {error}; expected 'host ssh-ed25519 AAAA…'; fix or"
                " remove it"
            ) from None
    return tuple(found)


def known_fingerprints(path: Path, host: str, port: int) -> frozenset[str]:
    """Return those of the keys that *path* holds for a host. Raises TestbedError naming a line that is broken."""
    name = host_name(host, port)
    return frozenset(fingerprint(line.blob) for line in read_known_hosts(path) if not line.marker and line.is_of(name))


def _parsed(number: int, words: list[str]) -> KnownHost:
    """Raises ValueError with the rest of a sentence about the line."""
    marker = words.pop(0) if words[0].startswith("@") else ""
    if marker not in ("", REVOKED, AUTHORITY):
        raise ValueError(f"has the unknown marker '{marker}'")
    if len(words) < 3:
        raise ValueError("is not complete")
    names, kind, text = words[:3]
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("has no key in base64") from None
    size = int.from_bytes(blob[:4], "big")
    if blob[4 : 4 + size] != kind.encode() or len(blob) <= 4 + size:
        raise ValueError(f"has a damaged key: it is not one of the kind '{kind}'")
    patterns = tuple(names.split(","))
    for pattern in patterns:
        if pattern.startswith("|"):
            _unhashed(pattern)
    return KnownHost(number, marker, patterns, kind, blob)


def _unhashed(pattern: str) -> tuple[bytes, bytes]:
    """Salt and hash of ``|1|salt|hash``. Raises ValueError."""
    parts = pattern.split("|")
    try:
        if len(parts) == 4 and parts[1] == "1":
            return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ValueError("has a damaged hash of a host name")


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("|"):
        salt, wanted = _unhashed(pattern)
        return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), wanted)
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in re.split(r"([*?])", pattern))
    return re.fullmatch("".join(parts), name, re.IGNORECASE) is not None


class HostKeyCheck(paramiko.MissingHostKeyPolicy):
    """Lets a client log in only where the host shows a key that the testbed file or its known_hosts file holds."""

    def __init__(self, login: Login, machine: str) -> None:
        """*machine*: the host in words. Raises TestbedError for a file that cannot be read."""
        self._path, self._name = login.known_hosts_path, host_name(login.host, login.port)
        self._machine, self._fingerprints = machine, login.host_keys
        lines = () if login.host_keys else read_known_hosts(self._path)
        self._lines = tuple(line for line in lines if line.is_of(self._name))

    def in_order(self, kinds: Sequence[str]) -> list[str]:
        """*kinds* of signatures, those of the known keys first: a host with several keys shows one that is known."""
        known = [line.kind for line in self._lines if not line.marker]
        first = [name for kind in known for name in _SIGNATURES.get(kind, (kind,)) if name in kinds]
        return list(dict.fromkeys([*first, *kinds]))

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Raise TestbedError unless *key* is known."""
        blob, kind = key.asbytes(), key.get_name()
        shown, new = f"{kind} {fingerprint(blob)}", f"{self._name} {kind} {key.get_base64()}"
        if fingerprint(blob) in self._fingerprints:
            return
        known = [line for line in self._lines if not line.marker]
        for line in self._lines:
            if line.marker == REVOKED and line.blob == blob:
                raise TestbedError(
                    f"{self._machine} shows a host key that line {line.number} of '{self._path}' revokes ({shown}):"
                    " whoever has it may be somebody else; give the machine a new host key, and put that into the file"
                )
        if any(line.blob == blob for line in known):
            return
        name = f"ssh_host_{_short(kind)}_key.pub"
        console = f"'ssh-keygen -lf /etc/ssh/{name}', or with what such a router shows of its key, at its console"
        if self._fingerprints:
            raise TestbedError(
                f"{self._machine} shows another host key than 'host_key' of the testbed file says: {shown}; it was"
                " exchanged or set up anew, or it has several keys, or somebody is in the middle; compare with"
                f" {console}, and only if that shows the same write its fingerprint into 'host_key'"
            )
        if known:
            line = next((line for line in known if line.kind == kind), known[0])
            raise TestbedError(
                f"{self._machine} shows another host key than '{self._path}' holds in line {line.number}: {shown}, and"
                f" the known one is {line.kind} {fingerprint(line.blob)}; it was exchanged or set up anew, or somebody"
                f" is in the middle; compare with {console}, and only if that shows the new key replace line"
                f" {line.number} by: {new}"
            )
        missing = "" if self._path.exists() else ", which is missing"
        authority = next((line.number for line in self._lines if line.marker == AUTHORITY), None)
        if authority is not None:
            missing = f" (line {authority} trusts an authority for it, and certificates of hosts are not supported)"
        raise TestbedError(
            f"the host key of {self._machine} is not in '{self._path}'{missing}; compare its fingerprint, {shown}, with"
            f" {console}, and if they are the same add this line to the file: {new}"
        )


def _short(kind: str) -> str:
    """The kind as in the names of sshd's key files."""
    return {"ssh-rsa": "rsa", "ssh-ed25519": "ed25519"}.get(kind, "ecdsa")
