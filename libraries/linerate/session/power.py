"""Power on an open session: a meter read while frames flow, or the power that the platform's file declares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..counts.trial import DURING_READING, Fault, Load, MeasureDuring, Outcome, Problem
from ..errors import TestbedError
from ..methods.energy import ABOVE_IDLE_UNCERTAINTY, IDLE_POWER, POWER, UNCERTAINTY
from ..power import FIGURES, Meter, PowerReading, open_meter, take_figures, time_of_day
from ..power.settings import MeterSettings
from ..routers.base import Shell
from ..system.secrets import ENVIRONMENT, Secrets

COMMAND_LIMIT = 30.0
"""Seconds for a command on the router that reads its own meter."""


@dataclass
class PoweredTrials:
    """Trials with the power that was drawn meanwhile. *declared*: W by the platform's file, where there is no meter.

    ``measure``: of a trial; ``clock_speed``: s of the testbed's clock per real second; ``sleep``: so many real s;
    ``now``: Unix time in s.
    """

    settings: MeterSettings | None
    declared: float | None
    measure: MeasureDuring
    shell: Callable[[], Shell]
    sudo: bool
    clock_speed: float = 1.0
    secrets: Secrets = ENVIRONMENT
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time_of_day
    _meter: Meter | None = field(default=None, repr=False)
    _idle: PowerReading | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """Where the power comes from, in words."""
        if self.settings is None:
            return f"the power is {self.declared:g} W as the platform's file declares it, not measured"
        meter, settings = self._opened(), self.settings
        return (
            f"measured by {meter.text}, which covers {meter.covers}, ± {settings.accuracy:g} % of the reading and"
            f" {settings.resolution:g} W steps"
        )

    def outcome(self, load: Load, duration: float) -> Outcome:
        """One trial of at least *duration* s. Its readings have the power; a meter that fails is a problem of it."""
        if self.settings is None:
            found = self.measure(load, duration, _nothing)
            return replace(found, readings={**found.readings, POWER: self.declared or 0.0, UNCERTAINTY: 0.0})
        meter, figures, failed = self._opened(), list[float](), list[str]()
        try:
            self._idle = self._idle or self._read(self.sleep)
        except TestbedError as error:
            failed.append(str(error))

        def during(wait: Callable[[float], None]) -> None:
            wait(meter.settle)
            try:
                figures.extend(take_figures(meter, wait))
            except TestbedError as error:
                failed.append(str(error))

        # beginning and each figure may take a second of real time, and one more is room
        least = meter.settle + FIGURES * meter.interval + (FIGURES + 2) * self.clock_speed
        found = self.measure(load, max(duration, math.ceil(least)), during)
        return self._with_power(found, figures, failed)

    def _with_power(self, found: Outcome, figures: list[float], failed: list[str]) -> Outcome:
        took = found.readings.get(DURING_READING, 0.0)
        if not failed and not took < found.duration:
            failed.append("the power meter answered after the end of traffic")
        if failed or not figures or self._idle is None or self.settings is None:
            words = "; ".join(failed) or "the power meter was not read, because a port sent no frame"
            return replace(found, problems=(*found.problems, Problem(Fault.READING, words)))
        accuracy, resolution = self.settings.accuracy / 100, self.settings.resolution
        power = PowerReading.of(figures, accuracy, resolution)
        above = power.watts - self._idle.watts
        readings = {
            POWER: power.watts,
            "power_least_watts": power.least,
            "power_most_watts": power.most,
            UNCERTAINTY: power.uncertainty,
            IDLE_POWER: self._idle.watts,
            # an error of its gain is one of the difference; each figure may be wrong by half a step
            ABOVE_IDLE_UNCERTAINTY: accuracy * abs(above) + resolution,
        }
        return replace(found, readings={**found.readings, **readings})

    def _read(self, wait: Callable[[float], None]) -> PowerReading:
        """Several figures of the meter now. Raises TestbedError."""
        if self.settings is None:
            raise TestbedError("there is no power meter")
        meter = self._opened()
        wait(meter.settle / self.clock_speed)
        figures = take_figures(meter, lambda seconds: wait(seconds / self.clock_speed))
        return PowerReading.of(figures, self.settings.accuracy / 100, self.settings.resolution)

    def watts(self) -> float:
        """One figure of the meter, or the declared power. Raises TestbedError."""
        return (self.declared or 0.0) if self.settings is None else take_figures(self._opened(), self.sleep, 1)[0]

    def _opened(self) -> Meter:
        if self._meter is None:
            if self.settings is None:
                raise TestbedError("there is no power meter")
            self._meter = open_meter(self.settings, self._run, self.secrets, self.now)
        return self._meter

    def _run(self, command: str) -> str:
        whole = f"sudo -n sh -c '{command}'" if self.sudo and "'" not in command else command
        result = self.shell()(whole, COMMAND_LIMIT)
        if result.status:
            raise TestbedError(f"'{command}' failed on the router: {result.stderr.strip()[:200]}")
        return result.stdout

    def close(self) -> None:
        """Release the meter."""
        if self._meter is not None:
            self._meter.close()


def _nothing(wait: Callable[[float], None]) -> None:
    """Nothing is done while frames flow."""
