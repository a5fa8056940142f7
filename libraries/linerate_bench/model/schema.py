"""The ``model:`` section of a platform's file: physical parameters of the simulated box.

Cycles are those of the core's clock; rates that scale a cost are in Mpps (10^6 frames/s of the whole router).
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from linerate.config import Config, load_config, read_yaml, validate_config
from linerate.errors import ConfigError
from linerate.platforms import Platform

KEYS = {
    # Microsoft's verification key (Windows RSS documentation), also the default of DPDK's ixgbe driver
    "microsoft": "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa",
    # the default of DPDK's mlx5 driver
    "mlx5": "2cc681d15bdbf4f7fca28319db1a3e946b9e38d92c9c03d1ad9944a7d9563d59063c25f3fc1fdc2a",
}
"""RSS keys that have a name, in hexadecimal digits."""

RINGS = {"vpp": 1024, "linux": 512, "freebsd": 1024}
"""Receive descriptors of a queue by default: VPP's ``num-rx-desc``, Linux's ixgbe, FreeBSD's igb and cxgbe."""

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Rss(Config):
    """Receive side scaling. ``fields``: what is hashed of UDP over IP; ``key``: a name or 40 bytes in hexadecimal.

    ``mpls``: whether the card looks for the IP packet behind MPLS labels, or takes all labelled frames as one flow.
    """

    fields: Literal["2-tuple", "4-tuple"] = "4-tuple"
    key: str = "microsoft"
    mpls: Literal["inner", "none"] = "none"

    @field_validator("key")
    @classmethod
    def _key(cls, value: str) -> str:
        digits = value.replace(":", "")
        if value not in KEYS and not (len(digits) == 80 and set(digits) <= set(string.hexdigits)):
            raise ValueError(f"is not an RSS key; expected one of {', '.join(KEYS)} or 80 hexadecimal digits")
        return value

    @property
    def key_bytes(self) -> bytes:
        """The 40 bytes."""
        return bytes.fromhex(KEYS.get(self.key, self.key).replace(":", ""))


class CycleCost(Config):
    """Cycles that a core spends.

    ``packet`` per frame, ``byte`` per byte of it (FCS not counted), ``input`` per frame in the input node, ``call`` per
    round of the graph, shared by the frames of a vector. ``shared``: more per frame for each Mpps of the router, where
    cores wait for each other (locks, buffers). ``duplex``: more per frame for each (Mpps)² that is carried in both
    directions at once, where reads and writes of memory contend.

    ``lock``: cycles that a core holds a lock which only one may hold, taken ``locks`` times per frame; each further
    core makes that longer by the share ``spin``. ``layer``: per virtual interface that a frame passes: one for each
    VLAN tag, and ``layers`` for every frame (a bridge). ``ipv6``: what share more of ``packet`` IPv6 costs.
    """

    packet: Positive
    byte: NotNegative = 0.0
    input: NotNegative = 0.0
    call: NotNegative = 0.0
    shared: NotNegative = 0.0
    duplex: NotNegative = 0.0
    lock: NotNegative = 0.0
    locks: Annotated[int, Field(ge=0)] = 0
    spin: NotNegative = 0.0
    layer: NotNegative = 0.0
    layers: Annotated[int, Field(ge=0)] = 0
    ipv6: NotNegative = 0.0


class Vectors(Config):
    """How frames gather into vectors. ``maximum`` frames; ``gather_us``: us of a round that do not depend on load.

    ``poll``: cycles of a look at an empty queue, ``loop``: of the main loop around it, which no node is charged for.
    ``input``: name of the node that takes frames in.
    """

    maximum: Annotated[int, Field(ge=1)] = 256
    gather_us: NotNegative = 0.0
    poll: Positive = 200.0
    loop: NotNegative = 0.0
    input: Literal["dpdk-input", "rdma-input"] = "dpdk-input"


class Pcie(Config):
    """The bus between card and memory. ``gbps``: Gbit/s per direction after line coding; ``duplex``: the share of it
    that is lost when both ports receive and send at once.

    ``turn_ns``: what a queue waits for its turn when the bus is half loaded, ns per frame; load/(1 - load) times that.
    A frame takes its bytes, ``header`` bytes for each piece of at most ``payload`` bytes, and what the driver needs of
    descriptors (:class:`Nic`).
    """

    gbps: Positive
    payload: Annotated[int, Field(ge=64, le=4096)] = 256
    header: NotNegative = 24.0
    turn_ns: Positive = 1.0
    duplex: Annotated[float, Field(ge=0, lt=1)] = 0.0


class Nic(Config):
    """``reta``: entries of the redirection table. ``ring``: frames that wait in a receive queue before one is lost;
    None: the default of the software's drivers (RINGS).

    ``mtu``: bytes of the longest IP packet that the ports forward, longer ones have no route; None: any length.
    ``queue_ns``: ns of the card's own for each frame of a receive queue. ``descriptors``: bytes per frame of
    descriptors, completions and requests on ``pcie``. Limits (None: none below line rate): ``port_mpps`` that a port
    receives and ``tx_mpps`` that it sends, Mpps (more finds no free slot in the sending ring); ``bus_gbps`` that all
    ports together receive, Gbit/s of frames; ``pcie``.
    """

    reta: Annotated[int, Field(ge=1, le=4096)] = 128
    ring: Annotated[int, Field(ge=1, le=65536)] | None = None
    mtu: Annotated[int, Field(ge=68)] | None = None
    queue_ns: NotNegative = 0.0
    descriptors: NotNegative = 0.0
    port_mpps: Positive | None = None
    tx_mpps: Positive | None = None
    bus_gbps: Positive | None = None
    pcie: Pcie | None = None


class SoftwareModel(Config):
    """One software. ``placement``: queues go to cores in turn, continuing from port to port or starting again per port.

    ``nic``: what is different of the platform's card as this software drives it.
    """

    placement: Literal["continuing", "per port"]
    cost: CycleCost
    rss: Rss = Rss()
    vectors: Vectors | None = None
    nic: Nic | None = None


class ModelFile(Config):
    """The whole section. ``clock_mhz`` of each of ``cores``; ``generator_ceiling``: share of line rate it can send."""

    cores: Annotated[int, Field(ge=1, le=256)]
    clock_mhz: Positive
    generator_ceiling: Annotated[float, Field(gt=0, le=1)] = 1.0
    nic: Nic = Nic()
    software: Annotated[Mapping[str, SoftwareModel], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class RouterModel:
    """The parameters of one software on one box. ``clock_hz``: cycles/s of each worker; ``link_bps``: bit/s."""

    clock_hz: float
    workers: int
    rx_queues: int
    ceiling: float
    link_bps: float
    nic: Nic
    software: SoftwareModel
    ring: int
    """Frames that a receive queue holds."""

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
    lines = read_yaml(path)[1] if path else {}
    model = validate_config(
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
    own = model.software[software].nic
    changed = {name: getattr(own, name) for name in own.model_fields_set} if own else {}
    nic = model.nic.model_copy(update=changed)
    if queues > nic.reta:
        raise ConfigError(f"{queues} receive queues; the NIC's table ('reta' of 'nic') has {nic.reta}", file)
    return RouterModel(
        model.clock_mhz * 1e6,
        workers,
        queues,
        model.generator_ceiling,
        platform.link_bps,
        nic,
        model.software[software],
        nic.ring or RINGS[chosen.shell],
    )


def load_platform(path: Path) -> Platform:
    """The platform in the file *path*."""
    return load_config(path, Platform)
