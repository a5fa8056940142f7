"""The control socket: shells read and configure the modelled router (see ``lineproof_bench/state.py``).

A request has two frames: the token, and a JSON object, which nobody reads before the token is compared.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, Protocol

from lineproof.json_text import parse_json
from lineproof.simulation.control import LARGEST_MESSAGE
from lineproof.simulation.faults import InjectedFault

from ..state import ModelledRouter, configuration_from_json, to_json
from .fault_actions import FaultSource


class FaultyRouter(FaultSource, Protocol):
    """A modelled router with faults."""

    def ssh_fault(self) -> dict[str, Any]:
        """The fault of the SSH command that has just come; empty: none."""
        ...


class ControlService:
    """Answers the requests of shells that know *token* ("": a random one). *faults*: the model, if it has faults.

    *port*: the TCP port; 0: any free one.
    """

    def __init__(
        self, model: ModelledRouter, faults: FaultyRouter | None = None, token: str = "", port: int = 0
    ) -> None:
        self._model = model
        self.faults, self.port = faults, port
        self.token = token or secrets.token_hex(16)

    def handle(self, *frames: bytes) -> bytes:
        """The reply to one request. Never raises."""
        try:
            answer = {"ok": self._answer(frames)}
        except Exception as error:
            answer = {"error": f"the simulated router refuses: {str(error)[:1000]}"}
        return json.dumps(answer).encode()

    def _answer(self, frames: tuple[bytes, ...]) -> Any:
        if len(frames) != 2 or not secrets.compare_digest(frames[0], self.token.encode()):
            raise ValueError(
                "the token is wrong; expected the control_token of the server's first line in a frame of its own,"
                " before the request"
            )
        request = parse_json(frames[1], LARGEST_MESSAGE)
        if not isinstance(request, dict):
            raise ValueError("a request is a JSON object")
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
            return self.faults.ssh_fault() if self.faults else {}
        if operation == "fault" and self.faults:
            self.faults.cause((InjectedFault.model_validate(request["fault"]),))
            return True
        raise ValueError(f"unknown op '{str(operation)[:40]}'; expected state, configure or clear, ssh or fault")
