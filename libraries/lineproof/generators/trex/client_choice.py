"""The TRex client for a server: which one fits, and what is missing if none does.

A client that TRex ships is a folder of an installation, or of the user's cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import TestbedError
from .server_facts import PYPI_API, ServerFacts

PYPI, FROM_SERVER = "pypi", "from server"

HOME_VARIABLE = "TREX_HOME"
"""Environment variable that names a local TRex installation, for testbeds that name no client."""

CLIENT_PATH = Path("automation/trex_control_plane/interactive")
"""The client's folder in an installation."""

CLIENT_FILE = Path("trex/stl/trex_stl_client.py")
"""The file that identifies a client."""

_API = re.compile(r"api_ver\s*=\s*\{[^}]*'major'\s*:\s*(\d+)\s*,\s*'minor'\s*:\s*(\d+)")

FetchClient = Callable[[ServerFacts], Path]
"""Copies the client of a server's installation and returns the copy's folder. Raises TestbedError."""


def client_folder(folder: Path) -> Path | None:
    """The client's folder in *folder* (an installation or the client's folder itself), or None."""
    for place in (folder, folder / CLIENT_PATH, folder / "scripts" / CLIENT_PATH):
        if (place / CLIENT_FILE).is_file():
            return place
    return None


def client_api(folder: Path) -> tuple[int, int] | None:
    """(major, minor) of the API of the client in *folder*, from its source; None if unknown."""
    home = client_folder(folder)
    if home is None:
        return None
    try:
        found = _API.search((home / CLIENT_FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def choose_client(
    server: ServerFacts, client: str, fetch: FetchClient | None = None, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The folder of the client to use; None: trex-stl-lib 0.3 of PyPI. Raises TestbedError, one sentence.

    *client*: ``pypi``, ``from server``, a folder, or "": the PyPI client if the server accepts it, else the
    installation of TREX_HOME if its API fits, else the server's own client.
    """
    if client in ("", PYPI) and server.takes_pypi:
        return None
    if client not in ("", PYPI, FROM_SERVER):
        return _require_fit(server, named_client(client))
    home = (os.environ if environment is None else environment).get(HOME_VARIABLE, "")
    if not client and home and _api_fits(server, client_api(Path(home))):
        return Path(home)
    if client != PYPI and fetch is not None:
        return _require_fit(server, fetch(server))
    if client == FROM_SERVER:
        raise TestbedError(
            "'client: from server' needs a login on the TRex server's host: expected, under 'generator' in"
            " the testbed file, 'ssh: {user: …, key: …}'"
        )
    raise TestbedError(
        f"{server.description} and wants the client it ships; trex-stl-lib 0.3 of PyPI speaks core API"
        f" {_dotted(PYPI_API)}, which servers up to v2.87 take; expected, under 'generator' in the testbed file,"
        " 'client: /path/of/a/TRex/installation' with that client, or without 'client: pypi' a login on the server's"
        f" host, 'ssh: {{user: …, key: …}}', from where it is copied; or its folder in {HOME_VARIABLE}"
        + (f" (no client in '{home}', which that names, fits)" if home else "")
        + (f" ({server.refusal})" if server.api is None and server.refusal else "")
    )


def named_client(client: str) -> Path:
    """The folder *client* that a testbed file names. Raises TestbedError if it has no TRex client."""
    folder = Path(client).expanduser()
    if client_folder(folder) is None:
        raise TestbedError(
            f"there is no TRex client in '{folder}', which the testbed file names as 'client'; expected the"
            " folder of a TRex installation, or its automation/trex_control_plane/interactive"
        )
    return folder


def misfit(server: ServerFacts, folder: Path | None, refusal: str = "") -> TestbedError:
    """The error for a server that does not take *folder*'s client; *refusal*: its words, if it was asked."""
    api = PYPI_API if folder is None else client_api(folder)
    ours = "trex-stl-lib 0.3" if folder is None else f"the client in '{folder}'"
    speaks = f"speaks API {_dotted(api)}" if api else "does not say which API it speaks"
    return TestbedError(
        f"{server.description}, but {ours} {speaks}{refusal and f': {refusal}'}; expected the client of the server's"
        " own installation: its folder as 'client', or 'client: from server'"
    )


def _api_fits(server: ServerFacts, api: tuple[int, int] | None) -> bool:
    # the server's rule: the same major version, and a client that is not newer than the server; one that accepts 0.3
    # does not report its own API, and the handshake checks that
    return api is not None and (server.api is None or (api[0] == server.api[0] and api[1] <= server.api[1]))


def _require_fit(server: ServerFacts, folder: Path) -> Path:
    if not _api_fits(server, client_api(folder)):
        raise misfit(server, folder)
    return folder


def _dotted(api: tuple[int, int]) -> str:
    return ".".join(str(part) for part in api)
