"""The ``netns`` testbed's cabling: two network namespaces, and a veth pair between them for each port.

    generator namespace    router namespace
    port0  =============   eth0
    port1  =============   eth1

No address is set here. The generator's interfaces need none: its frames are complete, and a kernel without addresses
answers nothing, so every frame counted is a frame of the test. The router's are set over SSH like any router's.

Receive packet steering and threaded NAPI stay off: measured on two CPUs, steering halves what the router forwards, and
threads change nothing. The router works on the CPU that sends, so an overloaded testbed offers less than its load
and loses no frames in a queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..system.network_namespace import Namespace, configure

MTU = 9216
"""Bytes after the Ethernet header: enough for the profiles' longest frames."""

CONTROL = "control"
"""The interface of a port's namespace that leads to its pair's other port, where each has a namespace of its own."""


@dataclass(frozen=True, slots=True)
class Cable:
    """One veth pair: port *index* of the generator, in *namespace*, to an interface of the router."""

    index: int
    router_interface: str
    namespace: str

    @property
    def port(self) -> str:
        """The name of the port's interface."""
        return f"port{self.index}"

    @property
    def port_mac(self) -> str:
        """The MAC address of the port."""
        return f"02:6c:72:00:01:{self.index:02x}"

    @property
    def router_mac(self) -> str:
        """The MAC address of the router's interface."""
        return f"02:6c:72:00:02:{self.index:02x}"


@dataclass(frozen=True, slots=True)
class Topology:
    """Namespaces, by their paths, and the cables between them, until :meth:`close` or the end of this process.

    ``generator``: "" where each port has a namespace of its own; ``router``: "" where there is none.
    """

    generator: str
    router: str
    cables: tuple[Cable, ...]
    holders: tuple[Namespace, ...]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The paths of all, the router's last."""
        return tuple(holder.path for holder in self.holders)

    def close(self) -> None:
        """Remove all of it, and end every program that is bound to it. May be repeated."""
        for holder in self.holders:
            holder.close()


def build_topology(
    router_interfaces: tuple[str, ...] = ("eth0", "eth1"),
    *,
    bypass: bool = False,
    apart: bool = False,
    folder: Path | None = None,
) -> Topology:
    """Make the testbed. Raises TestbedError if it cannot be made here.

    A port and a cable for each of *router_interfaces*, an even number. *bypass*: no router namespace; ``port0`` and
    ``port1`` are the two ends of one veth pair, and so are those of each further pair. *apart*: each port has a
    namespace of its own, joined to that of its pair's other port by a second veth pair, :data:`CONTROL`. *folder* is
    removed with the namespaces.
    """
    holders: list[Namespace] = []
    try:
        for _ in range((len(router_interfaces) if apart else 1) + (not bypass)):
            holders.append(Namespace.start(None if holders else folder))
        paths = [holder.path for holder in holders]
        cables = tuple(Cable(index, name, paths[index * apart]) for index, name in enumerate(router_interfaces))
        topology = Topology("" if apart else paths[0], "" if bypass else paths[-1], cables, tuple(holders))
        _connect(cables, topology.router, apart)
        return topology
    except BaseException:
        for holder in holders:
            holder.close()
        raise


def _connect(cables: tuple[Cable, ...], router: str, apart: bool) -> None:
    """Lay the cables, to *router* or ("") from port to port of each pair. Raises TestbedError."""
    near = [f"{cable.port} address {cable.port_mac} netns {cable.namespace}" for cable in cables]
    far = [f"{cable.router_interface} address {cable.router_mac} netns {router}" for cable in cables]
    pairs = list(zip(cables[::2], cables[1::2], strict=True))
    ends = zip(near, far, strict=True) if router else zip(near[::2], near[1::2], strict=True)
    links = [f"link add {one} mtu {MTU} type veth peer {other} mtu {MTU}" for one, other in ends]
    for first, second in pairs if apart else ():
        # a way from port to port past the router, for what controls a program: its frames are not of the test
        links.append(f"link add {CONTROL} netns {first.namespace} type veth peer {CONTROL} netns {second.namespace}")
    configure(None, *links)
    ports: dict[str, list[str]] = {}
    for cable in cables:
        ports.setdefault(cable.namespace, []).append(f"{cable.port} arp off")
    for namespace, interfaces in ports.items():
        _set_up(namespace, *interfaces, *([CONTROL] if apart else []))
    if router:
        # without multicast the kernel joins and reports no group; routers join one for IPv6
        _set_up(router, *(f"{cable.router_interface} multicast off" for cable in cables))


def _set_up(namespace: str, *interfaces: str) -> None:
    configure(namespace, *(f"link set dev {interface} up" for interface in ("lo", *interfaces)))
