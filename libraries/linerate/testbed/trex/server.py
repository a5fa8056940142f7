"""What a keeper is told to start a TRex server (:class:`Order`), and the server's life from start to end.

``python -m linerate.testbed.trex`` holds one server as long as its own standard input lasts. Its log is what TRex says.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import TestbedError
from ...generators.trex.probe import ask
from ...system.ssh import Login
from ..keeper_plan import ProcessPlan
from .places import Here, Running, There, note
from .relay import HOST, Relay, reach
from .wrapper import END_OF_CONFIG, command

NAME = "trex"
"""The process's name in the keeper's plan."""

POLL = 0.2
"""Seconds between two looks at a server."""

STEADY = 60.0
"""Seconds after which a server that serves has its restarts back."""

BEYOND = 3.0
"""Seconds that each holder of a server waits longer than the one below it."""


@dataclass(frozen=True, slots=True)
class Order:
    """One TRex server to be started. All of it travels as JSON.

    ``home`` the installation's folder; ``arguments`` TRex's; ``config`` the text of its configuration ("": the host's
    own); ``linux`` whether its interfaces are Linux's; ``grace`` s for an orderly end; ``address``, ``rpc_port``,
    ``pub_port`` where its API will answer, ``limit`` s within which; ``restarts`` how often it may be started
    again, ``spent`` how often it was; ``namespace`` it runs in, and ``near`` the ports here that lead to the API there
    (0: free ones).
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
    restarts: int = 1
    spent: int = 0
    login: Login | None = None
    namespace: str = ""
    near: tuple[int, int] = (0, 0)

    def to_json(self) -> dict[str, Any]:
        """The specification."""
        data = asdict(self)
        if self.login is not None:
            paths = {key: None if value is None else str(value) for key, value in _paths(self.login).items()}
            data["login"] = {**data["login"], **paths}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Order:
        """The inverse. Raises TypeError or KeyError on anything else."""
        login = data.get("login")
        if login is not None:
            key = login["key_path"]
            login = Login(
                **{
                    **login,
                    "key_path": None if key is None else Path(key),
                    "known_hosts_path": Path(login["known_hosts_path"]),
                }
            )
        lists = {name: tuple(data[name]) for name in ("arguments", "near")}
        return cls(**{**data, **lists, "login": login})

    @property
    def where(self) -> str:
        """For messages."""
        return f"in '{self.home}' " + (f"at {self.login.where}" if self.login else "on this machine")

    def process(self, folder: Path) -> ProcessPlan:
        """For the keeper's plan; *folder* gets the log."""
        return ProcessPlan(
            name=NAME,
            argv=(sys.executable, "-P", "-m", "linerate.testbed.trex"),
            log=str(log(folder)),
            spec=self.to_json(),
            limit=self.limit + 2 * BEYOND + 15.0,
            grace=self.grace + 2 * BEYOND,
        )


def log(folder: Path) -> Path:
    """Where a testbed with the runtime folder *folder* keeps what its TRex server says."""
    return folder / "trex.log"


def _paths(login: Login) -> dict[str, Path | None]:
    return {"key_path": login.key_path, "known_hosts_path": login.known_hosts_path}


def start(order: Order) -> Running:
    """Start it. Raises TestbedError."""
    argv = command(
        order.home, order.arguments, linux=order.linux, grace=order.grace, prefix=order.prefix, sudo=order.sudo
    )
    if order.namespace:
        argv = ("ip", "netns", "exec", order.namespace, *argv)
    running: Running = There(order.login, argv) if order.login else Here(argv)
    running.tell(order.config + END_OF_CONFIG)
    return running


def await_api(order: Order, running: Running, stack: ExitStack, ending: threading.Event) -> dict[str, int]:
    """Wait until its API answers; where, as seen from here. Raises TestbedError with the server's last lines."""
    until = time.monotonic() + order.limit
    ports = {"rpc_port": order.rpc_port, "pub_port": order.pub_port}
    doubt = ""
    while not ending.is_set():
        if (status := running.status()) is not None:
            raise TestbedError(f"TRex {order.where} {ended(status)} before its API answered{_quoted(running)}")
        try:
            _touch(order)
            if order.namespace:
                near = [
                    Relay(order.namespace, far, port)
                    for far, port in zip((order.rpc_port, order.pub_port), order.near, strict=True)
                ]
                for relay in near:
                    stack.callback(relay.close)
                rpc, pub = near[0].port, near[1].port
                ports = {"rpc_port": rpc, "pub_port": pub}
                order = replace(order, namespace="", address=HOST, rpc_port=rpc, pub_port=pub)
            ask(order.address, order.rpc_port)
            return ports
        except (OSError, TestbedError) as error:
            doubt = str(error)
        if time.monotonic() > until:
            raise TestbedError(
                f"TRex {order.where} was started, but its API did not answer at {order.address}:{order.rpc_port}"
                f" within {order.limit:g} s ({doubt}){_quoted(running)}"
            )
        ending.wait(POLL)
    return ports


def _touch(order: Order) -> None:
    """Whether something listens where the API is to be. Raises OSError."""
    if order.namespace:
        reach(order.namespace, order.rpc_port).close()
    else:
        socket.create_connection((order.address, order.rpc_port), 1.0).close()


def refuse_taken(order: Order) -> None:
    """Return if nobody answers there yet. Raises TestbedError: what answered later could not be told from ours."""
    if order.namespace:
        return
    with suppress(OSError):
        _touch(order)
        raise TestbedError(
            f"something answers already at {order.address}:{order.rpc_port}, where TRex is to be started; end that"
            " server, or leave 'start' out of the testbed file to use it"
        )


def ended(status: int) -> str:
    """How, in words."""
    if status < 0:
        return "was lost with the SSH connection to it"
    if 128 < status < 128 + 65:
        return f"was ended by signal {status - 128}"
    return f"ended with status {status}"


def _quoted(running: Running) -> str:
    last = running.output.last()
    return f"; its last lines: {last}" if last else "; it said nothing"


def hold(order: Order, say: Callable[[Mapping[str, Any]], None], ending: threading.Event) -> int:
    """Start, tell when it serves, hold it until *ending*, or until it ends by itself. The exit status for this process.

    Raises TestbedError where it does not come to serve, with nothing left.
    """
    refuse_taken(order)
    with ExitStack() as stack:
        running = start(order)
        stack.callback(_stop, running, order)
        ports = await_api(order, running, stack, ending)
        if ending.is_set():
            return 0
        began = time.monotonic()
        say({"ready": True, "pid": os.getpid(), **ports})
        while not ending.wait(POLL):
            status = running.status()
            if status is not None:
                note(f"TRex {ended(status)}")
                spent = 0 if time.monotonic() - began >= STEADY else order.spent
                if spent < order.restarts:
                    again = {"near": [ports["rpc_port"], ports["pub_port"]], "spent": spent + 1}
                    say({"again": {"after": 0.5, "specification": again}})
                return status if 0 < status < 256 else 1
    return 0


def _stop(running: Running, order: Order) -> None:
    if not running.stop(order.grace + BEYOND):
        note("TRex did not end in order")


def main() -> int:
    """Hold one server as standard input says."""
    ending = threading.Event()
    text = sys.stdin.buffer.readline()
    if not text:
        return 1
    # handlers that do nothing, not SIG_IGN, which TRex would inherit
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: ending.set())

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        ending.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        return hold(Order.from_json(json.loads(text)), _say, ending)
    except TestbedError as error:
        _say({"error": str(error)})
        return 1


def _say(data: Mapping[str, Any]) -> None:
    with suppress(OSError):
        os.write(1, json.dumps(data).encode() + b"\n")
