# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The client of PyPI, trex-stl-lib 0.3: the only file that imports ``trex_stl_lib``. For the client's process only."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import itertools
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

from . import answers
from .answers import use_steady_clock
from .library import SILENCE_LIMIT, ClientLibrary, pps_multiplier, start_parameters
from .messages import ServerEvents, plain_message
from .service import Refusal
from .sockets import REPLY_LIMIT
from .stream_objects import stream_data

BASIC_LAYERS = ["l2", "inet", "inet6"]
"""Scapy's protocols that the library itself needs: to import the others takes most of the time to start."""


def load_library(layers: Sequence[str] | None = None) -> SimpleNamespace:
    """Import the parts of trex-stl-lib that are used here, and of Scapy *layers* (all). Raises Refusal."""
    _install_imp()
    try:
        import scapy
        import zmq
        from scapy.config import conf

        if layers is not None:
            conf.load_layers = list(layers)
            # to read the IPv6 routes of this machine takes a tenth of the import, and no frame needs them
            conf.route6_autoload = False
        from trex_stl_lib import trex_stl_packet_builder_scapy as builder
        from trex_stl_lib.trex_stl_client import STLClient
        from trex_stl_lib.trex_stl_types import RpcCmdData
    except Exception as error:
        raise Refusal("install", f"the TRex client cannot be imported ({type(error).__name__}: {error})") from error
    # After an unknown message, the library's subscriber thread calls os.killpg(os.getppid(), SIGTERM) to end its shell.
    # Here the parent is Robot, so that call must do nothing. The library also marks the connection as lost.
    setattr(os, "killpg", lambda *_: None)  # noqa: B010  (to mypy '=' is an error)
    use_steady_clock("trex_stl_lib")
    return SimpleNamespace(scapy=scapy, zmq=zmq, builder=builder, STLClient=STLClient, RpcCmdData=RpcCmdData)


