"""The models of one router: as its platform's file has it, and as the commands of a study have configured it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from lineproof.platforms import Platform, RouterSetup

from .schema import RouterModel, router_model


class ConfiguredModels:
    """Of *software* on *platform*. *setups*: what a study's commands make of it; *path*: the platform's file.

    Raises ConfigError for a setup that the platform's model does not know.
    """

    def __init__(
        self,
        platform: Platform,
        software: str,
        rx_queues: int | None,
        path: Path | None,
        setups: Sequence[RouterSetup],
    ) -> None:
        self.plain = router_model(platform, software, rx_queues, path)
        self._models = {
            frozenset(pair.do for pair in setup.commands): router_model(
                platform, software, rx_queues, path, setup.configured
            )
            for setup in setups
        }

    def of(self, done: Collection[str]) -> RouterModel:
        """The model after the commands *done*: that of the setup that has exactly these, or the plain one."""
        return self._models.get(frozenset(done), self.plain)
