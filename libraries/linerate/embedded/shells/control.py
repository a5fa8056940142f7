"""The shells' end of the control socket (see ``embedded/state.py``): what the model counts and what it is told."""

from __future__ import annotations

from typing import Any

import zmq

from ...errors import BenchError
from ..faults import Fault
from ..state import RouterConfiguration, RouterState, state_from_json, to_json

TIMEOUT = 2.0
"""Seconds within which the model must answer."""


class Control:
    """Requests to the model. Callable from any thread: each request has a socket of its own, none is left half used."""

    def __init__(self, port: int, token: str, timeout: float = TIMEOUT) -> None:
        self._address, self._token, self._timeout = f"tcp://127.0.0.1:{port}", token, timeout
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def state(self) -> RouterState:
        """The router now."""
        return state_from_json(self._ask("state"))

    def configure(self, configuration: RouterConfiguration) -> None:
        """Replace the router's configuration."""
        self._ask("configure", configuration=to_json(configuration))

    def clear(self) -> None:
        """``clear runtime``."""
        self._ask("clear")

    def ssh(self) -> dict[str, Any]:
        """What befalls an SSH command that has just come: {}, {"cut": true} or {"freeze": s of wall time}."""
        return self._ask("ssh")

    def cause(self, fault: Fault) -> None:
        """Let *fault* happen too."""
        self._ask("fault", fault=fault.model_dump(exclude_none=True))

    def close(self) -> None:
        """Give the sockets back."""
        self._context.destroy(linger=0)

    def _ask(self, op: str, **more: Any) -> dict[str, Any]:
        socket = self._context.socket(zmq.REQ)
        try:
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(self._address)
            socket.send_json({"token": self._token, "op": op, **more})
            if not socket.poll(int(self._timeout * 1000)):
                raise BenchError(
                    f"the simulated router's model at {self._address} gave no answer to '{op}' within"
                    f" {self._timeout:g} s; the embedded server that holds it must be running"
                )
            answer = socket.recv_json()
        except zmq.ZMQError as error:
            raise BenchError(f"the simulated router's model at {self._address} cannot be reached: {error}") from None
        finally:
            socket.close()
        if not isinstance(answer, dict) or "ok" not in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            raise BenchError(f"the simulated router's model refused '{op}': {said}")
        found: dict[str, Any] = answer["ok"]
        return found
