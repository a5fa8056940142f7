"""The ``netns`` testbed's cabling, as data: two network namespaces, a veth pair for each port, and how to undo them.

    generator namespace            router namespace
    port0  100.65.1.2  ==========  eth0  (100.65.1.1/24, towards 16.0.0.0/8)
    port1  100.65.2.2  ==========  eth1  (100.65.2.1/24, towards 48.0.0.0/8)

No address is set here. The generator's interfaces need none: its frames are complete, and a kernel without addresses
answers nothing, so every frame counted is a frame of the test. The router's are set over SSH like any router's.

Receive packet steering and threaded NAPI stay off: measured on two CPUs, steering halves what the router forwards, and
threads change nothing. The router works on the CPU that sends, so an overloaded testbed offers less than its load
and loses no frames in a queue.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..errors import ConfigError
from ..system import children

Command = tuple[str, ...]

PREFIX = "lr-"
"""Prefix of our namespaces' names, which tells them from those of others."""

PROBE = "probe-"
"""Follows the prefix where a process only tries whether it may make one; its number follows."""

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,35}")

MTU = 9216
"""Bytes after the Ethernet header: enough for the profiles' longest frames."""

CONTROL = "control"
"""The interface of a port's namespace that leads to its pair's other port, where each has a namespace of its own."""

_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}")


@dataclass(frozen=True, slots=True)
class Cable:
    """One veth pair: port *index* of the generator to an interface of the router. ``network`` is behind the port."""

    index: int
    port: str
    port_mac: str
    port_ipv4: str
    router_interface: str
    router_mac: str
    router_ipv4: str
    prefix_length: int
    network: str
    namespace: str
    """The port's own."""

    @property
    def router_address(self) -> str:
        """The router's address with its prefix length, as ``100.65.1.1/24``."""
        return f"{self.router_ipv4}/{self.prefix_length}"


@dataclass(frozen=True, slots=True)
class Topology:
    """Namespaces, cables, and the commands (argv lists, as root) that make and remove them.

    ``teardown`` fails for what does not exist: run all of it and ignore failures.
    """

    generator: str
    router: str
    cables: tuple[Cable, ...]
    setup: tuple[Command, ...]
    teardown: tuple[Command, ...]


def plan_topology(
    tag: str, router_interfaces: tuple[str, ...] = ("eth0", "eth1"), *, bypass: bool = False, apart: bool = False
) -> Topology:
    """The testbed of the run *tag* (letters, digits, hyphens). Raises ConfigError for a name the kernel cannot hold.

    A port and a cable for each of *router_interfaces*, an even number. *bypass*: no router namespace; ``port0`` and
    ``port1`` are the two ends of one veth pair, and so are those of each further pair. *apart*: each port has a
    namespace of its own, joined to that of its pair's other port by a second veth pair, :data:`CONTROL`.
    """
    if not TAG.fullmatch(tag):
        raise ConfigError(f"'{tag}' cannot name namespaces; expected up to 36 letters, digits and hyphens")
    for name in router_interfaces:
        if not _INTERFACE.fullmatch(name):
            raise ConfigError(f"'{name}' is no interface name; expected up to 15 letters, digits, '.', '_', '-'")
    if len(set(router_interfaces)) != len(router_interfaces):
        twice = next(name for name in router_interfaces if router_interfaces.count(name) > 1)
        raise ConfigError(f"two cables would end at the router's interface '{twice}'; name each once")
    generator, router = f"{PREFIX}{tag}-gen", f"{PREFIX}{tag}-dut"
    cables = tuple(
        Cable(
            index=index,
            port=f"port{index}",
            port_mac=f"02:6c:72:00:01:{index:02x}",
            port_ipv4=f"100.65.{index + 1}.2",
            router_interface=name,
            router_mac=f"02:6c:72:00:02:{index:02x}",
            router_ipv4=f"100.65.{index + 1}.1",
            prefix_length=24,
            network=f"{(48 if index % 2 else 16) + index // 2}.0.0.0/8",
            namespace=f"{generator}{index}" if apart else generator,
        )
        for index, name in enumerate(router_interfaces)
    )
    names = tuple(dict.fromkeys(cable.namespace for cable in cables))
    pairs = list(zip(cables[::2], cables[1::2], strict=True))
    control = [command for pair in pairs if apart for command in _control(*pair)]
    if bypass:
        setup = [command for name in names for command in _namespace(name)]
        setup += [command for pair in pairs for command in _port_to_port(*pair)]
        return Topology(generator, router, cables, (*setup, *control), _teardown(*names))
    setup = [command for name in (*names, router) for command in _namespace(name)]
    setup += [command for cable in cables for command in _port_to_router(cable, router)]
    return Topology(generator, router, cables, (*setup, *control), _teardown(*names, router))


