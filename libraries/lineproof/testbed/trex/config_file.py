"""TRex's platform configuration (``trex_cfg.yaml``, version 2), written from a testbed file.

The keys are those of TRex's manual, "Platform YAML configuration", and of its reader, ``src/platform_cfg.cpp`` (v3.08).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import yaml

PCI_ADDRESS = re.compile(r"([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7](/\d{1,2})?")
"""A card's port as TRex names it: ``03:00.0``, ``0000:03:00.0``, ``03:00.0/1`` for the second port of one function."""

LINUX_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
"""The name of a Linux interface (IFNAMSIZ: 15 characters), with the characters that TRex's argument can hold."""

NO_PORT = "dummy"
"""TRex's word for a port that does not exist."""

RING_ARGUMENTS = "blocksz=593920,framesz=9280,framecnt=4096,qdisc_bypass=1"
"""Arguments of DPDK's af_packet driver: TRex's own block and frame size (jumbo frames fit), 16 times its 256 frames.

With 256 TRex v3.08 on a veth pair of a shared machine with two CPUs missed 0.1 % of 50 000 frames/s and 3 % of 400 000;
with 4096 (38 MB for each port and direction) none.
"""


@dataclass(frozen=True, slots=True)
class PortInfo:
    """One port: ``ip`` with ``default_gw``, whose MAC TRex asks for by ARP, or ``dest_mac``, which needs no ARP.

    "": not set; ``src_mac`` not set: the card's own.
    """

    ip: str = ""
    default_gw: str = ""
    src_mac: str = ""
    dest_mac: str = ""
    vlan: int | None = None

    def data(self) -> dict[str, Any]:
        """An entry of ``port_info``."""
        return {key: value for key, value in asdict(self).items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class Threads:
    """Which CPUs TRex uses: for its control, for receiving, and for each pair of ports (NUMA node, CPUs that send)."""

    master: int
    latency: int
    pairs: tuple[tuple[int, tuple[int, ...]], ...]

    def data(self) -> dict[str, Any]:
        """The key ``platform``."""
        return {
            "master_thread_id": self.master,
            "latency_thread_id": self.latency,
            "dual_if": [{"socket": socket, "threads": list(threads)} for socket, threads in self.pairs],
        }


@dataclass(frozen=True, slots=True)
class TrexConfig:
    """A whole configuration. ``interfaces`` in the order of TRex's ports, ``ports`` one for each, or none.

    ``low_end_core``: the one CPU of a server with ``low_end``; ``memory`` in MB; ``port_speed`` in Mbit/s: what every
    port reports in place of what its card says; ``port_bandwidth_gb`` in Gbit/s: only how much memory for packets TRex
    takes; ``prefix`` tells two servers on one machine apart.
    """

    interfaces: tuple[str, ...]
    ports: tuple[PortInfo, ...] = ()
    rpc_port: int = 4501
    pub_port: int = 4500
    low_end: bool = False
    low_end_core: int | None = None
    threads: Threads | None = None
    prefix: str = ""
    memory: int | None = None
    port_speed: int | None = None
    port_bandwidth_gb: int | None = None

    def text(self) -> str:
        """The file's text. Raises ValueError if TRex would refuse it."""
        count = len(self.interfaces)
        if problem := interfaces_problem(self.interfaces):
            raise ValueError(problem)
        if self.ports and len(self.ports) != count:
            raise ValueError(f"{len(self.ports)} ports are described, and there are {count} interfaces")
        if self.low_end_core is not None and not self.low_end:
            raise ValueError("TRex takes 'low_end_core' only with 'low_end'")
        if self.threads is not None and (problem := threads_problem(self.threads, count)):
            raise ValueError(problem)
        data: dict[str, Any] = {
            "version": 2,
            "port_limit": count,
            "interfaces": [_interface(name, index) for index, name in enumerate(self.interfaces)],
            "zmq_rpc_port": self.rpc_port,
            "zmq_pub_port": self.pub_port,
            # before 'low_end_core' and 'memory', whose meaning it changes
            "low_end": True if self.low_end else None,
            "low_end_core": self.low_end_core,
            "prefix": self.prefix or None,
            # a string: TRex reads it as text
            "limit_memory": None if self.memory is None else str(self.memory),
            "port_speed": self.port_speed,
            "port_bandwidth_gb": self.port_bandwidth_gb,
            "port_info": [port.data() for port in self.ports] or None,
            # with 'low_end' TRex ignores it
            "platform": None if self.threads is None or self.low_end else self.threads.data(),
        }
        return yaml.safe_dump([{key: value for key, value in data.items() if value is not None}], sort_keys=False)


def are_linux_interfaces(interfaces: tuple[str, ...]) -> bool:
    """Whether these are Linux interfaces, which TRex uses through AF_PACKET, and not cards that it takes over."""
    return any(name != NO_PORT and not PCI_ADDRESS.fullmatch(name) for name in interfaces)


def interfaces_problem(interfaces: tuple[str, ...]) -> str:
    """What is wrong with the interfaces, in words; "" if nothing is."""
    for name in interfaces:
        if name != NO_PORT and not PCI_ADDRESS.fullmatch(name) and not LINUX_NAME.fullmatch(name):
            return (
                f"'{name}' is no interface; expected a card's PCI address such as '0000:03:00.0', the name of a"
                f" Linux interface, or '{NO_PORT}'"
            )
    if not interfaces or len(interfaces) % 2 or len(interfaces) > 32:
        return f"TRex needs an even number of interfaces, at most 32, not {len(interfaces)}; fill up with 'dummy'"
    used = [name for name in interfaces if name != NO_PORT]
    if len(set(used)) != len(used):
        return "an interface stands twice"
    if not used:
        return "at least one interface must be a real one"
    if len({PCI_ADDRESS.fullmatch(name) is None for name in used}) > 1:
        return "TRex takes either PCI addresses or Linux interfaces, not both"
    for first, second in zip(interfaces[::2], interfaces[1::2], strict=True):
        if first == second == NO_PORT:
            return "of each pair of interfaces at least one must be a real one"
    return ""


def threads_problem(threads: Threads, interfaces: int) -> str:
    """What is wrong with the CPUs for this number of *interfaces*, in words; "" if nothing is."""
    if len(threads.pairs) != interfaces // 2:
        return f"CPUs are given for {len(threads.pairs)} pairs of ports, and there are {interfaces // 2}"
    sizes = {len(cpus) for _, cpus in threads.pairs}
    if len(sizes) != 1 or 0 in sizes:
        return "each pair of ports needs the same number of CPUs, at least one"
    used = [threads.master, threads.latency, *(cpu for _, cpus in threads.pairs for cpu in cpus)]
    if len(set(used)) != len(used):
        return "a CPU stands twice; TRex's control, its receiver and each sender need one of their own"
    return ""


def _interface(name: str, index: int) -> str:
    if name == NO_PORT or PCI_ADDRESS.fullmatch(name):
        return name
    return f"--vdev=net_af_packet{index},iface={name},{RING_ARGUMENTS}"
