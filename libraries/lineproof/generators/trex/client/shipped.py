# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The client that TRex v3 ships: the only file that imports ``trex``. For the client's process only.

Its ``trex/__init__.py`` puts its folder ``external_libs`` first on the path: Scapy, PyYAML and a ZeroMQ binding that
current Pythons cannot use. Here the package is found without running that file, so that those of PyPI are used, which
trex-stl-lib 0.3 requires too.

Its subscriber, a thread that ends the process after an error, is not started: ``get_async_events`` is called during a
trial over the same connection.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ....errors import TestbedError
from ....system.folders import cache_folder
from ..client_choice import client_folder
from . import answers
from .answers import use_steady_clock
from .library import SILENCE_LIMIT, ClientLibrary, pps_multiplier, start_parameters
from .messages import ServerEvents, plain_message
from .service import Refusal
from .sockets import REPLY_LIMIT, Pipe
from .stream_objects import stream_data

BUSY_ERROR, TICKET_ERROR = -32001, -32002
"""Errors of a busy server: repeat the request, or ask later with the ticket."""

MOST_UNDER_WAY = 16
"""Requests for counters that a server may have before it: a slow one gets no more."""


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
            from trex.common.trex_types import RC_OK, RpcCmdData
            from trex.stl import trex_stl_packet_builder_scapy as builder
            from trex.stl.trex_stl_client import STLClient
    except Exception as error:
        raise Refusal(
            "install", f"the TRex client in '{folder}' cannot be imported ({type(error).__name__}: {error})"
        ) from error
    use_steady_clock("trex")
    return SimpleNamespace(
        scapy=scapy, zmq=zmq, builder=builder, STLClient=STLClient, RC_OK=RC_OK, RpcCmdData=RpcCmdData
    )


def _idle_subscriber(library: SimpleNamespace) -> SimpleNamespace:
    """Return what replaces the library's subscriber: it does nothing, always with success."""

    def succeed(*_: Any, **__: Any) -> Any:
        return library.RC_OK()

    return SimpleNamespace(
        last_data_recv_ts=None, connect=succeed, barrier=succeed, disconnect=succeed, set_as_zombie=succeed
    )


