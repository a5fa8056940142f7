"""Testbed files: which testbed, and what is on it. ``variables/testbeds/*.yaml``, one schema for each ``kind``."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, ValidationInfo, create_model, field_validator, model_validator

from ..config import (
    Config,
    Ipv4Address,
    MacAddress,
    absolute_path,
    matching,
    read_yaml,
    readable,
    shown_key,
    validate_config,
)
from ..core.telemetry import Side
from ..core.traffic.frame_kinds import FrameKind
from ..core.traffic.profiles import PAIRS, AddressRange, Profile
from ..core.trial import Tolerance
from ..errors import ConfigError
from ..generators.kinds import generator_kind
from ..generators.site import GeneratorSettings
from ..platforms import named_file
from ..power import PowerSettings
from ..project import Folder, Layers, packaged_variables
from ..simulation import Habit, InjectedFault, Noise, RouterHabits
from ..system.login import HostName, Login, TcpPort, login_at
from ..visible import shortened
from .lab import LabSettings
from .waiting_time import Seconds

TrexPort = Annotated[int, Field(ge=0, le=255)]
TrexHome = Annotated[
    str, matching("/.*", "must be an absolute path on the server's host; expected for example /opt/trex/v3.08")
]


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
    ssh: Login | None = None
    trex_home: TrexHome | None = None
    start: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    force: bool = False
    promiscuous: bool = False
    core_mask: Literal["split", "pin"] = "split"

    _login_at_address = model_validator(mode="before")(login_at)

    @field_validator("ports")
    @classmethod
    def _check_ports_in_pairs(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(value) % 2 or len(set(value)) < len(value):
            raise ValueError("must be pairs of different ports, the first cabled to the first side, and so on")
        return value

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its number and the server's address."""
        return tuple(f"port {port} of {self.address}:{self.sync_port}" for port in sorted(self.ports))

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


Ratio = Annotated[float, Field(ge=0, lt=1)]


Pairs = Annotated[int, Field(ge=1, le=PAIRS)]
DEFAULT, EMBEDDED = "trex", "embedded"
SimulatedNic = Literal["i40e", "ice", "ixgbe", "mlx5", "virtio"]


class SideSettings(Config):
    """One side of the router: ``address`` with prefix length, and the ``network`` behind its ``peer``.

    ``peer_mac``: default the one that the generator reports for its port. ``next_hop``: the router's address, IPv4 or
    IPv6, that the port asks for the destination MAC address of its frames; default: the server's gateway, or
    ``address``, and only if the server does not know that MAC address.
    """

    address: Annotated[
        str,
        readable(
            lambda text: "/" in text and ipaddress.IPv4Interface(text),
            "is no IPv4 address with a prefix length; expected for example 100.65.1.1/24",
        ),
    ]
    peer: Ipv4Address
    network: Annotated[
        str,
        readable(ipaddress.IPv4Network, "is no IPv4 network; expected its first address and a length, as 16.0.0.0/8"),
    ]
    peer_mac: MacAddress | None = None
    next_hop: (
        Annotated[str, readable(ipaddress.ip_address, "is no IP address; expected for example 100.65.1.1")] | None
    ) = None

    def of_router(self, interface: str, peer_mac: str = "") -> Side:
        """Return the side at the router's *interface*; *peer_mac*: the port's, if the file has none."""
        return Side(interface, self.address, self.peer, self.peer_mac or peer_mac, self.network)

    @model_validator(mode="after")
    def _check_peer_in_network(self) -> SideSettings:
        own = ipaddress.IPv4Interface(self.address)
        if ipaddress.IPv4Address(self.peer) not in own.network or self.peer == str(own.ip):
            raise ValueError(f"peer {self.peer} must be another address of {own.network}, the network of 'address'")
        return self


def default_side(index: int) -> SideSettings:
    """Return the default of side *index*, from 0.

    Each side has a link in 100.65.0.0/16. Behind it are the addresses of its port pair's traffic: 16.0.0.0/8 and
    48.0.0.0/8 for the first pair, one further for each pair after that (:data:`..profiles.PAIR_STEP`).
    """
    pair, second = divmod(index, 2)
    link, behind = f"100.65.{index + 1}", (48 if second else 16) + pair
    return SideSettings(address=f"{link}.1/24", peer=f"{link}.2", network=f"{behind}.0.0.0/8")


def next_hops(ports: Iterable[int], sides: Iterable[SideSettings]) -> dict[int, str]:
    """Return ``next_hop`` of those *sides* that have one, by the port in the same place."""
    return {port: side.next_hop for port, side in zip(ports, sides, strict=False) if side.next_hop is not None}


