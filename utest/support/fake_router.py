"""A forwarding model with fixed counters, and a shell over a simulated machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lineproof.core.telemetry import Side
from lineproof.system.ssh_shell import Result, Shell
from lineproof_bench.shells import freebsd, linux, vpp
from lineproof_bench.shells.machine import Commands, Machine, Memory
from lineproof_bench.state import InterfaceState, NodeState, RouterConfiguration, RouterState, ThreadState
from support.paths import DATA

SIDES = (
    Side("eth1", "100.65.1.1/24", "100.65.1.2", "02:00:00:00:01:02", "16.0.0.0/8"),
    Side("eth2", "100.65.2.1/24", "100.65.2.2", "02:00:00:00:02:02", "48.0.0.0/8"),
)
KINDS: Mapping[str, tuple[Callable[[], Commands], str]] = {
    "vpp": (vpp.software, "22.02"),
    "linux": (linux.software, "Ubuntu 20.04.3, kernel 5.13"),
    "freebsd": (freebsd.software, "21.05 (FreeBSD 12.2)"),
}


def sample(path: str) -> str:
    """Return a recorded output with its original line ends."""
    return (DATA / path).read_bytes().decode()


def first_output(transcript: str, command: str) -> str:
    """Return what *command* printed first in a transcript of ``golden/recorded``."""
    text = (DATA.parent / "golden" / "recorded" / transcript).read_text(encoding="utf-8")
    return text.partition(f"$ {command}\n")[2].partition("\n$ ")[0] + "\n"


def router_state(software: str = "vpp") -> RouterState:
    """Return two interfaces, a worker that polls both, a few packets, frames beyond 32 bits."""
    nodes = (
        NodeState("dpdk-input", "polling", 5_000_000, 1_000_000, 79.5 * 1_000_000),
        NodeState("ethernet-input", "active", 4000, 1_000_000, 67.4 * 1_000_000),
        NodeState("ip4-lookup", "active", 4000, 1_000_000, 41.2 * 1_000_000),
        NodeState("eth1-tx", "active", 2000, 500_000, 123.0 * 500_000),
        NodeState("eth2-tx", "active", 2000, 500_000, 125.0 * 500_000),
    )
    interfaces = (
        InterfaceState("eth1", "02:00:00:00:01:01", 10e9, True, 2**40, 2**46, 7, 420, 11, 12, 13),
        InterfaceState("eth2", "02:00:00:00:02:01", 10e9, True, 5, 300, 2**41, 2**47, 0, 0, 0),
    )
    threads = (ThreadState("vpp_wk_0", 1, (("eth1", 0), ("eth2", 0)), nodes, 1_000_000, 5.0, 5.0),)
    return RouterState(software, KINDS[software][1], "dut", 1234.5, 10.0, 2.2e9, interfaces, threads)


class FakeModel:
    """Records its configuration and its clears."""

    def __init__(self, state: RouterState) -> None:
        self._state, self.clears = state, 0

    def state(self) -> RouterState:
        return self._state

    def configure(self, configuration: RouterConfiguration) -> None:
        self._state = replace(self._state, configuration=configuration)

    def clear(self) -> None:
        self.clears += 1

    def ssh_fault(self) -> dict[str, Any]:
        return {}


def simulated(kind: str) -> tuple[Machine, FakeModel]:
    """Return a machine of *kind* over a fake model."""
    model = FakeModel(router_state(kind))
    memory = {"linux": linux.first_memory(("eth1", "eth2")), "freebsd": freebsd.first_memory(())}.get(kind, Memory())
    return Machine(KINDS[kind][0](), lambda: model, memory), model


def shell_of(machine: Machine) -> Shell:
    def shell(command: str, limit: float, stdin: str = "") -> Result:
        output = machine.run(command, stdin)
        return Result(output.stdout, output.stderr, output.status, 0.0)

    return shell
