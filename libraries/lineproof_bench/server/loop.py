"""The server: its sockets, what each call of a TRex client does, events that are due, and its end.

No request waits for a timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import platform
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import zmq

from lineproof import __version__
from lineproof.simulation import BY_A_MODEL, MODEL_DRIVER

from ..backend import THIEF, Backend, ServerAction
from .captures import SingleFrames
from .ports import ANSWERS, ServerCard, ServerHabits, ServerPort, new_handle
from .rpc import Dispatcher, Method, Params, RpcError, refused
from .statistics import FlowStats, Statistics
from .streams import factor_of, load_of, parse_stream
from .transmission import Event, Publisher, Transmission, has_message


class PortTaken(Exception):
    """A fixed TCP port is already in use."""


def bind(socket: zmq.Socket[bytes], host: str, port: int, option: str) -> int:
    """Bind *socket* to tcp://host:port (0: any free one); return the port. Raises PortTaken, which names *option*."""
    try:
        socket.bind(f"tcp://{host}:{port or '*'}")
    except zmq.ZMQError as error:
        if error.errno == errno.EADDRINUSE:
            fix = f"end what listens there, or choose another with '{option}' (0: a free one)"
            raise PortTaken(f"port {port} on {host} is already taken; {fix}") from None
        raise PortTaken(f"cannot listen on port {port} of {host}: {error.strerror}") from None
    return int(bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").rpartition(b":")[2])


class ServerSettings(NamedTuple):
    """TCP ports of *host*, 0 for free ones; card and habits of the server's own ports."""

    host: str = "127.0.0.1"
    rpc_port: int = 0
    pub_port: int = 0
    nic: ServerCard = ServerCard()
    habits: ServerHabits = ServerHabits()


class TrexServer:
    """A TRex-compatible server over *backend*. *now* is the bench's clock in s.

    ``stop`` may be called from any thread; all else belongs to one.
    """

    def __init__(self, backend: Backend, now: Callable[[], float], settings: ServerSettings) -> None:
        self._backend = backend
        self._context = zmq.Context()
        # a ROUTER, not a REP: an answer may come late, or never
        self._rpc, self._pub = self._context.socket(zmq.ROUTER), self._context.socket(zmq.XPUB)
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._replies = deque[tuple[float, list[bytes]]]()
        self._pub.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.rpc_port = bind(self._rpc, settings.host, settings.rpc_port, "--rpc-port")
        self.pub_port = bind(self._pub, settings.host, settings.pub_port, "--pub-port")
        self._publisher = Publisher(self._pub)
        self.service = ServerMethods(backend, self._publisher, now, settings)
        self._dispatcher = Dispatcher(self.service.methods(), self.service.api_h, self.service.one_moment)

    def stop(self) -> None:
        """Let :meth:`serve` return soon."""
        self._stopping = True
        if self._loop:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._turn)

    async def serve(self) -> ServerAction | None:
        """Serve until :meth:`stop`, or a fault that ends the server, which is returned.

        Then stop traffic and release everything but the backend.
        """
        loop = asyncio.get_running_loop()
        self._ended, self._timer = loop.create_future(), loop.call_soon(self._turn)
        self._loop = loop
        descriptors = [int(socket.getsockopt(zmq.FD)) for socket in (self._rpc, self._pub)]
        for descriptor, look in zip(descriptors, (self._look, self._publisher.subscribed), strict=True):
            loop.add_reader(descriptor, look)
        end: ServerAction | None = None
        try:
            end = await self._ended
            return end
        finally:
            self._timer.cancel()
            for descriptor in descriptors:
                loop.remove_reader(descriptor)
            with contextlib.suppress(zmq.ZMQError):
                self.service.close(announced=end is None)
            # libzmq's end of a context sometimes never comes
            ending = threading.Thread(target=self._context.destroy, args=(100,), daemon=True)
            ending.start()
            ending.join(1.0)

    def _look(self) -> None:
        # ZeroMQ's descriptors tell of changes only, most of them its own
        if has_message(self._rpc):
            self._turn()

    def _turn(self) -> None:
        """Answer one request, do what is due, and be called again: for the next request, or when more is due."""
        if self._ended.done():
            return
        try:
            end, due = self._work()
        except Exception as error:
            self._ended.set_exception(error)
            return
        if end or self._stopping:
            self._ended.set_result(end)
            return
        loop = asyncio.get_running_loop()
        self._timer.cancel()
        self._timer = loop.call_soon(self._turn) if has_message(self._rpc) else loop.call_at(due, self._turn)

    def _work(self) -> tuple[ServerAction | None, float]:
        """Answer one request, and do what is due; return what ends the server, and when more is due (steady clock)."""
        transmission, statistics, faults = self.service.transmission, self.service.statistics, self._backend
        # one message, then the server's own work: nobody who sends many keeps it from that
        frames = self._rpc.recv_multipart() if has_message(self._rpc) else []
        self._publisher.subscribed()  # to send may have taken what its descriptor would tell
        if end := carry_out(faults, self.service, self._publisher):
            return end, 0.0
        if frames:
            *envelope, request = frames
            reply = [*envelope, self._dispatcher.handle(request)]
            if (delay := faults.reply_delay()) < math.inf:
                self._replies.append((time.monotonic() + delay, reply))
        # those after a late one wait for it: a TRex answers in order
        while self._replies and time.monotonic() >= self._replies[0][0]:
            self._rpc.send_multipart(self._replies.popleft()[1])
        transmission.tick()
        statistics.sample_cpu()
        if time.monotonic() >= self._publisher.due:
            self._publisher.counters(statistics.published())
        due = [self._publisher.due, *(moment for moment, _ in islice(self._replies, 1))]
        if (wait := transmission.wait()) is not None:
            due.append(time.monotonic() + wait)
        return None, min(due)


