"""The ``model:`` section of a platform's file: what the simulation knows of the box. Physical parameters only.

Cycles are those of the core's clock; rates that scale a cost are in Mpps (10^6 frames/s of the whole router).
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ...config import Config, load, read, validate
from ...errors import ConfigError
from ...platforms import Platform

KEYS = {
    # Microsoft's verification key (Windows RSS documentation), also the default of DPDK's ixgbe driver
    "microsoft": "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa",
}
"""RSS keys that have a name, in hexadecimal digits."""

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Rss(Config):
    """Receive side scaling. ``fields``: what is hashed of UDP over IPv4; ``key``: a name or 40 bytes in hexadecimal."""

    fields: Literal["2-tuple", "4-tuple"] = "4-tuple"
    key: str = "microsoft"

    @field_validator("key")
    @classmethod
    def _key(cls, value: str) -> str:
        digits = value.replace(":", "")
        if value not in KEYS and not (len(digits) == 80 and set(digits) <= set(string.hexdigits)):
            raise ValueError(f"is not an RSS key; right would be one of {', '.join(KEYS)} or 80 hexadecimal digits")
        return value

    @property
    def key_bytes(self) -> bytes:
        """The 40 bytes."""
        return bytes.fromhex(KEYS.get(self.key, self.key).replace(":", ""))


class Cost(Config):
    """Cycles that a core spends.

    ``packet`` per frame, ``byte`` per byte of it (FCS not counted), ``input`` per frame in the input node, ``call`` per
    round of the graph, shared by the frames of a vector. ``shared``: more per frame for each Mpps of the router, where
    cores wait for each other (locks, buffers). ``duplex``: more per frame for each (Mpps)² that is carried both ways
    at once, where reads and writes of memory contend.
    """

    packet: Positive
    byte: NotNegative = 0.0
    input: NotNegative = 0.0
    call: NotNegative = 0.0
    shared: NotNegative = 0.0
    duplex: NotNegative = 0.0


class Vectors(Config):
    """How frames gather into vectors. ``maximum`` frames; ``gather_us``: us of a round that do not depend on load.

    ``poll``: cycles of a look at an empty queue.
    """

    maximum: Annotated[int, Field(ge=1)] = 256
    gather_us: NotNegative = 0.0
    poll: Positive = 200.0


class SoftwareModel(Config):
    """One software. ``placement``: queues are dealt to cores in turn, on from port to port, or anew for each port."""

    placement: Literal["continuing", "per port"]
    cost: Cost
    rss: Rss = Rss()
    vectors: Vectors | None = None


class Nic(Config):
    """``reta``: entries of the redirection table. Limits (None: none below line rate) of frames received.

    ``port_mpps`` of a port in Mpps; ``bus_gbps`` of all ports together, Gbit/s of frames.
    """

    reta: Annotated[int, Field(ge=1, le=4096)] = 128
    port_mpps: Positive | None = None
    bus_gbps: Positive | None = None


class ModelFile(Config):
    """The whole section. ``clock_mhz`` of each of ``cores``; ``generator_ceiling``: share of line rate it can send."""

    cores: Annotated[int, Field(ge=1, le=256)]
    clock_mhz: Positive
    generator_ceiling: Annotated[float, Field(gt=0, le=1)] = 1.0
    nic: Nic = Nic()
    software: Annotated[Mapping[str, SoftwareModel], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class RouterModel:
    """What is needed to compute one software on one box. Cycles/s ``clock_hz`` of each worker; ``link_bps`` bit/s."""

    clock_hz: float
    workers: int
    rx_queues: int
    ceiling: float
    link_bps: float
    nic: Nic
    software: SoftwareModel

    @property
    def maximum_vector(self) -> int:
        """Frames of a full vector; 1 for software that handles frames one by one."""
        return self.software.vectors.maximum if self.software.vectors else 1


def router_model(
    platform: Platform, software: str, rx_queues: int | None = None, path: Path | None = None
) -> RouterModel:
    """The model of *software* on *platform*; *path*: its file, for messages. *rx_queues*: other than the platform's.

    Raises ConfigError naming file, line and key.
    """
    file = path or Path(f"{platform.platform}.yaml")
    if software not in platform.software:
        raise ConfigError(f"no software '{software}'; known: {', '.join(platform.software)}", file)
    if not platform.model:
        raise ConfigError("has no 'model:', so the platform cannot be simulated; add its physical parameters", file)
    lines = read(path)[1] if path else {}
    model = validate(
        dict(platform.model), ModelFile, file, {where[1:]: line for where, line in lines.items() if where[0] == "model"}
    )
    if software not in model.software:
        known = ", ".join(model.software)
        raise ConfigError(f"'model.software' has no '{software}', so it cannot be simulated; known: {known}", file)
    chosen = platform.software[software]
    workers = chosen.workers or model.cores
    queues = rx_queues or chosen.rx_queues or workers
    if workers > model.cores:
        raise ConfigError(f"'{software}' has {workers} workers but 'model.cores' is {model.cores}", file)
    if queues > model.nic.reta:
        raise ConfigError(f"{queues} receive queues; the NIC's table ('model.nic.reta') has {model.nic.reta}", file)
    return RouterModel(
        model.clock_mhz * 1e6,
        workers,
        queues,
        model.generator_ceiling,
        platform.link_bps,
        model.nic,
        model.software[software],
    )


def load_platform(path: Path) -> Platform:
    """The platform in the file *path*."""
    return load(path, Platform)
