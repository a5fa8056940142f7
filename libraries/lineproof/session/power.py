"""Power on an open session: a meter read while frames flow, or the power that the platform's file declares."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from ..core.quantity import Requirement
from ..core.trial import (
    ABOVE_IDLE_UNCERTAINTY,
    DURING_READING,
    IDLE_POWER,
    POWER,
    UNCERTAINTY,
    Fault,
    Load,
    Measure,
    MeasureDuring,
    Outcome,
    Problem,
)
from ..errors import TestbedError
from ..power import MeterAccess, PowerSettings
from ..system.login import COMMAND_LIMIT, ENVIRONMENT, Secrets
from ..system.ssh_shell import Shell


@dataclass
class PoweredTrials:
    """Trials with the power that was drawn meanwhile. *declared*: W by the platform's file, where there is no meter.

    ``measure``: of a trial; ``clock_speed``: s of the testbed's clock per real second; ``sleep``: so many real s;
    ``now``: Unix time in s.
    """

    settings: PowerSettings | None
    declared: float | None
    measure: MeasureDuring
    shell: Callable[[], Shell]
    sudo: bool
    clock_speed: float = 1.0
    secrets: Secrets = ENVIRONMENT
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def of_sentence(self) -> Measure:
        """Return how a sentence's trials are measured, after its own power without traffic.

        It is of no other sentence: a box that has grown warm, with faster fans, draws more, and that is not the
        traffic's. A trial lasts at least as long as asked for; its readings have the power. A meter that fails is a
        problem of it.
        """
        return partial(self._outcome, list[float]())

    def _outcome(self, idle: list[float], load: Load, duration: float) -> Outcome:
        """Measure a trial with its power. *idle*: figures in W before the first trial, as soon as there are any."""
        if (meter := self.settings) is None:
            outcome = self.measure(load, duration, lambda wait: None)
            return replace(outcome, readings={**outcome.readings, POWER: self.declared or 0.0, UNCERTAINTY: 0.0})
        loaded, failed = list[float](), list[str]()

        def read(into: list[float], wait: Callable[[float], None]) -> None:
            try:
                wait(meter.settling)
                into += meter.figures(self._access, wait)
            except TestbedError as error:
                failed.append(str(error))

        if not idle:
            read(idle, lambda seconds: self.sleep(seconds / self.clock_speed))
        outcome = self.measure(load, max(duration, meter.trial_seconds(self.clock_speed)), partial(read, loaded))
        if not failed and not outcome.readings.get(DURING_READING, 0.0) < outcome.duration:
            failed.append("the power meter answered after the end of traffic")
        if failed or not loaded:
            # a meter that is gone says the same before and during the trial
            reason = "; ".join(dict.fromkeys(failed)) or "the power meter was not read, because a port sent no frame"
            return replace(outcome, problems=(*outcome.problems, Problem(Fault.READING, reason)))
        watts, idle_watts = fmean(loaded), fmean(idle)
        powers = {
            POWER: watts,
            "power_least_watts": min(loaded),
            "power_most_watts": max(loaded),
            UNCERTAINTY: meter.accuracy / 100 * watts + meter.resolution / 2,
            IDLE_POWER: idle_watts,
            # an error of its gain is one of the difference; each figure may be wrong by half a step
            ABOVE_IDLE_UNCERTAINTY: meter.accuracy / 100 * abs(watts - idle_watts) + meter.resolution,
        }
        return replace(outcome, readings={**outcome.readings, **powers})

    def watts(self) -> float:
        """Return one figure of the meter, or the declared power, in W. Raises TestbedError."""
        meter = self.settings
        return (self.declared or 0.0) if meter is None else meter.figures(self._access, self.sleep, 1)[0]

    def check(self, requirement: Requirement) -> None:
        """Raise TestbedError if *requirement* needs the power and the meter gives no power: before anything is sent."""
        if "power" not in requirement.quantity.needs:
            return
        try:
            self.watts()
        except TestbedError as error:
            raise TestbedError(f"nothing was sent, because no power is known: {error}") from None

    @property
    def _access(self) -> MeterAccess:
        return MeterAccess(self._run, self.secrets, self.now)

    def _run(self, command: str) -> str:
        whole = f"sudo -n sh -c {shlex.quote(command)}" if self.sudo else command
        result = self.shell()(whole, COMMAND_LIMIT)
        if result.status:
            raise TestbedError(f"'{command}' failed on the router: {result.stderr.strip()[:200]}")
        return result.stdout
