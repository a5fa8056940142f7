"""Meters inside the router, read by a command over its SSH login."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..errors import TestbedError
from .figures import power
from .meter import NextFigure
from .settings import ShellMeterSettings

Run = Callable[[str], str]
"""Runs a command on the router and returns its standard output. Raises TestbedError, also if it fails."""

IPMI_COMMAND = "ipmitool dcmi power reading"
RAPL_COMMAND = (
    "cat /proc/uptime && for zone in /sys/class/powercap/intel-rapl:[0-9]; do"
    ' echo "$(cat $zone/name) $(cat $zone/energy_uj) $(cat $zone/max_energy_range_uj)"; done'
)
_IPMI_POWER = re.compile(r"^\s*Instantaneous power reading:\s+(\d+(?:\.\d+)?) Watts\s*$", re.MULTILINE)
_IPMI_STATE = re.compile(r"^\s*Power reading state is:\s+activated\s*$", re.MULTILINE)
_UPTIME = re.compile(r"(\d+\.\d+) \d+\.\d+\s*\n")
_ZONE = re.compile(r"^package-(\d+) (\d{1,20}) (\d{1,20})$", re.MULTILINE)


class IpmiMeter:
    """The board's own meter, by IPMI's data center management interface."""

    covers = "the box"

    def __init__(self, settings: ShellMeterSettings, run: Run) -> None:
        self._run = run
        self.interval, self.settle = settings.interval, settings.settle
        self.text = f"'{IPMI_COMMAND}' on the router"

    def begin(self) -> NextFigure:
        """One command for each figure, which is the board's power of that moment."""
        return self.watts

    def watts(self) -> float:
        """One reading. Raises TestbedError."""
        return ipmi_watts(self._run(IPMI_COMMAND))

    def close(self) -> None:
        """The login is the router's."""


def ipmi_watts(output: str) -> float:
    """The instantaneous power. Raises TestbedError."""
    found = _IPMI_POWER.search(output)
    if found is None or not _IPMI_STATE.search(output):
        raise TestbedError(f"'{IPMI_COMMAND}' shows no activated power reading; its board may have no meter")
    return power(found[1], f"'{IPMI_COMMAND}'")


class RaplMeter:
    """The energy counters of the processor's packages."""

    covers = "the processor alone, not the box"

    def __init__(self, settings: ShellMeterSettings, run: Run) -> None:
        self._run = run
        self.interval, self.settle = settings.interval, settings.settle
        self.text = "RAPL on the router (its processor alone)"

    def begin(self) -> NextFigure:
        """Reads the counters now; each figure is the mean since the reading before it. Raises TestbedError."""
        last = rapl_counters(self._run(RAPL_COMMAND))

        def watts() -> float:
            nonlocal last
            before, last = last, rapl_counters(self._run(RAPL_COMMAND))
            seconds = last[0] - before[0]
            if seconds <= 0 or last[1].keys() != before[1].keys():
                raise TestbedError("RAPL's counters of the router cannot be compared: has it restarted?")
            joules = 0.0
            for zone, (now, most) in last[1].items():
                joules += (now - before[1][zone][0]) % (most + 1) / 1e6
            return power(joules / seconds, self.text)

        return watts

    def close(self) -> None:
        """The login is the router's."""


def rapl_counters(output: str) -> tuple[float, dict[str, tuple[int, int]]]:
    """Uptime in s, and of each package its counter and where that begins again, in µJ. Raises TestbedError."""
    uptime, zones = _UPTIME.match(output), _ZONE.findall(output)
    if uptime is None or not zones or any(int(now) > int(most) for _, now, most in zones):
        raise TestbedError("the router shows no RAPL counters of a package; root can read them on Intel and AMD")
    return float(uptime[1]), {zone: (int(now), int(most)) for zone, now, most in zones}
