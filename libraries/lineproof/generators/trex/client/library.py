# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The interface of a TRex client library in the client's process, and the part that both of them share."""

from __future__ import annotations

import binascii
import contextlib
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ..next_hops import CAPTURE_FILTER
from . import answers
from .addresses import MOST_KEPT, find_next_hops, question_of, silence
from .messages import ServerEvents, plain_message
from .service import Refusal
from .sockets import bound_libraries
from .stream_objects import OWN_RATES

SILENCE_LIMIT = 5.0
"""Seconds without a message after which the server counts as lost."""

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


class ClientLibrary(ABC):
    """A connection to one TRex server. Methods raise :class:`.service.Refusal`, or an error of the library.

    Ports are numbers; counters are totals, flat: ``opackets-0``, ``m_cpu_util``, ``m_cpu_util-0`` and so on. They were
    read from ``earliest`` to ``latest``, s of the server's own clock.
    """

    def __init__(self) -> None:
        self._library: SimpleNamespace | None = None
        self._client: Any = None
        self.events = ServerEvents(0)
        self.check_cancelled: Callable[[], None] = lambda: None
        """Raises Refusal once a long search shall end."""
        self.next_hops: Mapping[str, Mapping[str, Any]] = {}
        """By port number, :class:`..next_hops.NextHop` as data."""
        self._asked: set[int] = set()
        self._promiscuous: list[int] = []
        self._captures: set[int] = set()
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

    def acquire(
        self, ports: Sequence[int], force: bool, former: Mapping[str, str], promiscuous: bool
    ) -> dict[str, str]:
        """Acquire *ports* without traffic and streams; return their handlers. *former*: handlers to release first.

        *promiscuous*: the ports receive frames for any MAC address until their release.
        """
        for number, handler in former.items():
            with self._ignoring_refusals():  # that connection may not hold it any more
                self._ask("release", handler=handler, port_id=int(number))
        self._acquire(ports, force)
        self._clear(ports)
        self._leave_service_mode(ports)
        self._set_promiscuous(ports, promiscuous)
        return {str(port): str(self._client.ports[port].handler) for port in ports}

    def core_loads(self) -> list[list[float]]:
        """Load of each sending core in per cent of each second, the latest first (up to 20)."""
        return answers.core_loads(self._ask("get_utilization"))

    def _port_parameters(self, port: int) -> dict[str, Any]:
        return {"handler": self._client.ports[port].handler, "port_id": port}

    @staticmethod
    @contextlib.contextmanager
    def _ignoring_refusals() -> Iterator[None]:
        """Ignore refusals of the server."""
        try:
            yield
        except Refusal as refusal:
            if refusal.kind != "refused":
                raise

    def port_numbers(self) -> Sequence[int]:
        """The server's port numbers."""
        return sorted(self._client.ports)

    def capture(self, ports: Sequence[int], limit: int, packets: str = "") -> int:
        """Keep the last *limit* frames that *ports* receive together; return the capture's number.

        The ports are in service mode until :meth:`end_captures`. *packets*: a Berkeley packet filter.
        """
        for port in ports:
            self._ask_port("service", port, enabled=True)
        keep = {"mode": "cyclic", "limit": limit, "filter": packets}
        number = int(self._ask("capture", command="start", rx=list(ports), tx=[], **keep)["capture_id"])
        self._captures.add(number)
        return number

    def captured(self, number: int, limit: int) -> dict[int, list[bytes]]:
        """Return the frames of a capture by port, in their order."""
        kept = self._ask("capture", command="fetch", capture_id=number, pkt_limit=limit, snaplen=0)
        found = defaultdict[int, list[bytes]](list)
        for row in kept["pkts"]:
            found[int(row["port"])].append(binascii.a2b_base64(row["binary"]))
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
        ports = [question.port for question in questions]
        try:
            capture = self.capture(ports, MOST_KEPT, CAPTURE_FILTER)
            found = find_next_hops(self._ask, capture, questions, self.check_cancelled)
        finally:
            self.end_captures(ports)
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

    def _ask_port(self, method: str, port: int, **parameters: Any) -> None:
        self._ask(method, handler=self._client.ports[port].handler, port_id=port, **parameters)

    @property
    def reachable(self) -> bool:
        """Return whether the library reports a connection."""
        return self._client is not None and bool(self._client.is_connected())

    # -- implemented by each library -----------------------------------------------------------------------------------

    @abstractmethod
    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; return the versions of server, client and libraries."""

    @abstractmethod
    def port_facts(self, port: int) -> dict[str, Any]:
        """Current ``mac``, ``speed_bps``, ``link_up``, ``driver`` and ``owner`` of *port*."""

    @abstractmethod
    def release(self, ports: Sequence[int]) -> None:
        """Release those of *ports* that are still held."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close the sockets only."""

    @abstractmethod
    def replace_streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*: :class:`lineproof.generators.streams.Stream` as data.

        Asks for the MAC addresses that the ports need and do not know (:mod:`.addresses`).
        """

    @abstractmethod
    def start(
        self,
        rates: Mapping[int, float],
        duration: float,
        ports: Sequence[int],
        gap: float,
        at_own_rates: Container[int] = (),
    ) -> tuple[float, Mapping[str, Any]]:
        """Start all ports of *rates* (frames/s) together; return a time before it, and the counters of *ports* then.

        Until the answer comes, the counters are asked for each *gap* s, if several requests can be under way.
        *duration* in s of the server's clock; -1: until stopped, or until the streams end. *at_own_rates*: ports whose
        streams have these rates already. All of it is one message.
        """

    @abstractmethod
    def update(self, rates: Mapping[int, float]) -> None:
        """Change the rates of sending ports in one message."""

    @abstractmethod
    def stop_traffic(self, ports: Sequence[int]) -> None:
        """Stop traffic on those of *ports* that are held, whatever state the library assumes."""

    @abstractmethod
    def poll_events(self) -> None:
        """Fetch the server's events, if the library has to ask for them."""

    @abstractmethod
    def check_links(self, ports: Sequence[int]) -> None:
        """Ask whether the links of *ports* are up; the answers go to :attr:`events`."""

    @abstractmethod
    def read_counters(
        self, ports: Sequence[int], groups: Sequence[int] = (), cards: Sequence[int] = ()
    ) -> Mapping[str, Any]:
        """Current counters. Fetches the server's events, too. ``groups``: its counts of packet *groups*, if asked.

        ``cards``: by port of *cards*, where there are any, the answers about the names and the values of its card's own
        counters, which were read before the others.
        """

    @abstractmethod
    def ask_counters(self, ports: Sequence[int]) -> None:
        """Ask for the counters of *ports*, if possible without waiting for the answer."""

    @property
    @abstractmethod
    def under_way(self) -> int:
        """Return the number of such requests whose counters were not taken."""

    @abstractmethod
    def counters_come(self, ports: Sequence[int], wait: float) -> tuple[float, Mapping[str, Any]] | None:
        """The next counters that were asked for, and when by this machine's clock; None: none came within *wait* s."""

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Return whether the server no longer answers. False before the first connection."""

    @property
    @abstractmethod
    def disconnect_cause(self) -> str:
        """Why there is no connection."""

    @abstractmethod
    def _import(self) -> SimpleNamespace: ...

    @abstractmethod
    def _clear(self, ports: Sequence[int]) -> None:
        """Stop all traffic of acquired *ports*, and remove their streams."""

    @abstractmethod
    def _ask(self, method: str, **parameters: Any) -> Any: ...

    @abstractmethod
    def _status(self, port: int) -> dict[str, Any]: ...

    @abstractmethod
    def _card_mac(self, port: int) -> str: ...
