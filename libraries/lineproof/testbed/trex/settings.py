"""The key ``generator`` of a testbed file for a TRex server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from ...config import absolute_path
from ...core.traffic.profiles import PAIRS
from ...generators.kinds import GeneratorSettings
from ...system.login import HostName, LoginSettings, TcpPort

TrexPort = Annotated[int, Field(ge=0, le=255)]


def _with_path(client: str, info: ValidationInfo) -> str:
    return client if client in ("", "pypi", "from server") else str(absolute_path(Path(client), info))


ClientName = Annotated[str, AfterValidator(_with_path)]
"""A client: a word, or its folder."""


class TrexGeneratorSettings(GeneratorSettings):
    """A TRex server. ``ports``: those that are used, in pairs, each cabled to the side at its position.

    ``client``: ``pypi``, ``from server`` or a folder with the client that came with the server. Default: the PyPI
    client if the server takes it, else the server's own, copied from its host through ``ssh`` out of ``trex_home``,
    the folder of its installation there (default: that of the running server).
    ``force``: take the ports even if another user owns them. ``start``: the command that starts the server for this
    testbed, run through ``ssh`` in ``trex_home``, as ``sudo -n ./t-rex-64 -c 4``; default: it runs already.
    ``core_mask``: whether every core of a pair sends for both of its ports, or each port has half of them (TRex's
    words). ``promiscuous``: whether the ports receive frames for any MAC address while they are claimed; else only
    those for their card's own.
    """

    address: HostName
    sync_port: TcpPort = 4501
    async_port: TcpPort = 4500
    ports: Annotated[tuple[TrexPort, ...], Field(min_length=2, max_length=2 * PAIRS)] = (0, 1)
    client: ClientName = ""
    ssh: LoginSettings | None = None
    trex_home: str | None = None
    start: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    force: bool = False
    promiscuous: bool = False
    core_mask: Literal["split", "pin"] = "split"

    @field_validator("ports")
    @classmethod
    def _check_ports_in_pairs(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(value) % 2 or len(set(value)) < len(value):
            raise ValueError("must be pairs of different ports, the first cabled to the first side, and so on")
        return value

    @field_validator("trex_home")
    @classmethod
    def _check_absolute_path(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith("/") or ".." in value.split("/") or "\0" in value):
            raise ValueError("must be an absolute path on the server's host; expected for example /opt/trex/v3.08")
        return value

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its number and the server's address."""
        return tuple(f"port {port} of {self.address}:{self.sync_port}" for port in sorted(self.ports))

    @property
    def port_count(self) -> int:
        """The number of ``ports``."""
        return len(self.ports)

    @model_validator(mode="after")
    def _check_login(self) -> TrexGeneratorSettings:
        if self.client == "from server" and self.ssh is None:
            raise ValueError("'client: from server' needs a login there; expected 'ssh: {user: …, key: …}' too")
        if self.start is not None and (self.trex_home is None or self.ssh is None):
            raise ValueError(
                "'start' needs 'trex_home', the folder of the TRex installation on the generator's host, and a login"
                " there, 'ssh: {user: …, key: …}'"
            )
        return self
