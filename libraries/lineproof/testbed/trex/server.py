"""A TRex server that a testbed starts: what to start (:class:`ServerOrder`), and the server's life from start to end.

``python -m lineproof.testbed.trex`` holds one server as long as its own standard input lasts. Its log is TRex's output.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ...errors import TestbedError
from ...generators.trex.server_facts import ask_server
from ...json_text import parse_json
from ...system import children
from ...system.login import Login
from ...system.network_namespace import inside, run_in_namespace
from ...system.signals import end_with_parent
from ..process import Belongings, TestbedProcess
from .started_server import LocalServer, RemoteServer, StartedServer, log_note
from .wrapper import END_OF_CONFIG, wrapper_command

PROCESS_NAME = "trex"
"""The name of the process that holds the server."""

POLL = 0.2
"""Seconds between two checks of a server."""

HOLDER_MARGIN = 3.0
"""Seconds that each process above a server waits longer for its end than the one below."""


@dataclass(frozen=True, slots=True)
class ServerOrder:
    """One TRex server to be started. It is sent as JSON.

    ``home``: the installation's folder; ``arguments``: TRex's; ``config``: the text of its configuration ("": the
    host's own); ``linux``: its interfaces are Linux's; ``grace``: s for an orderly end; ``address``, ``rpc_port``,
    ``pub_port``: of its API, which must answer within ``limit`` s; ``namespace``: the path of the network namespace it
    runs in, and ``local_ports``: the ports outside of it that lead to the API (0: free ones).
    """

    home: str
    arguments: tuple[str, ...]
    config: str
    linux: bool
    address: str
    rpc_port: int
    pub_port: int
    limit: float = 90.0
    grace: int = 8
    prefix: str = ""
    sudo: bool = False
    login: Login | None = None
    namespace: str = ""
    local_ports: tuple[int, int] = (0, 0)

    def to_json(self) -> dict[str, Any]:
        """The process's specification."""
        found: dict[str, Any] = TypeAdapter(ServerOrder).dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ServerOrder:
        """The inverse of :meth:`to_json`. Raises ValueError on anything else."""
        return TypeAdapter(cls).validate_python(data)

    @property
    def where(self) -> str:
        """The place, for messages."""
        return f"in '{self.home}' " + (f"at {self.login.where}" if self.login else "on this machine")

    def start(self, belongings: Belongings) -> TestbedProcess:
        """Start the process that holds the server, with its log in the testbed's folder. Raises TestbedError."""
        return belongings.keep(
            TestbedProcess(
                PROCESS_NAME,
                children.python("lineproof.testbed.trex"),
                log_path(belongings.folder),
                {**self.to_json(), "folder": str(belongings.folder)},
                # what a killed script leaves goes with the testbed's folder
                more=self.login.environment() if self.login else {"TMPDIR": str(belongings.folder)},
                limit=self.limit + 2 * HOLDER_MARGIN + 15.0,
                grace=self.grace + 2 * HOLDER_MARGIN,
            )
        )


def log_path(folder: Path) -> Path:
    """The TRex server's log in a testbed's runtime folder."""
    return folder / "trex.log"


def start_server(order: ServerOrder) -> StartedServer:
    """Start the server and send it its configuration. Raises TestbedError."""
    argv = wrapper_command(
        order.home, order.arguments, linux=order.linux, grace=order.grace, prefix=order.prefix, sudo=order.sudo
    )
    argv = (*inside(order.namespace, bound=True), *argv)
    server: StartedServer = RemoteServer(order.login, argv) if order.login else LocalServer(argv)
    server.write_input(order.config + END_OF_CONFIG)
    return server


def await_api(order: ServerOrder, server: StartedServer, stack: ExitStack, ending: threading.Event) -> dict[str, int]:
    """Wait until the API answers; returns its ports as seen from here. Raises TestbedError with the last output."""
    until = time.monotonic() + order.limit
    ports = {"rpc_port": order.rpc_port, "pub_port": order.pub_port}
    problem = ""
    while not ending.is_set():
        if (status := server.status()) is not None:
            raise TestbedError(
                f"TRex {order.where} {end_in_words(status)} before its API answered{_last_lines(server)}"
            )
        try:
            _try_api_port(order)
            if order.namespace:
                relays = [
                    Relay(order.namespace, target, port)
                    for target, port in zip((order.rpc_port, order.pub_port), order.local_ports, strict=True)
                ]
                for relay in relays:
                    stack.callback(relay.close)
                rpc, pub = relays[0].port, relays[1].port
                ports = {"rpc_port": rpc, "pub_port": pub}
                order = replace(order, namespace="", address=HOST, rpc_port=rpc, pub_port=pub)
            ask_server(order.address, order.rpc_port)
            return ports
        except (OSError, TestbedError) as error:
            problem = str(error)
        if time.monotonic() > until:
            raise TestbedError(
                f"TRex {order.where} was started, but its API did not answer at {order.address}:{order.rpc_port}"
                f" within {order.limit:g} s ({problem}){_last_lines(server)}"
            )
        ending.wait(POLL)
    return ports


def _try_api_port(order: ServerOrder) -> None:
    """Connect to the API's port once. Raises OSError."""
    if order.namespace:
        connect_within(order.namespace, order.rpc_port).close()
    else:
        socket.create_connection((order.address, order.rpc_port), 1.0).close()


def check_api_port_free(order: ServerOrder) -> None:
    """Raise TestbedError if something answers at the API's port already: our server could not be told from it."""
    if order.namespace:
        return
    with suppress(OSError):
        _try_api_port(order)
        raise TestbedError(
            f"a server answers already at {order.address}:{order.rpc_port}, where TRex is to be started; end that"
            " server, or leave 'start' out of the testbed file to use it"
        )


def end_in_words(status: int) -> str:
    """How the server ended, in words."""
    if status < 0:
        return "was lost with the SSH connection to it"
    if 128 < status < 128 + 65:
        return f"was ended by signal {status - 128}"
    return f"ended with status {status}"


def _last_lines(server: StartedServer) -> str:
    last = server.output.last_lines()
    return f"; its last lines: {last}" if last else "; it wrote nothing"


def hold_server(order: ServerOrder, say: Callable[[Mapping[str, Any]], None], ending: threading.Event) -> int:
    """Start the server, report when it is ready, hold it until *ending*; returns this process's status.

    A server that ends by itself ends this process with its status. Raises TestbedError, with nothing left running, if
    it does not become ready.
    """
    check_api_port_free(order)
    with ExitStack() as stack:
        server = start_server(order)
        stack.callback(_stop_server, server, order)
        ports = await_api(order, server, stack, ending)
        if not ending.is_set():
            say({"ready": True, "pid": os.getpid(), **ports})
        while (status := server.status()) is None and not ending.wait(POLL):
            pass
    if status is None:
        return 0
    log_note(f"TRex {end_in_words(status)}")
    return status if 0 < status < 256 else 1


def _stop_server(server: StartedServer, order: ServerOrder) -> None:
    if not server.stop(order.grace + HOLDER_MARGIN):
        log_note("TRex did not end in order")


def main() -> int:
    """Hold the one server that standard input describes."""
    ending = threading.Event()
    text = sys.stdin.buffer.readline()
    if not text:
        return 1
    # empty handlers: SIG_IGN would be inherited by TRex
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, lambda *_: ending.set())

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        ending.set()

    threading.Thread(target=watch, daemon=True).start()
    data = parse_json(text, own=True)
    folder = data.pop("folder")
    if data.pop("ends_with_parent"):
        end_with_parent()
    try:
        return hold_server(ServerOrder.from_json(data), _send, ending)
    except TestbedError as error:
        _send({"error": str(error)})
        return 1
    finally:
        if ending.is_set():  # else the testbed reads the log
            shutil.rmtree(folder, ignore_errors=True)


def _send(data: Mapping[str, Any]) -> None:
    with suppress(OSError):
        os.write(1, json.dumps(data).encode() + b"\n")


HOST = "127.0.0.1"

CONNECT_LIMIT = 2.0
"""Seconds to connect within the namespace."""


def connect_within(namespace: str | None, port: int) -> socket.socket:
    """A connection to *port* within *namespace*. Raises OSError."""
    found = run_in_namespace(namespace, lambda: socket.create_connection((HOST, port), CONNECT_LIMIT))
    found.settimeout(None)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


class Relay:
    """Listens on 127.0.0.1 at *port* (0: a free one) as soon as it is made. Raises OSError where that is taken."""

    def __init__(self, namespace: str | None, target: int, port: int = 0) -> None:
        self._namespace, self._target = namespace, target
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, port))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = connect_within(self._namespace, self._target)
        except Exception:  # no server: the client sees its connection end
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()
        with self._lock:
            self._open -= {client, server}
        for end in (client, server):
            end.close()

    def close(self) -> None:
        """End the listening and every connection."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            ends = list(self._open)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # one end closes both
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
