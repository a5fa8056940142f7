# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""A connection through the client that TRex v3 ships (:mod:`.shipped` imports it). For the client's process alone.

Its subscriber, a thread that sleeps until the server publishes and ends the process where it stumbles, is not started:
what it would ask for (``get_async_events``) is asked for between two looks of a trial, over the same connection.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from . import answers
from .library import REPLY, SILENCE
from .messages import Watch, clean
from .service import Refusal
from .shipped import NoSubscriber, load_library
from .stream_objects import AS_THEY_ARE, stream_data

TRY_AGAIN, IN_WORK = -32001, -32002
"""The server's errors that are none: it is busy, or gives a ticket for an answer to come."""

EVERY_CORE = (1 << 64) - 1
"""The mask that lets all of a port's cores send."""

ARP_RETRIES = 5
"""How often, 0.1 s apart, an address is asked for again that nobody answered for."""


class OfficialLibrary:
    """:class:`.link.Link` through the client that TRex ships. The library keeps connection and ports, builds streams
    and finds addresses; traffic and counters are asked of the server directly."""

    def __init__(self, folder: Path) -> None:
        """*folder*: see :func:`.folders.interactive`."""
        self._folder = folder
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self.watch = Watch(0)
        self._captures: set[int] = set()

    # -- connection and ports ------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Import the library, once. Raises Refusal."""
        self._library = self._library or load_library(self._folder)

    @property
    def _loaded(self) -> SimpleNamespace:
        self.load()
        assert self._library is not None  # noqa: S101
        return self._library

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; the versions of all that takes part."""
        library = self._loaded
        client = library.STLClient(
            username=username, server=server, sync_port=sync_port, async_port=async_port, sync_timeout=REPLY
        )
        self._client, self.watch = client, Watch(client.ctx.session_id)
        self._hear = self.watch.wrap(lambda kind, data: None)
        client.conn.async_ = NoSubscriber(library)
        rpc = client.conn.rpc
        rpc.set_retry_base = lambda enable: None  # else an answer is waited for four times as long
        rpc.handle_async_transmit = self._patient
        rpc.pretty_json = lambda *_, **__: ""  # it is made for each message, seen by nobody
        try:
            client.connect()
        except Exception as error:
            raise Refusal("connect", clean(error)) from error
        self._heard()
        self._ask("get_async_events", session_id=client.ctx.session_id, user="sub")  # from here on they are kept
        found = client.get_server_version()
        api = client.ctx.api_ver
        return {
            "server": f"{found.get('version', '?')} ({found.get('build_date', '?')}, {found.get('mode', '?')})",
            "client": f"TRex's own, of {self._folder}",
            "api": f"{api['major']}.{api['minor']}",
            "scapy": str(library.scapy.__version__),
            "pyzmq": f"{library.zmq.__version__} (libzmq {library.zmq.zmq_version()})",
            "client python": ".".join(str(part) for part in sys.version_info[:3]),
        }

    def numbers(self) -> Sequence[int]:
        """The server's ports."""
        return sorted(self._client.ports)

    def facts(self, port: int) -> dict[str, Any]:
        """MAC, speed in bit/s, link, driver and owner of *port*, asked now."""
        return answers.port_facts(self._status(port), self._client.ports[port].info)

    def acquire(self, ports: Sequence[int], force: bool, former: Mapping[str, str]) -> dict[str, str]:
        """Take *ports*, stop and forget what ran on them; the handler of each."""
        for number, handler in former.items():
            with self._whatever():  # where that connection holds it no more, which is well too
                self._ask("release", handler=handler, port_id=int(number))
        try:
            self._client.acquire(list(ports), force=force, sync_streams=False)
        except Exception as error:
            raise Refusal("taken" if "already" in clean(error) else "refused", clean(error)) from error
        self._heard()
        for port in ports:
            self._tell("stop_traffic", port, profile_id="*")
            self._tell("remove_all_streams", port, profile_id="_")
            if self._client.ports[port].is_prom_supported():
                self._tell("set_port_attr", port, attr={"promiscuous": {"enabled": False}})
            with self._whatever():
                self._tell("set_rx_feature", port, type="queue", enabled=False)
        self._client.set_service_mode(list(ports), False)
        return {str(port): str(self._client.ports[port].handler) for port in ports}

    def release(self, ports: Sequence[int]) -> None:
        """Give back those of *ports* that are still held."""
        for port in ports:
            with self._whatever():
                self._tell("release", port)
            self._client.ports[port].handler = ""

    def disconnect(self) -> None:
        """Close the sockets only."""
        if self._client is not None:
            self._client.conn.disconnect()

    # -- traffic -------------------------------------------------------------------------------------------------------

    def streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*; find out where their frames are to go."""
        library = self._loaded
        self._find_destinations(sorted(items))
        for port in ports:
            self._tell("remove_all_streams", port, profile_id="_")
        for port, rows in items.items():
            batch = []
            for number, item in enumerate(rows, 1):
                stream = stream_data(library, item)
                batch.append(("add_stream", {**self._mine(port), "stream_id": number, "stream": stream}))
            self._ask_all(batch)

    def rates(self, port: int) -> Mapping[str, Any]:
        """The streams of *port* in frames/s and bit/s."""
        found: dict[str, Any] = self._ask("validate", **self._mine(port))["rate"]
        return found

    def start(self, rates: Mapping[int, float], duration: float, as_they_are: Container[int] = ()) -> float:
        """Start all ports by one message, so that they begin together; the moment of the answer."""
        batch = [
            (
                "start_traffic",
                {
                    **self._mine(port),
                    "mul": AS_THEY_ARE if port in as_they_are else _pps(rate),
                    "duration": duration,
                    "force": True,
                    "core_mask": EVERY_CORE,
                    "start_at_ts": 0,
                },
            )
            for port, rate in rates.items()
        ]
        limit = time.monotonic() + REPLY
        while True:
            try:
                self._ask_all(batch)
            except Refusal as refusal:
                if refusal.kind != "refused":
                    raise
                self.halt(list(rates))
                if "owned" in str(refusal) or "acquire" in str(refusal):
                    holders = {port: self._status(port).get("owner") or "nobody" for port in rates}
                    named = "; ".join(f"port {port} is held by '{who}' now" for port, who in holders.items())
                    raise Refusal("taken", named) from refusal
                if "middle of configuration" not in str(refusal) or time.monotonic() > limit:
                    raise
                time.sleep(0.05)
            else:
                return time.monotonic()

    def update(self, rates: Mapping[int, float]) -> None:
        """New rates for ports that send, by one message."""
        self._ask_all(
            [("update_traffic", {**self._mine(port), "mul": _pps(rate), "force": True}) for port, rate in rates.items()]
        )

    def halt(self, ports: Sequence[int]) -> None:
        """Stop what is sending on those of *ports* that are held."""
        for port in ports:
            with self._whatever():
                self._tell("stop_traffic", port, profile_id="*")

    def listen(self) -> None:
        """Ask for what happened."""
        # events that nobody asked for within 10 s are the last that a server keeps: the first answer clears the way
        answer = self._ask("get_async_events", session_id=self._client.ctx.session_id, user="sub")
        for kind, data in answers.events(answer):
            self._hear(kind, data)

    def look(self, port: int) -> None:
        """Ask whether the link of *port* is up."""
        if not self._status(port)["attr"]["link"]["up"]:
            self.watch.down.add(port)

    def fresh(self, ports: Sequence[int]) -> Mapping[str, Any]:
        """Counters of this moment, which the server reads for each answer."""
        whole, *each = self._ask_all(
            [("get_global_stats", {}), *(("get_port_stats", {"port_id": port}) for port in ports)]
        )
        return answers.counters(whole, dict(zip(ports, each, strict=True)))

    def cores(self) -> list[list[float]]:
        """How busy the server's cores were."""
        return answers.core_loads(self._ask("get_utilization"))

    def groups(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """What the server counted of packet groups."""
        found: Mapping[str, Any] = self._ask("get_pgid_stats", pgids=list(numbers))
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

    def _find_destinations(self, ports: Sequence[int]) -> None:
        """Let ARP find the routers' MAC addresses that the server did not find when it started. Raises Refusal."""
        known = {port: answers.destination(self._status(port)) for port in ports}
        for port in (port for port, state in known.items() if state == "none"):
            raise Refusal(
                "refused",
                f"port {port} has no destination MAC address, so no router would take its frames; expected"
                " 'dest_mac', or 'ip' and 'default_gw', for this port in the server's trex_cfg.yaml",
            )
        unresolved = [port for port, state in known.items() if state == "unresolved"]
        if not unresolved:
            return
        self._client.set_service_mode(unresolved, True)
        try:
            self._client.resolve(unresolved, retries=ARP_RETRIES, verbose=False)
        except Exception as error:
            asked = (self._status(port)["attr"]["layer_cfg"]["ipv4"] for port in unresolved)
            named = ", ".join(f"{item.get('dst')} (asked by {item.get('src')})" for item in asked)
            raise Refusal(
                "refused",
                f"nobody answers ARP requests for {named}; expected that the router's interfaces are up and have"
                f" the addresses that the server's trex_cfg.yaml calls 'default_gw' ({clean(error)})",
            ) from error
        finally:
            with contextlib.suppress(Exception):
                self._client.set_service_mode(unresolved, False)

    # -- whether it stands ---------------------------------------------------------------------------------------------

    @property
    def reachable(self) -> bool:
        """Whether the connection stands, as far as the library knows."""
        return self._client is not None and bool(self._client.is_connected())

    @property
    def lost(self) -> bool:
        """Whether the server has left a question without an answer."""
        return self._client is not None and not self._client.conn.rpc.is_connected()

    @property
    def cause(self) -> str:
        """Why there is no connection."""
        if self._client is None:
            return "never connected"
        return clean(self._client.conn.get_disconnection_cause() or f"it gave no answer within {SILENCE:g} s")

    # -- questions -----------------------------------------------------------------------------------------------------

    def _status(self, port: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("get_port_status", port_id=port, profile_id="*", block=False)
        return found

    def _mine(self, port: int) -> dict[str, Any]:
        return {"handler": self._client.ports[port].handler, "port_id": port, "profile_id": "_"}

    def _tell(self, method: str, port: int, **parameters: Any) -> None:
        self._ask(method, handler=self._client.ports[port].handler, port_id=port, **parameters)

    @contextlib.contextmanager
    def _whatever(self) -> Any:
        """Pass over what the server refuses."""
        try:
            yield
        except Refusal as refusal:
            if refusal.kind != "refused":
                raise

    def _ask(self, method: str, **parameters: Any) -> Any:
        """The server's answer. Raises Refusal."""
        rpc = self._client.conn.rpc
        answer = self._patient(method, parameters, 0, rpc.invoke_rpc_method(method, dict(parameters)))
        if not answer:
            raise self._refusal(answer)
        self._heard()
        return answer.data()

    def _patient(self, method: str, parameters: Mapping[str, Any] | None, _: int, answer: Any) -> Any:
        """The answer that follows *answer* where the server was busy. In the place of the library's, which fails."""
        rpc, limit = self._client.conn.rpc, time.monotonic() + REPLY
        asked = dict(parameters or {})
        while not answer and answer.errno() in (TRY_AGAIN, IN_WORK) and time.monotonic() < limit:
            if answer.errno() == IN_WORK:
                method, asked = "get_async_results", {"ticket_id": int(answer.err())}
            time.sleep(0.05)
            answer = rpc.invoke_rpc_method(method, dict(asked))
        return answer

    def _ask_all(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        """The answers to several questions in one message. Raises Refusal where one of them is refused."""
        command = self._loaded.RpcCmdData
        answer = self._client.conn.rpc.transmit_batch([command(name, values, "core") for name, values in calls])
        if not answer:
            raise self._refusal(answer)
        self._heard()
        found = answer.data()
        return found if len(calls) > 1 else [found]

    def _heard(self) -> None:
        self.watch.heard = time.monotonic()

    def _refusal(self, answer: Any) -> Refusal:
        return Refusal("lost" if self.lost else "refused", clean(answer))


def _pps(rate: float) -> dict[str, Any]:
    return {"type": "pps", "value": rate, "op": "abs"}
