"""What a trial costs beyond its duration, in real time.

Wall time of ``measure`` less the trial's duration, through the whole chain: driver, client's process, ``trex_stl_lib``,
ZeroMQ, embedded server. Two kinds of trial: one whose frames all come back, and one whose frames are all lost. After
the second the driver waits until no late frame has come for QUIET_TIME; that residual wait belongs to the trial and is
taken off too. ``--testbed netns-trex`` measures the same with a real TRex server in software mode.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Generator
from dataclasses import replace

from lineproof.commands.ending import finish
from lineproof.core.trial import Load, Measure
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.drain import QUIET_TIME
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.cpu_steal import cpu_times, steal_percent, steal_text
from lineproof.testbed.settings import SimulatedSettings

PLATFORM, SOFTWARE = "netgate6100", "vpp"

BOUND = 0.25
"""Seconds that the median trial may take beyond its duration with the embedded server."""

ROUTER, TREX_BOUND = "linux_router", 0.6
"""The router of the benches in network namespaces, and the bound there, where TRex itself takes part."""


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
    where = (arguments.testbed, arguments.platform, None) if arguments.testbed else ("simulated", PLATFORM, SOFTWARE)
    kinds = _trials(*where)
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


def _trials(testbed: str, platform: str, software: str | None) -> Generator[TrialKind, None, None]:
    """Trials through the router of *testbed*, in real time."""
    plan = Plan.read(Project.find(), platform, software, testbed, "quick")
    if isinstance(plan.testbed, SimulatedSettings):
        plan = replace(plan, testbed=plan.testbed.model_copy(update={"clock_speed": 1.0}))
    session = Session.start(plan)
    try:
        session.generator.connect()
        print(f"TRex {session.generator.versions.get('server', '?')}, testbed '{testbed}'", flush=True)
        generator = session.generator.driver
        generator.prepare(plan.catalogue.profile(["64b"]), (Direction(0, 1),))
        yield _LOST, generator.measure, QUIET_TIME, False  # a router without addresses
        session.router.connect()
        session.router.configure()
        yield _BACK, generator.measure, 0.0, True
    finally:
        session.close()


if __name__ == "__main__":
    finish(main)
