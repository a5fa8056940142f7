# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The client of PyPI, trex-stl-lib 0.3: the only file that imports ``trex_stl_lib``. For the client's process alone."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
import time
from collections.abc import Container, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from . import imp_bridge
from .answers import card_facts, core_loads
from .library import REPLY, SILENCE
from .messages import Watch, clean
from .service import Refusal
from .stream_objects import AS_THEY_ARE, build_stream, program_data


def load_library() -> SimpleNamespace:
    """The parts of trex-stl-lib that are used here. Raises Refusal."""
    imp_bridge.install()
    try:
        import scapy
        import zmq
        from trex_stl_lib import trex_stl_packet_builder_scapy as builder
        from trex_stl_lib import trex_stl_streams as streams
        from trex_stl_lib.trex_stl_client import STLClient
        from trex_stl_lib.trex_stl_types import RpcCmdData
    except Exception as error:
        raise Refusal("install", f"the TRex client cannot be imported ({type(error).__name__}: {error})") from error
    # On a message it does not know, the library's subscriber thread calls os.killpg(os.getppid(), SIGTERM) to take
    # its shell along. This process leads a session of its own and its parent is Robot: that call must do nothing. The
    # connection is marked as lost besides, which a trial notices.
    setattr(os, "killpg", lambda *_: None)  # noqa: B010
    return SimpleNamespace(
        scapy=scapy, zmq=zmq, builder=builder, streams=streams, STLClient=STLClient, RpcCmdData=RpcCmdData
    )


