"""A detached Ed25519 signature over a run's manifest, in minisign's format, and the check of a run with its signature.

The signature is ``manifest.json.minisig``. Anybody can check it without Lineproof: ``minisign -V -m manifest.json -P
KEY``. The manifest has the sums of all files of the run. The trusted comment, which is signed too, has the verdicts and
the sums of the sheets.
"""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ... import __version__
from ...errors import ConfigError, TestbedError
from ...files import read_file
from ...system.children import remedy
from ...visible import shortened
from ..run_files import (
    ADDED,
    ALLURE,
    CHANGED,
    MANIFEST_FILE,
    MISSING,
    PAGE,
    SHEETS,
    SIGNATURE,
    STUDY_PAGE,
    Alteration,
    Integrity,
    check_integrity,
    sha256_of,
)

LARGEST = 16 << 10
"""Bytes of a key or a signature; a trusted comment has at most 8192."""

_COMMENT, _OURS = "signature by lineproof signoff", "lineproof"
"""The first line, which the signature does not cover; the name of the first field of the trusted comment."""

_KEY = re.compile(r"^RW[A-Za-z0-9+/]{54}(?=\s*$)", re.MULTILINE)
"""A public key as text; the first two characters say Ed25519."""


@dataclass(frozen=True)
class Signed:
    """A signature that was found. ``checked``: with a public key, and it is good. ``comment``: the signed one."""

    key_id: str
    comment: str
    checked: bool

    def __str__(self) -> str:
        state = "good" if self.checked else "not checked, as no --public-key was given"
        return f"signature of key {self.key_id}: {state}; it says: {shortened(self.comment, 600)}"


def secret_key(path: Path, password: Callable[[], str]) -> Any:
    """Return minisign's secret key in the file *path*: a context, at whose end it is wiped.

    *password*: called where the key has one; to decrypt it takes seconds and, as minisign has it, 1 GiB. No message has
    it. Raises ConfigError and TestbedError.
    """
    minisign, problem = _library(), "is no secret key of minisign"
    try:
        key = minisign.SecretKey.from_bytes(read_file(path, LARGEST))
        if key.is_encrypted():
            problem = "cannot be decrypted"
            key.decrypt(password())
    except (ValueError, MemoryError) as error:
        raise ConfigError(f"{problem}: {error or 'that takes 1 GiB of memory'}", path) from None
    return key


def sign(key: Any, content: bytes, fields: Mapping[str, str]) -> bytes:
    """Return the signature file of *content* by an open secret *key*. The *fields* are signed too, as its comment.

    They are ``name:value`` with tabs between, as in minisign's own comments; what is not ASCII is escaped.
    """
    text = "\t".join(f"{name}:{value}" for name, value in {_OURS: __version__, **fields}.items())
    comment = "".join(sign if sign == "\t" or " " <= sign < "\x7f" else ascii(sign)[1:-1] for sign in text)
    return bytes(key.sign(content, untrusted_comment=_COMMENT, trusted_comment=comment)) + b"\n"


def public_key(secret: Any) -> str:
    """Return the public key of an open *secret* one, as minisign's ``-P`` takes it."""
    return str(secret.get_public_key().to_base64().decode())


def read_public_key(text: str) -> str:
    """Return the public key *text*, or that in the file of this name. Raises ConfigError."""
    path = None if _KEY.fullmatch(text) else Path(text)
    known = _KEY.search(read_file(path, LARGEST).decode(errors="replace") if path else text)
    if known is None:
        raise ConfigError("is no public key of minisign; expected 56 characters from 'RW' on, or their file", path)
    return known[0]


def key_id(text: str | bytes) -> str:
    """Return the 16 digits by which minisign names the key of *text*, a public key or a signature's second line."""
    return f"{int.from_bytes(base64.b64decode(text)[2:10], 'little'):016X}"


