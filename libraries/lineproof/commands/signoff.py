"""``lineproof signoff RUN``: the sheet to print and sign, and an electronic signature over the run."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.run_files import DRAFTS, MANIFEST_FILE, SHEETS, SIGNATURE, partial
from ..evidence.signoff.sheet import Sheet, html_sheet, make_sheet, pdf_sheet, require_weasyprint, result
from ..evidence.signoff.signature import public_key, secret_key, sign
from ..files import check_writable, read_file, write_whole
from .arguments import add_run, run_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Make the sheet that a run is signed off with, as PDF/A and HTML: parties, router, testbed, every sentence with"
        " what was measured, waivers, sums, place for signatures; with --key an electronic signature too, in minisign's"
        " format. Refuses what is altered, unfinished or not of hardware, a weak goal, INCONCLUSIVE without a waiver."
    )
    add_run(parser)
    parser.add_argument("--about", metavar="FILE", type=Path, help="YAML: parties, nameplate, cables, waivers")
    parser.add_argument("--key", metavar="FILE", type=Path, help="minisign's secret key: sign manifest.json with it")
    parser.add_argument(
        "--password-from", metavar="NAME", help="environment variable with the key's password (asked on the terminal)"
    )
    parser.add_argument("--output", metavar="FOLDER", type=Path, help="write into it, not into the folder of the run")
    parser.add_argument("--html-only", action="store_true", help="no PDF: needs no WeasyPrint")
    parser.add_argument(
        "--draft", action="store_true", help="a sheet of any run that was not altered, marked DRAFT and never signed"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the sheet, and the signature; returns 0. Raises ConfigError, TestbedError."""
    folder = run_of(arguments.run_name)
    output: Path = arguments.output or folder
    if arguments.draft and arguments.key is not None:
        raise ConfigError("a draft is never signed; leave out --key or --draft")
    if not arguments.html_only:
        require_weasyprint()
    if not arguments.draft and (output / SIGNATURE).exists():
        problem = "is a signature already; move it away with its sheets, or write elsewhere with --output"
        raise ConfigError(problem, output / SIGNATURE)
    sheet = make_sheet(folder, datetime.now(UTC), arguments.about, arguments.draft)
    check_writable(output)
    if arguments.key is None:
        contents = _contents(sheet, arguments)
    else:
        with secret_key(arguments.key, lambda: _password(arguments.password_from, arguments.key)) as key:
            sheet = replace(sheet, key=public_key(key))
            contents = _contents(sheet, arguments)
            contents[SIGNATURE] = _signature(sheet, key, contents)
    for name, content in contents.items():
        write_whole(output / name, content, fresh=partial(output / name))
        print(f"wrote {output / name}")
    print(f"Result: {result(sheet)}")
    if sheet.key:
        print(f"Next: lineproof verify {folder} --public-key {sheet.key}")
    return 0


def _contents(sheet: Sheet, arguments: argparse.Namespace) -> dict[str, bytes]:
    """Return the sheet's files: name -> content."""
    html, pdf = DRAFTS if sheet.draft else SHEETS
    page = html_sheet(sheet)
    if arguments.html_only:
        return {html: page.encode()}
    return {html: page.encode(), pdf: pdf_sheet(page, sheet.run.path / MANIFEST_FILE, arguments.about)}


def _signature(sheet: Sheet, key: Any, contents: Mapping[str, bytes]) -> bytes:
    """Return the signature over the manifest that the sheet names, with the sums of the sheets."""
    path = sheet.run.path / MANIFEST_FILE
    manifest = read_file(path)
    if sha256(manifest).hexdigest() != sheet.manifest:
        raise ConfigError("was changed while the sheet was made; nothing was signed", path)
    sums = {name: sha256(content).hexdigest() for name, content in contents.items()}
    signed = f"{sheet.made:%Y-%m-%dT%H:%M:%SZ}"
    return sign(key, manifest, {"signed": signed, "run": sheet.environment.run, "result": result(sheet), **sums})


def _password(variable: str | None, key: Path) -> str:
    """Return the password from the environment *variable*, else the terminal. Raises ConfigError."""
    if variable is not None:
        if password := os.environ.get(variable):
            return password
        raise ConfigError(f"{variable}, which --password-from names, is not set; set it: read -rs {variable}")
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError("needs a password, and there is no terminal to ask on; expected --password-from NAME", key)
    return getpass.getpass(f"Password of {key}: ")
