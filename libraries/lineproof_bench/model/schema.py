"""The ``model:`` section of a platform's file: physical parameters of the simulated box, and what costs how much.

Cycles are those of the core's clock; rates that scale a cost are in Mpps (10^6 frames/s of the whole router). Shares of
features and firewalls, as a study has them ``configured``, are of the software's cost per packet, so that one value
holds for machines of different speed.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, field_validator

from lineproof.config import Config, load_config, read_yaml, validate_config
from lineproof.errors import ConfigError
from lineproof.platforms import Platform

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Spread = Annotated[float, Field(ge=0, lt=0.5)]
"""Standard deviation of what a router carries from one run to the next, as a share."""


class Lock(Config):
    """A lock that only one core may hold. ``cycles``: held per frame; ``far``: how much longer, as a share of that, if
    another core held it last (its cache line has to come from there); ``spin``: the same for each further core that
    takes it; ``ipv6``: the same for a frame of IPv6.
    """

    name: str = ""
    cycles: Positive
    far: NotNegative = 0.0
    spin: NotNegative = 0.0
    ipv6: NotNegative = 0.0

    def held(self, users: float, ipv6: float) -> float:
        """Return the cycles per frame that it is held by *users* cores that take it equally often; *ipv6*: of IPv6."""
        far, spin = self.far * (1 - 1 / max(1.0, users)), self.spin * (users - 1)
        return self.cycles * (1 + far + spin) * (1 + self.ipv6 * ipv6)


class CycleCost(Config):
    """Cycles that a core spends.

    ``packet`` per frame, ``byte`` per byte of it (FCS not counted), ``input`` per frame in the input node, ``call`` per
    round of the graph, shared by the frames of a vector. ``shared``: more per frame for each Mpps of the router, where
    cores wait for each other (locks, buffers). ``duplex``: more per frame for each (Mpps)² that is carried in both
    directions at once, where reads and writes of memory contend.

    ``locks``: all that a frame needs, one after the other; ``layer``: per virtual interface that a frame passes, one
    for each VLAN tag; ``ipv6``: what share more of ``packet`` IPv6 costs. ``crossing``: per frame whose sending queue
    belongs to another core than its receive queue, ``crossing_far`` where those cores are on more than one socket.
    """

    packet: Positive
    byte: NotNegative = 0.0
    input: NotNegative = 0.0
    call: NotNegative = 0.0
    shared: NotNegative = 0.0
    duplex: NotNegative = 0.0
    locks: tuple[Lock, ...] = ()
    layer: NotNegative = 0.0
    ipv6: NotNegative = 0.0
    crossing: NotNegative = 0.0
    crossing_far: NotNegative = 0.0


class Feature(Config):
    """Something that is on or off. ``packet``: what share more a frame costs; negative where it saves
    some. ``lock``: one more for each frame. ``layer``: cycles more per VLAN tag. ``port_mpps``: what a
    port receives at most. ``speed``: of each core, as a share, when all of its ``threads`` work. ``spread``: as that of
    a software, if more.
    """

    packet: Annotated[float, Field(gt=-1)] = 0.0
    lock: Lock | None = None
    layer: float = 0.0
    port_mpps: Positive | None = None
    threads: Annotated[int, Field(ge=1, le=8)] = 1
    speed: Annotated[float, Field(gt=0, le=1)] = 1.0
    spread: Spread = 0.0
    about: str = ""


class StateTable(Config):
    """The states of a firewall: a hash table of ``buckets``, each a chain. An entry that a look-up passes costs ``hit``
    cycles, and ``miss`` more if it is not in the processor's cache, which holds ``cached`` of them.
    """

    buckets: Annotated[int, Field(ge=1)]
    hit: NotNegative
    miss: NotNegative
    cached: Annotated[int, Field(ge=1)]

    def cycles(self, states: int) -> float:
        """Return what the look-up in a table of *states* costs beyond that in one of a few."""
        outside = max(0.0, 1 - self.cached / states) if states else 0.0
        return states / self.buckets * self.hit + (1 + states / self.buckets) * self.miss * outside


class FirewallCost(Config):
    """The cost of each frame: ``packet``, a share of its cost; ``ipv6``, what share more if it is IPv6; a ``lock``."""

    packet: NotNegative = 0.0
    ipv6: NotNegative = 0.0
    lock: Lock | None = None


class Firewall(Config):
    """``rule``: share of a packet's cost for each rule that a frame passes before its own; ``table``: for a look-up in
    a table of addresses of any size. ``rules_as_table``: several rules become one table. ``spread``: as that of a
    software, if more.
    """

    stateless: FirewallCost
    stateful: FirewallCost
    rule: NotNegative = 0.0
    table: NotNegative = 0.0
    rules_as_table: bool = False
    spread: Spread = 0.0
    states: StateTable | None = None


class Configured(Config):
    """``configured`` of a study, without the features. ``rules`` that a frame passes before its own; entries of a
    ``table`` of addresses; ``states`` that the firewall holds.
    """

    firewall: str = "none"
    stateful: bool = False
    rules: Annotated[int, Field(ge=0)] = 0
    table: Annotated[int, Field(ge=0)] = 0
    states: Annotated[int, Field(ge=0)] = 0


Value = bool | int | float | str


def parsed(known: ModelFile, configured: Mapping[str, Value], file: Path) -> tuple[Configured, dict[str, bool]]:
    """Return what the firewall does when *configured* so, and the features that are switched. Raises ConfigError."""
    if not configured:
        return Configured(), {}
    firewalls = Literal[("none", *known.firewalls)]  # type: ignore[valid-type]  # known when the file is read
    choices: dict[str, Any] = {"firewall": (firewalls, "none")} | dict.fromkeys(known.features, (bool, False))
    own = create_model("Configured", __base__=Configured, **choices)
    section = create_model("Section", configured=(own, ...))
    # no line of the platform's file has them: a study says what its commands make of the router
    lines = dict.fromkeys([("configured",), *(("configured", key) for key in configured)], 0)
    chosen = validate_config({"configured": dict(configured)}, section, file, lines).configured  # type: ignore[attr-defined]
    return chosen, {name: getattr(chosen, name) for name in chosen.model_fields_set & known.features.keys()}


def with_firewall(cost: CycleCost, known: ModelFile, configured: Configured) -> CycleCost:
    """Return the *cost* of frames behind the firewall that is *configured*."""
    if configured.firewall == "none":
        return cost
    firewall = known.firewalls[configured.firewall]
    own = firewall.stateful if configured.stateful else firewall.stateless
    rules, tables = float(configured.rules), float(configured.table > 0)
    if firewall.rules_as_table and configured.rules > 1:
        rules, tables = 0.0, tables + 1
    more = own.packet + rules * firewall.rule + tables * firewall.table
    packet = cost.packet * (1 + more)
    if configured.stateful and firewall.states:
        packet += firewall.states.cycles(configured.states)
    locks = (*cost.locks, own.lock.model_copy(update={"name": configured.firewall})) if own.lock else cost.locks
    return cost.model_copy(update={"packet": packet, "locks": locks, "ipv6": cost.ipv6 + own.ipv6})


KEYS = {
    # Microsoft's verification key (Windows RSS documentation), also the default of DPDK's ixgbe driver
    "microsoft": "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa",
    # the default of DPDK's mlx5 driver
    "mlx5": "2cc681d15bdbf4f7fca28319db1a3e946b9e38d92c9c03d1ad9944a7d9563d59063c25f3fc1fdc2a",
}
"""RSS keys that have a name, in hexadecimal digits."""

RINGS = {"vpp": 1024, "linux": 512, "freebsd": 1024}
"""Receive descriptors of a queue: by default VPP's ``num-rx-desc``, Linux's ixgbe, FreeBSD's igb and cxgbe."""


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
    """``reta``: entries of the redirection table.

    ``queue_ns``: ns of the card's own for each frame of a receive queue. ``descriptors``: bytes per frame of
    descriptors, completions and requests on ``pcie``. ``sends_by``: what of a frame chooses its sending queue: the
    entry of the redirection ``table``, so that it is its receive queue's, or the whole ``hash``, so that this holds
    only if the table's size is a multiple of the number of queues. Limits (None: none below line rate): ``port_mpps``
    that a port receives and ``tx_mpps`` that it sends, Mpps (more finds no free slot in the sending ring); ``pcie``.
    """

    reta: Annotated[int, Field(ge=1, le=4096)] = 128
    queue_ns: NotNegative = 0.0
    descriptors: NotNegative = 0.0
    sends_by: Literal["table", "hash"] = "table"
    port_mpps: Positive | None = None
    tx_mpps: Positive | None = None
    pcie: Pcie | None = None


