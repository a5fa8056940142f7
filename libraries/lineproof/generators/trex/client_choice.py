"""Chooses the TRex client for a server; says what is missing if no client fits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import TestbedError
from .client_folders import client_api, client_folder
from .server_facts import PYPI_API, ServerFacts

PYPI, FROM_SERVER = "pypi", "from server"

HOME_VARIABLE = "TREX_HOME"
"""Environment variable that names a local TRex installation, for testbeds that name no client."""

FetchClient = Callable[[ServerFacts], Path]
"""Copies the client of a server's installation and returns the copy's folder. Raises TestbedError."""

EXPECTED_CLIENT = (
    "expected, under 'generator' in the testbed file, 'client: /path/of/a/TRex/installation' with that client, or"
    " 'ssh: {user: …, key: …}' for a login on the server's host, from where it is copied; or its folder in the"
    " environment variable TREX_HOME"
)


def choose_client(
    server: ServerFacts, client: str, fetch: FetchClient | None = None, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The folder of the client to use; None: trex-stl-lib 0.3 of PyPI. Raises TestbedError, one sentence.

    *client*: ``pypi``, ``from server``, a folder, or "": the PyPI client if the server accepts it, else the
    installation of TREX_HOME if its API fits, else the server's own client.
    """
    if client == PYPI or (not client and server.takes_pypi):
        if not server.takes_pypi:
            raise TestbedError(
                f"{server.description} and wants the client it ships; the testbed file says 'client: pypi', which is"
                f" trex-stl-lib 0.3 (core API {_dotted(PYPI_API)}, for servers up to v2.87);"
                f" {_expected_instead_of_pypi(fetch)}"
            )
        return None
    if client == FROM_SERVER:
        if fetch is None:
            raise TestbedError(
                "'client: from server' needs a login on the TRex server's host: expected, under 'generator' in"
                " the testbed file, 'ssh: {user: …, key: …}'"
            )
        return _require_fit(server, fetch(server))
    if client:
        return _require_fit(server, named_client(client))
    home = (os.environ if environment is None else environment).get(HOME_VARIABLE, "")
    if home and _api_fits(server, client_api(Path(home))):
        return Path(home)
    if fetch is not None:
        return _require_fit(server, fetch(server))
    raise TestbedError(
        f"{server.description} and wants the client it ships; trex-stl-lib 0.3 of PyPI speaks core API"
        f" {_dotted(PYPI_API)}, which servers up to v2.87 take; {EXPECTED_CLIENT}"
        + (f" ({_why_home_is_unused(home)})" if home else "")
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


def _why_home_is_unused(home: str) -> str:
    if client_folder(Path(home)) is None:
        return f"there is no TRex client in '{home}', which {HOME_VARIABLE} names"
    return f"the client that {HOME_VARIABLE} names does not fit"


def handshake_error(server: ServerFacts, folder: Path | None, refusal: str) -> TestbedError:
    """The error for a server that refused the handshake of *folder*'s client; *refusal*: its words."""
    api = PYPI_API if folder is None else client_api(folder)
    ours = "trex-stl-lib 0.3" if folder is None else f"the client in '{folder}'"
    return TestbedError(
        f"{server.description}, but refuses {ours}"
        + (f" (API {_dotted(api)})" if api else "")
        + f": {refusal}; expected"
        " the client of the server's own installation: its folder as 'client', or 'client: from server'"
    )


def _api_fits(server: ServerFacts, api: tuple[int, int] | None) -> bool:
    # the server's rule: the same major version, and a client that is not newer than the server
    return api is not None and (server.api is None or (api[0] == server.api[0] and api[1] <= server.api[1]))


def _require_fit(server: ServerFacts, folder: Path) -> Path:
    api = client_api(folder)
    # a server that accepts 0.3 does not report its own API; the handshake checks that
    if api is None or not _api_fits(server, api):
        speaks = f"speaks API {_dotted(api)}" if api else "does not say which API it speaks"
        raise TestbedError(
            f"{server.description}, but the client in '{folder}' {speaks}; expected the client of the server's own"
            f" installation: its folder as 'client', or 'client: from server'"
        )
    return folder


def _expected_instead_of_pypi(fetch: FetchClient | None) -> str:
    return "expected 'client: from server', or nothing" if fetch else EXPECTED_CLIENT


def _dotted(api: tuple[int, int]) -> str:
    return ".".join(str(part) for part in api)
