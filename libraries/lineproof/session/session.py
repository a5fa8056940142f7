"""One suite's work on one testbed: joins generator, router and the traffic between them. Does not know Robot."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace

from ..ceilings import own_part
from ..core.doubts import OwnPart
from ..core.foreign import SETTLE_SECONDS
from ..core.quantity import Instruments, Promise, Requirement, TrafficWords
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Load, Measure, Tolerance, Trial
from ..core.verdict import Verdict
from ..errors import TestbedError
from ..simulation import InjectedFault, simulation_signs
from ..testbed.lab import LabPlace
from ..testbed.opening import HeldTestbed, OpenTestbed, hardware_facts, open_testbed
from ..testbed.settings import HardwareSettings
from ..testbed.waiting_time import Say, silent
from .generator import GeneratorConnection
from .judging import AFTER, SET_UP, Listener, Reading
from .plan import Plan
from .power import PoweredTrials
from .router import RouterConnection
from .router_watch import WorkerWatch
from .traffic import SentTraffic

POLL = 1.0
"""Seconds between two tries to read a router that starts."""


class Session:
    """An open testbed. Made by :meth:`start`; :meth:`close` releases everything that it holds, whatever happened.

    *bypassed*: there is no router between the generator's ports. ``revived``: what :meth:`revive` did for the present
    sentence, in words; "": nothing.
    """

    revived = ""

    def __init__(self, plan: Plan, testbed: OpenTestbed, bypassed: bool = False) -> None:
        self.plan = plan
        self.testbed = testbed
        self.generator = GeneratorConnection(plan, testbed, bypassed)
        self.router = RouterConnection(plan, testbed, self.generator, self.cause_fault)
        self.traffic = SentTraffic(plan, testbed, self.generator, self.router)
        self.power = PoweredTrials(
            plan.testbed.power,
            plan.platform.watts,
            lambda load, duration, during: self.traffic.measure(load, duration, during),
            lambda: self.router.shell,
            testbed.facts.router.sudo,
            testbed.facts.clock_speed,
            plan.secrets,
        )

    @classmethod
    def start(
        cls,
        plan: Plan,
        bypass: bool = False,
        lab: LabPlace | None = None,
        held: HeldTestbed | None = None,
        say: Say = silent,
    ) -> Session:
        """Start the testbed, once it is free; *bypass*: without its router. Raises TestbedError.

        *lab*: labgrid's place that it is, where a pool has acquired it. *held*: the testbed, where its
        owner keeps it for several sessions. *say* prints what is waited for.
        """
        file = plan.project.platforms / f"{plan.platform.platform}.yaml"
        testbed = open_testbed(
            *(plan.testbed, plan.platform, plan.software_name),
            platform_file=file,
            bypass=bypass,
            secrets=plan.secrets,
            setups=plan.setups,
            lab=lab,
            held=held,
            say=say,
        )
        return cls(plan, testbed, bypass)

    @classmethod
    def of_router(cls, plan: Plan) -> Session:
        """Only for the router of a testbed of hardware: nothing is started. Raises TestbedError for another one."""
        if not isinstance(plan.testbed, HardwareSettings):
            raise TestbedError(
                f"the router of testbed '{plan.testbed.testbed}' ends with each run, and nothing stays on it; expected"
                " a testbed of kind 'hardware'"
            )
        return cls(plan, OpenTestbed(hardware_facts(plan.testbed, plan.platform, plan.software_name, plan.secrets)))

    @property
    def tolerance(self) -> Tolerance:
        """How far a trial may differ from what was intended."""
        return self.plan.testbed.tolerances()

    @property
    def interfaces(self) -> dict[int, str]:
        """The router's interfaces under test, by the generator's port."""
        facts = self.testbed.facts
        return {port: side.interface for port, side in zip(facts.generator.ports, facts.sides, strict=True)}

    @property
    def simulated(self) -> bool:
        """Return whether nothing here is a measurement, as far as known: not all is before both are connected."""
        return bool(self.simulation_signs)

    @property
    def simulation_signs(self) -> tuple[str, ...]:
        """Return what shows that generator or router is simulated, in words; whatever the testbed file says."""
        said = {f"the router's {name}": value for name, value in self.router.versions.items()}
        return (*self.generator.simulation_signs, *simulation_signs(said))

    @property
    def simulation_text(self) -> str:
        """The simulated testbed in words."""
        facts = self.testbed.facts
        return facts.label if facts.simulated else f"{facts.label}, but {self.simulation_signs[0]}"

    @property
    def clock_speed(self) -> float:
        """Seconds of the testbed's clock per real second, for trials; NaN for a simulation that does not say it."""
        speed = self.testbed.facts.clock_speed
        return math.nan if speed == 1.0 and self.simulated else speed

    def versions(self) -> dict[str, str]:
        """Return what generator and router report, as ``{"generator.server": "v3.08", "router.system": …}``."""
        versions = {f"generator.{name}": value for name, value in self.generator.versions.items()}
        return versions | {f"router.{name}": value for name, value in self.router.versions.items()}

    # -- what the judge asks of a bench --------------------------------------------------------------------------------

    why_no_ledger = ""

    @property
    def uncounted(self) -> str:
        """Why the frames that the router itself counts are not read; "": they are."""
        return self.plan.uncounted

    @property
    def restarts(self) -> int:
        """How many restarts of the router were noticed."""
        return self.router.watch.restarts

    @property
    def problems(self) -> Callable[[], tuple[str, ...]]:
        """Return which processes of the testbed have ended, in words."""
        return self.testbed.problems

    def own_part(self, traffic: TrafficWords, load_pps: float = 0.0, seconds: float = 1.0) -> OwnPart:
        """Return the generator's own part, as far as it was measured or published."""
        return own_part(self.generator.headroom, self.generator.known_limits, traffic, load_pps, seconds)

    def prepare(self, requirement: Requirement) -> Trial | None:
        """Put the streams of a sentence on the ports, and return its warm-up. Raises TestbedError.

        A generator that was lost in an earlier sentence is connected again first.
        """
        self.power.check(requirement)
        self.traffic.put_for(requirement)
        return self.traffic.warm_up(requirement)

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        """Return how a trial of *promise* is measured."""
        router = self.router.driver

        def step_down(first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
            hear(counts := self.traffic.step_down(first, seconds, second, after, every))
            return counts

        def keep_runtime(telemetry: Telemetry) -> None:
            shown = {command: text for command, text in telemetry.raw.items() if "runtime" in command}
            hear(Reading("under load", replace(telemetry, raw=shown)))

        watched = WorkerWatch(router.work, self.traffic.measure).measure
        of_router = router.clear, router.read_runtime, keep_runtime
        instruments = Instruments(self.clock_speed, watched, step_down, *of_router, self.power.of_sentence)
        return promise.quantity.measure(instruments, promise)

    def examine(self, frames: bool) -> None:
        """Look at the last *frames* of each trial from now on, where the generator can keep some; or do not."""
        self.traffic.examines = frames

    def read(self, moment: str) -> Telemetry:
        """Read the router's counters, a second time if the first failed; AFTER the trials with its neighbours.

        SET_UP: what of the run's changes it does not show any more, and no counters.
        """
        if moment == SET_UP:
            return Telemetry(None, {}, taken_back=tuple(self.router.watch.taken_back()))
        return self.router.watch.read_last() if moment == AFTER else self.router.watch.read_again()

    def settle(self) -> None:
        """Wait until counters that lag are up to date."""
        time.sleep(SETTLE_SECONDS)

    def revive(self, verdict: Verdict) -> bool:
        """Switch a router that hangs off and on through labgrid; return whether its sentence is to be tried again.

        Once for each sentence, where the testbed's file says so (``lab: {power: …}``) and the trials proved nothing.
        Only a router that cannot be read: one that loses frames, or restarts, is judged as it is.
        """
        self.revived = ""
        settings, lab, router = self.plan.testbed.lab, self.testbed.lab, self.router
        power = settings.power if settings is not None else None
        if verdict.ruling is not Ruling.INCONCLUSIVE or power is None or lab is None or self.testbed.problems():
            return False
        if not router.connected or router.is_black_box or not (why := router.watch.silence()):
            return False
        self.revived = f"the router did not answer ({why})"
        try:
            self.revived += f"; {lab.power_cycle(power)}"
            began = time.monotonic()
            while why := router.watch.silence():
                if time.monotonic() > began + power.boot:
                    raise TestbedError(
                        f"it did not answer within {power.boot:g} s of that: {why}; look at its console, or give 'boot'"
                        " of 'power' more time"
                    )
                time.sleep(POLL)
            self.revived += f"; it answered again after {time.monotonic() - began:.0f} s"
            router.configure(links_moved=True)
            # it was just configured, or is to be set up for good, which the slow traffic shows
            router.watch.configured()
            self.traffic.forget()
            self.traffic.check_reachability()
        except TestbedError as error:
            self.revived += f", and then: {error}"
            return False
        return True

    def cause_fault(self, fault: InjectedFault) -> None:
        """Inject *fault*. Raises TestbedError if the testbed is not a simulated one."""
        if not self.testbed.facts.simulated:
            raise TestbedError(
                f"'{fault.kind}' can be caused on a simulated testbed only, and '{self.plan.testbed.testbed}' is none"
            )
        self.testbed.cause(fault)

    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        self.traffic.forget()
        self.generator.release()

    def close(self) -> None:
        """Release everything, in order, even if a step fails."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.testbed.close)
            stack.callback(self.router.restore)
            stack.callback(self.release_generator)