class PypiLibrary:
    """:class:`.link.Link` through trex-stl-lib 0.3. A thread of the library's takes in what the server publishes."""

    def __init__(self) -> None:
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self.watch = Watch(0)
        self._captures: set[int] = set()

    # -- connection and ports ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Import the library, once. Raises Refusal."""
        self._library = self._library or load_library()

    @property
    def _loaded(self) -> SimpleNamespace:
        self.load()
        assert self._library is not None  # noqa: S101
        return self._library

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; the versions of all that takes part."""
        library = self._loaded
        client = library.STLClient(username=username, server=server, sync_port=sync_port, async_port=async_port)
        self._client, self.watch = client, Watch(client.session_id)
        # The library's own handling of silence fails (it adds strings wrongly) and ends its thread; a busy machine
        # may well be silent for 3 s. Silence is judged in lost().
        client.event_handler.on_async_timeout = lambda _: None
        # Its thread crashes on a barrier, such as another client's, that comes before its own first question.
        client.conn.async_connection.async_barrier = {"key": None, "ack": False}
        events = client.event_handler
        events.on_async_event = self.watch.wrap(events.on_async_event)
        events.on_async_stats_update = self.watch.hear(events.on_async_stats_update)
        try:
            client.connect()
        except Exception as error:
            raise Refusal("connect", clean(error)) from error
        client.conn.rpc.rpc_link.socket.setsockopt(library.zmq.RCVTIMEO, round(REPLY * 1000))
        found = client.get_server_version()
        return {
            "server": f"{found.get('version', '?')} ({found.get('build_date', '?')}, {found.get('mode', '?')})",
            "client": f"trex-stl-lib {importlib.metadata.version('trex-stl-lib')}",
            "api": ".".join(str(client.conn.api_vers[0][key]) for key in ("major", "minor")),
            "scapy": str(library.scapy.__version__),
            "pyzmq": f"{library.zmq.__version__} (libzmq {library.zmq.zmq_version()})",
            "client python": ".".join(str(part) for part in sys.version_info[:3]),
        }

    def numbers(self) -> Sequence[int]:
        """The server's ports."""
        return sorted(self._client.ports)

    def facts(self, port: int) -> dict[str, Any]:
        """MAC, speed in bit/s, link, driver and owner of *port*, asked now."""
        # the library pairs these with ports by their place in the list, which newer servers turn round
        static = {item.get("index", place): item for place, item in enumerate(self._client.system_info["ports"])}
        found = self._client.ports[port]
        self._good(found.sync())
        attributes = found.status["attr"]
        return {
            "mac": attributes.get("layer_cfg", {}).get("ether", {}).get("src") or static[port].get("hw_mac", ""),
            "speed_bps": float(attributes["speed"]) * 1e9,
            "link_up": bool(attributes["link"]["up"]),
            "driver": str(static[port].get("driver", "")),
            "owner": str(found.owner or ""),
            **card_facts(attributes, static[port]),
        }

    def acquire(self, ports: Sequence[int], force: bool, former: Mapping[str, str]) -> dict[str, str]:
        """Take *ports*, stop and forget what ran on them; the handler of each."""
        client = self._client
        for number, handler in former.items():
            # refused where that connection holds it no more, which is well too
            client.ports[int(number)].transmit("release", {"handler": handler, "port_id": int(number)})
        try:
            client.acquire(list(ports), force=force, sync_streams=False)
        except Exception as error:
            raise Refusal("taken" if "already" in clean(error) else "refused", clean(error)) from error
        client.stop(list(ports), rx_delay_ms=0)
        client.remove_all_streams(list(ports))
        client.set_port_attr(list(ports), promiscuous=False)
        client.set_service_mode(list(ports), False)
        return {str(number): str(client.ports[number].handler) for number in ports}

    def release(self, ports: Sequence[int]) -> None:
        """Give back those of *ports* that are still held."""
        if owned := [port for port in ports if self._client.ports[port].is_acquired()]:
            self._client.release(owned)

    def disconnect(self) -> None:
        """Close the sockets only."""
        if self._client is not None:
            self._client.disconnect(stop_traffic=False, release_ports=False)

    # -- traffic -------------------------------------------------------------------------------------------------------

    def streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*."""
        self._client.remove_all_streams(list(ports))
        for port, rows in items.items():
            if any(item["program"] for item in rows):
                self._add_programs(port, rows)
            else:
                self._client.add_streams([build_stream(self._loaded, item) for item in rows], ports=[port])

    def _add_programs(self, number: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put streams of a user's own file on a port: they are data, which the library would want as objects."""
        port, batch = self._client.ports[number], []
        for place, item in enumerate(rows, 1):
            data = program_data(item)
            for key in ("start_paused", "core_id"):  # servers that this client is for know neither
                data.pop(key, None)
            data["vm"].setdefault("split_by_var", "")
            told = {"handler": port.handler, "port_id": number, "stream_id": place, "stream": data}
            batch.append(self._loaded.RpcCmdData("add_stream", told, "core"))
        self._good(self._client._transmit_batch(batch))
        port.state = port.STATE_STREAMS

    def rates(self, port: int) -> Mapping[str, Any]:
        """The streams of *port* in frames/s and bit/s."""
        found = self._client.ports[port]
        answer = found.transmit("validate", {"handler": found.handler, "port_id": port})
        self._good(answer)
        rate: dict[str, Any] = answer.data()["rate"]
        return rate

    def start(self, rates: Mapping[int, float], duration: float, as_they_are: Container[int] = ()) -> float:
        """Start all ports by one message, so that they begin together; the moment of the answer."""
        client, batch = self._client, []
        for number, rate in rates.items():
            port = client.ports[number]
            if not port.is_acquired():
                raise Refusal("taken", f"port {number} is held by '{port.owner or 'nobody'}' now")
            parameters = {
                "handler": port.handler,
                "port_id": number,
                "mul": AS_THEY_ARE if number in as_they_are else {"type": "pps", "value": rate, "op": "abs"},
                "duration": duration,
                "force": True,
                "core_mask": port.MASK_ALL,
                "start_at_ts": 0,
            }
            batch.append(self._loaded.RpcCmdData("start_traffic", parameters, "core"))
            port.state = port.STATE_TX  # before the call: the end may be reported before the answer is read
        answer = client._transmit_batch(batch)
        moment = time.monotonic()
        if not answer:
            for number in rates:
                client.ports[number].stop(force=True)
                client.ports[number].sync()
            raise Refusal("lost" if self.lost else "refused", clean(answer))
        return moment

    def update(self, rates: Mapping[int, float]) -> None:
        """New rates for ports that send, by one message."""
        batch = [
            self._loaded.RpcCmdData(
                "update_traffic",
                {
                    "handler": self._client.ports[number].handler,
                    "port_id": number,
                    "mul": {"type": "pps", "value": rate, "op": "abs"},
                    "force": True,
                },
                "core",
            )
            for number, rate in rates.items()
        ]
        self._good(self._client._transmit_batch(batch))

    def halt(self, ports: Sequence[int]) -> None:
        """Stop what is sending, whatever the library believes of it."""
        for number in ports:
            port = self._client.ports[number]
            if port.is_acquired():
                port.stop(force=True)
                port.sync()

    def listen(self) -> None:
        """Nothing: the library's thread listens."""

    def look(self, port: int) -> None:
        """Ask whether the link of *port* is up."""
        # not the library's sync(): it would set the port's state, whose end may be reported meanwhile
        answer = self._client.ports[port].transmit("get_port_status", {"port_id": port})
        self._good(answer)
        if not answer.data()["attr"]["link"]["up"]:
            self.watch.down.add(port)

    def _latest(self) -> Mapping[str, Any]:
        """What was published last."""
        found: dict[str, Any] = self._client.conn.async_connection.raw_snapshot.get("trex-global", {})
        return found

    def fresh(self, ports: Sequence[int]) -> Mapping[str, Any]:
        """Counters that the server published at this moment."""
        stale = self._latest()
        self._good(self._client.conn.barrier())
        limit = time.monotonic() + REPLY
        while (found := self._latest()) is stale or not found:
            if time.monotonic() > limit:
                raise Refusal("lost", f"the server published no counters for {REPLY:g} s")
            time.sleep(0.001)
        return found

    def cores(self) -> list[list[float]]:
        """How busy the server's cores were."""
        answer = self._client._transmit("get_utilization")
        self._good(answer)
        return core_loads(answer.data())

    def groups(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """What the server counted of packet groups."""
        answer = self._client._transmit("get_pgid_stats", {"pgids": list(numbers)})
        self._good(answer)
        found: Mapping[str, Any] = answer.data()
        return found

    def capture(self, ports: Sequence[int], limit: int) -> dict[int, int]:
        """One capture per port, lest one port's frames crowd out the other's; their numbers."""
        self._client.set_service_mode(list(ports), True)
        found: dict[int, int] = {}
        for port in ports:
            found[port] = int(self._client.start_capture(rx_ports=[port], limit=limit)["id"])
            self._captures.add(found[port])
        return found

    def captured(self, number: int) -> list[bytes]:
        """End a capture; its frames."""
        found: list[dict[str, Any]] = []
        self._client.stop_capture(number, output=found)
        self._captures.discard(number)
        return [bytes(item["binary"]) for item in found]

    def service_off(self, ports: Sequence[int]) -> None:
        """End captures and service mode."""
        while self._captures:  # not all that there are: others may capture on ports of their own
            with contextlib.suppress(Exception):
                self._client._transmit("capture", {"command": "remove", "capture_id": self._captures.pop()})
        with contextlib.suppress(Exception):
            self._client.set_service_mode(list(ports), False)

    # -- whether it stands ---------------------------------------------------------------------------------------------

    @property
    def reachable(self) -> bool:
        """Whether the connection stands, as far as the library knows."""
        return self._client is not None and bool(self._client.is_connected())

    @property
    def lost(self) -> bool:
        """Whether the server, which publishes every 0.5 s, has fallen silent."""
        if self._client is None:
            return False
        connection = self._client.conn
        if not connection.is_connected() or not connection.rpc.is_connected:
            return True
        return time.monotonic() - self.watch.heard > SILENCE

    @property
    def cause(self) -> str:
        """Why there is no connection."""
        return clean(self._client.conn.get_disconnection_cause() or "") if self._client else "never connected"

    def _good(self, answer: Any) -> None:
        if not answer:
            raise Refusal("lost" if self.lost else "refused", clean(answer))
