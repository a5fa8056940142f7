"""Testbed files: which testbed, and what is on it. ``variables/testbeds/*.yaml``, one schema for each ``kind``."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from ..config import Config, Ipv4Address, MacAddress
from ..counts.trial import Tolerance
from ..power.settings import PowerSettings
from ..simulation.faults import InjectedFault
from ..simulation.habits import Habit, RouterHabits
from ..simulation.noise import Noise
from ..traffic.frame_kinds import FrameKind
from ..traffic.profiles import PAIRS
from ..units import parse_link_speed
from .login_settings import HostName, LoginSettings, TcpPort
from .trex.settings import StartSettings

Ratio = Annotated[float, Field(ge=0, lt=1)]


def _checked_next_hop(value: str) -> str:
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        found = None
    if found is None or found.is_multicast or found.is_unspecified or "%" in value:
        raise ValueError("is no address of one machine; expected for example 100.65.1.1 or 2001:db8:1::1")
    return str(found)


Pairs = Annotated[int, Field(ge=1, le=PAIRS)]
SimulatedNic = Literal["i40e", "ice", "ixgbe", "mlx5", "virtio"]
TrexPort = Annotated[int, Field(ge=0, le=255)]


class SideSettings(Config):
    """One side of the router. ``address`` with prefix length; ``peer``, the generator's port; ``network`` behind it.

    ``peer_mac``: default the one that the generator reports for its port. ``next_hop``: the router's address, IPv4 or
    IPv6, that the port asks for the destination MAC address of its frames; default: the server's gateway, or
    ``address``, and only if the server does not know that MAC address.
    """

    address: str
    peer: Ipv4Address
    network: str
    peer_mac: MacAddress | None = None
    next_hop: Annotated[str, AfterValidator(_checked_next_hop)] | None = None

    @field_validator("address")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if "/" not in value:
            raise ValueError("needs a prefix length; expected for example 100.65.1.1/24")
        ipaddress.IPv4Interface(value)
        return value

    @field_validator("network")
    @classmethod
    def _check_network(cls, value: str) -> str:
        ipaddress.IPv4Network(value)
        return value

    @model_validator(mode="after")
    def _check_peer_in_network(self) -> SideSettings:
        own = ipaddress.IPv4Interface(self.address)
        if ipaddress.IPv4Address(self.peer) not in own.network or self.peer == str(own.ip):
            raise ValueError(f"peer {self.peer} must be another address of {own.network}, the network of 'address'")
        return self


def default_side(index: int) -> SideSettings:
    """The default of side *index*, from 0.

    Each side has a link in 100.65.0.0/16. Behind it are the addresses of its port pair's traffic: 16.0.0.0/8 and
    48.0.0.0/8 for the first pair, one further for each pair after that (:data:`..profiles.PAIR_STEP`).
    """
    pair, second = divmod(index, 2)
    link, behind = f"100.65.{index + 1}", (48 if second else 16) + pair
    return SideSettings(address=f"{link}.1/24", peer=f"{link}.2", network=f"{behind}.0.0.0/8")


def next_hops(ports: Iterable[int], sides: Iterable[SideSettings]) -> dict[int, str]:
    """``next_hop`` of those *sides* that have one, by the port in the same place."""
    return {port: side.next_hop for port, side in zip(ports, sides, strict=False) if side.next_hop is not None}


class ToleranceSettings(Config):
    """How far a trial may be from its load and duration; a missing key keeps the default of :class:`Tolerance`."""

    under: Ratio | None = None
    over: Ratio | None = None
    late: Ratio | None = None
    cpu: Annotated[float, Field(gt=0, le=100)] | None = None


class CommonSettings(Config):
    """The keys that every kind of testbed has.

    ``sides`` of the router, one for each port of the generator, in their order; default :func:`default_side`.
    ``prepare``: ``configure`` puts addresses, neighbours and routes on the router and undoes them afterwards; ``none``:
    they are there already. ``maximum_load_percent``: the generator's ceiling in per cent of line rate, the load of
    "forwards … at maximum offered load". ``warm_up`` in s; None: the goal's.
    ``set_up``: the frames beside plain IPv4 for which ``configure`` sets the router up, with the addresses, tags and
    labels of the profiles' words. Linux, VPP and FreeBSD; on a simulated testbed it is the model's, not the shell's.
    ``link_wait``: s of the testbed's clock that links may take to come up after something was brought up.
    ``power``: the meter that the router draws its power through; None: there is none.
    """

    testbed: str
    description: str = ""
    sides: tuple[SideSettings, ...] | None = None
    prepare: Literal["configure", "none"] = "configure"
    set_up: tuple[FrameKind, ...] = ()
    maximum_load_percent: Annotated[float, Field(gt=0, le=100)] = 97.0
    tolerance: ToleranceSettings = ToleranceSettings()
    warm_up: Annotated[float, Field(ge=0, le=600)] | None = None
    link_wait: Annotated[float, Field(ge=0, le=600)] = 15.0
    power: PowerSettings | None = None

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
        """The number of port pairs that are cabled to the router."""
        return 1

    @property
    def cabled_sides(self) -> tuple[SideSettings, ...]:
        """One for each port, in order: the file's, or the defaults."""
        return tuple(map(default_side, range(2 * self.pair_count))) if self.sides is None else self.sides

    def tolerances(self) -> Tolerance:
        """The tolerance of trials on this testbed."""
        given = {key: value for key, value in self.tolerance.model_dump().items() if value is not None}
        return dataclasses.replace(Tolerance(), **given, ends_in_time=not self.sends_late_frames)

    @property
    def sends_late_frames(self) -> bool:
        """Whether the generator sends all frames of a trial even if it takes longer (TRex), or stops in time."""
        return False


