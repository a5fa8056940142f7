"""Power on an open session: a meter read while frames flow, or the power that the platform's file declares."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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
from ..power import MeterAccess, PowerReading, PowerSettings, time_of_day
from ..system.login import ENVIRONMENT, Secrets
from ..system.ssh_shell import Shell

COMMAND_LIMIT = 30.0
"""Seconds for a command on the router that reads its own meter."""


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
    now: Callable[[], float] = time_of_day

    def of_sentence(self) -> Measure:
        """The trials of one sentence. Its own power without traffic is measured before the first one.

        It is of no other sentence: a box that has grown warm, with faster fans, draws more, and that is not the
        traffic's. A trial lasts at least as long as asked for; its readings have the power. A meter that fails is a
        problem of it.
        """
        return partial(self._outcome, list[PowerReading]())

    def _outcome(self, idle: list[PowerReading], load: Load, duration: float) -> Outcome:
        """Measure a trial with its power. *idle*: the reading before the first trial, as soon as there is one."""
        if (meter := self.settings) is None:
            found = self.measure(load, duration, lambda wait: None)
            return replace(found, readings={**found.readings, POWER: self.declared or 0.0, UNCERTAINTY: 0.0})
        loaded, failed = list[PowerReading](), list[str]()

        def read(into: list[PowerReading], wait: Callable[[float], None]) -> None:
            try:
                wait(meter.settling)
                began = self.now()
                into.append(meter.reading(meter.figures(self._access, wait), began, self.now()))
            except TestbedError as error:
                failed.append(str(error))

        if not idle:
            read(idle, lambda seconds: self.sleep(seconds / self.clock_speed))
        found = self.measure(load, max(duration, meter.trial_seconds(self.clock_speed)), partial(read, loaded))
        if not failed and not found.readings.get(DURING_READING, 0.0) < found.duration:
            failed.append("the power meter answered after the end of traffic")
        if failed or not loaded:
            # a meter that is gone says the same before and during the trial
            words = "; ".join(dict.fromkeys(failed)) or "the power meter was not read, because a port sent no frame"
            return replace(found, problems=(*found.problems, Problem(Fault.READING, words)))
        return replace(found, readings={**found.readings, **_figures(meter, loaded[0], idle[0])})

    def watts(self) -> float:
        """One figure of the meter, or the declared power. Raises TestbedError."""
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


def _figures(meter: PowerSettings, loaded: PowerReading, idle: PowerReading) -> dict[str, float]:
    return {
        POWER: loaded.watts,
        "power_least_watts": loaded.least,
        "power_most_watts": loaded.most,
        "power_began": loaded.began,
        "power_ended": loaded.ended,
        UNCERTAINTY: loaded.uncertainty,
        IDLE_POWER: idle.watts,
        "idle_power_began": idle.began,
        "idle_power_ended": idle.ended,
        # an error of its gain is one of the difference; each figure may be wrong by half a step
        ABOVE_IDLE_UNCERTAINTY: meter.accuracy / 100 * abs(loaded.watts - idle.watts) + meter.resolution,
    }
