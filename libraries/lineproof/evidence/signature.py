"""A detached Ed25519 signature over a run's manifest, in minisign's format: ``manifest.json.minisig``.

Anybody can check it without Lineproof: ``minisign -V -m manifest.json -P KEY``. The manifest has the sums of all files
of the run. The trusted comment, which is signed too, has the verdicts and the sums of the sheets.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import __version__
from ..errors import ConfigError, TestbedError
from ..files import read_file
from ..system.installed import remedy
from ..visible import shortened
from .integrity import ADDED, CHANGED, MISSING, Alteration
from .run_files import MANIFEST_FILE, SHEETS, SIGNATURE, sha256_of

LARGEST_KEY = 4096
"""Bytes of a file with a key; minisign's have some 300."""

LARGEST_SIGNATURE = 16 << 10
"""Bytes; a trusted comment has at most 8192."""

_COMMENT = "signature by lineproof signoff"
"""The first line, which the signature does not cover."""

_OURS = "lineproof"
"""Name of the first field of the trusted comment: our version."""

_KEY = re.compile(r"RW[A-Za-z0-9+/]{54}")
"""A public key as text; the first two characters say Ed25519."""

_SHEET = re.compile(rf"({'|'.join(map(re.escape, SHEETS))}):([0-9a-f]{{64}})")


@dataclass(frozen=True)
class PublicKey:
    """A public key: its ``text``, as minisign's ``-P`` takes it, and its ``id``, as minisign prints it."""

    text: str

    @property
    def id(self) -> str:
        """16 digits."""
        return _id(base64.b64decode(self.text)[2:10])


@dataclass(frozen=True)
class Signed:
    """A signature that was found. ``checked``: with a public key, and it is good. ``comment``: the signed one."""

    key_id: str
    comment: str
    checked: bool

    def __str__(self) -> str:
        state = "good" if self.checked else "not checked, as no --public-key was given"
        return f"signature of key {self.key_id}: {state}; it says: {shortened(self.comment, 600)}"


class SecretKey:
    """A minisign secret key that is read from the file *path*; use as a context manager, which wipes it.

    *password*: asked for where the key has one. No message has it. Raises ConfigError and TestbedError.
    """

    def __init__(self, path: Path) -> None:
        self._path, minisign = path, _library()
        try:
            self._key: Any = minisign.SecretKey.from_bytes(read_file(path, LARGEST_KEY))
        except ValueError as error:
            raise ConfigError(f"is no secret key of minisign: {error}; expected one of 'minisign -G'", path) from None

    def __enter__(self) -> SecretKey:
        return self

    def __exit__(self, *_: object) -> None:
        self._key.wipe()

    @property
    def needs_password(self) -> bool:
        """Return whether it is encrypted."""
        return bool(self._key.is_encrypted())

    def unlock(self, password: str) -> None:
        """Decrypt it, which takes seconds and, as minisign has it, 1 GiB. Raises ConfigError."""
        try:
            self._key.decrypt(password)
        except ValueError as error:
            raise ConfigError(f"cannot be decrypted: {error}", self._path) from None
        except MemoryError:
            raise ConfigError("cannot be decrypted: that takes 1 GiB of memory", self._path) from None

    @property
    def public_key(self) -> PublicKey:
        """The key that its signatures are checked with; of an encrypted one only once it is unlocked."""
        return PublicKey(self._key.get_public_key().to_base64().decode())

    def sign(self, content: bytes, fields: Mapping[str, str]) -> bytes:
        """The signature file of *content*. The *fields* are its trusted comment, which is signed too.

        They are ``name:value`` with tabs between, as in minisign's own comments; what is not ASCII is escaped.
        """
        text = "\t".join(f"{name}:{value}" for name, value in {_OURS: __version__, **fields}.items())
        comment = "".join(each if each == "\t" or " " <= each < "\x7f" else ascii(each)[1:-1] for each in text)
        return bytes(self._key.sign(content, untrusted_comment=_COMMENT, trusted_comment=comment)) + b"\n"