class SimulatedSettings(CommonSettings):
    """A forwarding model behind an embedded TRex server. ``clock_speed``: seconds of its clock per second of real time.

    ``pairs`` of ports: the platform's interfaces in their order. ``noise``: what differs from trial to trial
    (:class:`..noise.Noise`), drawn from ``seed``; None: nothing does. ``rx_queues`` per port: default the platform's.
    ``set_up`` frames take the routes of IPv4.
    """

    kind: Literal["simulated"]
    pairs: Pairs = 1
    client: str = "pypi"
    """As in :class:`GeneratorSettings`."""
    promiscuous: bool = False
    """As in :class:`GeneratorSettings`."""
    habits: tuple[Habit, ...] = ()
    """What the generator's card and the router are known for on some testbeds of hardware."""
    clock_speed: Annotated[float, Field(ge=1, le=1000)] = 20.0
    seed: Annotated[int, Field(ge=0)] = 0
    noise: Noise | None = None
    rx_queues: Annotated[int, Field(ge=1, le=64)] | None = None
    nic: SimulatedNic | None = None
    """The card that the generator's server plays, as TRex v3.08 drives it; None: none in particular."""
    faults: tuple[InjectedFault, ...] = ()
    """What shall go wrong, in any order."""
    router_habits: RouterHabits = RouterHabits()
    """How late the router's links come up, and how late it notices."""

    @property
    def pair_count(self) -> int:
        """The key ``pairs``."""
        return self.pairs


class NetnsSettings(CommonSettings):
    """Real frames between network namespaces here. ``port_speed``: what the ports report; default the platform's.

    ``pairs`` of ports, to the platform's interfaces in their order. ``set_up``: everything, because the router is new.
    ``generator``: the ``embedded`` server, or a real ``trex``, of the installation that TREX_HOME names.
    """

    kind: Literal["netns"]
    pairs: Pairs = 1
    generator: Literal["embedded", "trex"] = "embedded"
    client: str = "pypi"
    """As in :class:`GeneratorSettings`."""
    promiscuous: bool = False
    """As in :class:`GeneratorSettings`."""
    set_up: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")
    port_speed: str | None = None

    @property
    def pair_count(self) -> int:
        """The key ``pairs``."""
        return self.pairs

    @property
    def sends_late_frames(self) -> bool:
        """A real TRex does; the embedded server stops in time."""
        return self.generator == "trex"

    @field_validator("port_speed")
    @classmethod
    def _check_port_speed(cls, value: str | None) -> str | None:
        if value is not None:
            parse_link_speed(value)
        return value


