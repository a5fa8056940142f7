"""The key ``generator`` of a testbed file for a TRex server, and ``start`` in it: how the server is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ...config import Config, Ipv4Address, MacAddress
from ...generators.settings import GeneratorSettings
from ...system.login_settings import HostName, LoginSettings, TcpPort
from ...traffic.profiles import PAIRS
from ...units import parse_link_speed
from .config_file import NO_PORT, PortInfo, Threads, are_linux_interfaces, interfaces_problem, threads_problem
from .wrapper import extra_problem

Cpu = Annotated[int, Field(ge=0, le=1023)]


class PortSettings(Config):
    """One port in TRex's configuration; missing keys come from the side that it is cabled to.

    With ``dest_mac`` TRex sends no ARP request; without, it asks for ``default_gw``.
    """

    ip: Ipv4Address | None = None
    default_gw: Ipv4Address | None = None
    src_mac: MacAddress | None = None
    dest_mac: MacAddress | None = None
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None

    def port_info(self, ip: str, gateway: str, src_mac: str) -> PortInfo:
        """For the configuration; the arguments are the defaults of missing keys."""
        if self.dest_mac:
            return PortInfo(self.ip or "", self.default_gw or "", self.src_mac or src_mac, self.dest_mac, self.vlan)
        return PortInfo(self.ip or ip, self.default_gw or gateway, self.src_mac or src_mac, "", self.vlan)


class PairSettings(Config):
    """The CPUs that send on one pair of ports, and the NUMA node (``socket``) of its card."""

    socket: Annotated[int, Field(ge=0, le=63)] = 0
    threads: Annotated[tuple[Cpu, ...], Field(min_length=1)]


class ThreadSettings(Config):
    """Which CPUs TRex uses: for its control, for receiving, for each pair of ports."""

    master: Cpu
    latency: Cpu
    pairs: Annotated[tuple[PairSettings, ...], Field(min_length=1)]

    def threads(self) -> Threads:
        """For the configuration."""
        return Threads(self.master, self.latency, tuple((pair.socket, pair.threads) for pair in self.pairs))


class StartSettings(Config):
    """How a TRex server is started. Without ``interfaces`` the host's own ``/etc/trex_cfg.yaml`` is used.

    ``host``: ``ssh`` (default), over the generator's login, or ``local``, on this machine. ``interfaces`` in the
    order of TRex's ports: PCI addresses or names of Linux interfaces; ``ports``: the configuration of each.
    ``cores`` per pair of ports. ``low_end`` (one CPU for everything, little memory) and ``software`` (no help of the
    card): default for Linux interfaces. ``memory`` in MB. ``mbuf_factor``, ``port_bandwidth_gb``: how much memory for
    packets TRex takes, in times of its own default and by the Gbit/s of a port. ``port_speed``: what every port
    reports in place of what its card says. ``prefix`` tells servers on one machine apart. ``extra``: more arguments of
    t-rex-64. ``limit``: s until its API must answer; ``stop``: s for an orderly end; ``restarts``:
    how often it is started again after it ended, counted from 0 again once it has run for a minute.
    """

    host: Literal["ssh", "local"] | None = None
    sudo: bool = False
    interfaces: tuple[str, ...] = ()
    ports: tuple[PortSettings, ...] = ()
    cores: Annotated[int, Field(ge=1, le=128)] | None = None
    threads: ThreadSettings | None = None
    low_end: bool | None = None
    low_end_core: Cpu | None = None
    software: bool | None = None
    memory: Annotated[int, Field(ge=64, le=1_000_000)] | None = None
    mbuf_factor: Annotated[float, Field(ge=0.01, le=100)] | None = None
    port_bandwidth_gb: Annotated[int, Field(ge=1, le=1000)] | None = None
    port_speed: str | None = None
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")] | None = None
    extra: tuple[str, ...] = ()
    limit: Annotated[float, Field(ge=1, le=600)] = 90.0
    stop: Annotated[int, Field(ge=1, le=60)] = 8
    restarts: Annotated[int, Field(ge=0, le=100)] = 1

    @field_validator("interfaces")
    @classmethod
    def _check_interfaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if value and (problem := interfaces_problem(value)):
            raise ValueError(problem)
        return value

    @field_validator("port_speed")
    @classmethod
    def _check_port_speed(cls, value: str | None) -> str | None:
        if value is not None and (parse_link_speed(value) % 1e6 or parse_link_speed(value) >= 2**32 * 1e6):
            raise ValueError("must be a whole number of Mbit/s, which TRex counts in; expected for example '10 Gbps'")
        return value

    @field_validator("extra")
    @classmethod
    def _check_extra_arguments(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for argument in value:
            if problem := extra_problem(argument):
                raise ValueError(problem)
        return value

    @model_validator(mode="after")
    def _check_keys_together(self) -> StartSettings:
        if not self.interfaces:
            names = (
                *("ports", "threads", "low_end", "low_end_core", "memory", "prefix"),
                "port_bandwidth_gb",
                "port_speed",
            )
            given = [name for name in names if getattr(self, name) not in (None, ())]
            if given:
                raise ValueError(
                    f"'{given[0]}' is for a configuration that Lineproof writes; expected 'interfaces' too, or"
                    " neither: then the host's own /etc/trex_cfg.yaml is used"
                )
            return self
        if self.ports and len(self.ports) != len(self.interfaces):
            raise ValueError(f"'ports' describes {len(self.ports)} ports, 'interfaces' names {len(self.interfaces)}")
        if self.low_end_core is not None and not self.is_low_end:
            raise ValueError("'low_end_core' is for 'low_end: true'")
        if self.threads is not None:
            if self.is_low_end:
                raise ValueError("'threads' is not for 'low_end', where one CPU does everything: 'low_end_core'")
            if problem := threads_problem(self.threads.threads(), len(self.interfaces)):
                raise ValueError(problem)
        return self

    @property
    def on_linux_interfaces(self) -> bool:
        """Whether the interfaces are Linux's own."""
        return are_linux_interfaces(self.interfaces)

    @property
    def is_low_end(self) -> bool:
        """The key ``low_end``; default for Linux's own interfaces."""
        return self.on_linux_interfaces if self.low_end is None else self.low_end

    @property
    def is_software(self) -> bool:
        """The key ``software``; default for Linux's own interfaces."""
        return self.on_linux_interfaces if self.software is None else self.software

    def ports_problem(self, ports: tuple[int, ...]) -> str:
        """Why the TRex ports *ports* cannot be used, in words; "" if they can."""
        for port in ports if self.interfaces else ():
            if port >= len(self.interfaces):
                return f"there is no port {port} among {len(self.interfaces)} 'interfaces' of 'start'"
            if self.interfaces[port] == NO_PORT:
                return f"port {port} is 'dummy' among the 'interfaces' of 'start'"
        return ""


