"""VPP on Linux, through ``vppctl``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..counts.causes import failed_to_leave
from ..counts.telemetry import Telemetry
from ..errors import TestbedError
from .base import Side
from .remote import RemoteRouter, checked_side
from .vpp_losses import vpp_causes
from .vpp_text import (
    parse_addresses,
    parse_clock,
    parse_errors,
    parse_interface_rows,
    parse_interfaces,
    parse_neighbours,
    parse_runtime,
    parse_version,
    uncover,
)


class Vpp(RemoteRouter):
    """A :class:`~linerate.routers.base.Router` that runs VPP. *interfaces*: those under test, which must exist."""

    def identify(self) -> Mapping[str, str]:
        """Version of VPP, the operating system below it, the CPU and which queue each thread polls."""
        said = self._remote.gather(
            {
                "version": ("vppctl", "show", "version"),
                "kernel": ("uname", "-a"),
                "os": ("cat", "/etc/os-release"),
                "cpu": ("vppctl", "show", "cpu"),
                "placement": ("vppctl", "show", "interface", "rx-placement"),
            },
            optional=("os", "cpu"),
        )
        facts = {"software": "VPP", "version": parse_version(said["version"]), "kernel": said["kernel"].strip()}
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', said["os"], re.MULTILINE):
            facts["operating system"] = found[1]
        if found := re.search(r"Model name: *(.*\S)", uncover(said["cpu"])):
            facts["cpu"] = found[1]
        facts["rx placement"] = " ".join(uncover(said["placement"]).split())
        return facts

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Addresses, static neighbours and routes of *sides*. What was there before is left, also at restore."""
        for side in map(checked_side, sides):
            self._configure(side)

    def _configure(self, side: Side) -> None:
        said = self._remote.gather(
            {
                "addresses": ("vppctl", "show", "interface", "address"),
                "neighbours": ("vppctl", "show", "ip", "neighbors"),
                "route": ("vppctl", "show", "ip", "fib", side.network),
            }
        )
        up, addresses = parse_addresses(said["addresses"])
        name = side.interface
        if name not in up:
            raise TestbedError(
                f"VPP has no interface '{name}'; it has {', '.join(sorted(up))}. Fix the platform's file"
            )
        if not up[name]:
            self._change("set interface state", (name, "up"), "set interface state", (name, "down"))
        if (name, side.address) not in addresses:
            self._change(
                "set interface ip address", (name, side.address), "set interface ip address del", (name, side.address)
            )
        if (name, side.peer, side.peer_mac, True) not in parse_neighbours(said["neighbours"]):
            neighbour = (name, side.peer, side.peer_mac)
            self._change("set ip neighbor", (*neighbour, "static"), "set ip neighbor del", neighbour)
        if not _routed(said["route"], side):
            route = (side.network, "via", side.peer)
            self._change("ip route add", route, "ip route del", route)

    def _change(self, verb: str, words: tuple[str, ...], undo: str, undo_words: tuple[str, ...]) -> None:
        self._remote.change(("vppctl", *verb.split(), *words), ("vppctl", *undo.split(), *undo_words), silent=True)

    def clear(self) -> None:
        """``clear runtime``. Interface counters and errors run on: their readers take differences."""
        self._remote.run_silent(self._remote.line(("vppctl", "clear", "runtime")))

    def read(self) -> Telemetry:
        """Counters, errors and runtime now. ``uptime`` is VPP's, whose restart resets its counters."""
        said = self._remote.gather(
            {
                "vppctl show clock": ("vppctl", "show", "clock"),
                "vppctl show runtime": ("vppctl", "show", "runtime"),
                # brings rx-miss up to date, which VPP else does every 10 s
                "vppctl show hardware-interfaces": ("vppctl", "show", "hardware-interfaces"),
                "vppctl show interface": ("vppctl", "show", "interface"),
                "vppctl show errors": ("vppctl", "show", "errors"),
            },
            optional=("vppctl show hardware-interfaces",),
        )
        interfaces = parse_interfaces(said["vppctl show interface"])
        for name in self._interfaces:
            if name not in interfaces:
                raise TestbedError(f"VPP has no interface '{name}'; it has {', '.join(sorted(interfaces))}")
        blocks = parse_runtime(said["vppctl show runtime"])
        errors = parse_errors(said["vppctl show errors"])
        causes = vpp_causes(parse_interface_rows(said["vppctl show interface"]), errors)
        return Telemetry(
            uptime=parse_clock(said["vppctl show clock"]),
            interfaces={
                name: replace(counts, tx_packets=max(0, counts.tx_packets - failed_to_leave(causes, name)))
                for name, counts in interfaces.items()
            },
            drops=errors,
            runtime=tuple(node for block in blocks for node in block.nodes),
            raw=said,
            since_clear=max(blocks, key=lambda block: block.rate_in).seconds,
            causes=causes,
        )


def _routed(fib: str, side: Side) -> bool:
    """Whether ``show ip fib PREFIX`` shows exactly this prefix through this next hop (it prints a covering one too)."""
    text = uncover(fib)
    return bool(
        re.search(rf"^{re.escape(side.network)} ", text, re.MULTILINE)
        and re.search(rf"(?<![\d.]){re.escape(side.peer)}(?![\d.])", text)
    )
