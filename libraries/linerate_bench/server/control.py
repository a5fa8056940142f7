"""The control socket: shells read and configure the modelled router (see ``linerate_bench/state.py``)."""

from __future__ import annotations

import json
import secrets
from typing import Any, Protocol

from linerate.simulation.faults import InjectedFault

from ..state import RouterConfiguration, RouterState, configuration_from_json, to_json
from .trouble import Faulty


class ModelledRouter(Protocol):
    """What the shells need of a backend that models a router."""

    def state(self) -> RouterState:
        """The router now."""
        ...

    def configure(self, configuration: RouterConfiguration) -> None:
        """Take over a whole configuration. Raises ValueError with a sentence."""
        ...

    def clear(self) -> None:
        """``clear runtime``."""
        ...


class FaultyRouter(Faulty, Protocol):
    """A router that things can go wrong with."""

    def ssh(self) -> dict[str, Any]:
        """What befalls the SSH command that has just come."""
        ...


class ControlService:
    """Answers the requests of shells that know *token*. *faulty*: the model where things can go wrong with it.

    A *token* of "" is drawn, and *port*, its TCP port, is any free one where it is 0.
    """

    def __init__(
        self, model: ModelledRouter, faulty: FaultyRouter | None = None, token: str = "", port: int = 0
    ) -> None:
        self._model = model
        self.faulty, self.port = faulty, port
        self.token = token or secrets.token_hex(16)

    def handle(self, request: bytes) -> bytes:
        """The reply to one request. Never raises."""
        try:
            answer = {"ok": self._answer(json.loads(request))}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            answer = {"error": f"the simulated router refuses: {error}"}
        return json.dumps(answer).encode()

    def _answer(self, request: Any) -> Any:
        if not isinstance(request, dict) or not secrets.compare_digest(
            str(request.get("token")).encode(), self.token.encode()
        ):
            raise ValueError("the token is wrong; right is the control_token of the server's first line")
        operation = request.get("op")
        if operation == "state":
            return to_json(self._model.state())
        if operation == "configure":
            self._model.configure(configuration_from_json(request["configuration"]))
            return True
        if operation == "clear":
            self._model.clear()
            return True
        if operation == "ssh":
            return self.faulty.ssh() if self.faulty else {}
        if operation == "fault" and self.faulty:
            self.faulty.cause((InjectedFault.model_validate(request["fault"]),))
            return True
        raise ValueError(f"unknown op '{operation}'; expected state, configure or clear, ssh or fault")