class ToleranceSettings(Config):
    """The distance that a generator may have from its load, and its CPU's: keys of :class:`Tolerance`."""

    under: Ratio = Tolerance().under
    over: Ratio = Tolerance().over
    cpu: Annotated[float, Field(gt=0, le=100)] = Tolerance().cpu


class CommonSettings(Config):
    """The keys that every kind of testbed has.

    ``cabled``: the router's ports, as its platform names them, in the order of the generator's; default its first.
    ``sides`` of the router, one for each port of the generator, in their order; default :func:`default_side`.
    ``prepare``: ``configure`` puts addresses, neighbours and routes on the router and undoes them afterwards; ``none``:
    they are there already. ``maximum_load_percent``: the generator's ceiling in per cent of line rate, the load of
    "forwards … at maximum offered load". ``warm_up`` in s; None: the goal's.
    ``set_up``: the frames beside plain IPv4 for which ``configure`` sets the router up, with the addresses, tags and
    labels of the profiles' words. Linux, VPP and FreeBSD; on a simulated testbed it is the model's, not the shell's.
    ``link_wait``: s of the testbed's clock that links may take to come up after something was brought up.
    ``power``: the meter that the router draws its power through; None: there is none.
    ``lab``: the place that labgrid lends before it is used; None: it is not labgrid's.
    """

    testbed: str
    description: str = ""
    cabled: tuple[str, ...] = ()
    sides: tuple[SideSettings, ...] | None = None
    prepare: Literal["configure", "none"] = "configure"
    set_up: tuple[FrameKind, ...] = ()
    maximum_load_percent: Annotated[float, Field(gt=0, le=100)] = 97.0
    tolerance: ToleranceSettings = ToleranceSettings()
    warm_up: Annotated[float, Field(ge=0, le=600)] | None = None
    link_wait: Annotated[float, Field(ge=0, le=600)] = 15.0
    power: PowerSettings | None = None
    lab: LabSettings | None = None

    @field_validator("sides")
    @classmethod
    def _check_no_overlap(cls, value: tuple[SideSettings, ...] | None) -> tuple[SideSettings, ...] | None:
        if value is None:
            return None
        for key, plural in (("address", "addresses"), ("network", "networks")):
            networks = [ipaddress.IPv4Interface(getattr(side, key)).network for side in value]
            for first, second in itertools.combinations(networks, 2):
                if first.overlaps(second):
                    raise ValueError(f"two sides' {plural} overlap ({first} and {second})")
        return value

    @property
    def pair_count(self) -> int:
        """Return the number of port pairs that are cabled to the router."""
        return 1

    @property
    def cabled_sides(self) -> tuple[SideSettings, ...]:
        """One for each port, in order: the file's, or the defaults."""
        return tuple(map(default_side, range(2 * self.pair_count))) if self.sides is None else self.sides

    @property
    def generator_type(self) -> str:
        """Return the generator's ``type``: the embedded server is a TRex server to all who use it."""
        return str(getattr(getattr(self, "generator", None), "type", DEFAULT))

    def tolerances(self) -> Tolerance:
        """Return the tolerance of trials on this testbed."""
        return Tolerance(**self.tolerance.model_dump(), ends_in_time=not self.sends_late_frames)

    @property
    def sends_late_frames(self) -> bool:
        """Return whether the generator sends all frames, however late; the embedded server stops in time."""
        return getattr(self, "generator", EMBEDDED) != EMBEDDED


class LocalSettings(CommonSettings):
    """A testbed that this machine makes for each run, with a TRex server. ``pairs`` of ports.

    ``client``, ``promiscuous``: the same as in :class:`TrexGeneratorSettings`.
    """

    pairs: Pairs = 1
    client: ClientName = "pypi"
    promiscuous: bool = False

    @property
    def pair_count(self) -> int:
        """Return the key ``pairs``."""
        return self.pairs


class SimulatedSettings(LocalSettings):
    """A forwarding model behind an embedded TRex server. ``clock_speed``: its seconds per real second.

    ``noise``: what differs from trial to trial (:class:`..habits.Noise`), drawn from ``seed``; None: nothing does.
    ``rx_queues`` per port: default the platform's. ``set_up`` frames take the routes of IPv4.
    """

    kind: Literal["simulated"]
    habits: tuple[Habit, ...] = ()
    """Habits that the generator's card and the router have on some testbeds of hardware."""
    clock_speed: Annotated[float, Field(ge=1, le=1000)] = 20.0
    seed: Annotated[int, Field(ge=0)] = 0
    noise: Noise | None = None
    rx_queues: Annotated[int, Field(ge=1, le=64)] | None = None
    nic: SimulatedNic | None = None
    """The card that the generator's server plays, as TRex v3.08 drives it; None: none in particular."""
    faults: tuple[InjectedFault, ...] = ()
    """The faults that shall happen, in any order."""
    router_habits: RouterHabits = RouterHabits()
    """How late the router's links come up, and how late it notices."""


