"""What a trial costs beyond its duration, in real time.

Wall time of ``measure`` less the trial's duration, through the whole chain: driver, client's process, ``trex_stl_lib``,
ZeroMQ, embedded server. Two kinds of trial: one whose frames all come back, and one whose frames are all lost. After
the second the driver waits until no late frame has come for QUIET_TIME; that residual wait belongs to the trial and is
taken off too. ``--testbed netns-trex`` measures the same with a real TRex server in software mode.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import statistics
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lineproof.commands.ending import finish
from lineproof.counts.trial import Load, Measure
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.drain import QUIET_TIME
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system import children
from lineproof.system.cpu_steal import cpu_times, steal_percent, steal_text
from lineproof.traffic.catalogue import Catalogue
from lineproof_bench.shells.control import ModelControl
from lineproof_bench.state import RouterConfiguration

PLATFORM, SOFTWARE = "netgate6100", "vpp"

BOUND = 0.25
"""Seconds that the median trial may take beyond its duration with the embedded server."""

ROUTER, TREX_BOUND = "linux_router", 0.6
"""The router of the benches in network namespaces, and the bound there, where TRex itself takes part."""

LIMIT = 20.0
"""Seconds for the server to start, and for one answer of its router."""


def main() -> int:
    """Print the table; 0 if both medians are within the bound, else 1. Raises LineproofError where it cannot run."""
    parser = argparse.ArgumentParser(prog="python -m validation.overhead", description=__doc__)
    parser.add_argument("--trials", type=int, default=15, help="trials of each kind (default 15)")
    parser.add_argument("--duration", type=float, default=0.5, help="seconds of each (default 0.5)")
    parser.add_argument("--pps", type=float, default=10_000.0, help="frames/s (default 10000)")
    parser.add_argument(
        "--testbed", help="in place of the embedded server, a testbed in network namespaces: netns-trex"
    )
    parser.add_argument("--platform", default=ROUTER, help=f"the router of that testbed (default {ROUTER})")
    arguments = parser.parse_args()
    if arguments.trials < 1 or not 0 < arguments.duration <= 60 or not arguments.pps > 0:
        parser.error("expected at least 1 trial of more than 0 and at most 60 s, at more than 0 frames/s")
    before, bound = cpu_times(), BOUND if arguments.testbed is None else TREX_BOUND
    kinds = _embedded() if arguments.testbed is None else _namespaces(arguments.testbed, arguments.platform)
    lines, worst = [], 0.0
    with contextlib.closing(kinds):
        for name, measure, wait, forwards in kinds:
            found = []
            for _ in range(arguments.trials):
                begun = time.monotonic()
                outcome = measure(Load(arguments.pps), arguments.duration)
                found.append(time.monotonic() - begun - arguments.duration - wait)
                [direction] = outcome.directions
                if forwards is not bool(direction.forwarded) or not direction.offered:
                    raise TestbedError(
                        f"the study's bench does not work as expected: {name}, but {direction.forwarded} of"
                        f" {direction.offered} came back"
                    )
                if forwards and direction.forwarded < direction.offered:
                    found.pop()  # it waited for a lost frame: not this kind of trial
            if not found:
                raise TestbedError("in every trial a frame was lost; expected less load: --pps")
            worst = max(worst, statistics.median(found))
            lines.append(
                f"{name:<24}{statistics.median(found):>9.3f}{min(found):>9.3f}{max(found):>9.3f}{len(found):>8}"
            )
    print(f"{'s beyond the duration':<24}{'median':>9}{'least':>9}{'most':>9}{'trials':>8}")
    print("\n".join(lines))
    print(
        f"{arguments.trials} trials of {arguments.duration:g} s each, in real time; CPU steal"
        f" {steal_text(steal_percent(before, cpu_times()))}; bound {bound:g} s:"
        f" {'kept' if worst <= bound else 'NOT KEPT'}"
    )
    return 0 if worst <= bound else 1


TrialKind = tuple[str, Measure, float, bool]
"""Name of a kind of trial, what measures one, the residual wait that belongs to it, whether its frames come back."""


_BACK, _LOST = "every frame comes back", f"all lost, after {QUIET_TIME:g} s"


def _embedded() -> Generator[TrialKind, None, None]:
    """Trials of the embedded server with the forwarding model."""
    project = Project.find()
    interfaces = read_platform(project.platforms, PLATFORM).software[SOFTWARE].interfaces
    profile = Catalogue.read(project.profiles).profile(["64b"])
    with (
        embedded_server(project.platforms / f"{PLATFORM}.yaml", SOFTWARE) as facts,
        TrexGenerator(TrexSettings("127.0.0.1", facts["rpc_port"], facts["pub_port"])) as generator,
    ):
        generator.prepare(profile, (Direction(0, 1),))
        configure(facts, _forwarding(facts["ports"], interfaces))
        yield _BACK, generator.measure, 0.0, True
        configure(facts, RouterConfiguration())
        yield _LOST, generator.measure, QUIET_TIME, False


def _namespaces(testbed: str, platform: str) -> Generator[TrialKind, None, None]:
    """Trials through a router in a namespace, by *testbed*'s server: a real TRex or the embedded one."""
    session = Session.start(Plan.read(Project.find(), platform, None, testbed, "quick"))
    try:
        if session.simulated:
            raise TestbedError(f"testbed '{testbed}' is simulated; expected one in network namespaces")
        session.generator.connect()
        print(f"TRex {session.generator.versions.get('server', '?')}, testbed '{testbed}'", flush=True)
        session.traffic.put(session.plan.catalogue.profile(["64b"]), bidirectional=False)
        yield _LOST, session.traffic.measure, QUIET_TIME, False  # a router without addresses
        session.router.connect()
        session.router.configure()
        yield _BACK, session.traffic.measure, 0.0, True
    finally:
        session.close()


