"""The client of PyPI, trex-stl-lib 0.3: the only file that imports ``trex_stl_lib``. For the client's process only."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from .answers import ServerEvents, plain_message
from .library import ClientLibrary, stream_data
from .service import Refusal
from .sockets import REPLY_LIMIT

NAME = "trex-stl-lib 0.3"
"""The only version that an installation takes."""

PACKETS = (
    "scapy.layers.l2",
    "scapy.utils",
    "trex_stl_lib.rx_services.trex_stl_rx_service_ipv6",
    "trex_stl_lib.services.trex_stl_service_arp",
    "trex_stl_lib.services.trex_stl_service_icmp",
    "trex_stl_lib.services.trex_stl_service_int",
    "trex_stl_lib.trex_stl_packet_builder_scapy",
    "trex_stl_lib.trex_stl_streams",
)
"""Modules that make packets. A connection makes none: to import them takes two thirds of the time to start."""


class PacketModule(ModuleType):
    """One of :data:`PACKETS` while others are imported: whatever they name of it is a class of its own."""

    def __getattr__(self, name: str) -> type:
        return type(name, (), {})


@contextlib.contextmanager
def _without_packets() -> Iterator[None]:
    """Let imports of :data:`PACKETS` inside the block import nothing; later ones do."""
    sys.modules.update({name: PacketModule(name) for name in PACKETS})
    try:
        yield
    finally:
        for name in PACKETS:
            del sys.modules[name]


def load_library() -> SimpleNamespace:
    """Import the parts of trex-stl-lib that are used here. Raises Refusal."""
    _install_imp()
    try:
        import scapy
        import zmq
        from trex_stl_lib import trex_stl_packet_builder_scapy as builder
        from trex_stl_lib.trex_stl_client import STLClient
    except Exception as error:
        raise Refusal("install", f"the TRex client cannot be imported ({type(error).__name__}: {error})") from error
    # After an unknown message, the library's subscriber thread calls os.killpg(os.getppid(), SIGTERM) to end its shell.
    # Here the parent is Robot, so that call must do nothing. The library also marks the connection as lost.
    setattr(os, "killpg", lambda *_: None)  # noqa: B010  (to mypy '=' is an error)
    return SimpleNamespace(scapy=scapy, zmq=zmq, builder=builder, STLClient=STLClient)


class PypiLibrary(ClientLibrary):
    """:class:`.library.ClientLibrary` through trex-stl-lib 0.3. Its thread reads published events."""

    def _import(self) -> SimpleNamespace:
        with _without_packets():  # streams hold finished frames
            return load_library()

    def _connect(self, server: str, sync_port: int, async_port: int, username: str) -> tuple[str, str]:
        client = self.library.STLClient(username=username, server=server, sync_port=sync_port, async_port=async_port)
        self._client, self.events = client, ServerEvents(client.session_id)
        # The library's own handler of silence fails (it adds strings) and ends its thread; a busy machine may be silent
        # for 3 s.
        client.event_handler.on_async_timeout = lambda _: None
        # Its thread crashes on a barrier (for example another client's) before its own first request.
        client.conn.async_connection.async_barrier = {"key": None, "ack": False}
        client.event_handler.on_async_event = self.events.record
        # the library's own statistics of the counters are not used
        client.event_handler.on_async_stats_update = lambda *_: None
        link = client.conn.rpc.rpc_link
        # the server zips the answers to zipped requests: that takes longer than what it saves
        link.zipper.MSG_COMPRESS_THRESHOLD = 1 << 16
        client.connect()
        link.socket.setsockopt(self.library.zmq.RCVTIMEO, round(REPLY_LIMIT * 1000))
        api = ".".join(str(client.conn.api_vers[0][key]) for key in ("major", "minor"))
        return NAME, api

    @property
    def _handle(self) -> str:
        return str(self._client.conn.api_h["core"])

    def poll_events(self) -> None:
        """Do nothing: the library's thread receives events."""

    def await_events(self) -> None:
        # the server publishes it after them
        if not (answer := self._client.conn.async_connection.barrier(REPLY_LIMIT)):
            raise Refusal("lost", plain_message(answer))

    def _stream(self, stream: Mapping[str, Any]) -> dict[str, Any]:
        data = stream_data(stream)
        for key in ("start_paused", "core_id"):  # unknown to the servers of this client
            data.pop(key, None)
        data["vm"].setdefault("split_by_var", "")
        return data


def _install_imp() -> None:
    """Put a replacement of ``imp``, which Python 3.12 removed, into ``sys.modules``: reload only."""
    if sys.version_info >= (3, 12):
        bridge = ModuleType("imp", "Replaces the module that Python 3.12 removed: reload only.")
        vars(bridge)["reload"] = importlib.reload
        sys.modules.setdefault("imp", bridge)
