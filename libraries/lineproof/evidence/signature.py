"""A detached Ed25519 signature over a run's manifest, in minisign's format: ``manifest.json.minisig``.

Anybody can check it without Lineproof: ``minisign -V -m manifest.json -P KEY``. The manifest has the sums of all files
of the run. The trusted comment, which is signed too, has the verdicts and the sums of the sheets.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

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

    @classmethod
    def of(cls, secret: Any) -> Self:
        """Return that of an open secret key."""
        return cls(secret.get_public_key().to_base64().decode())

    @property
    def id(self) -> str:
        """Return its 16 digits."""
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


@contextlib.contextmanager
def secret_key(path: Path, password: Callable[[], str]) -> Iterator[Any]:
    """Open minisign's secret key in the file *path*, and wipe it afterwards.

    *password*: called where the key has one; to decrypt it takes seconds and, as minisign has it, 1 GiB. No message has
    it. Raises ConfigError and TestbedError.
    """
    minisign, problem = _library(), "is no secret key of minisign"
    try:
        key = minisign.SecretKey.from_bytes(read_file(path, LARGEST_KEY))
        if key.is_encrypted():
            problem = "cannot be decrypted"
            key.decrypt(password())
    except (ValueError, MemoryError) as error:
        raise ConfigError(f"{problem}: {error or 'that takes 1 GiB of memory'}", path) from None
    try:
        yield key
    finally:
        key.wipe()


def sign(key: Any, content: bytes, fields: Mapping[str, str]) -> bytes:
    """Return the signature file of *content* by an open secret *key*. The *fields* are signed too, as its comment.

    They are ``name:value`` with tabs between, as in minisign's own comments; what is not ASCII is escaped.
    """
    text = "\t".join(f"{name}:{value}" for name, value in {_OURS: __version__, **fields}.items())
    comment = "".join(each if each == "\t" or " " <= each < "\x7f" else ascii(each)[1:-1] for each in text)
    return bytes(key.sign(content, untrusted_comment=_COMMENT, trusted_comment=comment)) + b"\n"


def read_public_key(words: str) -> PublicKey:
    """Return the public key that *words* are, or that is in the file of that name. Raises ConfigError."""
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
    """Return the signature over the manifest of the run in *folder*, and what is wrong with it or with what it names.

    *path* of the signature, in the folder by default; the sheets are beside it. Without a *key* it is read only.
    Raises TestbedError where the library is missing.
    """
    found = path or folder / SIGNATURE
    name = found.name if found.parent == folder else str(found)
    if found.is_symlink() or (found.exists() and not found.is_file()):
        return None, (Alteration(name, "is no regular file"),)
    if not found.exists():
        wanted = key is not None or path is not None
        return None, (Alteration(name, f"{MISSING}: nobody has signed this run"),) * wanted
    minisign = _library()
    try:
        content = read_file(found, LARGEST_SIGNATURE)
        signature = minisign.Signature.from_bytes(content)
        own = bytes(signature) + b"\n"
    except (ValueError, ConfigError) as error:
        reason = shortened(str(error).rpartition(": ")[2])
        return None, (Alteration(name, f"{CHANGED}: it is no signature of minisign ({reason})"),)
    comment, key_id = str(signature.trusted_comment), _id(base64.b64decode(own.split(b"\n")[1])[2:10])
    is_ours = comment.startswith(f"{_OURS}:")
    altered = []
    if own != content or (is_ours and signature.untrusted_comment != _COMMENT):
        altered.append(Alteration(name, f"{CHANGED}: it is not as it was written"))
    if key is not None and (words := _wrong(minisign, folder / MANIFEST_FILE, signature, key_id, key)):
        altered.append(Alteration(name, words))
    signed = Signed(key_id, comment, key is not None and not altered)
    sheets = dict(_SHEET.findall(comment))
    for sheet in SHEETS if is_ours else ():  # minisign's own comment names no sheet
        beside = found.with_name(sheet)
        if sheet in sheets and (beside.is_symlink() or not beside.is_file()):
            altered.append(Alteration(sheet, MISSING))
        elif sheet in sheets and sha256_of(beside) != sheets[sheet]:
            altered.append(Alteration(sheet, f"{CHANGED} since it was signed"))
        elif sheet not in sheets and beside.exists():
            altered.append(Alteration(sheet, f"{ADDED} since it was signed: the signature is not over it"))
    return signed, tuple(altered)


def _wrong(minisign: ModuleType, manifest: Path, signature: Any, key_id: str, key: PublicKey) -> str:
    """Return why *signature* is not one of *key* over the *manifest*; "" if it is."""
    if key_id != key.id:
        return f"is of key {key_id}, and the key to check it with is {key.id}"
    if not manifest.is_file() or manifest.is_symlink():
        return f"signs {MANIFEST_FILE}, which is missing"
    with contextlib.suppress(ValueError):
        minisign.PublicKey.from_base64(key.text).verify(read_file(manifest), signature)
        return ""
    return f"is no signature of key {key_id} over {MANIFEST_FILE}: one of the two files was changed"


def _library() -> ModuleType:
    with contextlib.suppress(ImportError):
        found = importlib.import_module("minisign")
        if hasattr(found, "SecretKey"):  # not another package of that name
            return found
    raise TestbedError(f"a signature needs the package py-minisign: {remedy('signoff')}")


def _id(raw: bytes) -> str:
    return f"{int.from_bytes(raw, 'little'):016X}"
