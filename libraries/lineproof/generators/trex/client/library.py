# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The interface of a TRex client library in the client's process, and the part that both of them share."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar

from ....core.counter_names import is_error, is_group_count, is_pause
from . import answers
from .addresses import CAPTURE_FILTER, MOST_KEPT, find_next_hops, question_of, silence
from .answers import ServerEvents, plain_message
from .service import CounterReading, NextHop, Refusal
from .sockets import REPLY_LIMIT, Pipe, Reply, limit_memory

MOST_UNDER_WAY = 16
"""Requests for counters that a server may have before it: a slow one gets no more."""

ALL_CORES = (1 << 64) - 1
"""The mask of all cores of a port."""

CORES_OF_SIDE = (0x5555555555555555, 0xAAAAAAAAAAAAAAAA)
"""Every other core, for the first and the second port of a pair: what TRex's own clients call "pin"."""


def pps_multiplier(rate: float) -> dict[str, Any]:
    """The multiplier that makes the streams of a port send *rate* frames/s in all."""
    return {"type": "pps", "value": rate, "op": "abs"}


Call = tuple[str, dict[str, Any]]
"""A method of the server and its parameters."""


class ClientLibrary(ABC):
    """A connection to one TRex server. Methods raise :class:`.service.Refusal`, or an error of the library.

    The library connects, acquires ports and transmits; starts and readings, of which several are under way, go to the
    server directly.

    Ports are numbers; counters are totals.
    """

    on_port: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request about the traffic of a port, beside the port and its handler."""
    on_all: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request about all traffic of a port, instead."""
    on_status: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request for the status of a port, beside the port."""

    def __init__(self) -> None:
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self._link: Any = None
        """The library's client of JSON-RPC."""
        self._api: Any = "core"
        """Return the library's name for the server's handle, or that handle."""
        self._pipe: Pipe | None = None
        """For the requests of which several are under way."""
        self.events = ServerEvents(0)
        self.check_cancelled: Callable[[], None] = lambda: None
        """Raises Refusal once a long search shall end."""
        self.next_hops: Mapping[int, NextHop] = {}
        """By port number."""
        self._asked: set[int] = set()
        self._handlers: dict[int, str] = {}
        self._promiscuous: list[int] = []
        self._captures: set[int] = set()
        self._card_names: dict[int, tuple[str, ...]] = {}
        """The names of each card's own counters; empty: it has none."""
        self.pins_cores = False
        """True: the ports of a pair that both send have cores of their own; else every core sends for both."""

    def core_mask(self, port: int, sending: Container[int]) -> int:
        """The cores that send for *port* while *sending* ports do, as a mask over its pair's cores."""
        shared = self.pins_cores and port ^ 1 in sending and len(self.port_facts(port)["cores"]) > 1
        return CORES_OF_SIDE[port % 2] if shared else ALL_CORES

    def load(self) -> None:
        """Import the library, once. Raises Refusal."""
        _ = self._loaded

    @property
    def _loaded(self) -> SimpleNamespace:
        if self._library is None:
            self._library = self._import()
            limit_memory()
        return self._library

    def _connect_client(self) -> None:
        try:
            self._client.connect()
        except Refusal as refusal:
            raise Refusal("connect", str(refusal)) from refusal
        except Exception as error:
            raise Refusal("connect", plain_message(error)) from error
        self._pipe = Pipe(self._link.transport)

    def _versions(self, client: str, api: str) -> dict[str, str]:
        library, server = self._loaded, self._client.get_server_version()
        return {
            "server": f"{server.get('version', '?')} ({server.get('build_date', '?')}, {server.get('mode', '?')})",
            "client": client,
            "api": api,
            "scapy": str(library.scapy.__version__),
            "pyzmq": f"{library.zmq.__version__} (libzmq {library.zmq.zmq_version()})",
            "client python": ".".join(str(part) for part in sys.version_info[:3]),
        }

    def acquire(
        self, ports: Sequence[int], force: bool, former: Mapping[int, str], promiscuous: bool
    ) -> dict[int, str]:
        """Acquire *ports* without traffic and streams; return their handlers. *former*: handlers to release first.

        *promiscuous*: the ports receive frames for any MAC address until their release.
        """
        for number, handler in former.items():
            with self._ignoring_refusals():  # that connection may not hold it any more
                self._ask("release", handler=handler, port_id=number)
        try:
            self._client.acquire(list(ports), force=force, sync_streams=False)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("taken" if "already" in plain_message(error) else "refused", plain_message(error)) from error
        finally:
            handlers = {port: self._client.ports[port].handler for port in ports}
            self._handlers = {port: str(handler) for port, handler in handlers.items() if handler}
        for port in ports:
            self._ask_port("stop_traffic", port, **self.on_all)
            self._ask_port("remove_all_streams", port, **self.on_port)
        self._leave_service_mode(ports)
        self._set_promiscuous(ports, promiscuous)
        return self._handlers

    def release(self, ports: Sequence[int]) -> None:
        """Release *ports*, but those that are not held any more."""
        for port in sorted(self._handlers.keys() & ports):
            with self._ignoring_refusals():
                if port in self._promiscuous:
                    self._ask_port("set_port_attr", port, attr={"promiscuous": {"enabled": False}})
            with self._ignoring_refusals():
                self._ask_port("release", port)

    def disconnect(self) -> None:
        """Close the sockets only."""
        if self._client is not None:
            self._client.conn.disconnect()
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def port_facts(self, port: int) -> dict[str, Any]:
        """Return the facts of *port* now: see :func:`.answers.port_facts`."""
        return answers.port_facts(self._status(port), self._static(port))

    def port_numbers(self) -> Sequence[int]:
        """The server's port numbers."""
        return sorted(self._client.ports)

    def core_loads(self) -> list[list[float]]:
        """Load of each sending core in per cent of each second, the latest first (up to 20)."""
        return answers.core_loads(self._ask("get_utilization"))

    @staticmethod
    @contextlib.contextmanager
    def _ignoring_refusals() -> Iterator[None]:
        """Ignore refusals of the server."""
        try:
            yield
        except Refusal as refusal:
            if refusal.kind != "refused":
                raise

    # -- traffic -------------------------------------------------------------------------------------------------------

    def replace_streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*: :class:`lineproof.generators.streams.Stream` as data.

        Asks for the MAC addresses that the ports need and do not know (:mod:`.addresses`).
        """
        self._find_destinations(items)
        for port in ports:
            self._ask_port("remove_all_streams", port, **self.on_port)
        for port, rows in items.items():
            streams = [{"stream_id": number, "stream": self._stream(item)} for number, item in enumerate(rows, 1)]
            self._ask_all([("add_stream", {**self._about(port), **stream}) for stream in streams])

    def start(
        self, rates: Mapping[int, float], duration: float, ports: Sequence[int], gap: float
    ) -> tuple[float, CounterReading]:
        """Start all ports of *rates* (frames/s) together; return a time before it, and the counters of *ports* then.

        Until the answer comes, the counters are asked for each *gap* s.
        *duration* in s of the server's clock; -1: until stopped, or until the streams end. All of it is one message.
        """
        always, calls = {"duration": duration, "force": True, "start_at_ts": 0}, list[Call]()
        for port, rate in rates.items():
            own = {"mul": pps_multiplier(rate), "core_mask": self.core_mask(port, rates)}
            calls.append(("start_traffic", {**self._about(port), **own, **always}))
        limit = time.monotonic() + REPLY_LIMIT
        while True:
            try:
                asked, sent, results = self._ask_meanwhile([*calls, *self._reading(ports)], ports, gap)
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
                reply = Reply(asked, sent[len(calls) :], results[len(calls) :])
                return answers.moment(results[0]), self._counters_read(ports, reply)

    def update(self, rates: Mapping[int, float]) -> None:
        """Change the rates of sending ports in one message."""
        changes = {port: {"mul": pps_multiplier(rate), "force": True} for port, rate in rates.items()}
        self._ask_all([("update_traffic", {**self._about(port), **change}) for port, change in changes.items()])

    def stop_traffic(self, ports: Sequence[int]) -> None:
        """Stop traffic on those of *ports* that are held."""
        for port in sorted(self._handlers.keys() & ports):
            with self._ignoring_refusals():
                self._ask_port("stop_traffic", port, **self.on_all)

    def check_links(self, ports: Sequence[int]) -> None:
        """Ask whether the links of *ports* are up; the answers go to :attr:`events`."""
        self.events.links_down |= {port for port in ports if not self._status(port)["attr"]["link"]["up"]}

    def read_counters(
        self, ports: Sequence[int], groups: Sequence[int] = (), cards: Sequence[int] = ()
    ) -> CounterReading:
        """Counters of *ports*, of packet *groups*, and the cards' own of the ports *cards*. Fetches events, too."""
        of_cards = self._of_cards(cards)
        more = [("get_pgid_stats", {"pgids": list(groups)})] if groups else []
        calls = self._reading(ports)
        asked, sent, results = self._ask_meanwhile([*calls, *more], ports, REPLY_LIMIT)
        reading = self._counters_read(ports, Reply(asked, sent, results[: len(calls)]))
        return replace(reading, groups=dict(*results[len(calls) :]), cards=of_cards)

    def _of_cards(self, ports: Sequence[int]) -> dict[int, dict[str, int]]:
        """The cards' own counters of errors, pause frames and frames to a group, where there are any."""
        for port in ports:
            if port not in self._card_names:
                self._card_names[port] = ()
                with contextlib.suppress(Exception):
                    self._card_names[port] = tuple(self._ask("get_port_xstats_names", port_id=port)["xstats_names"])
        named, found = [port for port in ports if self._card_names[port]], dict[int, dict[str, int]]()
        with contextlib.suppress(Exception):
            values = self._ask_all([("get_port_xstats_values", {"port_id": port}) for port in named]) if named else []
            for port, row in zip(named, values, strict=False):
                counts = zip(self._card_names[port], row["xstats_values"], strict=False)
                found[port] = {name: int(count) for name, count in counts if _is_kept(name)}
        return found

    def ask_counters(self, ports: Sequence[int]) -> None:
        """Ask for the counters of *ports* without waiting for the answer."""
        if self.under_way < MOST_UNDER_WAY:
            self._send(self._reading(ports))

    @property
    def under_way(self) -> int:
        """Return the number of such requests whose counters were not taken."""
        return self._pipe.under_way if self._pipe else 0

    def counters_come(self, ports: Sequence[int], wait: float) -> tuple[float, CounterReading] | None:
        """The next counters that were asked for, and when by this machine's clock; None: none came within *wait* s."""
        if self._pipe is None or (come := self._pipe.answer(wait)) is None:
            return None
        return come.asked, self._counters_read(ports, come)

    @contextlib.contextmanager
    def capturing(self, ports: Sequence[int], limit: int, packets: str = "") -> Iterator[int]:
        """Keep the last *limit* frames (0: none) that *ports* receive together inside the block; yield the number of
        the capture. The ports are in service mode meanwhile. *packets*: a Berkeley packet filter.
        """
        if not limit:
            yield 0
            return
        try:
            for port in ports:
                self._ask_port("service", port, enabled=True)
            keep = {"mode": "cyclic", "limit": limit, "filter": packets}
            number = int(self._ask("capture", command="start", rx=list(ports), tx=[], **keep)["capture_id"])
            self._captures.add(number)
            yield number
        finally:
            with contextlib.suppress(Exception):
                self._leave_service_mode(ports)

    def captured(self, number: int, limit: int) -> dict[int, list[bytes]]:
        """Return the last *limit* frames of a capture by port, in their order."""
        frames_by_port = defaultdict[int, list[bytes]](list)
        if limit:
            kept = self._ask("capture", command="fetch", capture_id=number, pkt_limit=limit, snaplen=0)
            for row in kept["pkts"]:
                frames_by_port[int(row["port"])].append(binascii.a2b_base64(row["binary"]))
        return frames_by_port

    # -- addresses -----------------------------------------------------------------------------------------------------

    def _find_destinations(self, items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Ask for the MAC addresses that ports need for the streams *items*, and do not know. Raises Refusal."""
        questions = []
        for port in sorted(port for port, rows in items.items() if not all(row["destination"] for row in rows)):
            named = self.next_hops.get(port)
            explicit = named is not None and named.explicit and port not in self._asked
            if question := question_of(
                port, self._status(port), str(self._static(port).get("hw_mac", "")), named, explicit
            ):
                questions.append(question)
        if not questions:
            return
        ports = [question.port for question in questions]
        with self.capturing(ports, MOST_KEPT, CAPTURE_FILTER) as capture:
            found = find_next_hops(self._ask, capture, questions, self.check_cancelled)
        for question in questions:
            if (mac := found.get(question.port)) is None:
                continue
            self._asked.add(question.port)
            if question.ipv6:
                self._ask_port("set_l2", question.port, dst_mac=mac, block=False)
            else:
                addresses = {"src_addr": question.source, "dst_addr": question.address}
                self._ask_port("set_l3", question.port, **addresses, resolved_mac=mac, block=False)
        if silent := [question for question in questions if question.port not in found]:
            raise Refusal("refused", silence(silent))

    def _set_promiscuous(self, ports: Sequence[int], wanted: bool) -> None:
        """Let *ports* receive frames for any MAC address, or only for their own. Raises Refusal if one cannot."""
        for port in ports:
            refusal = ""
            try:
                self._ask_port("set_port_attr", port, attr={"promiscuous": {"enabled": wanted}})
            except Refusal as error:
                if error.kind != "refused":
                    raise
                refusal = f": {error}"
            # a card that cannot switch it off is no harm
            if wanted and not (self._status(port)["attr"].get("promiscuous") or {}).get("enabled"):
                raise Refusal(
                    "refused",
                    f"port {port} does not become promiscuous{refusal}; expected a card that can, or 'promiscuous:"
                    " false' in the testbed file",
                )
        self._promiscuous = list(ports) if wanted else []

    # -- service mode --------------------------------------------------------------------------------------------------

    def _leave_service_mode(self, ports: Sequence[int]) -> None:
        """Service mode off, and first what keeps it on: captures of these ports only, and queues. Raises Refusal."""
        while self._captures:
            with contextlib.suppress(Refusal):
                self._ask("capture", command="remove", capture_id=self._captures.pop())
        # those that a killed client left on these ports; other users may capture on theirs
        mask = sum(1 << port for port in ports)
        for row in self._ask("capture", command="status"):
            filtered = row.get("filter") or {}
            seen = int(filtered.get("rx") or 0) | int(filtered.get("tx") or 0)
            if seen and not seen & ~mask:
                with contextlib.suppress(Refusal):
                    self._ask("capture", command="remove", capture_id=row["id"])
        problems = []
        for port in ports:
            with contextlib.suppress(Refusal):
                self._ask_port("set_rx_feature", port, type="queue", enabled=False)
            try:
                self._ask_port("service", port, enabled=False)
            except Refusal as refusal:
                problems.append(refusal)
        if problems:
            raise problems[0]

    # -- requests ------------------------------------------------------------------------------------------------------

    @property
    def reachable(self) -> bool:
        """Return whether the library reports a connection."""
        return self._client is not None and bool(self._client.is_connected())

    @property
    def lost(self) -> bool:
        """Return whether the server no longer answers. False before the first connection."""
        return self._client is not None and not (self._client.is_connected() and self._link.connected)

    @property
    def disconnect_cause(self) -> str:
        """Why there is no connection."""
        if self._client is None:
            return "never connected"
        cause = self._client.conn.get_disconnection_cause()
        return plain_message(cause or f"it gave no answer within {REPLY_LIMIT:g} s")

    def _ask(self, method: str, **parameters: Any) -> Any:
        """The server's answer. Raises Refusal."""
        answer = self._client.conn.rpc.transmit(method, parameters)
        if not answer:
            raise Refusal("lost" if self.lost else "refused", plain_message(answer))
        return answer.data()

    def _ask_all(self, calls: Sequence[Call]) -> list[Any]:
        """The answers to several requests in one message. Raises Refusal if one of them is refused."""
        return self._ask_meanwhile(calls, (), REPLY_LIMIT).results

    def _ask_meanwhile(self, calls: Sequence[Call], ports: Sequence[int], gap: float) -> Reply:
        """The answers to *calls* in one message. Until they come, the counters are asked for each *gap* s."""
        while self.under_way:  # readings of traffic that was stopped, or refused
            self.counters_come(ports, gap)
        self._send(calls)
        while self._pipe is not None:
            if come := self._pipe.answer(gap):
                return come
            self.ask_counters(ports)
        raise Refusal("lost", self.disconnect_cause)

    def _send(self, calls: Sequence[Call]) -> None:
        if self._pipe is not None:
            make = self._link.create_jsonrpc_v2
            self._pipe.ask([make(name, dict(values), self._api, encode=False)[1] for name, values in calls])

    def _ask_port(self, method: str, port: int, **parameters: Any) -> None:
        self._ask(method, handler=self._handlers[port], port_id=port, **parameters)

    def _about(self, port: int) -> dict[str, Any]:
        """Return the parameters of a request about the traffic of *port*."""
        return {"handler": self._handlers[port], "port_id": port, **self.on_port}

    def _status(self, port: int) -> dict[str, Any]:
        return dict(self._ask("get_port_status", port_id=port, **self.on_status))

    def _static(self, port: int) -> Mapping[str, Any]:
        """The port's entry in ``get_system_info``, which newer servers give in the reverse order."""
        rows = enumerate(self._client.system_info["ports"])
        found: dict[int, Mapping[str, Any]] = {row.get("index", place): row for place, row in rows}
        return found[port]

    # -- implemented by each library -----------------------------------------------------------------------------------

    @abstractmethod
    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; return the versions of server, client and libraries."""

    @abstractmethod
    def poll_events(self) -> None:
        """Fetch the server's events, if the library has to ask for them."""

    @abstractmethod
    def _import(self) -> SimpleNamespace: ...

    @abstractmethod
    def _stream(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return *item*, a :class:`lineproof.generators.streams.Stream` as data, as this server takes it."""

    @abstractmethod
    def _reading(self, ports: Sequence[int]) -> list[Call]:
        """The calls that read the counters of *ports*, between two looks at the server's clock."""

    @abstractmethod
    def _counters_read(self, ports: Sequence[int], reply: Reply) -> CounterReading:
        """The counters, from the answers to :meth:`_reading`."""


@lru_cache(4096)
def _is_kept(name: str) -> bool:
    return is_error(name) or is_pause(name) or is_group_count(name)


MAC_FROM_PACKET = 1
"""TRex's mode of a stream's destination MAC address (bits 1 and 2 of its ``flags``): from the packet."""


def stream_data(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return *item*, a :class:`lineproof.generators.streams.Stream` as data, for ``add_stream``."""
    if item["program"]:
        return program_data(item)
    instructions: list[dict[str, Any]] = []
    for field in item["variables"]:
        limits = {"init_value": field["minimum"], "min_value": field["minimum"], "max_value": field["maximum"]}
        counter = {"type": "flow_var", "op": "inc", "name": field["name"], "size": field["size"], "step": field["step"]}
        written = {"type": "write_flow_var", "add_value": 0, "is_big_endian": True, "pkt_offset": field["offset"]}
        instructions += [counter | limits, written | {"name": field["name"]}]
    if item["fix_ipv4"] is not None:
        instructions.append({"type": "fix_checksum_ipv4", "pkt_offset": item["fix_ipv4"]})
    frame, flags = bytes.fromhex(item["frame"]), 0
    if to := item["destination"]:
        frame, flags = _mac(to) + frame[6:], MAC_FROM_PACKET << 1
    mode: dict[str, Any] = {"type": "continuous", "rate": {"type": "pps", "value": item["share"]}}
    counted: dict[str, Any] = {"enabled": False}
    if item["group"] is not None:
        counted = {"enabled": True, "rule_type": "latency", "stream_id": item["group"]}
        mode["rate"]["value"] = item["pps"]
    elif item["burst"]:
        mode |= {"type": "single_burst", "total_pkts": item["burst"]}
    return {
        "action_count": 0,
        "enabled": True,
        "flags": flags,
        "flow_stats": counted,
        "isg": item["gap"],
        "mode": mode,
        "next_stream_id": -1,
        "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""},
        "self_start": True,
        "vm": {"instructions": instructions},
    }


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def program_data(item: Mapping[str, Any]) -> dict[str, Any]:
    """A stream of a user's own file as data: unchanged, or limited to the burst and with the destination of *item*."""
    data: dict[str, Any] = json.loads(item["program"])
    if to := item.get("destination"):
        frame = base64.b64decode(data["packet"]["binary"])
        data["packet"] = {**data["packet"], "binary": base64.b64encode(_mac(to) + frame[6:]).decode()}
        data["flags"] = data["flags"] & ~(3 << 1) | MAC_FROM_PACKET << 1
    if item["burst"]:
        data["mode"] = {**data["mode"], "type": "single_burst", "total_pkts": item["burst"]}
    return {"next_stream_id": -1, **data}
