# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The common part of both client libraries: their ``STLClient`` has the same methods."""

from __future__ import annotations

import base64
import contextlib
import json
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import zmq

from ..answer_limits import LARGEST_ANSWER, check_calls, plain_bytes, read_answer
from ..next_hops import ADDRESS, CAPTURE_FILTER, NEXT_HOP, TRIES, TRY_SECONDS, Question
from .answers import destination_state
from .messages import ServerEvents, plain_message
from .service import Refusal
from .stream_objects import OWN_RATES

ALL_CORES = (1 << 64) - 1
"""The mask of all cores of a port."""

CORES_OF_SIDE = (0x5555555555555555, 0xAAAAAAAAAAAAAAAA)
"""Every other core, for the first and the second port of a pair: what TRex's own clients call "pin"."""


def pps_multiplier(rate: float) -> dict[str, Any]:
    """The multiplier that makes the streams of a port send *rate* frames/s in all."""
    return {"type": "pps", "value": rate, "op": "abs"}


def start_parameters(rate: float, duration: float, at_own_rates: bool, core_mask: int = ALL_CORES) -> dict[str, Any]:
    """Parameters of ``start_traffic``, without the port's."""
    multiplier = OWN_RATES if at_own_rates else pps_multiplier(rate)
    return {"mul": multiplier, "duration": duration, "force": True, "core_mask": core_mask, "start_at_ts": 0}


