"""The shells' end of the control socket (see ``lineproof_bench/state.py``): counts come in, configurations go out."""

from __future__ import annotations

from typing import Any

from lineproof.simulation.control import ControlClient

from ..state import RouterConfiguration, RouterState, state_from_json, to_json


class ModelControl(ControlClient):
    """The requests of the shells."""

    def state(self) -> RouterState:
        """The router now."""
        return state_from_json(self.ask("state"))

    def configure(self, configuration: RouterConfiguration) -> None:
        """Replace the router's configuration."""
        self.ask("configure", configuration=to_json(configuration))

    def clear(self) -> None:
        """``clear runtime``."""
        self.ask("clear")

    def ssh_fault(self) -> dict[str, Any]:
        """The fault of an SSH command that has just come: {}, {"cut": true} or {"freeze": s of wall time}."""
        return self.ask("ssh")
