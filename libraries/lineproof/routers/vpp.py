"""VPP on Linux, through ``vppctl``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..core.causes import unsent_by_interface
from ..core.neighbours import NeighbourEntry
from ..core.router_facts import RouterFacts
from ..core.telemetry import Telemetry
from ..core.traffic.frame_kinds import FrameKinds
from ..core.under_load import RouterLoad, SampledStacks
from ..errors import TestbedError
from .base import Side
from .fact_reading import Answers, linux_boot_id
from .neighbours import vpp_neighbours
from .shell_router import ShellRouter
from .sides import validated_side
from .stacks import perf_stacks
from .vpp_facts import parse_hardware_errors, parse_hardware_pauses, read_vpp_facts
from .vpp_frames import VppFrameSetup
from .vpp_load import vpp_load
from .vpp_losses import vpp_causes
from .vpp_output import (
    has_route,
    parse_addresses,
    parse_clock,
    parse_errors,
    parse_interface_rows,
    parse_interfaces,
    parse_neighbours,
    parse_runtime,
    parse_version,
    strip_banner,
)


class Vpp(ShellRouter):
    """A :class:`~lineproof.routers.base.Router` that runs VPP."""

    def identify(self) -> Mapping[str, str]:
        """VPP's version, the operating system, the CPU and the queues that each thread polls."""
        output = self._commands.run_all(
            {
                "version": ("vppctl", "show", "version"),
                "kernel": ("uname", "-a"),
                "os": ("cat", "/etc/os-release"),
                "cpu": ("vppctl", "show", "cpu"),
                "placement": ("vppctl", "show", "interface", "rx-placement"),
            },
            optional=("os", "cpu"),
        )
        facts = {"software": "VPP", "version": parse_version(output["version"]), "kernel": output["kernel"].strip()}
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', output["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        if found := re.search(r"Model name: *(.*\S)", strip_banner(output["cpu"])):
            facts["cpu"] = found[1]
        facts["rx placement"] = " ".join(strip_banner(output["placement"]).split())
        return facts

    def boot_id(self) -> str:
        """See :meth:`..base.Router.boot_id`."""
        return linux_boot_id(self._commands)

    def facts(self) -> RouterFacts:
        """See :meth:`..base.Router.facts`."""
        return read_vpp_facts(Answers(self._commands), self._interfaces)

    def under_load(self, wait: Callable[[], None]) -> RouterLoad:
        """See :meth:`..base.Router.under_load`."""
        return vpp_load(Answers(self._commands), self._interfaces, self.clear, wait)

    def sample_stacks(self, seconds: float) -> SampledStacks:
        """See :meth:`..base.Router.sample_stacks`."""
        return perf_stacks(self._commands, seconds)

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Set addresses, static neighbours and routes of *sides*. What is right already stays, also at restore."""
        for side in map(validated_side, sides):
            self._configure_side(side)

    def configure_frames(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
        """Let VPP forward *frames* as well; those that it cannot are in :attr:`not_forwarded`."""
        checked = tuple(map(validated_side, sides))
        self._not_forwarded = VppFrameSetup(self._commands, checked, self._notes).configure(frames)

    def _configure_side(self, side: Side) -> None:
        output = self._commands.run_all(
            {
                "addresses": ("vppctl", "show", "interface", "address"),
                "neighbours": ("vppctl", "show", "ip", "neighbors"),
                "route": ("vppctl", "show", "ip", "fib", side.network),
            }
        )
        up, addresses = parse_addresses(output["addresses"])
        name = side.interface
        if name not in up:
            raise TestbedError(
                f"VPP has no interface '{name}'; it has {', '.join(sorted(up))}. Fix the platform's file"
            )
        if not up[name]:
            self._change(f"set interface state {name} up", f"set interface state {name} down")
        if (name, side.address) not in addresses:
            address = f"{name} {side.address}"
            self._change(f"set interface ip address {address}", f"set interface ip address del {address}")
        neighbours = parse_neighbours(output["neighbours"])
        if (name, side.peer, side.peer_mac, True) not in neighbours:
            new = f"{name} {side.peer} {side.peer_mac}"
            known = {(owner, peer): mac for owner, peer, mac, static in neighbours if static}
            old = known.get((name, side.peer))
            undo = f"{name} {side.peer} {old} static" if old else f"del {new}"
            self._change(f"set ip neighbor {new} static", f"set ip neighbor {undo}")
        if not has_route(output["route"], side.network, side.peer):
            route = f"{side.network} via {side.peer}"
            self._change(f"ip route add {route}", f"ip route del {route}")

    def _change(self, command: str, undo: str) -> None:
        self._commands.change(("vppctl", *command.split()), ("vppctl", *undo.split()), silent=True)

    def clear(self) -> None:
        """``clear runtime``. Interface counters and errors go on: readers use differences."""
        self._commands.run_silent(self._commands.quoted(("vppctl", "clear", "runtime")))

    def neighbours(self, sides: tuple[Side, ...]) -> tuple[NeighbourEntry, ...]:
        """See :meth:`..base.Router.neighbours`."""
        return vpp_neighbours(self._commands, sides)

    def read(self) -> Telemetry:
        """Read counters, errors and runtime now. ``uptime`` is VPP's: its restart resets the counters."""
        output = self._commands.run_all(
            {
                "vppctl show clock": ("vppctl", "show", "clock"),
                "vppctl show runtime": ("vppctl", "show", "runtime"),
                # updates rx-miss, which VPP otherwise does every 10 s
                "vppctl show hardware-interfaces": ("vppctl", "show", "hardware-interfaces"),
                "vppctl show interface": ("vppctl", "show", "interface"),
                "vppctl show errors": ("vppctl", "show", "errors"),
            },
            optional=("vppctl show hardware-interfaces",),
        )
        interfaces = parse_interfaces(output["vppctl show interface"])
        self._require_interfaces(interfaces, "VPP")
        blocks = parse_runtime(output["vppctl show runtime"])
        errors = parse_errors(output["vppctl show errors"])
        causes = vpp_causes(parse_interface_rows(output["vppctl show interface"]), errors)
        causes = (*causes, *parse_hardware_errors(output["vppctl show hardware-interfaces"]))
        return Telemetry(
            uptime=parse_clock(output["vppctl show clock"]),
            interfaces={
                name: replace(counts, tx_packets=max(0, counts.tx_packets - unsent_by_interface(causes, name)))
                for name, counts in interfaces.items()
            },
            drops=errors,
            runtime=tuple(node for block in blocks for node in block.nodes),
            raw=output,
            since_clear=max(blocks, key=lambda block: block.rate_in).seconds,
            causes=causes,
            pauses=parse_hardware_pauses(output["vppctl show hardware-interfaces"]),
        )