THIEF_SESSION = 2**32
"""The thief's session: no client has it, since clients' sessions fit into 32 bits."""


def carry_out(faults: Backend, service: ServerMethods, publisher: Publisher) -> ServerAction | None:
    """Carry out the actions that are due. Returns the one that ends the server."""
    for action in faults.server_actions():
        if action.what in ("end", "restart"):
            return action
        port = service.ports[action.port]
        data: dict[str, Any] = {"port_id": port.index}
        if action.what == "link":
            publisher.event(Event.ATTRIBUTES, data | {"attr": port.attributes_json(action.up)})
        elif action.what == "free":
            if port.owner == THIEF:
                port.release()
                publisher.event(Event.RELEASED, data | {"who": THIEF, "session_id": THIEF_SESSION})
        else:
            port.acquire(THIEF, THIEF_SESSION, force=True)
            publisher.event(Event.ACQUIRED, data | {"who": THIEF, "session_id": THIEF_SESSION, "force": True})
    return None


CORE_API = (4, 1)
"""API of ``api_sync``, spoken by trex-stl-lib 0.3."""
STL_API = (5, 1)
"""API of ``api_sync_v2``, spoken by the client that TRex v3.08 ships."""
PROFILES = ("_", "*")
"""The profile that every port has, and all of its profiles. There are no others here."""


