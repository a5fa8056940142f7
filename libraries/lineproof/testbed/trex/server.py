"""A TRex server that a testbed starts: what to start (:class:`ServerOrder`), and the server's life from start to end.

``python -m lineproof.testbed.trex`` holds one server as long as its own standard input lasts. Its log is TRex's output.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import select
import shlex
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
from typing import Any, Protocol

import paramiko
from pydantic import TypeAdapter

from ...errors import TestbedError
from ...generators.trex.server_facts import ask_server
from ...json_text import parse_json
from ...system import children
from ...system.login import Login
from ...system.network_namespace import inside, run_in_namespace
from ...system.signals import end_with_parent
from ...system.ssh import connect
from ..process import Belongings, TestbedProcess
from .wrapper import END_OF_CONFIG, wrapper_command

QUOTED_LINES = 5
"""Last lines of its output that a message quotes."""

QUOTED_LENGTH = 500
"""Characters of them at most."""

LONGEST_LOG = 64 << 20
"""Bytes of its output that go into the log: a server that writes without end must not fill the disk."""

LOG_FULL = b"\nlineproof: more output of TRex is not kept\n"

START_LIMIT = 15.0
"""Seconds for the host to accept a command over SSH."""

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class ServerOutput:
    """A server's output: copied to this process's standard error, its last lines kept."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=QUOTED_LINES)
        self._rest, self._left = "", LONGEST_LOG
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Add bytes that were read."""
        left, self._left = self._left, max(0, self._left - len(data))
        with contextlib.suppress(OSError):
            if left:
                os.write(2, data[:left] if self._left else data[:left] + LOG_FULL)
        with self._lock:
            *lines, self._rest = (self._rest + data.decode(errors="replace")).replace("\r", "\n").split("\n")
            self._rest = self._rest[-QUOTED_LENGTH:]
            for found in lines:
                if text := " ".join(_COLOURS.sub("", found).split()):
                    self._lines.append(text)

    def last_lines(self) -> str:
        """The last lines, joined."""
        with self._lock:
            rest = " ".join(_COLOURS.sub("", self._rest).split())
            found = "; ".join([*self._lines, rest] if rest else self._lines)
        return found if len(found) <= QUOTED_LENGTH else "…" + found[-QUOTED_LENGTH:]


class StartedServer(Protocol):
    """A started server."""

    output: ServerOutput

    def write_input(self, text: str) -> None:
        """Write to its standard input, which stays open."""
        ...

    def status(self) -> int | None:
        """Return its exit status as a shell reports it (128 + n: by signal n); None while it runs; -1: not known."""
        ...

    def stop(self, limit: float) -> bool:
        """End its input, and after *limit* s kill it. False if it had to be killed."""
        ...


class LocalServer:
    """A process of this machine."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        try:
            # a session of its own: a signal to this process's group must not prevent its orderly end
            self._process = children.start(
                argv, stdin=children.PIPE, stdout=children.PIPE, stderr=children.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise TestbedError(f"TRex cannot be started: {argv[0]}: {error.strerror}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                while data := os.read(self._process.stdout.fileno(), 65536):
                    self.output.add(data)

    def write_input(self, text: str) -> None:
        """See :class:`StartedServer`."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(text.encode())
                self._process.stdin.flush()

    def status(self) -> int | None:
        """See :class:`StartedServer`."""
        found = self._process.poll()
        if found is None:
            return None
        self._reader.join(0.5)
        return 128 - found if found < 0 else found

    def stop(self, limit: float) -> bool:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(limit)
            return True
        except children.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(children.TimeoutExpired):
                self._process.wait(1.0)
            return False
        finally:
            self._reader.join(0.5)


class RemoteServer:
    """A command on another host, over SSH."""

    def __init__(self, login: Login, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        self._client = connect(login, "the TRex server's host")
        try:
            transport = self._client.get_transport()
            if transport is None:
                raise paramiko.SSHException("the connection was lost")
            # so that both ends notice a lost connection
            transport.set_keepalive(5)
            self._channel = transport.open_session(timeout=START_LIMIT)
            self._channel.set_combine_stderr(True)
            self._channel.exec_command(shlex.join(argv))
        except (paramiko.SSHException, OSError, EOFError) as error:
            self._client.close()
            raise TestbedError(
                f"TRex cannot be started over SSH at {login.where}: {str(error) or type(error).__name__}; look at the"
                " sshd's log there"
            ) from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, EOFError, socket.timeout):
            while data := self._channel.recv(65536):
                self.output.add(data)

    def write_input(self, text: str) -> None:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError):
            self._channel.sendall(text.encode())

    def status(self) -> int | None:
        """See :class:`StartedServer`."""
        if self._channel.exit_status_ready():
            self._reader.join(0.5)
            return self._channel.recv_exit_status()
        return -1 if self._channel.closed else None

    def stop(self, limit: float) -> bool:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
        until = time.monotonic() + limit
        while (found := self.status()) is None and time.monotonic() < until:
            time.sleep(0.05)
        # the end of the connection ends the command if it still runs
        self._client.close()
        self._reader.join(0.5)
        return found is not None


def log_note(text: str) -> None:
    """Write a line of this process's own to the log."""
    print(f"lineproof: {text}", file=sys.stderr, flush=True)


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
    ending, (told, tell) = threading.Event(), os.pipe()
    text = sys.stdin.buffer.readline()
    if not text:
        return 1
    # empty handlers: SIG_IGN would be inherited by TRex
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        # a handler may interrupt where the event's lock is held, and would wait for it for ever
        signal.signal(number, lambda *_: os.write(tell, b"."))

    def watch() -> None:
        with suppress(OSError):
            while told not in select.select([0, told], [], [])[0] and os.read(0, 4096):
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
