"""Power distribution units, read by SNMP."""

from __future__ import annotations

from ..system.secrets import Secrets
from ..system.snmp import snmp_values
from .figures import power
from .meter import NextFigure
from .settings import SnmpMeterSettings


class SnmpMeter:
    """One outlet of a power distribution unit."""

    covers = "what is plugged into its outlet"

    def __init__(self, settings: SnmpMeterSettings, secrets: Secrets) -> None:
        self._settings, self._secrets = settings, secrets
        self.interval, self.settle = settings.interval, settings.settle
        self.text = f"snmp at {settings.address}:{settings.port}, {settings.oid}"

    def begin(self) -> NextFigure:
        """One request for each figure: the meter keeps none for us."""
        return self.watts

    def watts(self) -> float:
        """One request. Raises TestbedError."""
        settings, who = self._settings, f"the meter {self.text}"
        (found,) = snmp_values(settings, [settings.oid], self._secrets, who, "a power meter")
        return settings.factor * power(found, self.text)

    def close(self) -> None:
        """Nothing is held between two requests."""