TrexPort = Annotated[int, Field(ge=0, le=255)]


def client_with_path(named: str, absolute: Callable[[Path], Path]) -> str:
    """The client *named* in a testbed's file; a folder made *absolute*."""
    return named if named in ("", "pypi", "from server") else str(absolute(Path(named)))


class TrexGeneratorSettings(GeneratorSettings):
    """A TRex server. ``ports``: those that are used, in pairs, each cabled to the side at its position.

    ``client``: ``pypi``, ``from server`` or a folder with the client that came with the server. Default: the PyPI
    client if the server takes it, else the server's own, copied from its host through ``ssh`` out of ``trex_home``,
    the folder of its installation there (default: that of the running server).
    ``force``: take the ports even if another user owns them. ``start``: how this testbed starts the server out of
    ``trex_home`` (``true``: with the host's own configuration); default: it runs already. ``core_mask``: whether every
    core of a pair sends for both of its ports, or each port has half of them (TRex's words). ``promiscuous``: whether
    the ports receive frames for any MAC address while they are claimed; else only those for their card's own.
    """

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

    @property
    def claimed(self) -> tuple[str, ...]:
        """Each port by its number and the server's address."""
        return tuple(f"port {port} of {self.address}:{self.sync_port}" for port in sorted(self.ports))

    @property
    def port_count(self) -> int:
        """The number of ``ports``."""
        return len(self.ports)

    def with_paths(self, absolute: Callable[[Path], Path]) -> TrexGeneratorSettings:
        """With the client's folder and the login's files made *absolute*."""
        changed: dict[str, Any] = {"client": client_with_path(self.client, absolute)}
        if self.ssh is not None:
            changed["ssh"] = self.ssh.with_paths(absolute)
        return self.model_copy(update=changed)

    @model_validator(mode="after")
    def _check_login_for_client(self) -> TrexGeneratorSettings:
        if self.client == "from server" and self.ssh is None:
            raise ValueError("'client: from server' needs a login there; expected 'ssh: {user: …, key: …}' too")
        return self

    @model_validator(mode="after")
    def _check_start(self) -> TrexGeneratorSettings:
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
