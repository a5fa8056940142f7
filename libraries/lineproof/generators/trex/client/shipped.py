"""The client that TRex v3 ships: the only file that imports ``trex``. For the client's process only.

Its ``trex/__init__.py`` puts its folder ``external_libs`` first on the path: Scapy, PyYAML and a ZeroMQ binding that
current Pythons cannot use. Here the package is found without running that file, so that those of PyPI are used, which
trex-stl-lib 0.3 requires too.

Its subscriber, a thread that ends the process after an error, is not started: ``get_async_events`` is called during a
trial over the same connection.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

from ....errors import TestbedError
from ....system.folders import cache_folder
from .answers import ServerEvents
from .library import ClientLibrary, stream_data
from .service import Refusal
from .sockets import REPLY_LIMIT

CLIENT_PATH = Path("automation/trex_control_plane/interactive")
"""The client's folder in an installation."""

CLIENT_FILE = Path("trex/stl/trex_stl_client.py")
"""The file that identifies a client."""


def client_folder(folder: Path) -> Path | None:
    """Return the client's folder in *folder* (an installation or the client's folder itself), or None."""
    for place in (folder, folder / CLIENT_PATH, folder / "scripts" / CLIENT_PATH):
        if (place / CLIENT_FILE).is_file():
            return place
    return None


def load_library(folder: Path) -> SimpleNamespace:
    """Import the parts of the client in *folder* that are used here. Raises Refusal."""
    home = client_folder(folder)
    if home is None:
        raise Refusal("install", f"there is no TRex client in '{folder}'")
    # never write into a TRex installation or a checked copy
    try:
        sys.pycache_prefix = str(cache_folder() / "bytecode")
    except TestbedError:
        sys.dont_write_bytecode = True
    package = ModuleType("trex", "TRex's client, without its own search for libraries.")
    package.__path__ = [str(home / "trex")]
    sys.modules["trex"] = package
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of its old strings
            import scapy
            import zmq
            from trex.common.trex_types import RC_OK
            from trex.stl import trex_stl_packet_builder_scapy as builder
            from trex.stl.trex_stl_client import STLClient
    except Exception as error:
        raise Refusal(
            "install", f"the TRex client in '{folder}' cannot be imported ({type(error).__name__}: {error})"
        ) from error
    return SimpleNamespace(scapy=scapy, zmq=zmq, builder=builder, STLClient=STLClient, RC_OK=RC_OK)


class ShippedLibrary(ClientLibrary):
    """:class:`.library.ClientLibrary` through the client that TRex ships."""

    on_port: ClassVar = {"profile_id": "_"}
    on_all: ClassVar = {"profile_id": "*"}
    on_status: ClassVar = {"profile_id": "*", "block": False}

    def __init__(self, folder: Path) -> None:
        """Use the client in *folder*, see :func:`client_folder`."""
        super().__init__()
        self._folder = folder

    def _import(self) -> SimpleNamespace:
        return load_library(self._folder)

    def _connect(self, server: str, sync_port: int, async_port: int, username: str) -> tuple[str, str]:
        ok = self.library.RC_OK
        self._client = client = self.library.STLClient(
            username=username, server=server, sync_port=sync_port, async_port=async_port, sync_timeout=REPLY_LIMIT
        )
        self.events = ServerEvents(client.ctx.session_id)
        # in place of the library's subscriber: it does nothing, always with success
        idle = dict.fromkeys(("connect", "barrier", "disconnect", "set_as_zombie"), lambda *_, **__: ok())
        client.conn.async_ = SimpleNamespace(last_data_recv_ts=None, **idle)
        rpc = client.conn.rpc
        rpc.set_retry_base = lambda enable: None  # otherwise it waits four times as long for an answer
        # what it does itself where the server is busy fails
        rpc.handle_async_transmit = lambda method, parameters, *_: ok(self.ask(method, **(parameters or {})))
        rpc.pretty_json = lambda *_, **__: ""  # not needed, and slow for each message
        client.connect()
        # the server keeps events from now on, for as long as it is asked every 10 s
        self.event_calls = [("get_async_events", {"session_id": client.ctx.session_id, "user": "sub"})]
        self.poll_events()
        api = client.ctx.api_ver
        return f"TRex's own, of {self._folder}", f"{api['major']}.{api['minor']}"

    @property
    def _handle(self) -> str:
        return str(self._client.conn.rpc.api_h)

    def poll_events(self) -> None:
        self.events.record_all(self.ask_all(self.event_calls).results[0])

    def await_events(self) -> None:
        """Do nothing: they came with the counters."""

    def _stream(self, stream: Mapping[str, Any]) -> dict[str, Any]:
        data = {"start_paused": False, "core_id": -1, **stream_data(stream)}
        # trex-stl-lib 0.3 splits a program among cores by one variable, later clients by each variable
        data["vm"].pop("split_by_var", None)
        return data