def verify(folder: Path, key: str | None = None, signature: Path | None = None) -> tuple[Integrity, Signed | None]:
    """Return the state of the run in *folder* with all that was altered, and its signature, checked with *key*.

    Records that do not fit their schemas count as altered. *signature*: its file, ``manifest.json.minisig`` of the
    folder by default; None is returned without one that can be read. Raises ConfigError for what is no run, and
    TestbedError where the library for *key* is missing.
    """
    run = check_integrity(folder)
    notes, signed, wrong = list(run.notes), None, tuple[Alteration, ...]()
    try:
        signed, wrong = check_signature(folder, key, signature)
    except TestbedError as error:
        if key is not None:
            raise
        notes.append(f"{SIGNATURE} is not read: {error}")
    # nothing is judged by what was made from the records
    derived = ALLURE, PAGE, STUDY_PAGE, *(() if (folder / SIGNATURE).exists() else SHEETS)
    if names := " and ".join(name for name in derived if (folder / name).exists()):
        notes.append(f"{names}: not checked; made from the records, which can make it again")
    return replace(run, altered=(*run.altered, *wrong, *run.parsed()[1]), notes=tuple(notes)), signed


def check_signature(
    folder: Path, key: str | None, path: Path | None = None
) -> tuple[Signed | None, tuple[Alteration, ...]]:
    """Return the signature over the manifest of the run in *folder*, and what is wrong with it or with what it names.

    *path* of the signature, in the folder by default; the sheets are beside it. Without a public *key* it is read only.
    Raises TestbedError where the library is missing.
    """
    is_wanted, path = key is not None or path is not None, path or folder / SIGNATURE
    name = path.name if path.parent == folder else str(path)
    if not path.is_file():
        return None, (Alteration(name, f"{MISSING}: nobody has signed this run"),) * is_wanted
    minisign = _library()
    try:
        content = read_file(path, LARGEST)
        signature = minisign.Signature.from_bytes(content)
    except (ValueError, ConfigError) as error:
        reason = shortened(str(error).rpartition(": ")[2])
        return None, (Alteration(name, f"{CHANGED}: it is no signature of minisign ({reason})"),)
    comment, signer = str(signature.trusted_comment), key_id(content.split(b"\n")[1])
    is_ours = comment.startswith(f"{_OURS}:")  # minisign's own names no sheet
    problem = "" if key is None else _problem(minisign, folder / MANIFEST_FILE, signature, signer, key)
    # minisign takes other line ends too, and does not sign the first line
    if bytes(signature) + b"\n" != content or (is_ours and signature.untrusted_comment != _COMMENT):
        problem = f"{CHANGED}: it is not as it was written"
    altered = [Alteration(name, problem)] if problem else []
    altered += _altered_sheets(path.parent, comment) if is_ours else ()
    return Signed(signer, comment, key is not None and not problem), tuple(altered)


def _problem(minisign: ModuleType, manifest: Path, signature: Any, signer: str, key: str) -> str:
    """Return why *signature* is not one of *key* over the *manifest*; "" if it is."""
    if signer != key_id(key):
        return f"is of key {signer}, and the key to check it with is {key_id(key)}"
    with suppress(ValueError, ConfigError):
        minisign.PublicKey.from_base64(key).verify(read_file(manifest), signature)
        return ""
    return f"is no signature of key {signer} over {MANIFEST_FILE}: one of the two files was changed"


def _altered_sheets(folder: Path, comment: str) -> Iterator[Alteration]:
    for name in SHEETS:
        signed, sheet = re.search(rf"\t{re.escape(name)}:([0-9a-f]{{64}})", comment), folder / name
        if signed and not sheet.is_file():
            yield Alteration(name, MISSING)
        elif signed and sha256_of(sheet) != signed[1]:
            yield Alteration(name, f"{CHANGED} since it was signed")
        elif not signed and sheet.exists():
            yield Alteration(name, f"{ADDED} since it was signed: the signature is not over it")


def _library() -> ModuleType:
    with suppress(ImportError):
        minisign = importlib.import_module("minisign")
        if hasattr(minisign, "SecretKey"):  # not another package of that name
            return minisign
    raise TestbedError(f"a signature needs the package py-minisign: {remedy('signoff')}")