class StlLibrary(ABC):
    """The methods of :class:`.library.ClientLibrary` that are the same in both libraries."""

    def __init__(self) -> None:
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self.events = ServerEvents(0)
        self.check_cancelled: Callable[[], None] = lambda: None
        self.next_hops: Mapping[str, Mapping[str, str]] = {}
        self._asked: set[int] = set()
        self._promiscuous: list[int] = []
        self._captures: set[int] = set()
        self.pins_cores = False
        """True: the ports of a pair that both send have cores of their own; else every core sends for both."""

    def core_mask(self, port: int, sending: Container[int]) -> int:
        """The cores that send for *port* while *sending* ports do, as a mask over its pair's cores."""
        shared = self.pins_cores and port ^ 1 in sending and len(self.port_facts(port)["cores"]) > 1
        return CORES_OF_SIDE[port % 2] if shared else ALL_CORES

    @abstractmethod
    def port_facts(self, port: int) -> dict[str, Any]:
        """See :class:`.library.ClientLibrary`."""

    @abstractmethod
    def _import(self) -> SimpleNamespace: ...

    @abstractmethod
    def _ask(self, method: str, **parameters: Any) -> Any: ...

    @abstractmethod
    def _status(self, port: int) -> dict[str, Any]: ...

    @abstractmethod
    def _card_mac(self, port: int) -> str: ...

    def load(self) -> None:
        """Import the library, once. Raises Refusal."""
        _ = self._loaded

    @property
    def _loaded(self) -> SimpleNamespace:
        if self._library is None:
            self._library = self._import()
            bound_libraries()
        return self._library

    def _connect_client(self) -> None:
        try:
            self._client.connect()
        except Refusal as refusal:
            raise Refusal("connect", str(refusal)) from refusal
        except Exception as error:
            raise Refusal("connect", plain_message(error)) from error

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

    def _acquire(self, ports: Sequence[int], force: bool) -> None:
        try:
            self._client.acquire(list(ports), force=force, sync_streams=False)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("taken" if "already" in plain_message(error) else "refused", plain_message(error)) from error

    def port_numbers(self) -> Sequence[int]:
        """The server's port numbers."""
        return sorted(self._client.ports)

    def capture(self, ports: Sequence[int], limit: int) -> int:
        """Keep the last *limit* frames that *ports* receive together; return the capture's number."""
        for port in ports:
            self._ask_port("service", port, enabled=True)
        return self._capture(ports, limit=limit, filter="")

    def _capture(self, ports: Sequence[int], **settings: Any) -> int:
        started = self._ask("capture", command="start", rx=list(ports), tx=[], mode="cyclic", **settings)
        number = int(started["capture_id"])
        self._captures.add(number)
        return number

    def captured(self, number: int, limit: int) -> dict[int, list[bytes]]:
        """Return the frames of a capture by port, in their order."""
        kept = self._ask("capture", command="fetch", capture_id=number, pkt_limit=limit, snaplen=0)
        found = defaultdict[int, list[bytes]](list)
        for row in kept["pkts"]:
            found[int(row["port"])].append(base64.b64decode(row["binary"]))
        return found

    def end_captures(self, ports: Sequence[int]) -> None:
        """End captures and service mode."""
        with contextlib.suppress(Exception):
            self._leave_service_mode(ports)

    # -- addresses -----------------------------------------------------------------------------------------------------

    def _find_destinations(self, items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Ask for the MAC addresses that ports need for the streams *items*, and do not know. Raises Refusal."""
        questions = []
        for port in sorted(port for port, rows in items.items() if not all(row["destination"] for row in rows)):
            named = self.next_hops.get(str(port))
            explicit = named is not None and bool(named.get("explicit")) and port not in self._asked
            if question := question_of(port, self._status(port), self._card_mac(port), named, explicit):
                questions.append(question)
        if not questions:
            return
        with self._service_mode([question.port for question in questions]) as ports:
            capture = self._capture(ports, limit=MOST_KEPT, filter=CAPTURE_FILTER)
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

    @contextlib.contextmanager
    def _service_mode(self, ports: list[int]) -> Iterator[list[int]]:
        """Service mode on *ports*, in which a port shows what it receives; off afterwards, whatever happens."""
        try:
            for port in ports:
                self._ask_port("service", port, enabled=True)
            yield ports
        finally:
            self.end_captures(ports)

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

    def _ask_port(self, method: str, port: int, **parameters: Any) -> None:
        self._ask(method, handler=self._client.ports[port].handler, port_id=port, **parameters)

    @property
    def reachable(self) -> bool:
        """Return whether the library reports a connection."""
        return self._client is not None and bool(self._client.is_connected())


MEMORY_LIMIT = 2 << 30
"""Bytes that this process may hold (0.3 GB with both directions' streams): ZeroMQ collects the frames of one message
for as long as more come, and only this ends it."""

MOST_REPORTED = 20
"""Bad published messages that the log describes."""

PUBLISHED = ("trex-global", "trex-event", "trex-barrier")
"""Names of the published messages that are used."""


class BoundedSocket(zmq.Socket[bytes]):
    """Receives whole messages that a TRex server may send."""

    # ZeroMQ's class takes attributes of an object for options, unless the class has them
    ids: list[Any] | None = None
    reported = 0

    def send(self, data: Any, flags: int = 0, **options: Any) -> Any:  # type: ignore[override]  # ZeroMQ's is overloaded
        """Send a request. Its calls' numbers are kept for the check of the answer."""
        calls = json.loads(plain_bytes(bytes(data)))
        self.ids = [call.get("id") for call in (calls if isinstance(calls, list) else [calls])]
        return super().send(data, flags, **options)

    def recv(self, flags: int = 0, copy: bool = True, track: bool = False) -> bytes:  # type: ignore[override]  # as above
        """The next message, unzipped. Raises Refusal for a bad answer; bad published messages are left out."""
        while True:
            parts = [super().recv(flags)]
            while self.getsockopt(zmq.RCVMORE):
                parts.append(super().recv(flags))
            try:
                data, found = read_answer(parts)
                if self.type == zmq.SUB:
                    _check_published(found)
                else:
                    check_calls(found, self.ids or [])
                return data
            except ValueError as error:
                if self.type != zmq.SUB:
                    raise Refusal("refused", f"its answer is not a TRex server's: {error}") from None
                self._report(error)

    def _report(self, error: ValueError) -> None:
        self.reported += 1
        if self.reported <= MOST_REPORTED:
            print(f"a published message is not a TRex server's: {error}", file=sys.stderr)


class BoundedContext(zmq.Context[BoundedSocket]):
    """Makes such sockets."""

    _socket_class = BoundedSocket

    def socket(self, *args: Any, **options: Any) -> BoundedSocket:
        """A socket that drops the connection of a server that sends too long frames."""
        found = super().socket(*args, **options)
        found.setsockopt(zmq.MAXMSGSIZE, LARGEST_ANSWER)
        return found


def _check_published(found: Any) -> None:
    if not isinstance(found, dict) or not isinstance(found.get("data"), dict) or "type" not in found:
        raise ValueError("it has no name, type and data")
    if found.get("name") not in PUBLISHED:
        raise ValueError(f"its name is {str(found.get('name'))[:40]}; expected {', '.join(PUBLISHED)}")
    if isinstance(found["type"], dict | list):
        raise ValueError("its type is no number")


def bound_libraries() -> None:
    """Let the imported client libraries use these sockets, and bound this process's memory."""
    names = {name: getattr(zmq, name) for name in dir(zmq)}
    bounded = SimpleNamespace(**{**names, "Context": BoundedContext})
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("trex", "trex_stl_lib") and getattr(module, "zmq", None) is zmq:
            setattr(module, "zmq", bounded)  # noqa: B010  (to mypy '=' is an error)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


POLL_INTERVAL = 0.05
"""Seconds between two looks at what has come."""

MOST_KEPT, LENGTH_KEPT = 200, 128
"""Frames that the capture keeps between two looks, and bytes of each."""


def question_of(
    port: int, status: Mapping[str, Any], own_mac: str, named: Mapping[str, str] | None, explicit: bool
) -> Question | None:
    """Return what *port* has to ask; None if its destination is known. Raises Refusal if there is nobody to ask.

    *status*: ``get_port_status``; *named*: ``source`` and ``address`` of the testbed file. *explicit*: it comes before
    what the server knows; else it is for a server that knows no next hop.
    """
    layers, state = status["attr"].get("layer_cfg") or {}, destination_state(status)
    mac = str((layers.get("ether") or {}).get("src") or own_mac)
    tags = tuple(int(tag) for tag in (status["attr"].get("vlan") or {}).get("tags") or ())
    if named and (explicit or state == "none"):
        key = NEXT_HOP if named.get("explicit") else ADDRESS
        return Question(port, mac, named["source"], named["address"], tags, key)
    if state == "unresolved":
        return Question(port, mac, str(layers["ipv4"].get("src")), str(layers["ipv4"].get("dst")), tags)
    if state == "none":
        raise Refusal(
            "refused",
            f"port {port} has no destination MAC address, so no router would take its frames; expected"
            " 'dest_mac', or 'ip' and 'default_gw', for this port in the server's trex_cfg.yaml",
        )
    return None


def find_next_hops(
    ask: Callable[..., Any], capture: int, questions: Sequence[Question], check_cancelled: Callable[[], None]
) -> dict[int, str]:
    """The MAC addresses by port; a port whose next hop is silent is missing. The ports are in service mode.

    *ask* is a request to the server; *capture* the number of a running CAPTURE on the ports. Raises Refusal if two
    machines answer one question, and what *check_cancelled* raises.
    """
    found: dict[int, str] = {}
    for _ in range(TRIES):
        silent = [question for question in questions if question.port not in found]
        for question in silent:
            packet = {"binary": base64.b64encode(question.frame).decode()}
            own = {"use_port_dst_mac": False, "use_port_src_mac": False}
            ask("push_pkts", port_id=question.port, pkts=[packet | own], force=True, ipg_usec=0)
        limit = time.monotonic() + TRY_SECONDS
        while time.monotonic() < limit:
            check_cancelled()
            kept = ask("capture", command="fetch", capture_id=capture, pkt_limit=MOST_KEPT, snaplen=LENGTH_KEPT)
            found |= _answers(silent, kept["pkts"])
            if len(found) == len(questions):
                return found
            time.sleep(POLL_INTERVAL)
    return found


def _answers(questions: Sequence[Question], rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for row in rows:
        frame = base64.b64decode(row["binary"])
        for question in questions:
            mac = question.answer(frame) if question.port == row["port"] else ""
            if mac and found.setdefault(question.port, mac) != mac:
                raise Refusal(
                    "refused",
                    f"{found[question.port]} and {mac} both answer for {question}; expected one machine with that"
                    " address",
                )
    return found


def silence(questions: Sequence[Question]) -> str:
    """Why nothing was sent, where nobody answers *questions*; and what to do."""
    parts = []
    for asked, missing in (
        ("ARP requests", [item for item in questions if not item.ipv6]),
        ("neighbour solicitations", [item for item in questions if item.ipv6]),
    ):
        if missing:
            parts.append(f"{asked} for {', '.join(map(str, missing))}")
    return (
        f"nobody answers {' and '.join(parts)}, asked {TRIES} times in {TRIES * TRY_SECONDS:g} s; expected that the"
        " router's interfaces are up and have these addresses; if not, fix each where it comes from ('default_gw' is in"
        " the server's trex_cfg.yaml)"
    )