class SoftwareModel(Config):
    """One software. ``placement``: queues go to cores in turn, continuing from port to port or starting again per port.

    ``nic``: what is different of the platform's card as this software drives it. ``has``: features that it has from the
    start (:class:`ModelFile`). ``spread``: how much a run differs from the next, where the testbed has no
    noise of its own.
    """

    placement: Literal["continuing", "per port"]
    cost: CycleCost
    has: tuple[str, ...] = ()
    spread: Spread = 0.0
    rss: Rss = Rss()
    vectors: Vectors | None = None
    nic: Nic | None = None


class ModelFile(Config):
    """The whole section. ``clock_mhz`` of each of ``cores`` on ``sockets``; ``generator_ceiling``: share of line rate
    that the generator can send. ``features`` by name and ``firewalls``: what may be ``configured``.
    """

    cores: Annotated[int, Field(ge=1, le=256)]
    sockets: Annotated[int, Field(ge=1, le=8)] = 1
    clock_mhz: Positive
    generator_ceiling: Annotated[float, Field(gt=0, le=1)] = 1.0
    nic: Nic = Nic()
    software: Annotated[Mapping[str, SoftwareModel], Field(min_length=1)]
    features: Mapping[str, Feature] = {}
    firewalls: Mapping[str, Firewall] = {}