def _reading(ports: Sequence[int], event_session: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that read the counters of *ports*, between two looks at the server's clock, and then its events."""
    each = [("get_port_stats", {"port_id": port}) for port in ports]
    return [("ping", {}), ("get_global_stats", {}), *each, ("ping", {}), ("get_async_events", event_session)]


class ShippedLibrary(ClientLibrary):
    """:class:`.library.ClientLibrary` through the client that TRex ships. The library connects, acquires ports, builds
    streams and resolves addresses; requests for traffic and counters go to the server directly."""

    def __init__(self, folder: Path) -> None:
        """*folder*: see :func:`..client_choice.client_folder`."""
        super().__init__()
        self._folder = folder
        self._event_session: dict[str, Any] = {}
        self._pipe: Pipe | None = None

    def _import(self) -> SimpleNamespace:
        return load_library(self._folder)

    # -- connection and ports ------------------------------------------------------------------------------------------

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        library = self._loaded
        client = library.STLClient(
            username=username, server=server, sync_port=sync_port, async_port=async_port, sync_timeout=REPLY_LIMIT
        )
        self._client, self.events = client, ServerEvents(client.ctx.session_id)
        self._handle_event = self.events.wrap_event_handler(lambda kind, data: None)
        client.conn.async_ = _idle_subscriber(library)
        rpc = client.conn.rpc
        rpc.set_retry_base = lambda enable: None  # otherwise it waits four times as long for an answer
        rpc.handle_async_transmit = self._final_answer
        rpc.pretty_json = lambda *_, **__: ""  # not needed, and slow for each message
        self._connect_client()
        self._pipe = Pipe(rpc.transport)
        # the server keeps events from now on, for as long as it is asked every 10 s
        self._event_session = {"session_id": client.ctx.session_id, "user": "sub"}
        self._ask("get_async_events", **self._event_session)
        api = client.ctx.api_ver
        return self._versions(f"TRex's own, of {self._folder}", f"{api['major']}.{api['minor']}")

    def port_facts(self, port: int) -> dict[str, Any]:
        return answers.port_facts(self._status(port), self._client.ports[port].info)

    def _clear(self, ports: Sequence[int]) -> None:
        for port in ports:
            self._ask_port("stop_traffic", port, profile_id="*")
            self._ask_port("remove_all_streams", port, profile_id="_")

    def release(self, ports: Sequence[int]) -> None:
        for port in ports:
            with self._ignoring_refusals():
                if port in self._promiscuous:
                    self._ask_port("set_port_attr", port, attr={"promiscuous": {"enabled": False}})
            with self._ignoring_refusals():
                self._ask_port("release", port)
            self._client.ports[port].handler = ""

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.conn.disconnect()
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    # -- traffic -------------------------------------------------------------------------------------------------------

    def replace_streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        self._find_destinations(items)
        for port in ports:
            self._ask_port("remove_all_streams", port, profile_id="_")
        for port, rows in items.items():
            batch = []
            for number, item in enumerate(rows, 1):
                stream = {"start_paused": False, "core_id": -1, **stream_data(item)}
                # trex-stl-lib 0.3 splits a program among cores by one variable, later clients by each variable
                stream["vm"].pop("split_by_var", None)
                batch.append(("add_stream", {**self._port_parameters(port), "stream_id": number, "stream": stream}))
            self._ask_all(batch)

    def start(
        self,
        rates: Mapping[int, float],
        duration: float,
        ports: Sequence[int],
        gap: float,
        at_own_rates: Container[int] = (),
    ) -> tuple[float, Mapping[str, Any]]:
        batch = [
            (
                "start_traffic",
                {
                    **self._port_parameters(port),
                    **start_parameters(rate, duration, port in at_own_rates, self.core_mask(port, rates)),
                },
            )
            for port, rate in rates.items()
        ]
        limit = time.monotonic() + REPLY_LIMIT
        while True:
            try:
                found = self._ask_meanwhile([*batch, *_reading(ports, self._event_session)], ports, gap)
            except Refusal as refusal:
                if refusal.kind != "refused":
                    raise
                self.stop_traffic(list(rates))
                if "owned" in str(refusal) or "acquire" in str(refusal):
                    holders = {port: self._status(port).get("owner") or "nobody" for port in rates}
                    named = "; ".join(f"port {port} is held by '{who}' now" for port, who in holders.items())
                    raise Refusal("taken", named) from refusal
                if "middle of configuration" not in str(refusal) or time.monotonic() > limit:
                    raise
                time.sleep(0.05)
            else:
                return answers.moment(found[0]), self._counters_read(ports, found[len(batch) :])

    def update(self, rates: Mapping[int, float]) -> None:
        self._ask_all(
            [
                ("update_traffic", {**self._port_parameters(port), "mul": pps_multiplier(rate), "force": True})
                for port, rate in rates.items()
            ]
        )

    def stop_traffic(self, ports: Sequence[int]) -> None:
        for port in ports:
            with self._ignoring_refusals():
                self._ask_port("stop_traffic", port, profile_id="*")

    def poll_events(self) -> None:
        self._handle_events(self._ask("get_async_events", **self._event_session))

    def _handle_events(self, answer: Mapping[str, Any]) -> None:
        for kind, data in answers.events(answer):
            self._handle_event(kind, data)

    def check_links(self, ports: Sequence[int]) -> None:
        self.events.links_down |= {port for port in ports if not self._status(port)["attr"]["link"]["up"]}

    def read_counters(
        self, ports: Sequence[int], groups: Sequence[int] = (), cards: Sequence[int] = ()
    ) -> Mapping[str, Any]:
        of_cards = self._of_cards(cards)
        more = [("get_pgid_stats", {"pgids": list(groups)})] if groups else []
        calls = _reading(ports, self._event_session)
        found = self._ask_all([*calls, *more])
        counters = self._counters_read(ports, found[: len(calls)])
        return {**counters, "groups": dict(*found[len(calls) :]), "cards": of_cards}

    def ask_counters(self, ports: Sequence[int]) -> None:
        if self.under_way < MOST_UNDER_WAY:
            self._send(_reading(ports, self._event_session))

    @property
    def under_way(self) -> int:
        return self._pipe.under_way if self._pipe else 0

    def counters_come(self, ports: Sequence[int], wait: float) -> tuple[float, Mapping[str, Any]] | None:
        if self._pipe is None or (come := self._pipe.answer(wait)) is None:
            return None
        return come[0], self._counters_read(ports, come[1])

    def _counters_read(self, ports: Sequence[int], found: Sequence[Any]) -> Mapping[str, Any]:
        earliest, totals, *each, latest, events = found
        self._handle_events(events)
        return answers.flat_counters(totals, dict(zip(ports, each, strict=True)), earliest, latest)

    def _of_cards(self, ports: Sequence[int]) -> Mapping[int, tuple[Any, Any]]:
        found = {}
        for port in ports:
            with contextlib.suppress(Exception):
                methods = "get_port_xstats_names", "get_port_xstats_values"
                found[port] = self._ask(methods[0], port_id=port), self._ask(methods[1], port_id=port)
        return found

    # -- state of the connection ---------------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        return self._client is not None and not self._client.conn.rpc.is_connected()

    @property
    def disconnect_cause(self) -> str:
        if self._client is None:
            return "never connected"
        cause = self._client.conn.get_disconnection_cause()
        return plain_message(cause or f"it gave no answer within {SILENCE_LIMIT:g} s")

    # -- requests ------------------------------------------------------------------------------------------------------

    def _status(self, port: int) -> dict[str, Any]:
        return dict(self._ask("get_port_status", port_id=port, profile_id="*", block=False))

    def _port_parameters(self, port: int) -> dict[str, Any]:
        return {**super()._port_parameters(port), "profile_id": "_"}

    def _card_mac(self, port: int) -> str:
        return str(self._client.ports[port].info.get("hw_mac", ""))

    def _ask(self, method: str, **parameters: Any) -> Any:
        """The server's answer. Raises Refusal."""
        rpc = self._client.conn.rpc
        answer = self._final_answer(method, parameters, 0, rpc.invoke_rpc_method(method, dict(parameters)))
        if not answer:
            raise self._refusal(answer)
        return answer.data()

    def _final_answer(self, method: str, parameters: Mapping[str, Any] | None, _: int, answer: Any) -> Any:
        """The final answer after *answer*, if the server was busy. Replaces the library's function, which fails."""
        rpc, limit = self._client.conn.rpc, time.monotonic() + REPLY_LIMIT
        request = dict(parameters or {})
        while not answer and answer.errno() in (BUSY_ERROR, TICKET_ERROR) and time.monotonic() < limit:
            if answer.errno() == TICKET_ERROR:
                method, request = "get_async_results", {"ticket_id": int(answer.err())}
            time.sleep(0.05)
            answer = rpc.invoke_rpc_method(method, dict(request))
        return answer

    def _ask_all(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        """The answers to several requests in one message. Raises Refusal if one of them is refused."""
        command = self._loaded.RpcCmdData
        answer = self._client.conn.rpc.transmit_batch([command(name, values, "core") for name, values in calls])
        if not answer:
            raise self._refusal(answer)
        found = answer.data()
        return found if len(calls) > 1 else [found]

    def _ask_meanwhile(
        self, calls: Sequence[tuple[str, dict[str, Any]]], ports: Sequence[int], gap: float
    ) -> list[Any]:
        """The answers to *calls* in one message. Until they come, the counters are asked for each *gap* s."""
        while self.under_way:  # readings of traffic that was stopped, or refused
            self.counters_come(ports, gap)
        self._send(calls)
        while self._pipe is not None:
            if come := self._pipe.answer(gap):
                return come[1]
            self.ask_counters(ports)
        raise Refusal("lost", self.disconnect_cause)

    def _send(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        rpc = self._client.conn.rpc
        batch = rpc.create_batch()
        for name, values in calls:
            batch.add(name, dict(values), rpc.api_h)
        if self._pipe is not None:
            self._pipe.ask(batch.batch_list)

    def _refusal(self, answer: Any) -> Refusal:
        return Refusal("lost" if self.lost else "refused", plain_message(answer))
