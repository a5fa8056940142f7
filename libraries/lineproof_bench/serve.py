"""``lineproof serve``: the bench by itself, for other TRex clients and for a look at the router."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import cast

from lineproof.commands.main import finish
from lineproof.errors import ConfigError, TestbedError
from lineproof.generators.trex.driver import TrexSettings
from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.routers import make_router
from lineproof.system.signals import termination_as_interrupt
from lineproof.system.ssh_shell import SshShell
from lineproof.testbed.opening import open_testbed
from lineproof.testbed.process import TestbedFacts
from lineproof.testbed.settings import SimulatedSettings, read_testbed

WATCH_INTERVAL = 0.5
"""Seconds between looks at the bench's processes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM, then return 0.

    Raises LineproofError when the bench cannot start or one of its processes ends, SystemExit for wrong arguments.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not 1 <= arguments.clock_speed <= 1000:
        parser.error(f"argument --clock-speed: {arguments.clock_speed:g} is not between 1 and 1000")
    # a signal ends the bench in order, even while it starts
    with contextlib.suppress(KeyboardInterrupt), termination_as_interrupt():
        _serve(arguments)
    return 0


def _serve(arguments: argparse.Namespace) -> None:
    project = Project.find()
    testbed = read_testbed(project.testbeds, arguments.testbed)
    platform = read_platform(project.platforms, arguments.platform).cabled(testbed.cabled)
    software = arguments.software or next(iter(platform.software))
    if not isinstance(testbed, SimulatedSettings) and testbed.generator != "embedded":
        raise ConfigError(f"testbed '{testbed.testbed}' has no embedded server; expected a simulated one")
    if isinstance(testbed, SimulatedSettings):
        testbed = testbed.model_copy(update={"clock_speed": arguments.clock_speed})
    file = project.platforms / f"{arguments.platform}.yaml"
    ports = arguments.rpc_port, arguments.pub_port
    with open_testbed(testbed, platform, software, platform_file=file, bypass=arguments.cable, ports=ports) as bench:
        if not (arguments.cable or arguments.bare):
            facts, system = bench.facts, platform.software[software].shell
            with closing(SshShell(facts.router)) as shell:
                interfaces = tuple(side.interface for side in facts.sides)
                make_router(system, shell, interfaces, sudo=facts.router.sudo).configure(facts.sides)
        nic = testbed.nic if isinstance(testbed, SimulatedSettings) else None
        print(describe(bench.facts, arguments.cable, not arguments.bare, nic or ""), flush=True)
        problems: tuple[str, ...] = ()
        with contextlib.suppress(KeyboardInterrupt):
            while not (problems := bench.problems()):
                time.sleep(WATCH_INTERVAL)
    for failure in bench.failures:
        print(failure, file=sys.stderr)
    if problems:
        raise TestbedError("; ".join(problems))


def describe(facts: TestbedFacts, cable: bool, configured: bool, nic: str) -> str:
    """Return how to reach the bench. *cable*: in the router's place; *nic*: that its server plays; "": none."""
    generator, router = facts.generator, facts.router
    trex = cast(TrexSettings, generator.trex)
    server = f"TRex server: {trex.server}, sync port {trex.sync_port}, async port {trex.async_port}"
    last = [f"Ctrl-C ends it (process {os.getpid()})."]
    if facts.simulated:
        last.insert(0, f"SIMULATED: no frames are sent, every figure comes from a model; clock x {facts.clock_speed:g}")
    if cable:
        first = f"{facts.label}: a cable in the router's place"
        return "\n".join([first, server, "what one port sends the other receives", *last])
    ssh = [
        "ssh",
        *(["-i", str(router.key)] if router.key else []),
        *("-o", f"UserKnownHostsFile={router.known_hosts}", "-o", "IdentitiesOnly=yes"),
        *("-p", str(router.port), f"{router.user}@{router.address}"),
    ]
    lines = [
        facts.label,
        server,
        *([f"card:        plays '{nic}'"] if nic else []),
        f"router:      {shlex.join(ssh)}",
        *(
            f"port {port}:      cabled to {side.interface} ({side.address}; {side.network} is behind {side.peer})"
            for port, side in zip(generator.ports, facts.sides, strict=False)
        ),
        "The router is configured: frames to these networks are forwarded."
        if configured
        else "The router is bare: it forwards nothing until its shell has configured addresses, neighbours and routes.",
        *last,
    ]
    return "\n".join(lines)


def tcp_port(text: str) -> int:
    """Return the TCP port in *text*. Raises ArgumentTypeError; a socket would take a greater one modulo 65536."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no TCP port; expected 0 to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lineproof serve", description="Start the embedded bench and keep it running."
    )
    parser.add_argument("--platform", required=True, help="a file of variables/platforms, without .yaml")
    parser.add_argument("--software", help="one of the platform's; default its first")
    parser.add_argument("--testbed", default="simulated", help="a simulated or netns file of variables/testbeds")
    parser.add_argument("--clock-speed", type=float, default=1.0, help="seconds of the model's clock per second")
    behind = parser.add_mutually_exclusive_group()
    behind.add_argument("--bare", action="store_true", help="leave the router unconfigured: it forwards nothing")
    behind.add_argument("--cable", action="store_true", help="no router: the two ports are connected to each other")
    parser.add_argument("--rpc-port", type=tcp_port, default=4501, help="TCP port of requests, 0 for a free one")
    parser.add_argument("--pub-port", type=tcp_port, default=4500, help="TCP port of events, 0 for a free one")
    return parser


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
