"""Cycles that a core spends, and costs of features and firewalls, as a study has ``configured`` them.

Shares are of the software's cost per packet, so that one value holds for machines of different speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from lineproof.config import Config, did_you_mean, value_problem
from lineproof.errors import ConfigError

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
        """Cycles per frame that it is held when *users* cores take it equally often; *ipv6*: that share of frames."""
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
    """Something that is on or off. ``packet``: what share more a frame costs; ``cycles``: the same in cycles; negative
    where it saves some. ``lock``: one more for each frame. ``layer``: cycles more per VLAN tag. ``port_mpps``: what a
    port receives at most. ``speed``: of each core, as a share, when all of its ``threads`` work. ``spread``: as that of
    a software, if more.
    """

    packet: Annotated[float, Field(gt=-1)] = 0.0
    cycles: float = 0.0
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


class Features(Config):
    """Parts that may be ``configured``: ``features`` by name and ``firewalls``."""

    features: Mapping[str, Feature] = {}
    firewalls: Mapping[str, Firewall] = {}


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


def parsed(known: Features, configured: Mapping[str, Value], file: Any) -> tuple[Configured, dict[str, bool]]:
    """*configured* as what the firewall does, and features that are switched. Raises ConfigError."""
    own = {key: value for key, value in configured.items() if key in Configured.model_fields}
    switched: dict[str, bool] = {}
    for key, value in configured.items():
        if key in own:
            continue
        if key not in known.features:
            names = [*Configured.model_fields, *known.features]
            raise ConfigError(
                f"'configured' has '{key}', which 'model.features' does not know;"
                f" {did_you_mean(key, names)}known: {', '.join(names)}",
                file,
            )
        if not isinstance(value, bool):
            raise ConfigError(f"'configured.{key}' is {value!r}; expected true or false", file)
        switched[key] = value
    try:
        found = Configured.model_validate(own)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"'configured.{first['loc'][0]}': {value_problem(first)}", file) from None
    if found.firewall != "none" and found.firewall not in known.firewalls:
        names = [*known.firewalls, "none"]
        raise ConfigError(f"'configured.firewall' is '{found.firewall}'; known: {', '.join(names)}", file)
    return found, switched


def with_feature(cost: CycleCost, name: str, feature: Feature) -> CycleCost:
    """*cost* where *feature* is on."""
    locks = (*cost.locks, feature.lock.model_copy(update={"name": name})) if feature.lock else cost.locks
    packet = cost.packet * (1 + feature.packet) + feature.cycles
    return cost.model_copy(update={"packet": packet, "locks": locks, "layer": max(0.0, cost.layer + feature.layer)})


def with_firewall(cost: CycleCost, known: Features, configured: Configured) -> CycleCost:
    """*cost* behind the firewall that is *configured*."""
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