class ServerMethods:
    """The methods of one server, which tells its clients by *publisher* what they do not ask for."""

    def __init__(
        self, backend: Backend, publisher: Publisher, now: Callable[[], float], settings: ServerSettings
    ) -> None:
        self.api_h = new_handle()
        self._nic, self._habits = settings.nic, settings.habits
        self.ports = {
            description.index: ServerPort(description, self._nic, self._habits.unresolved(description.index))
            for description in backend.ports
        }
        self.statistics = Statistics(backend, now, self._nic)
        self._frames = SingleFrames(backend, now, self._habits)
        self.flows = FlowStats(backend, self._nic, not self._habits.has("coarse latency", 0))
        self._begun = time.monotonic()
        self._held: float | None = None
        self.transmission = Transmission(backend, self.ports, publisher, self.statistics, self._uptime)
        self._backend, self._publisher = backend, publisher
        self._simulated = any(port.driver == MODEL_DRIVER for port in backend.ports)
        self._uptime_text = datetime.now().astimezone().strftime("%b %d %Y @ %H:%M:%S")

    def _uptime(self) -> float:
        # never zero: a start_at_ts of zero means "at once"
        return time.monotonic() - self._begun + 1.0 if self._held is None else self._held

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Stop the clocks of a simulated bench, its server's too, while the context is open."""
        outer, self._held = self._held, self._uptime() if self._simulated else None
        try:
            with self._backend.frozen():
                yield
        finally:
            self._held = outer

    def methods(self) -> dict[str, Method]:
        """Return those that our clients call, and those of the recorded sessions, by name."""
        of_owner = {
            "release": self._release,
            "add_stream": self._add_stream,
            "remove_all_streams": self._remove_all_streams,
            "pause_traffic": self._pause,
            "resume_traffic": lambda port, _: self.transmission.resume(port),
            "stop_traffic": lambda port, _: self.transmission.stop(port),
            "remove_rx_filters": lambda port, _: None,
            "set_port_attr": self._set_attributes,
            "set_rx_feature": self._set_rx_feature,
            "service": self._service,
            "set_l2": lambda port, p: port.set_l2(p.text("dst_mac")),
            "set_l3": lambda port, p: port.set_l3(p.text("src_addr"), p.text("dst_addr"), p.text("resolved_mac", "")),
        }
        methods: dict[str, Method] = {
            **{name: partial(self._for_owner, action) for name, action in of_owner.items()},
            "ping": lambda _: {"ts": self._uptime()},
            "api_sync": self._api_sync,
            "api_sync_v2": self._api_sync_v2,
            "get_version": self._version,
            "get_system_info": self._system,
            "get_supported_cmds": lambda _: sorted(methods),
            "publish_now": self._publish_now,
            "get_async_events": lambda p: {"data": self._publisher.events_of(p.integer("session_id"))},
            "get_global_stats": lambda _: self.statistics.overall()[0],
            "get_port_stats": lambda p: self.statistics.port(self._port(p).index),
            "get_port_xstats_names": lambda p: self._port(p) and {"xstats_names": list(self._nic.xstats)},
            "get_port_xstats_values": lambda p: {"xstats_values": self.statistics.xstats(self._port(p).index)},
            "get_utilization": lambda _: self.statistics.utilisation(),
            "get_active_pgids": lambda _: self.flows.active(),
            "get_pgid_stats": lambda p: self.flows.values(p.integers("pgids")),
            "get_tpg_status": lambda _: ANSWERS["tagged_groups"],
            "get_port_status": self._port_status,
            "acquire": self._acquire,
            "get_all_streams": self._get_all_streams,
            # TRex's own client asks for all profiles of a port, and reads them as such only where this is supported
            "get_profile_list": lambda p: self._port(p) and ["_"],
            "validate": self._validate,
            "start_traffic": self._start,
            "update_traffic": self._update,
            "capture": self._frames.capture,
            "push_pkts": lambda p: self._frames.push(self._port(p), p),
        }
        return methods

    # -- the server

    def _api_sync(self, params: Params) -> dict[str, Any]:
        answers = []
        self._publisher.arrival()
        for wanted in params.objects("api_vers"):
            name, version = wanted.text("type"), (wanted.integer("major"), wanted.integer("minor"))
            if name != "core":
                raise refused(f"client has reported an invalid API type '{name:.40}'; expected 'core'")
            self._check_version("core", CORE_API, version)
            answers.append({"type": name, "api_h": self.api_h})
        return {"api_vers": answers}

    def _api_sync_v2(self, params: Params) -> dict[str, Any]:
        name, version = params.text("name"), (params.integer("major"), params.integer("minor"))
        if name != "STL":
            text = f"server RPC configuration: 'STL', client RPC configuration: '{name:.40}'"
            raise refused(f"RPC configuration mismatch - {text}")
        self._check_version("STL", STL_API, version)
        self._publisher.api5_arrival()
        return {"api_h": self.api_h}

    @staticmethod
    def _check_version(name: str, server: tuple[int, int], client: tuple[int, int]) -> None:
        versions = f"(API type '{name}':  - server: '{server[0]}.{server[1]}', client: '{client[0]}.{client[1]}')"
        if client[0] < server[0]:
            raise refused(f"RPC version mismatch: a newer client version is required\n{versions}")
        if client > server:
            raise refused(f"Version mismatch: your client version is too new to be supported by the server\n{versions}")

    def _version(self, _: Params) -> dict[str, str]:
        own = f"lineproof {__version__}"
        return {
            "version": f"{self._nic.trex}, played by {own}" if self._nic.trex else own,
            "mode": "STL",
            "build_date": BY_A_MODEL if self._simulated else "embedded",
            "build_time": "",
            "built_by": "lineproof",
        }

    def _system(self, _: Params) -> dict[str, Any]:
        return {
            **ANSWERS["system"],
            "core_type": BY_A_MODEL if self._simulated else "lineproof embedded server",
            "dp_core_count": -(-len(self.ports) // 2),
            "dp_core_count_per_port": 1,
            "hostname": platform.node(),
            "port_count": len(self.ports),
            "ports": [self.ports[index].information() for index in sorted(self.ports)],
            "uptime": self._uptime_text,
        }

    def _publish_now(self, params: Params) -> dict[str, Any]:
        key, baseline = params.integer("key"), params.boolean("baseline", False)
        if not self._publisher.repeated(key):
            self._publisher.counters(self.statistics.published(), baseline)
            self._publisher.barrier(key)
        return {}

    # -- ports

    def _port(self, params: Params) -> ServerPort:
        index = params.integer("port_id")
        if index not in self.ports:
            raise refused(f"invalid port id {index} - should be one of: {sorted(self.ports)}")
        return self.ports[index]

    def _owned_port(self, params: Params) -> ServerPort:
        handler = params.text("handler")
        port = self._port(params)
        port.verify(handler)
        params.choice("profile_id", PROFILES, "_")
        return port

    def _for_owner(self, action: Callable[[ServerPort, Params], object], params: Params) -> dict[str, Any]:
        """Do *action* on a port for its owner; the answer is empty."""
        action(self._owned_port(params), params)
        return {}

    def _port_status(self, params: Params) -> dict[str, Any]:
        port = self._port(params)
        status = port.status(self._backend.link_up(port.index))
        return status | {"state_profile": {"_": port.state}} if params.text("profile_id", "_") == "*" else status

    def _acquire(self, params: Params) -> str:
        port = self._port(params)
        user, session = params.text("user"), params.integer("session_id")
        handler, forced = port.acquire(user, session, params.boolean("force"))
        if self._habits.has("promiscuous off at acquire", port.index):
            self._set_promiscuous(port, False)
        data = {"port_id": port.index, "who": user, "session_id": session, "force": forced}
        self._publisher.event(Event.ACQUIRED, data)
        return handler

    def _release(self, port: ServerPort, _: Params) -> None:
        data = {"port_id": port.index, "who": port.owner, "session_id": port.session}
        port.release()
        self._publisher.event(Event.RELEASED, data)

    def _service(self, port: ServerPort, params: Params) -> None:
        enabled = params.boolean("enabled")
        if not enabled and (reason := self._frames.keeps_service(port.index)):
            raise refused(f"unable to disable service mode - {reason}")
        port.service = enabled

    def _set_rx_feature(self, port: ServerPort, params: Params) -> None:
        if params.boolean("enabled"):
            raise refused(f"receive feature '{params.text('type'):.40}' is not on this server; expected a capture")

    def _set_attributes(self, port: ServerPort, params: Params) -> None:
        attributes = params.object("attr")
        for name in attributes.data:
            if name != "promiscuous":
                raise refused(f"Error applying {name:.40}: operation is not supported for this NIC.")
            self._set_promiscuous(port, attributes.object(name).boolean("enabled"))

    def _set_promiscuous(self, port: ServerPort, enabled: bool) -> None:
        port.promiscuous = enabled
        self._backend.set_promiscuous(port.index, enabled)

    # -- streams and traffic

    def _add_stream(self, port: ServerPort, params: Params) -> None:
        try:
            number, given = params.integer("stream_id", most=2**32 - 1), params.object("stream")
            stream = parse_stream(number, given, port.description)
        except RpcError as error:
            # as in TRex, a bad field is a failed execution here
            raise refused(str(error)) from None
        port.admit(stream)
        self.flows.add(port.index, stream)
        port.add(stream)

    def _remove_all_streams(self, port: ServerPort, _: Params) -> None:
        for stream in port.remove_all():
            self.flows.remove(port.index, stream)

    def _get_all_streams(self, params: Params) -> dict[str, Any]:
        streams = {str(number): stream.json for number, stream in self._port(params).streams.items()}
        return {"profiles": {"_": streams}} if params.text("profile_id", "_") == "*" else {"streams": streams}

    def _validate(self, params: Params) -> dict[str, Any]:
        port = self._owned_port(params)
        if not port.streams:
            raise refused("no streams attached to port")
        traffic = load_of(port.streams.values())
        rate: dict[str, float] = {}
        for word, load in (("max", traffic.at(1.0)), ("min", traffic.fixed)):
            rate |= {f"{word}_pps": load["pps"], f"{word}_bps_l2": load["bps"], f"{word}_bps_l1": load["bpsl1"]}
            rate[f"{word}_line_util"] = 100 * load["bpsl1"] / port.description.speed_bps
        # of the changes of rate that a real server lists nobody makes anything
        return {"rate": rate, "graph": {"expected_duration": int(traffic.duration), "events_count": 0, "events": []}}

    def _start(self, params: Params) -> dict[str, Any]:
        port = self._owned_port(params)
        port.require("start", "STREAMS")
        begin, force = self._uptime(), params.boolean("force", False)
        duration = params.number("duration")
        if not force and not self._backend.link_up(port.index):
            raise refused("Link state is DOWN.")
        if params.number("start_at_ts", 0.0):
            raise refused("start_at_ts is not on this server; expected 0, to start at once")
        load = load_of(port.streams.values())
        port.factor = factor = factor_of(params.object("mul"), load, port.description.speed_bps, force)
        port.duration = duration if duration > 0 else None
        port.sent = port.traffic(factor, force)
        self.transmission.start(port, port.sent, port.duration)
        return {"multiplier": factor, "ts": begin}

    def _update(self, params: Params) -> dict[str, Any]:
        port = self._owned_port(params)
        port.require("update", "TX")
        load, force = load_of(port.streams.values()), params.boolean("force", False)
        factor = factor_of(params.object("mul"), load, port.description.speed_bps, force)
        port.sent = port.multiplied(factor / port.factor)
        port.factor = factor
        self.transmission.update(port, port.sent)
        return {"multiplier": factor}

    def _pause(self, port: ServerPort, _: Params) -> None:
        port.require("pause", "TX")
        if any(stream.burst is not None for stream in port.streams.values()):
            raise refused(" pause is supported when all streams are in continues mode ")
        if port.duration is not None:
            raise refused(" pause is supported when duration is not enable is start command ")
        self.transmission.pause(port)

    def close(self, announced: bool = True) -> None:
        """Stop traffic and captures; publish that the server ends, if that is *announced*."""
        self.transmission.close()
        self._frames.close()
        if announced:
            self._publisher.event(Event.SERVER_STOPPED, {"cause": "the server ends"})
