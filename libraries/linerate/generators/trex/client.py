# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The process that holds TRex's Python client, ``trex_stl_lib`` (0.3 of PyPI).

Run as ``python -m linerate.generators.trex.client`` in a session of its own; protocol: :mod:`.service`. It stops its
traffic and releases its ports before it ends.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from linerate.generators.trex.groups import group_counts
from linerate.generators.trex.library import build_stream, load_library
from linerate.generators.trex.service import Refusal, Service
from linerate.generators.trex.under_way import UnderWay
from linerate.generators.trex.watch import Watch, clean

REPLY = 5.0
"""Seconds that one answer of the server may take; the library's own limit is 10."""

SILENCE = 5.0
"""Seconds without any message of the server (it publishes every 0.5 s) after which it counts as lost."""

FIELDS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")


class Session(UnderWay):
    """A connection to one TRex server, as commands. Counters are totals, never rates; times are s of the wall clock."""

    def __init__(self, cancelled: threading.Event) -> None:
        super().__init__()
        self._cancelled = cancelled
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self._held: list[int] = []
        self._gone = False
        self._watch = Watch(0)
        self._streams: dict[str, list[dict[str, Any]]] = {}
        self._trip = 0.0  # s that the last question for counters took, there and back

    def command(self, name: str) -> Callable[..., Any]:
        """The command called *name*. Raises Refusal."""
        known = (
            *("connect", "acquire", "ports", "prepare", "stop", "release"),
            *("trial", "capture", "burst", "begin", "change", "watch", "finish"),
        )
        if name not in known:
            raise Refusal("request", f"no command '{name}'; there are {', '.join(known)} and quit")

        def carry_out(**arguments: Any) -> Any:
            try:
                return getattr(self, name)(**arguments)
            except Refusal as error:
                self._gone |= error.kind == "lost"
                raise
            except Exception as error:
                if hasattr(error, "msg"):  # every error of the library
                    raise Refusal("lost" if self._lost() else "refused", clean(error)) from error
                raise

        return carry_out

    # -- connection and ports ------------------------------------------------------------------------------------------

    def load(self) -> SimpleNamespace:
        """The library, imported once."""
        if self._library is None:
            self._library = load_library()
        return self._library

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, Any]:
        """Connect; the versions of all that takes part."""
        library = self.load()
        client = library.STLClient(username=username, server=server, sync_port=sync_port, async_port=async_port)
        self._client, self._watch = client, Watch(client.session_id)
        # The library's own handling of silence fails (it adds strings wrongly) and ends its thread; a busy machine
        # may well be silent for 3 s. Silence is judged in _lost().
        client.event_handler.on_async_timeout = lambda _: None
        # Its thread crashes on a barrier, such as another client's, that comes before its own first question.
        client.conn.async_connection.async_barrier = {"key": None, "ack": False}
        events = client.event_handler
        events.on_async_event = self._watch.wrap(events.on_async_event)
        events.on_async_stats_update = self._watch.hear(events.on_async_stats_update)
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

    def ports(self, ports: list[int] | None = None) -> list[dict[str, Any]]:
        """Number, MAC, speed in bit/s, link, driver and owner of the server's ports (or of *ports*), asked now."""
        client, found = self._connected(), []
        # the library pairs these with ports by their place in the list, which newer servers turn round
        facts = {item.get("index", place): item for place, item in enumerate(client.system_info["ports"])}
        for number in client.get_all_ports() if ports is None else ports:
            if number not in client.ports:
                raise Refusal("request", f"the server has no port {number}; it has {sorted(client.ports)}")
            port = client.ports[number]
            self._good(port.sync())
            attributes = port.status["attr"]
            mac = attributes.get("layer_cfg", {}).get("ether", {}).get("src") or facts[number].get("hw_mac", "")
            found.append(
                {
                    "index": number,
                    "mac": mac,
                    "speed_bps": float(attributes["speed"]) * 1e9,
                    "link_up": bool(attributes["link"]["up"]),
                    "driver": str(facts[number].get("driver", "")),
                    "owner": str(port.owner or ""),
                }
            )
        return found

    def acquire(self, ports: list[int], force: bool = False, former: Mapping[str, str] | None = None) -> dict[str, str]:
        """Take *ports*, stop and forget what ran on them; the handler of each.

        *former*: the handlers of an earlier connection. A port that is still held by one of them is given back first;
        one that somebody took since is not, for its handler is another.
        """
        client = self._connected()
        self.ports(ports)  # says which of them do not exist
        for number, handler in (former or {}).items():
            # refused where that connection holds it no more, which is well too
            client.ports[int(number)].transmit("release", {"handler": handler, "port_id": int(number)})
        try:
            client.acquire(ports, force=force, sync_streams=False)
        except Exception as error:
            raise Refusal("taken" if "already" in clean(error) else "refused", clean(error)) from error
        self._held = list(ports)
        client.stop(ports, rx_delay_ms=0)
        client.remove_all_streams(ports)
        client.set_port_attr(ports, promiscuous=False)
        client.set_service_mode(ports, False)
        return {str(number): str(client.ports[number].handler) for number in ports}

    def release(self) -> dict[str, Any]:
        """Stop the traffic and give the ports back."""
        if self._reachable():
            self._halt()
            owned = [port for port in self._held if self._client.ports[port].is_acquired()]
            if owned:
                self._client.release(owned)
        self._held = []
        return {}

    def stop(self) -> dict[str, Any]:
        """Stop all traffic."""
        self._cancelled.clear()
        self.forget()
        if self._reachable():
            self._halt()
        return {}

    def close(self) -> None:
        """Release, then disconnect."""
        with contextlib.suppress(Exception):
            self.release()
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.disconnect(stop_traffic=False, release_ports=False)

    # -- traffic -------------------------------------------------------------------------------------------------------

    def prepare(self, streams: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """Replace all streams: per port number, a list of :class:`linerate.generators.streams.Stream` as data."""
        client = self._connected()
        self._streams = dict(streams)
        client.remove_all_streams(self._held)
        for port, items in streams.items():
            client.add_streams([build_stream(self.load(), item) for item in items], ports=[int(port)])
        return {}

    def trial(
        self,
        rates: Mapping[str, float],
        ways: list[tuple[int, int]],
        duration: float,
        clock_speed: float = 1.0,
        drain: float = 2.0,
        groups: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Send *rates* (frames/s per port number) for *duration* s of the bench's clock, drain, count.

        *ways*: sending and receiving port of each way; *drain*: see :func:`.drain.drained`. Answers what
        :meth:`.under_way.UnderWay.finish` does and ``latency``: what the server says of *groups* (sending port ->
        packet group) as :mod:`.groups` reads it.
        """
        if groups:
            self.prepare(self._streams)  # what a group counted before goes with its last stream
        self.begin(rates, ways, duration)
        answer = self.finish(drain, clock_speed)
        return {**answer, "latency": self._latency(groups or {}, ways)}

    def _latency(self, groups: Mapping[str, int], ways: list[tuple[int, int]]) -> list[dict[str, Any]]:
        if not groups:
            return []
        answer = self._client._transmit("get_pgid_stats", {"pgids": list(groups.values())})
        self._good(answer)
        return [found for way in ways if (found := group_counts(answer.data(), groups[str(way[0])], *way)) is not None]

    def capture(self, ways: list[tuple[int, int]], keep: int, **trial: Any) -> dict[str, Any]:
        """A trial during which up to *keep* frames of each receiving port are kept, as hexadecimal digits."""
        client, frames = self._connected(), {}
        receivers = sorted({port for _, port in ways})
        client.set_service_mode(receivers, True)
        try:
            # one capture per port, lest one port's frames crowd out the other's
            kept = {port: client.start_capture(rx_ports=[port], limit=keep)["id"] for port in receivers}
            answer = self.trial(ways=ways, **trial)
            for port, number in kept.items():
                found: list[dict[str, Any]] = []
                client.stop_capture(number, output=found)
                frames[str(port)] = [bytes(item["binary"]).hex() for item in found]
        finally:
            with contextlib.suppress(Exception):
                client.remove_all_captures()
            with contextlib.suppress(Exception):
                client.set_service_mode(receivers, False)
        return {**answer, "frames": frames}

    def _start(self, sending: Mapping[int, float], duration: float) -> float:
        """Start all ports by one message, so that they begin together; the moment of the answer."""
        client, batch = self._client, []
        for number, rate in sending.items():
            port = client.ports[number]
            if not port.is_acquired():
                raise Refusal("taken", f"port {number} is held by '{port.owner or 'nobody'}' now")
            parameters = {
                "handler": port.handler,
                "port_id": number,
                "mul": {"type": "pps", "value": rate, "op": "abs"},
                "duration": duration,
                "force": True,
                "core_mask": port.MASK_ALL,
                "start_at_ts": 0,
            }
            batch.append(self.load().RpcCmdData("start_traffic", parameters, "core"))
            port.state = port.STATE_TX  # before the call: the end may be reported before the answer is read
        answer = client._transmit_batch(batch)
        moment = time.monotonic()
        if not answer:
            for number in sending:
                client.ports[number].stop(force=True)
                client.ports[number].sync()
            raise Refusal("lost" if self._lost() else "refused", clean(answer))
        return moment

    def _update(self, sending: Mapping[int, float]) -> None:
        """New rates for ports that send, by one message."""
        batch = [
            self.load().RpcCmdData(
                "update_traffic",
                {
                    "handler": self._client.ports[number].handler,
                    "port_id": number,
                    "mul": {"type": "pps", "value": rate, "op": "abs"},
                    "force": True,
                },
                "core",
            )
            for number, rate in sending.items()
        ]
        self._good(self._client._transmit_batch(batch))

    # -- small things --------------------------------------------------------------------------------------------------

    def _counters(self) -> dict[str, Any]:
        """Totals of every held port, published by the server at this moment, and its global readings."""
        self._check_cancelled()
        client, stale, asked = self._connected(), self._snapshot(), time.monotonic()
        self._good(client.conn.barrier())
        limit = time.monotonic() + REPLY
        while (fresh := self._snapshot()) is stale or not fresh:
            if time.monotonic() > limit:
                raise Refusal("lost", f"the server published no counters for {REPLY:g} s")
            time.sleep(0.001)
        self._trip = time.monotonic() - asked
        found: dict[str, Any] = {
            str(port): {field: int(fresh.get(f"{field}-{port}", 0)) for field in FIELDS} for port in self._held
        }
        found["global"] = {key: value for key, value in fresh.items() if key.startswith("m_") and "-" not in key}
        return found

    def _snapshot(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.conn.async_connection.raw_snapshot.get("trex-global", {})
        return found

    def _halt(self) -> None:
        """Stop what is sending, whatever the library believes of it."""
        for number in self._held:
            port = self._client.ports[number]
            if port.is_acquired():
                port.stop(force=True)
                port.sync()

    def _reachable(self) -> bool:
        return self._client is not None and not self._gone and bool(self._client.is_connected())

    def _connected(self) -> Any:
        if self._gone:
            raise Refusal("lost", "the connection was lost before")
        if self._client is None or not self._client.is_connected():
            cause = clean(self._client.conn.get_disconnection_cause() or "") if self._client else "never connected"
            raise Refusal("lost", f"not connected to the server: {cause}")
        return self._client

    def _lost(self) -> bool:
        if self._client is None:
            return False
        connection = self._client.conn
        if not connection.is_connected() or not connection.rpc.is_connected:
            return True
        return time.monotonic() - self._watch.heard > SILENCE

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            self._halt()
            raise Refusal("cancelled", "stopped on request")

    def _good(self, answer: Any) -> None:
        if not answer:
            raise Refusal("lost" if self._lost() else "refused", clean(answer))


def main() -> int:
    """Serve until the end; the process's exit status."""
    # The library prints. The protocol keeps the real standard output, everybody else gets standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # On a message it does not know, the library's subscriber thread calls os.killpg(os.getppid(), SIGTERM) to take
    # its shell along. This process leads a session of its own and its parent is Robot: that call must do nothing. The
    # connection is marked as lost besides, which a trial notices. It also sends SIGINT to itself: ignored likewise.
    setattr(os, "killpg", lambda *_: None)  # noqa: B010
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    service = Service(answers)
    session = Session(service.cancelled)
    signal.signal(signal.SIGTERM, service.end)
    threading.Thread(target=service.read, daemon=True, name="commands").start()
    with contextlib.suppress(Refusal):
        session.load()  # now, so that the first command need not wait; its failure is that command's answer
    service.serve(session.command)
    session.close()
    sys.stderr.flush()
    os._exit(0)  # the library's threads are not waited for


if __name__ == "__main__":
    sys.exit(main())