def read_public_key(words: str) -> PublicKey:
    """The public key that *words* are, or that is in the file of that name. Raises ConfigError."""
    text, path = words.strip(), None
    if not _KEY.fullmatch(text):
        path = Path(words)
        lines = read_file(path, LARGEST_KEY).decode(errors="replace").split("\n")
        text = lines[1].strip() if len(lines) > 1 and lines[0].startswith("untrusted comment: ") else lines[0].strip()
    if not _KEY.fullmatch(text):
        raise ConfigError("is no public key of minisign; expected 56 characters from 'RW' on, or their file", path)
    return PublicKey(text)


def check_signature(
    folder: Path, key: PublicKey | None, path: Path | None = None
) -> tuple[Signed | None, tuple[Alteration, ...]]:
    """The signature over the manifest of the run in *folder*, and what is wrong with it or with what it names.

    *path* of the signature, in the folder by default; the sheets are beside it. Without a *key* it is read only.
    Raises TestbedError where the library is missing.
    """
    found = path or folder / SIGNATURE
    name = found.name if found.parent == folder else str(found)
    if not found.is_file() or found.is_symlink():
        there = found.exists() or found.is_symlink()
        wanted = key is not None or path is not None or there
        words = "is no regular file" if there else f"{MISSING}: nobody has signed this run"
        return None, ((Alteration(name, words),) if wanted else ())
    minisign = _library()
    try:
        content = read_file(found, LARGEST_SIGNATURE)
        signature = minisign.Signature.from_bytes(content)
        own = bytes(signature) + b"\n"
    except (ValueError, ConfigError) as error:
        return None, (Alteration(name, f"{CHANGED}: it is no signature of minisign ({_reason(error)})"),)
    comment = str(signature.trusted_comment)
    key_id = _id(base64.b64decode(own.split(b"\n")[1])[2:10])
    altered = [] if own == content else [Alteration(name, f"{CHANGED}: it is not as minisign writes signatures")]
    if own == content and comment.startswith(f"{_OURS}:") and signature.untrusted_comment != _COMMENT:
        altered.append(Alteration(name, f"{CHANGED}: its first line is not '{_COMMENT}'", 1))
    if key is not None:
        altered += _wrong(minisign, folder, name, signature, key_id, key)
    signed = Signed(key_id, comment, key is not None and not altered)
    sheets = dict(_SHEET.findall(comment))
    if comment.startswith(f"{_OURS}:"):  # minisign's own names no sheet
        others = [sheet for sheet in SHEETS if sheet not in sheets and found.with_name(sheet).exists()]
        altered += [Alteration(sheet, f"{ADDED} since it was signed: the signature is not over it") for sheet in others]
    for sheet, digest in sheets.items():
        beside = found.with_name(sheet)
        if beside.is_symlink() or not beside.is_file():
            altered.append(Alteration(sheet, MISSING))
        elif sha256_of(beside) != digest:
            altered.append(Alteration(sheet, f"{CHANGED} since it was signed"))
    return signed, tuple(altered)


def _wrong(
    minisign: ModuleType, folder: Path, name: str, signature: Any, key_id: str, key: PublicKey
) -> Iterator[Alteration]:
    """Why *signature* is not one of *key* over the manifest."""
    manifest = folder / MANIFEST_FILE
    if key_id != key.id:
        yield Alteration(name, f"is of key {key_id}, and the key to check it with is {key.id}")
    elif manifest.is_file() and not manifest.is_symlink():
        try:
            minisign.PublicKey.from_base64(key.text).verify(read_file(manifest), signature)
        except ValueError:
            words = f"is no signature of key {key_id} over {MANIFEST_FILE}: one of the two files was changed"
            yield Alteration(name, words)
    else:
        yield Alteration(name, f"signs {MANIFEST_FILE}, which is missing")


def _library() -> ModuleType:
    with contextlib.suppress(ImportError):
        found = importlib.import_module("minisign")
        if hasattr(found, "SecretKey"):  # not another package of that name
            return found
    raise TestbedError(f"a signature needs the package py-minisign: {remedy('signoff')}")


def _id(raw: bytes) -> str:
    return f"{int.from_bytes(raw, 'little'):016X}"


def _reason(error: Exception) -> str:
    return shortened(str(error).rpartition(": ")[2])