class GeneratorSettings(Config):
    """A TRex server. ``ports``: those that are used, in pairs, each cabled to the side at its position.

    ``client``: ``pypi``, ``from server`` or a folder with the client that came with the server. Default: the PyPI
    client if the server takes it, else the server's own, copied from its host through ``ssh`` out of ``trex_home``,
    the folder of its installation there (default: that of the running server).
    ``force``: take the ports even if another user owns them. ``start``: how this testbed starts the server out of
    ``trex_home`` (``true``: with the host's own configuration); default: it runs already. ``card``: the file of
    ``variables/generators`` on its network card; default: chosen by what TRex reports of the card. ``core_mask``:
    whether every core of a pair sends for both of its ports, or each port has half of them (TRex's words).
    ``promiscuous``: whether the ports receive frames for any MAC address while they are claimed; else only those for
    their card's own.
    """

    type: Literal["trex"] = "trex"
    address: HostName
    sync_port: TcpPort = 4501
    async_port: TcpPort = 4500
    ports: Annotated[tuple[TrexPort, ...], Field(min_length=2, max_length=2 * PAIRS)] = (0, 1)
    client: str = ""
    ssh: LoginSettings | None = None
    trex_home: str | None = None
    start: StartSettings | None = None
    force: bool = False
    promiscuous: bool = False
    card: str | None = None
    core_mask: Literal["split", "pin"] = "split"

    @field_validator("start", mode="before")
    @classmethod
    def _from_bool(cls, value: Any) -> Any:
        return {True: {}, False: None}[value] if isinstance(value, bool) else value

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

    @model_validator(mode="after")
    def _check_login_for_client(self) -> GeneratorSettings:
        if self.client == "from server" and self.ssh is None:
            raise ValueError("'client: from server' needs a login there; expected 'ssh: {user: …, key: …}' too")
        return self

    @model_validator(mode="after")
    def _check_start(self) -> GeneratorSettings:
        if self.start is None:
            return self
        if self.trex_home is None:
            raise ValueError("'start' needs 'trex_home', the folder of the TRex installation on the generator's host")
        if self.start.host != "local" and self.ssh is None:
            raise ValueError(
                "'start' needs a login on the generator's host; expected 'ssh: {user: …, key: …}', or, where that"
                " is this machine, 'host: local' in 'start'"
            )
        if problem := self.start.ports_problem(self.ports):
            raise ValueError(problem)
        return self


class RouterSettings(LoginSettings):
    """The router under test. ``sudo``: put ``sudo -n`` before commands that need root."""

    address: HostName
    sudo: bool = False


class HardwareSettings(CommonSettings):
    """A testbed of hardware: nothing is started, except a TRex server if the generator's ``start`` asks for it.

    ``router``: how to log in to it; None: it is a black box, of a platform whose software has ``shell: none``.
    """

    kind: Literal["hardware"]
    generator: GeneratorSettings
    router: RouterSettings | None = None

    @field_validator("generator", mode="before")
    @classmethod
    def _refuse_several_servers(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            raise ValueError(
                "several TRex servers are not supported; expected one server, whose 'ports' are all cabled to the"
                " router"
            )
        return value

    @property
    def sends_late_frames(self) -> bool:
        """A TRex server does."""
        return True

    @property
    def pair_count(self) -> int:
        """Half the number of the generator's ports."""
        return len(self.generator.ports) // 2

    @model_validator(mode="after")
    def _check_set_up_with_prepare(self) -> HardwareSettings:
        if self.set_up and self.prepare == "none":
            raise ValueError("'set_up' is for 'prepare: configure'; with 'none' expected to leave it out")
        return self


Testbed = SimulatedSettings | NetnsSettings | HardwareSettings
