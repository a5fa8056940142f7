"""A connection to a TRex server: what both client libraries share of it, and what each of them has of its own."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

from ....core.counter_names import is_error, is_group_count, is_pause
from . import answers
from .addresses import CAPTURE_FILTER, MOST_KEPT, Fetch, find_next_hops, question_of, silence
from .answers import ServerEvents, plain_message
from .service import CounterReading, NextHop, Refusal
from .sockets import REPLY_LIMIT, Pipe, Reply, limit_memory

MOST_UNDER_WAY = 16
"""Requests for counters that a server may have before it: a slow one gets no more."""

BUSY_ERROR, TICKET_ERROR = -32001, -32002
"""Errors of a busy server: repeat the request, or ask later with the ticket."""

BUSY_WAIT = 0.05
"""Seconds until a busy server is asked again."""

ALL_CORES = (1 << 64) - 1
"""The mask of all cores of a port."""

CORES_OF_SIDE = (0x5555555555555555, 0xAAAAAAAAAAAAAAAA)
"""Every other core, for the first and the second port of a pair: what TRex's own clients call "pin"."""

Call = tuple[str, dict[str, Any]]
"""A method of the server and its parameters."""

TOTALS: Call = ("get_global_stats", {})
"""Asks for full transmit queues and the load of the receiving core."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Survey:
    """All that is asked of a server at once while nothing is sent: :attr:`cards` between two readings of counters.

    Some cards clear counters by a reading of their own ones that the server reads too.
    """

    first: CounterReading
    last: CounterReading
    cards: Mapping[int, Mapping[str, int]]
    """The cards' own counters of errors, pause frames and frames to a group, by port."""
    links_down: set[int]
    """Ports without a link."""
    loads: list[list[float]]
    """See :func:`core_loads`."""
    groups: Mapping[str, Any] = field(default_factory=dict)
    """The server's counts of packet groups."""