class NetnsSettings(LocalSettings):
    """Real frames between network namespaces here.

    ``set_up``: everything, because the router is new.
    ``generator``: the ``embedded`` server, or a real ``trex``, of the installation that TREX_HOME names; or another
    kind's keys, with ``type``: the model that reads a file has them.
    """

    kind: Literal["netns"]
    generator: Literal["embedded", "trex"] | GeneratorSettings = "embedded"
    set_up: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")


class HardwareSettings(CommonSettings):
    """A testbed of hardware: nothing is started, but a TRex server if the generator has ``start``.

    ``generator``: of any kind; the model that reads a file has the kind's own keys.

    ``router``: how to log in to it; None: it is a black box, of a platform whose software has ``shell: none``.
    ``wait_for_testbed``: s for which another run may have it in use; 0: a port that is taken is an error.
    """

    kind: Literal["hardware"]
    generator: TrexGeneratorSettings | GeneratorSettings
    router: Login | None = None
    wait_for_testbed: Seconds = 0.0

    @property
    def trex(self) -> TrexGeneratorSettings | None:
        """Return the generator, if it is a TRex server."""
        return self.generator if isinstance(self.generator, TrexGeneratorSettings) else None

    @property
    def starts_generator(self) -> bool:
        """Return whether its generator is a server that is started for each run."""
        return self.trex is not None and self.trex.start is not None

    @property
    def pair_count(self) -> int:
        """Half the number of the generator's ports."""
        return self.generator.port_count // 2

    @model_validator(mode="after")
    def _check_set_up_with_prepare(self) -> HardwareSettings:
        if self.set_up and self.prepare == "none":
            raise ValueError("'set_up' is for 'prepare: configure'; with 'none' expected to leave it out")
        return self


class PoolSettings(Config):
    """A pool: a run gets one of its testbeds. Which, is decided before the run by who lends them.

    ``lab``: labgrid does: the testbed is the one that is named as the place. None: pabot does, by its value sets, and
    the testbed is the one that the set names; ``tags`` that the set must have, ``wait``: s until one must be free.
    """

    testbed: str
    description: str = ""
    kind: Literal["pool"]
    lab: LabSettings | None = None
    tags: tuple[str, ...] = ()
    wait: Seconds = 3600.0

    @model_validator(mode="after")
    def _check_lender(self) -> PoolSettings:
        if self.lab is None:
            return self
        if {"tags", "wait"} & self.model_fields_set:
            raise ValueError("'tags' and 'wait' are those of pabot's value sets; with 'lab' expected within it")
        if self.lab.place is not None or not self.lab.tags:
            raise ValueError("a pool of labgrid's is chosen by tags; expected 'tags' in 'lab'")
        if self.lab.power is not None:
            raise ValueError("'power' is for a testbed, not for a pool; expected 'lab: {power: …}' in the testbeds")
        return self


Testbed = SimulatedSettings | NetnsSettings | HardwareSettings

KINDS: Mapping[str, type[Testbed] | type[PoolSettings]] = {
    "simulated": SimulatedSettings,
    "netns": NetnsSettings,
    "hardware": HardwareSettings,
    "pool": PoolSettings,
}


def read_testbed(folder: Folder, name: str) -> Testbed:
    """Return the testbed *name* of *folder*. Raises ConfigError naming file, line, key and remedy.

    Relative paths in the file start at its folder; ``~`` is the user's home.
    """
    settings = read_testbed_or_pool(folder, name)
    if isinstance(settings, PoolSettings):
        raise ConfigError(
            "is a pool of testbeds, of which a suite gets one ('Open Testbed For'); here expected one of them",
            folder / f"{name}.yaml",
        )
    return settings


def read_testbed_or_pool(folder: Folder, name: str) -> Testbed | PoolSettings:
    """Return the testbed *name*, as :func:`read_testbed`, or the pool of that name. Raises ConfigError."""
    path = named_file(folder, name, "testbed")
    data, lines = read_yaml(path)
    kind: Any = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        problem = f"unknown kind '{shortened(kind)}'" if kind is not None else "the key 'kind' is missing"
        raise ConfigError(f"{problem}; expected one of {', '.join(KINDS)}", path, lines.get(("kind",), 1))
    layers = folder if isinstance(folder, Layers) else Layers(folder, packaged_variables() / "testbeds")
    model, given = KINDS[kind], data.get("generator")
    if kind in ("netns", "hardware") and isinstance(given, str | dict):
        try:
            model, given = _with_its_keys(kind, given, layers.beside("programs"))
        except ConfigError as error:
            line = lines.get(("generator", "type"), lines.get(("generator",)))
            raise ConfigError(str(error), path, line) from None
        data = {**data, "generator": given}
    settings = validate_config(data, model, path, lines, "testbed")
    if isinstance(settings, PoolSettings):
        return settings
    if len(settings.cabled_sides) != 2 * settings.pair_count:
        raise ConfigError(
            f"'sides' are {len(settings.cabled_sides)}, and the generator's ports are {2 * settings.pair_count};"
            " expected one side for each port, in the order of the ports",
            path,
            lines.get(("sides",)),
        )
    return settings


