# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The common part of both client libraries: their ``STLClient`` has the same methods."""

from __future__ import annotations

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from types import SimpleNamespace
from typing import Any

from .bounded_socket import bound_libraries
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
        self._captures: set[int] = set()
        self.pins_cores = False
        """Whether the ports of a pair that both send have cores of their own; else every core sends for both."""

    def core_mask(self, port: int, sending: Container[int]) -> int:
        """The cores that send for *port* while *sending* ports do, as a mask over its pair's cores."""
        shared = self.pins_cores and port ^ 1 in sending and len(self.port_facts(port)["cores"]) > 1
        return CORES_OF_SIDE[port % 2] if shared else ALL_CORES

    @abstractmethod
    def port_facts(self, port: int) -> dict[str, Any]:
        """See :class:`.library.ClientLibrary`."""

    @abstractmethod
    def _import(self) -> SimpleNamespace: ...

    def load(self) -> None:
        """Import the library, once. Raises Refusal."""
        if self._library is None:
            self._library = self._import()
            bound_libraries()

    @property
    def _loaded(self) -> SimpleNamespace:
        self.load()
        assert self._library is not None  # noqa: S101
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

    def capture(self, ports: Sequence[int], limit: int) -> dict[int, int]:
        """Start one capture per port, so that each has its own limit; return their numbers."""
        self._client.set_service_mode(list(ports), True)
        found: dict[int, int] = {}
        for port in ports:
            found[port] = int(self._client.start_capture(rx_ports=[port], limit=limit)["id"])
            self._captures.add(found[port])
        return found

    def end_capture(self, number: int) -> list[bytes]:
        """End a capture; return its frames."""
        found: list[dict[str, Any]] = []
        self._client.stop_capture(number, output=found)
        self._captures.discard(number)
        return [bytes(item["binary"]) for item in found]

    def end_captures(self, ports: Sequence[int]) -> None:
        """End captures and service mode."""
        while self._captures:  # only own ones: other users may capture on their ports
            with contextlib.suppress(Exception):
                self._client._transmit("capture", {"command": "remove", "capture_id": self._captures.pop()})
        with contextlib.suppress(Exception):
            self._client.set_service_mode(list(ports), False)

    @property
    def reachable(self) -> bool:
        """Whether the library reports a connection."""
        return self._client is not None and bool(self._client.is_connected())