@dataclass(frozen=True, slots=True)
class RouterModel:
    """The parameters of one software on one box. ``clock_hz``: cycles/s of each worker; ``speeds``: bit/s of each port.

    ``ring``: frames that a receive queue holds. ``socket_cores``: cores of one socket; ``threads``: workers of a core;
    ``spread``: standard deviation of its capacity from trial to trial, as a share.
    """

    clock_hz: float
    workers: int
    rx_queues: int
    ceiling: float
    speeds: tuple[float, ...]
    nic: Nic
    software: SoftwareModel
    ring: int
    socket_cores: int
    threads: int = 1
    spread: float = 0.0

    @property
    def maximum_vector(self) -> int:
        """Frames of a full vector; 1 for software that handles frames one by one."""
        return self.software.vectors.maximum if self.software.vectors else 1


def router_model(
    platform: Platform,
    software: str,
    rx_queues: int | None = None,
    path: Path | None = None,
    configured: Mapping[str, Value] | None = None,
) -> RouterModel:
    """Return the model of *software* on *platform*; *path*: its file, for messages. *rx_queues*: not the platform's.

    *configured*: what a study's commands make of it. Raises ConfigError naming file, line and key.
    """
    file = path or Path(f"{platform.platform}.yaml")
    model = _section(platform, software, path, file)
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
    plain = RouterModel(
        model.clock_mhz * 1e6,
        workers,
        queues,
        model.generator_ceiling,
        tuple(platform.ports.values()),
        nic,
        model.software[software],
        RINGS[chosen.shell],
        model.cores // model.sockets,
    )
    return _with_configuration(plain, model, configured or {}, file)


def _section(platform: Platform, software: str, path: Path | None, file: Path) -> ModelFile:
    if software not in platform.software:
        raise ConfigError(f"no software '{software}'; known: {', '.join(platform.software)}", file)
    if not platform.model:
        raise ConfigError("has no 'model:', so the platform cannot be simulated; add its physical parameters", file)
    try:
        model = validate_config(dict(platform.model), ModelFile, file, {})
    except ConfigError:
        if path is None:
            raise
        # again, with the lines: to read the file takes longer than all else, and some make hundreds of models
        lines = {where[1:]: line for where, line in read_yaml(path)[1].items() if where[0] == "model"}
        model = validate_config(dict(platform.model), ModelFile, file, lines)
    if (shell := platform.software[software].shell) not in RINGS:
        known = ", ".join(RINGS)
        own = f"its 'model:' is for a simulation, which has {known} only; remove it from 'model.software'"
        raise ConfigError(f"'{software}' has 'shell: {shell}', so {own}", file)
    if software not in model.software:
        known = ", ".join(model.software)
        raise ConfigError(f"'model.software' has no '{software}', so it cannot be simulated; known: {known}", file)
    if unknown := [name for name in model.software[software].has if name not in model.features]:
        known = ", ".join(model.features) or "none"
        raise ConfigError(f"'{software}' has the feature '{unknown[0]}'; 'model.features' has {known}", file)
    return model


def _with_configuration(
    model: RouterModel, section: ModelFile, configured: Mapping[str, Value], file: Path
) -> RouterModel:
    firewall, switched = parsed(section, configured, file)
    on = dict.fromkeys(model.software.has, True) | switched
    features = {name: feature for name, feature in section.features.items() if on.get(name)}
    cost, nic = model.software.cost, model.nic
    for name, feature in features.items():
        locks = (*cost.locks, feature.lock.model_copy(update={"name": name})) if feature.lock else cost.locks
        more = {"packet": cost.packet * (1 + feature.packet), "layer": max(0.0, cost.layer + feature.layer)}
        cost = cost.model_copy(update={"locks": locks, **more})
        if feature.port_mpps:
            nic = nic.model_copy(update={"port_mpps": min(feature.port_mpps, nic.port_mpps or feature.port_mpps)})
    cost = with_firewall(cost, section, firewall)
    software = model.software.model_copy(update={"cost": cost})
    behind = section.firewalls.get(firewall.firewall)
    spreads = [
        software.spread,
        *(feature.spread for feature in features.values()),
        *([behind.spread] if behind else []),
    ]
    return _with_threads(replace(model, nic=nic, software=software, spread=max(spreads)), features.values())


def _with_threads(model: RouterModel, features: Iterable[Feature]) -> RouterModel:
    """Return *model* with cores that are several processors each. Queues that meet on a core are slower there.

    Who holds a lock is slowed down half as much: about half of the others wait for it, and take nothing meanwhile.
    """
    for feature in features:
        if feature.threads > 1:
            threads, cost = model.workers * feature.threads, model.software.cost
            slower = (1 - feature.speed) * (min(model.rx_queues, threads) - 1) / (threads - 1)
            share = (1 - slower) / (1 - slower / 2)
            locks = tuple(lock.model_copy(update={"cycles": lock.cycles * share}) for lock in cost.locks)
            software = model.software.model_copy(update={"cost": cost.model_copy(update={"locks": locks})})
            clock = model.clock_hz * (1 - slower)
            model = replace(model, workers=threads, threads=feature.threads, clock_hz=clock, software=software)
    return model


def load_platform(path: Path) -> Platform:
    """Return the platform in the file *path*."""
    return load_config(path, Platform)