def _with_its_keys(kind: str, given: str | dict[str, Any], programs: Folder) -> tuple[type[Testbed], Any]:
    """Return the model that has the keys of the generator *given*, and that as the model takes it.

    Raises ConfigError for a type of generator that is not installed, or cannot be on a testbed of *kind*.
    """
    if kind == "hardware" and isinstance(given, str):
        return HardwareSettings, given
    keys = {"type": given} if isinstance(given, str) else given
    name = keys.get("type", DEFAULT)
    if kind == "netns" and name in (EMBEDDED, DEFAULT):
        if more := [key for key in keys if key != "type"]:
            raise ConfigError(f"'{shown_key(more[0])}' is not a key of a TRex on namespaces; remove it")
        return NetnsSettings, name
    if not isinstance(name, str):
        raise ConfigError(f"'type' is the name of a kind of generator, as '{DEFAULT}'")
    settings = generator_kind(name, programs)
    if kind == "hardware":
        return _with_generator(HardwareSettings, settings), keys
    if settings.on_netns is None:
        raise ConfigError(f"a generator of type '{name}' is for testbeds of kind 'hardware' only")
    return _with_generator(NetnsSettings, settings.on_netns), keys


@cache
def _with_generator(model: type[Testbed], keys: type[GeneratorSettings]) -> type[Testbed]:
    # mypy takes what it returns for the base alone
    made: Any = create_model(model.__name__, __base__=model, generator=(keys, ...))
    return cast(type[Testbed], made)


@dataclass(frozen=True, slots=True)
class Misfit:
    """``key`` of the side in place ``side``, from 0, does not fit. ``certain``: no router makes up for it."""

    side: int
    key: str
    reason: str
    certain: bool

    def __str__(self) -> str:
        return f"'sides.{self.side}.{self.key}': {self.reason}"

    def located(self, folder: Folder, testbed: str) -> ConfigError:
        """Return the misfit as an error with file and line. Raises ConfigError if the file cannot be read any more."""
        path = folder / f"{testbed}.yaml"
        return ConfigError(str(self), path, read_yaml(path)[1].get(("sides", str(self.side), self.key)))


def network_misfits(testbed: Testbed, profile: Profile, bidirectional: bool, pairs: int = 1) -> Iterator[Misfit]:
    """Yield each ``network`` of *testbed* without all addresses to which *profile* is sent there.

    With ``prepare: configure`` these networks are the routes that the router gets. Labels are no addresses; those of a
    user's own frames are not looked at here, but by frames that have to come through.
    """
    networks = [ipaddress.IPv4Network(side.network) for side in testbed.cabled_sides]
    if profile.headers.labels or profile.has_own_addresses:
        return
    for pair in range(pairs):
        flows = profile.flows.of_pair(pair)
        ways = [(2 * pair + 1, flows.destination), *([(2 * pair, flows.source)] if bidirectional else [])]
        for side, addresses in ways:
            if side < len(networks) and not _holds(networks[side], addresses):
                ends = list(dict.fromkeys((addresses.first, addresses.last)))
                message = (
                    f"{networks[side]} does not hold {' to '.join(ends)}, where '{profile.name}' is sent through this"
                    f" side; expected 'network: {_expected(side, addresses)}'"
                )
                yield Misfit(side, "network", message, testbed.prepare == "configure")


def _expected(side: int, addresses: AddressRange) -> str:
    """Return the side's default network, if it holds *addresses*; else the smallest that does."""
    usual = ipaddress.IPv4Network(default_side(side).network)
    first, last = (ipaddress.IPv4Address(end) for end in (addresses.first, addresses.last))
    length = 32 - (int(first) ^ int(last)).bit_length()
    return str(usual if _holds(usual, addresses) else ipaddress.IPv4Network((int(first), length), strict=False))


def _holds(network: ipaddress.IPv4Network, addresses: AddressRange) -> bool:
    return all(ipaddress.IPv4Address(end) in network for end in (addresses.first, addresses.last))