class PypiLibrary(ClientLibrary):
    """:class:`.library.ClientLibrary` through trex-stl-lib 0.3. Its thread reads what the server publishes."""

    _key = -1
    """The last barrier that was asked for."""
    _published: Mapping[str, Any] = MappingProxyType({})
    """The counters that came before it."""

    def __init__(self) -> None:
        super().__init__()
        self._come = deque[tuple[float, Mapping[str, Any]]]()
        self._has_published = threading.Event()

    def _import(self) -> SimpleNamespace:
        return load_library(BASIC_LAYERS)  # streams hold finished frames

    # -- connection and ports ------------------------------------------------------------------------------------------

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        library = self._loaded
        client = library.STLClient(username=username, server=server, sync_port=sync_port, async_port=async_port)
        self._client, self.events = client, ServerEvents(client.session_id)
        # The library's own handler of silence fails (it adds strings) and ends its thread; a busy machine may be silent
        # for 3 s. The property lost checks silence instead.
        client.event_handler.on_async_timeout = lambda _: None
        # Its thread crashes on a barrier (for example another client's) before its own first request.
        client.conn.async_connection.async_barrier = {"key": None, "ack": False}
        client.conn.async_connection.handle_async_barrier = self._note_barrier
        events = client.event_handler
        events.on_async_event = self.events.wrap_event_handler(events.on_async_event)
        # the library's own statistics of the counters are not used
        events.on_async_stats_update = self.events.heard_counters
        link = client.conn.rpc.rpc_link
        # instead of eight random letters
        link.id_gen = itertools.count(1)
        # the server zips the answers to zipped requests: that takes longer than what it saves
        link.zipper.MSG_COMPRESS_THRESHOLD = 1 << 16
        self._connect_client()
        link.socket.setsockopt(library.zmq.RCVTIMEO, round(REPLY_LIMIT * 1000))
        api = ".".join(str(client.conn.api_vers[0][key]) for key in ("major", "minor"))
        return self._versions(f"trex-stl-lib {importlib.metadata.version('trex-stl-lib')}", api)

    def port_facts(self, port: int) -> dict[str, Any]:
        found = self._client.ports[port]
        self._require_success(found.sync())
        return answers.port_facts({**found.status, "owner": found.owner}, self._static(port))

    def _clear(self, ports: Sequence[int]) -> None:
        self._client.stop(list(ports), rx_delay_ms=0)
        self._client.remove_all_streams(list(ports))

    def release(self, ports: Sequence[int]) -> None:
        if owned := [port for port in ports if self._client.ports[port].is_acquired()]:
            with contextlib.suppress(Refusal):
                self._set_promiscuous([port for port in owned if port in self._promiscuous], False)
            self._client.release(owned)

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.disconnect(stop_traffic=False, release_ports=False)

    # -- traffic -------------------------------------------------------------------------------------------------------

    def replace_streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        self._find_destinations(items)
        self._client.remove_all_streams(list(ports))
        for port, rows in items.items():
            batch = []
            for place, item in enumerate(rows, 1):
                data = stream_data(item)
                for key in ("start_paused", "core_id"):  # unknown to the servers of this client
                    data.pop(key, None)
                data["vm"].setdefault("split_by_var", "")
                batch.append(self._command("add_stream", port, stream_id=place, stream=data))
            self._require_success(self._client._transmit_batch(batch))
            self._client.ports[port].state = self._client.ports[port].STATE_STREAMS

    def start(
        self,
        rates: Mapping[int, float],
        duration: float,
        ports: Sequence[int],
        gap: float,
        at_own_rates: Container[int] = (),
    ) -> tuple[float, Mapping[str, Any]]:
        client, batch = self._client, []
        for number, rate in rates.items():
            port = client.ports[number]
            if not port.is_acquired():
                raise Refusal("taken", f"port {number} is held by '{port.owner or 'nobody'}' now")
            parameters = start_parameters(rate, duration, number in at_own_rates, self.core_mask(number, rates))
            batch.append(self._command("start_traffic", number, **parameters))
            port.state = port.STATE_TX  # before the call: the end may come before the answer
        answer = client._transmit_batch([*batch, *self._reading()])
        if not answer:
            for number in rates:
                client.ports[number].stop(force=True)
                client.ports[number].sync()
            raise Refusal("lost" if self.lost else "refused", plain_message(answer))
        found = [one.data for one in answer]
        return answers.moment(found[0]), self._counters_read(found[len(batch) :])

    def update(self, rates: Mapping[int, float]) -> None:
        batch = [
            self._command("update_traffic", number, mul=pps_multiplier(rate), force=True)
            for number, rate in rates.items()
        ]
        self._require_success(self._client._transmit_batch(batch))

    def stop_traffic(self, ports: Sequence[int]) -> None:
        for number in ports:
            port = self._client.ports[number]
            if port.is_acquired():
                port.stop(force=True)
                port.sync()

    def poll_events(self) -> None:
        """Nothing: the library's thread receives events."""

    def check_links(self, ports: Sequence[int]) -> None:
        # not the library's sync(): it would overwrite the port's state if the traffic ends meanwhile
        states = zip(ports, self._answers(self._of_ports(ports, "get_port_status")), strict=True)
        self.events.links_down |= {port for port, status in states if not status.data["attr"]["link"]["up"]}

    def read_counters(
        self, ports: Sequence[int], groups: Sequence[int] = (), cards: Sequence[int] = ()
    ) -> Mapping[str, Any]:
        own = self._of_ports(cards, "get_port_xstats_names", "get_port_xstats_values")
        more = [self._loaded.RpcCmdData("get_pgid_stats", {"pgids": list(groups)}, "core")] if groups else []
        answer = self._answers([*own, *self._reading(), *more], optional=len(own))
        pairs = zip(cards, answer[: len(own) : 2], answer[1 : len(own) : 2], strict=True)
        of_cards = {port: (names.data, values.data) for port, names, values in pairs if names.rc and values.rc}
        found = [one.data for one in answer[len(own) :]]
        return {**self._counters_read(found), "groups": dict(*found[3:]), "cards": of_cards}

    def ask_counters(self, ports: Sequence[int]) -> None:
        self._come.append((time.monotonic(), self.read_counters(ports)))

    @property
    def under_way(self) -> int:
        return len(self._come)

    def counters_come(self, ports: Sequence[int], wait: float) -> tuple[float, Mapping[str, Any]] | None:
        return self._come.popleft() if self._come else None

    def _reading(self) -> list[Any]:
        """The calls by which the server publishes its counters, between two looks at its clock."""
        self._has_published.clear()
        self._key = random.getrandbits(32)
        command = self._loaded.RpcCmdData
        ping, publish = command("ping", {}, "core"), {"key": self._key, "baseline": False}
        return [ping, command("publish_now", publish, "core"), ping]

    def _counters_read(self, found: Sequence[Any]) -> Mapping[str, Any]:
        if not self._has_published.wait(REPLY_LIMIT):
            raise Refusal("lost", f"the server published no counters for {REPLY_LIMIT:g} s")
        return answers.flat_counters(self._published, {}, found[0], found[2])

    def _note_barrier(self, key: int, _: Any) -> None:
        """Keep the counters that came before the barrier *key*. In the library's thread, also for its own barriers."""
        connection = self._client.conn.async_connection
        if key == self._key:
            self._published = connection.raw_snapshot.get("trex-global", {})
            self._has_published.set()
        if connection.async_barrier["key"] == key:
            connection.async_barrier["ack"] = True

    # -- state of the connection ---------------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        if self._client is None:
            return False
        connection = self._client.conn
        if not connection.is_connected() or not connection.rpc.is_connected:
            return True
        return time.monotonic() - self.events.last_heard > SILENCE_LIMIT

    @property
    def disconnect_cause(self) -> str:
        return plain_message(self._client.conn.get_disconnection_cause() or "") if self._client else "never connected"

    def _static(self, port: int) -> Mapping[str, Any]:
        """The port's entry in ``get_system_info``."""
        # the library assigns these by list position, which newer servers reverse
        rows = enumerate(self._client.system_info["ports"])
        found: dict[int, Mapping[str, Any]] = {item.get("index", place): item for place, item in rows}
        return found[port]

    def _card_mac(self, port: int) -> str:
        return str(self._static(port).get("hw_mac", ""))

    def _status(self, port: int) -> dict[str, Any]:
        return dict(self._ask("get_port_status", port_id=port))

    def _ask(self, method: str, **parameters: Any) -> Any:
        """The server's answer. Raises Refusal."""
        return self._require_success(self._client._transmit(method, parameters)).data()

    def _of_ports(self, ports: Sequence[int], *methods: str) -> list[Any]:
        """Requests for *methods* about each of *ports*, to be sent in one message."""
        command = self._loaded.RpcCmdData
        return [command(method, {"port_id": port}, "core") for port in ports for method in methods]

    def _answers(self, calls: Sequence[Any], optional: int = 0) -> list[Any]:
        """The answers to *calls* in one message. Raises Refusal for an error, but of the first *optional* ones."""
        answer = self._client._transmit_batch(calls)
        found = list(answer)
        if len(found) != len(calls) or not all(one.rc for one in found[optional:]):
            raise Refusal("lost" if self.lost else "refused", plain_message(answer))
        return found

    def _command(self, method: str, port: int, **parameters: Any) -> Any:
        """A request about *port*, to be sent in one message with others."""
        return self._loaded.RpcCmdData(method, {**self._port_parameters(port), **parameters}, "core")

    def _require_success(self, answer: Any) -> Any:
        """Return *answer*. Raises Refusal if it is an error."""
        if not answer:
            raise Refusal("lost" if self.lost else "refused", plain_message(answer))
        return answer


def _install_imp() -> None:
    """Put a replacement of ``imp``, which Python 3.12 removed, into ``sys.modules``: reload only."""
    if sys.version_info >= (3, 12):
        bridge = ModuleType("imp", "Replaces the module that Python 3.12 removed: reload only.")
        vars(bridge)["reload"] = importlib.reload
        sys.modules.setdefault("imp", bridge)