@contextmanager
def embedded_server(platform_file: Path, software: str, clock_speed: float = 1.0) -> Iterator[dict[str, Any]]:
    """The embedded server with the forwarding model, as a process; yields its facts. Raises TestbedError."""
    process = children.start(
        children.python("lineproof_bench.server"),
        stdin=children.PIPE,
        stdout=children.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    specification = {
        "backend": "model",
        "platform_file": str(platform_file.absolute()),
        "software": software,
        "clock_speed": clock_speed,
        "host": "127.0.0.1",
        "rpc_port": 0,
        "pub_port": 0,
    }
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(specification).encode() + b"\n")
            process.stdin.flush()
        yield _facts(process.stdout)
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(5)
        except children.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _facts(output: IO[bytes]) -> dict[str, Any]:
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        if not selector.select(LIMIT):
            raise TestbedError(f"the embedded server did not start within {LIMIT:g} s")
    line = output.readline()  # written at once, so the whole line is there
    facts: dict[str, Any] = json.loads(line) if line else {"error": "it ended without a word"}
    if "error" in facts:
        raise TestbedError(f"the embedded server did not start: {facts['error']}")
    return facts


def configure(facts: Mapping[str, Any], configuration: RouterConfiguration) -> None:
    """Give the server's simulated router a configuration, as its shell would. Raises TestbedError."""
    with contextlib.closing(ModelControl(facts["control_port"], facts["control_token"], LIMIT)) as control:
        control.configure(configuration)


def _forwarding(ports: Sequence[Mapping[str, Any]], interfaces: Sequence[str]) -> RouterConfiguration:
    """Addresses, neighbours and routes with which the router forwards between the server's two ports."""
    cabled = [
        (name, number, port["mac"]) for number, (name, port) in enumerate(zip(interfaces, ports, strict=False), 1)
    ]
    return RouterConfiguration(
        up=tuple(name for name, _, _ in cabled),
        addresses=tuple((name, f"100.65.{number}.1/24") for name, number, _ in cabled),
        neighbours=tuple((name, f"100.65.{number}.2", mac) for name, number, mac in cabled),
        routes=(("16.0.0.0/8", "100.65.1.2"), ("48.0.0.0/8", "100.65.2.2")),
    )


if __name__ == "__main__":
    finish(main)
