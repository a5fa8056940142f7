"""Which client a server is to be driven with, and what to say where there is none that it would take."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import TestbedError
from .client_folders import client_api, interactive
from .probe import API, ServerFacts

PYPI, FROM_SERVER = "pypi", "from server"

HOME = "TREX_HOME"
"""Environment variable that names a TRex installation here, for testbeds that name no client."""

Fetch = Callable[[ServerFacts], Path]
"""Gets the client of a server's installation; the folder of the copy. Raises TestbedError."""

REMEDY = (
    "expected, under 'generator' in the testbed file, 'client: /path/of/a/TRex/installation' with that client, or"
    " 'ssh: {user: …, key: …}' for a login on the server's host, from where it is copied; or its folder in the"
    " environment variable TREX_HOME"
)


def choose(
    server: ServerFacts, client: str, fetch: Fetch | None = None, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The folder of the client to use; None for trex-stl-lib 0.3 of PyPI. Raises TestbedError, one sentence.

    *client*: ``pypi``, ``from server``, a folder, or nothing: then the PyPI client for a server that takes it, else
    the installation that TREX_HOME names if its API fits, else the server's own.
    """
    if client == PYPI or (not client and server.takes_pypi):
        if not server.takes_pypi:
            raise TestbedError(
                f"{server.named} and wants the client it ships; the testbed file says 'client: pypi', which is"
                f" trex-stl-lib 0.3 (core API {_dotted(API)}, for servers up to v2.87); {_left_out(fetch)}"
            )
        return None
    if client == FROM_SERVER:
        if fetch is None:
            raise TestbedError(
                "'client: from server' needs a login on the TRex server's host: expected, under 'generator' in"
                " the testbed file, 'ssh: {user: …, key: …}'"
            )
        return _fitting(server, fetch(server))
    if client:
        folder = Path(client).expanduser()
        if interactive(folder) is None:
            raise TestbedError(
                f"there is no TRex client in '{folder}', which the testbed file names as 'client'; expected the"
                " folder of a TRex installation, or its automation/trex_control_plane/interactive"
            )
        return _fitting(server, folder)
    here = (os.environ if environment is None else environment).get(HOME, "")
    if here and _fits(server, client_api(Path(here))):
        return Path(here)
    if fetch is not None:
        return _fitting(server, fetch(server))
    raise TestbedError(
        f"{server.named} and wants the client it ships; trex-stl-lib 0.3 of PyPI speaks core API {_dotted(API)}, which"
        f" servers up to v2.87 take; {REMEDY}"
        + (f" ({_unfit(here)})" if here else "")
        + (f" ({server.refusal})" if server.api is None and server.refusal else "")
    )


def _unfit(here: str) -> str:
    if interactive(Path(here)) is None:
        return f"there is no TRex client in '{here}', which {HOME} names"
    return f"the client that {HOME} names does not fit"


def mismatch(server: ServerFacts, folder: Path | None, said: str) -> TestbedError:
    """The sentence for a handshake that the server refused although *folder*'s client was chosen; its words: *said*."""
    api = API if folder is None else client_api(folder)
    ours = "trex-stl-lib 0.3" if folder is None else f"the client in '{folder}'"
    return TestbedError(
        f"{server.named}, but refuses {ours}" + (f" (API {_dotted(api)})" if api else "") + f": {said}; expected"
        " the client of the server's own installation: its folder as 'client', or 'client: from server'"
    )


def _fits(server: ServerFacts, api: tuple[int, int] | None) -> bool:
    # the server's rule: the same major, and a client that is not newer than itself
    return api is not None and (server.api is None or (api[0] == server.api[0] and api[1] <= server.api[1]))


def _fitting(server: ServerFacts, folder: Path) -> Path:
    api = client_api(folder)
    # a server that takes 0.3 does not tell what its own client speaks; the handshake will
    if api is None or not _fits(server, api):
        said = f"speaks API {_dotted(api)}" if api else "does not say which API it speaks"
        raise TestbedError(
            f"{server.named}, but the client in '{folder}' {said}; expected the client of the server's own"
            f" installation: its folder as 'client', or 'client: from server'"
        )
    return folder


def _left_out(fetch: Fetch | None) -> str:
    return "expected 'client: from server', or nothing" if fetch else REMEDY


def _dotted(api: tuple[int, int]) -> str:
    return ".".join(str(part) for part in api)