def _namespace(name: str) -> tuple[Command, ...]:
    # without IPv6 the kernel sends no router solicitations or listener reports among the frames of the test; the
    # router's interfaces get it back when the router is set up for it
    quiet = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    return (
        ("ip", "netns", "add", name),
        ("ip", "netns", "exec", name, "sysctl", "-e", "-q", "-w", *quiet),
        ("ip", "-n", name, "link", "set", "dev", "lo", "up"),
    )


def _port_to_router(cable: Cable, router: str) -> tuple[Command, ...]:
    near = ("name", cable.port, "address", cable.port_mac, "netns", cable.namespace)
    far = ("name", cable.router_interface, "address", cable.router_mac, "netns", router)
    mtu = ("mtu", str(MTU))
    return (
        ("ip", "link", "add", *near, *mtu, "type", "veth", "peer", *far, *mtu),
        ("ip", "-n", cable.namespace, "link", "set", "dev", cable.port, "arp", "off", "up"),
        # without multicast the kernel joins and reports no group; routers join one for IPv6
        ("ip", "-n", router, "link", "set", "dev", cable.router_interface, "multicast", "off", "up"),
    )


def _control(first: Cable, second: Cable) -> tuple[Command, ...]:
    """A way from port to port past the router, for what controls a program: its frames are not of the test."""
    near, far = (("name", CONTROL, "netns", cable.namespace) for cable in (first, second))
    return (
        ("ip", "link", "add", *near, "type", "veth", "peer", *far),
        *(("ip", "-n", cable.namespace, "link", "set", "dev", CONTROL, "up") for cable in (first, second)),
    )


def _port_to_port(first: Cable, second: Cable) -> tuple[Command, ...]:
    """One cable from port to port; compare :func:`_port_to_router`."""
    near, far = (
        ("name", cable.port, "address", cable.port_mac, "netns", cable.namespace, "mtu", str(MTU))
        for cable in (first, second)
    )
    return (
        ("ip", "link", "add", *near, "type", "veth", "peer", *far),
        *(
            ("ip", "-n", cable.namespace, "link", "set", "dev", cable.port, "arp", "off", "up")
            for cable in (first, second)
        ),
    )


def _teardown(*names: str) -> tuple[Command, ...]:
    # interfaces go with their namespace
    return tuple(("ip", "netns", "del", name) for name in names)


def existing_namespaces(tag: str = "") -> tuple[str, ...]:
    """Names of our namespaces whose tag begins with *tag*."""
    folder = Path("/run/netns")
    if not folder.is_dir():
        return ()
    return tuple(sorted(path.name for path in folder.iterdir() if path.name.startswith(PREFIX + tag)))


def reason_against() -> str | None:
    """Why the netns testbed cannot work here, with the remedy; None if it can. Leaves nothing behind."""
    if not sys.platform.startswith("linux"):
        return f"network namespaces exist on Linux only; this is {sys.platform}"
    if os.geteuid() != 0:
        return "making network namespaces needs root; run it with sudo"
    packages = {"ip": "iproute2", "sysctl": "procps", "sshd": "openssh-server", "ssh-keygen": "openssh-client"}
    for program, package in packages.items():
        if children.find_program(program) is None:
            return f"the program '{program}' is missing; install the package {package}"
    return _permission_problem()


def _remove_old_probes() -> None:
    """Those of processes that were killed while they tried: no lease names them."""
    for name in existing_namespaces(PROBE):
        process = name.removeprefix(PREFIX + PROBE)
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            children.run(("ip", "netns", "del", name), 10)


def _permission_problem() -> str | None:
    probe = f"{PREFIX}{PROBE}{os.getpid()}"
    attempts: tuple[Command, ...] = (
        ("ip", "netns", "add", probe),
        ("ip", "link", "add", "name", "lr0", "netns", probe, "type", "veth", "peer", "name", "lr1", "netns", probe),
        ("ip", "netns", "exec", probe, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"),
    )
    try:
        _remove_old_probes()
        for command in attempts:
            done = children.run(command, 10)
            if done.returncode != 0:
                reason = done.stderr.strip().splitlines() or ["no reason given"]
                return (
                    f"'{' '.join(command[:3])}' fails here ({reason[-1]}); a container needs CAP_NET_ADMIN and"
                    " CAP_SYS_ADMIN, for example 'docker run --privileged'"
                )
    except (OSError, children.TimeoutExpired) as error:
        return f"network namespaces cannot be made here: {error}"
    finally:
        children.run(("ip", "netns", "del", probe), 10)
    return None