class ClientLibrary(ABC):
    """A connection to one TRex server. Methods raise :class:`.service.Refusal`, or ValueError for a strange answer.

    The library connects and acquires ports. All other requests go to the server directly, several at a time.

    Ports are numbers; counters are totals.
    """

    on_port: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request about the traffic of a port, beside the port and its handler."""
    on_all: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request about all traffic of a port, instead."""
    on_status: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a request for the status of a port, beside the port."""
    event_calls: Sequence[Call] = ()
    """Calls that fetch the server's events with the counters."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        """Set: whatever waits shall end."""
        self.lost = False
        """The server gave no answer: it is asked nothing more."""
        self.events = ServerEvents(0)
        self._client: Any = None
        self._pipe: Pipe | None = None
        self._numbers = itertools.count(1)
        self._handlers: dict[int, str] = {}
        self._pins_cores = False
        """True: the ports of a pair that both send have cores of their own; else every core sends for both."""
        self._next_hops: dict[int, NextHop] = {}
        self._promiscuous = False
        self._captures: set[int] = set()
        self._loaded = set[int]()
        """The ports that may have streams."""
        self._card_names: dict[int, tuple[str, ...]] = {}
        """The names of each card's own counters; empty: it has none."""

    # -- connection and ports ------------------------------------------------------------------------------------------

    @cached_property
    def library(self) -> SimpleNamespace:
        """The imported library. Raises Refusal."""
        library = self._import()
        limit_memory()
        return library

    def connect(self, server: str, sync_port: int, async_port: int, username: str, pins_cores: bool) -> dict[str, str]:
        """Connect; return the versions of server, client and libraries."""
        library, self._pins_cores = self.library, pins_cores
        self._pipe = Pipe(f"tcp://{server}:{sync_port}")
        try:
            client, api = self._connect(server, sync_port, async_port, username)
        except Exception as error:
            text = str(error) if isinstance(error, Refusal) else plain_message(error)
            raise Refusal("connect", text) from error
        version = self._client.get_server_version()
        return {
            "server": f"{version.get('version', '?')} ({version.get('build_date', '?')}, {version.get('mode', '?')})",
            "client": client,
            "api": api,
            "scapy": str(library.scapy.__version__),
            "pyzmq": f"{library.zmq.__version__} (libzmq {library.zmq.zmq_version()})",
            "client python": ".".join(str(part) for part in sys.version_info[:3]),
        }

    def ports(self, ports: Sequence[int]) -> list[dict[str, Any]]:
        """Return ``index`` and :func:`.answers.port_facts` of *ports* as they are now."""
        for number in ports:
            if number not in self._client.ports:
                raise Refusal("request", f"the server has no port {number}; it has {sorted(self._client.ports)}")
        statuses = self._statuses(ports).items()
        return [{"index": port, **answers.port_facts(status, self._static(port))} for port, status in statuses]

    @property
    def held(self) -> list[int]:
        """The acquired ports."""
        return sorted(self._handlers)

    def acquire(
        self,
        ports: list[int],
        force: bool,
        former: Mapping[int, str],
        promiscuous: bool,
        next_hops: Mapping[int, Mapping[str, Any]],
    ) -> dict[int, str]:
        """Acquire *ports*, stop their traffic, remove their streams; return their handlers.

        *former*: handlers of an earlier connection, whose ports are released first. A port that another user has
        acquired since has another handler and is not released. *promiscuous*: the ports receive frames for any MAC
        address until their release. *next_hops*: :class:`.service.NextHop` as data, by port.
        """
        self.ports(ports)  # raises Refusal for ports that do not exist
        self._next_hops = {port: NextHop(**hop) for port, hop in next_hops.items()}
        for port, handler in former.items():
            with _ignored_refusals():  # that connection may not hold it any more
                self.ask("release", handler=handler, port_id=port)
        try:
            self._client.acquire(ports, force=force, sync_streams=False)
        except Exception as error:
            raise Refusal("taken" if "already" in plain_message(error) else "refused", plain_message(error)) from error
        finally:  # one that fails may hold some of them
            handlers = {port: self._client.ports[port].handler for port in ports}
            self._handlers = {port: str(handler) for port, handler in handlers.items() if handler}
        self._ask_each("stop_traffic", ports, **self.on_all)
        self._ask_each("remove_all_streams", ports, **self.on_port)
        self._leave_service_mode(ports)
        self._set_promiscuous(ports, promiscuous)
        return self._handlers

    def close(self) -> bool:
        """Stop the traffic, release the ports, disconnect; return whether no port is held any more."""
        with contextlib.suppress(Exception):
            self.stop_traffic()
            if self._promiscuous:
                self._set_promiscuous(self.held, False)
            with _ignored_refusals():
                self._ask_each("release", self.held)
            self._handlers = {}
        with contextlib.suppress(Exception):
            self._client.conn.disconnect()
        if self._pipe is not None:
            self._pipe.close()
        return not self._handlers

    def core_loads(self) -> list[list[float]]:
        """Load of each sending core in per cent of each second, the latest first (up to 20)."""
        return core_loads(self.ask("get_utilization"))

    def check_links(self, ports: Sequence[int]) -> None:
        """Ask whether the links of *ports* are up; the answers go to :attr:`events`."""
        self.events.links_down |= _without_link(self._statuses(ports))

    def check_cancelled(self) -> None:
        """Stop the traffic and raise Refusal if whatever waits shall end."""
        if self.cancelled.is_set():
            self.stop_traffic()
            raise Refusal("cancelled", "stopped on request")

    # -- traffic -------------------------------------------------------------------------------------------------------

    def replace_streams(self, by_port: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams by those of *by_port*: :class:`lineproof.generators.streams.Stream` as data."""
        for port in sorted(self._loaded | by_port.keys()):
            about, streams = self._about(port), enumerate(by_port.get(port, ()), 1)
            adding = [("add_stream", {**about, "stream_id": n, "stream": self._stream(data)}) for n, data in streams]
            self._loaded.add(port)
            self.ask_all([("remove_all_streams", about), *adding])
        self._loaded = set(by_port)

    def start(self, rates: Mapping[int, float], duration: float, gap: float) -> tuple[float, CounterReading]:
        """Start all ports of *rates* (frames/s) together; return a time before it, and the counters then.

        Until the answer comes, the counters are asked for each *gap* s.
        *duration* in s of the server's clock; -1: until stopped, or until the streams end. All of it is one message.
        """
        always, calls = {"duration": duration, "force": True, "start_at_ts": 0}, list[Call]()
        for port, rate in rates.items():
            own = {"mul": _rate(rate), "core_mask": self.core_mask(port, rates)}
            calls.append(("start_traffic", {**self._about(port), **own, **always}))
        limit = time.monotonic() + REPLY_LIMIT
        while True:
            try:
                reply = self.ask_all([*calls, *self._reading()], gap)
            except Refusal as refusal:
                if refusal.kind != "refused":
                    raise
                self.stop_traffic()
                if "middle of configuration" not in str(refusal) or time.monotonic() > limit:
                    raise
                time.sleep(BUSY_WAIT)
            else:
                counters = self._counters_read(reply.results[len(calls) :], reply.asked)
                return answers.moment(reply.results[0]), counters

    def core_mask(self, port: int, sending: Container[int]) -> int:
        """Return the cores that send for *port* while *sending* ports do, as a mask over its pair's cores."""
        shared = self._pins_cores and port ^ 1 in sending and len(self.ports([port])[0]["cores"]) > 1
        return CORES_OF_SIDE[port % 2] if shared else ALL_CORES

    def update(self, rates: Mapping[int, float]) -> None:
        """Change the rates of sending ports in one message."""
        changes = {port: {"mul": _rate(rate), "force": True} for port, rate in rates.items()}
        self.ask_all([("update_traffic", {**self._about(port), **change}) for port, change in changes.items()])

    def stop_traffic(self) -> None:
        """Stop all traffic of the held ports."""
        with _ignored_refusals():
            self._ask_each("stop_traffic", self.held, **self.on_all)

    # -- counters ------------------------------------------------------------------------------------------------------

    def read_counters(self, groups: Sequence[int] = ()) -> CounterReading:
        """Return the counters of the held ports, and of packet *groups*."""
        self.check_cancelled()
        asked, results = self.ask_all([*self._reading(), TOTALS, *_of_groups(groups)])
        counts = dict(results.pop()) if groups else {}
        totals = results.pop()
        return replace(self._counters_read(results, asked, totals), groups=counts)

    def survey(self, ports: Sequence[int], groups: Sequence[int] = ()) -> Survey:
        """Ask at once for all that is known of *ports* while nothing is sent, and of packet *groups*."""
        self.check_cancelled()
        reading, names = self._reading(), self._names_of_cards(ports)
        counts, status = [("get_port_xstats_values", {"port_id": port}) for port in names], self._status_calls(ports)
        calls = [TOTALS, *reading, *counts, *reading, ("get_utilization", {}), *status, *_of_groups(groups)]
        asked, results = self.ask_all(calls)

        rest = iter(results)

        def next_results(number: int) -> list[Any]:
            return list(itertools.islice(rest, number))

        (totals,), cards = next_results(1), dict[int, dict[str, int]]()
        first = self._counters_read(next_results(len(reading)), asked, totals)
        for (port, of_card), row in zip(names.items(), next_results(len(names)), strict=True):
            pairs = zip(of_card, row["xstats_values"], strict=False)
            cards[port] = {name: int(count) for name, count in pairs if _is_kept(name)}
        last, (loads,) = self._counters_read(next_results(len(reading)), asked, totals), next_results(1)
        down = _without_link(dict(zip(ports, next_results(len(ports)), strict=True)))
        return Survey(first, last, cards, down, core_loads(loads), next(rest, {}))

    def _names_of_cards(self, ports: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return the names of the cards' own counters, by port; of those *ports* that have any."""
        for port in ports:
            if port not in self._card_names:
                self._card_names[port] = ()
                of_port = {"port_id": port}
                with _ignored_refusals():  # some drivers have none, or do not read them
                    asked = [("get_port_xstats_names", of_port), ("get_port_xstats_values", of_port)]
                    self._card_names[port] = tuple(self.ask_all(asked).results[0]["xstats_names"])
        return {port: self._card_names[port] for port in ports if self._card_names[port]}

    def ask_counters(self) -> None:
        """Ask for the counters of the held ports without waiting for the answer."""
        if self.under_way < MOST_UNDER_WAY:
            self._send(self._reading())

    @property
    def under_way(self) -> int:
        """Return the number of such requests whose counters were not taken."""
        return self._pipe.under_way if self._pipe else 0

    def counters_come(self, wait: float) -> CounterReading | None:
        """Return the next counters that were asked for; None: none came within *wait* s."""
        reply = self._connection.answer(wait)
        return reply and self._counters_read(reply.results, reply.asked)

    # -- captures and service mode -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def capturing(self, ports: Sequence[int], limit: int, packets: str = "") -> Iterator[Fetch]:
        """Keep the last *limit* frames (0: none) that *ports* receive together inside the block; yield what gets them.

        The ports are in service mode meanwhile. *packets*: a Berkeley packet filter.
        """
        if not limit:
            yield list
            return
        keep = {"mode": "cyclic", "limit": limit, "filter": packets}
        try:
            self._ask_each("service", ports, enabled=True)
            number = int(self.ask("capture", command="start", rx=list(ports), tx=[], **keep)["capture_id"])
            self._captures.add(number)
            yield partial(self._captured, number, limit)
        finally:
            with contextlib.suppress(Exception):
                self._leave_service_mode(ports)

    def _captured(self, number: int, limit: int) -> list[tuple[int, str]]:
        kept = self.ask("capture", command="fetch", capture_id=number, pkt_limit=limit, snaplen=0)
        return [(int(row["port"]), str(row["binary"])) for row in kept["pkts"]]

    def _leave_service_mode(self, ports: Sequence[int]) -> None:
        """End service mode, and before it what keeps it on: these ports' own captures, and queues. Raises Refusal."""
        # those that a killed client left on these ports, too; other users may capture on theirs
        mask, ours = sum(1 << port for port in ports), self._captures.copy()
        self._captures.clear()
        for row in self.ask("capture", command="status"):
            filtered = row.get("filter") or {}
            seen = int(filtered.get("rx") or 0) | int(filtered.get("tx") or 0)
            if seen and not seen & ~mask:
                ours.add(row["id"])
        with _ignored_refusals():
            self.ask_all([("capture", {"command": "remove", "capture_id": number}) for number in sorted(ours)])
        with _ignored_refusals():
            self._ask_each("set_rx_feature", ports, type="queue", enabled=False)
        self._ask_each("service", ports, enabled=False)

    # -- addresses -----------------------------------------------------------------------------------------------------

    def find_destinations(self, ports: Sequence[int]) -> None:
        """Ask for the MAC addresses that *ports* need and do not know (:mod:`.addresses`). Raises Refusal."""
        questions = []
        for port, status in self._statuses(ports).items():
            own_mac = str(self._static(port).get("hw_mac", ""))
            if question := question_of(port, status, own_mac, self._next_hops.get(port)):
                questions.append(question)
        if not questions:
            return
        with self.capturing([question.port for question in questions], MOST_KEPT, CAPTURE_FILTER) as fetch:
            macs = find_next_hops(self.ask, fetch, questions, self.check_cancelled)
        for question in questions:
            if not (mac := macs.get(question.port)):
                continue
            if hop := self._next_hops.get(question.port):
                self._next_hops[question.port] = replace(hop, explicit=False)  # the server knows it now
            if question.ipv6:
                self.ask("set_l2", **self._of_owner(question.port), dst_mac=mac, block=False)
            else:
                addresses = {"src_addr": question.source, "dst_addr": question.address}
                self.ask("set_l3", **self._of_owner(question.port), **addresses, resolved_mac=mac, block=False)
        if silent := [question for question in questions if question.port not in macs]:
            raise Refusal("refused", silence(silent))

    def _set_promiscuous(self, ports: Sequence[int], wanted: bool) -> None:
        """Let *ports* receive frames for any MAC address, or only for their own. Raises Refusal if one cannot."""
        self._promiscuous = wanted
        with _ignored_refusals():
            self._ask_each("set_port_attr", ports, attr={"promiscuous": {"enabled": wanted}})
        # a card that cannot switch it off is no harm
        for port, status in self._statuses(ports if wanted else ()).items():
            if not (status["attr"].get("promiscuous") or {}).get("enabled"):
                raise Refusal(
                    "refused",
                    f"port {port} does not become promiscuous; expected a card that can, or 'promiscuous: false' in the"
                    " testbed file",
                )

    # -- requests ------------------------------------------------------------------------------------------------------

    def ask(self, method: str, **parameters: Any) -> Any:
        """Return the server's answer, also if it is busy at first. Raises Refusal."""
        return self.ask_all([(method, parameters)]).results[0]

    def ask_all(self, calls: Sequence[Call], gap: float = 0.0) -> Reply:
        """Return the answers to *calls* in one message, also if the server is busy at first.

        Raises Refusal if one of them is refused, which says who holds ports that this connection does not hold any
        more; the others are carried out.
        Until they come, the counters are asked for each *gap* s, if it is not 0.
        """
        limit = time.monotonic() + REPLY_LIMIT
        while calls:
            while self.under_way:  # readings of traffic that was stopped, or refused
                self.counters_come(gap or REPLY_LIMIT)
            self._send(calls)
            try:
                while not (reply := self._connection.answer(gap or REPLY_LIMIT)):
                    if gap:
                        self.ask_counters()
                return reply
            except Refusal as refusal:
                if refusal.code not in (BUSY_ERROR, TICKET_ERROR) or time.monotonic() > limit:
                    if self.held and refusal.kind == "refused" and re.search("owned|acquire", str(refusal)):
                        raise Refusal("taken", self._holders()) from refusal
                    raise
                if refusal.code == TICKET_ERROR:  # only of a call that is alone
                    calls = [("get_async_results", {"ticket_id": int(str(refusal))})]
            time.sleep(BUSY_WAIT)
        return Reply(limit, [])

    def _holders(self) -> str:
        """Return who holds the ports now that this connection acquired."""
        owners = {port: status.get("owner") or "nobody" for port, status in self._statuses(self.held).items()}
        return "; ".join(f"port {port} is held by '{who}' now" for port, who in owners.items())

    @property
    def _connection(self) -> Pipe:
        if self.lost or self._pipe is None:
            raise Refusal("lost", "the connection was lost before" if self.lost else "the server was never connected")
        return self._pipe

    def _send(self, calls: Sequence[Call]) -> None:
        handle = {"api_h": self._handle}
        requests = [{"method": method, "params": {**parameters, **handle}} for method, parameters in calls]
        self._connection.ask([{"jsonrpc": "2.0", "id": next(self._numbers), **request} for request in requests])

    def _ask_each(self, method: str, ports: Sequence[int], **parameters: Any) -> None:
        """Ask the same of *ports* that are held, in one message. Raises Refusal if one of them refuses."""
        self.ask_all([(method, {**self._of_owner(port), **parameters}) for port in ports])

    def _of_owner(self, port: int) -> dict[str, Any]:
        return {"handler": self._handlers[port], "port_id": port}

    def _about(self, port: int) -> dict[str, Any]:
        """Return the parameters of a request about the traffic of *port*."""
        return {**self._of_owner(port), **self.on_port}

    def _status_calls(self, ports: Sequence[int]) -> list[Call]:
        return [("get_port_status", {"port_id": port, **self.on_status}) for port in ports]

    def _statuses(self, ports: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return ``get_port_status`` of each of *ports*, asked for in one message."""
        return dict(zip(ports, self.ask_all(self._status_calls(ports)).results, strict=True))

    def _reading(self) -> list[Call]:
        """Return the calls that read the counters of the held ports, between two looks at the server's clock."""
        each = [("get_port_stats", {"port_id": port}) for port in self.held]
        return [("ping", {}), *each, ("ping", {}), *self.event_calls]

    def _counters_read(
        self, results: Sequence[Any], asked: float, totals: Mapping[str, Any] = NOTHING
    ) -> CounterReading:
        """Return the counters in the *results* of :meth:`_reading`, sent at *asked*; *totals*: the answer to TOTALS."""
        ports = self.held
        earliest, *each = results[: len(ports) + 1]
        latest, *events = results[len(ports) + 1 :]
        for answer in events:
            self.events.record_all(answer)
        return answers.reading(totals, dict(zip(ports, each, strict=True)), earliest, latest, asked)

    def _static(self, port: int) -> Mapping[str, Any]:
        """Return the port's entry in ``get_system_info``, which newer servers give in the reverse order."""
        ports = enumerate(self._client.system_info["ports"])
        static: dict[int, Mapping[str, Any]] = {entry.get("index", place): entry for place, entry in ports}
        return static[port]

    # -- of each library -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _import(self) -> SimpleNamespace: ...

    @abstractmethod
    def _connect(self, server: str, sync_port: int, async_port: int, username: str) -> tuple[str, str]:
        """Connect; return the names of the client and of the API. Raises what the library raises."""

    @property
    @abstractmethod
    def _handle(self) -> str:
        """The server's handle of the API."""

    @abstractmethod
    def poll_events(self) -> None:
        """Fetch the server's events, if the library has to ask for them."""

    @abstractmethod
    def await_events(self) -> None:
        """Wait for the events until now, if they do not come with the counters."""

    @abstractmethod
    def _stream(self, stream: Mapping[str, Any]) -> dict[str, Any]:
        """Return *stream*, a :class:`lineproof.generators.streams.Stream` as data, as this server takes it."""


@contextlib.contextmanager
def _ignored_refusals() -> Iterator[None]:
    """Ignore refusals of the server inside the block."""
    try:
        yield
    except Refusal as refusal:
        if refusal.kind not in ("refused", "taken"):
            raise


@lru_cache(4096)
def _is_kept(name: str) -> bool:
    return is_error(name) or is_pause(name) or is_group_count(name)


def core_loads(utilization: Mapping[str, Any]) -> list[list[float]]:
    """Return the load of each sending core in per cent of each second, the latest first (up to 20)."""
    return [[float(load) for load in core.get("history") or ()] for core in utilization.get("cpu") or ()]


def _without_link(statuses: Mapping[int, Mapping[str, Any]]) -> set[int]:
    return {port for port, status in statuses.items() if not status["attr"]["link"]["up"]}


def _of_groups(groups: Sequence[int]) -> list[Call]:
    return [("get_pgid_stats", {"pgids": list(groups)})] if groups else []


def _rate(pps: float) -> dict[str, Any]:
    """Return the multiplier that makes the streams of a port send *pps* frames/s in all."""
    return {"type": "pps", "value": pps, "op": "abs"}


MAC_FROM_PACKET = 1
"""TRex's mode of a stream's destination MAC address (bits 1 and 2 of its ``flags``): from the packet."""


def stream_data(stream: Mapping[str, Any]) -> dict[str, Any]:
    """Return *stream*, a :class:`lineproof.generators.streams.Stream` as data, for ``add_stream``.

    A stream of a user's own file stays as it is but for its destination, and for a burst.
    """
    if stream["program"]:
        data: dict[str, Any] = {"next_stream_id": -1, **json.loads(stream["program"])}
        frame = base64.b64decode(data["packet"]["binary"])
    else:
        data, frame = _own_data(stream), bytes.fromhex(stream["frame"])
    if to := stream["destination"]:
        frame = bytes.fromhex(to.replace(":", "")) + frame[6:]
        data["flags"] = data["flags"] & ~(3 << 1) | MAC_FROM_PACKET << 1
    data["packet"] = {**data["packet"], "binary": base64.b64encode(frame).decode()}
    if stream["burst"] and stream["group"] is None:
        data["mode"] = {**data["mode"], "type": "single_burst", "total_pkts": stream["burst"]}
    return data


def _own_data(stream: Mapping[str, Any]) -> dict[str, Any]:
    instructions: list[dict[str, Any]] = []
    for variable in stream["variables"]:
        least, most, name = variable["minimum"], variable["maximum"], {"name": variable["name"]}
        limits = {"init_value": least, "min_value": least, "max_value": most}
        counter = {"type": "flow_var", "op": "inc", **name, "size": variable["size"], "step": variable["step"]}
        written = {"type": "write_flow_var", "add_value": 0, "is_big_endian": True, "pkt_offset": variable["offset"]}
        instructions += [counter | limits, written | name]
    if stream["fix_ipv4"] is not None:
        instructions.append({"type": "fix_checksum_ipv4", "pkt_offset": stream["fix_ipv4"]})
    rate: float = stream["share"]
    counted: dict[str, Any] = {"enabled": False}
    if stream["group"] is not None:
        rate, counted = stream["pps"], {"enabled": True, "rule_type": "latency", "stream_id": stream["group"]}
    return {
        "action_count": 0,
        "enabled": True,
        "flags": 0,
        "flow_stats": counted,
        "isg": stream["gap"],
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": rate}},
        "next_stream_id": -1,
        "packet": {"meta": ""},
        "self_start": True,
        "vm": {"instructions": instructions},
    }
