"""The power meter of a testbed, as its file says it: the key ``power``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ..config import Config, matching
from ..system.snmp import Host, SnmpSettings, Variable
from .meter import FIGURES

Url = Annotated[
    str,
    matching(
        r"https?://[A-Za-z0-9_.:\[\]-]+(?::\d+)?(?:/[^\s]*)?",
        "expected an address that begins with http:// or https://, without spaces",
    ),
]
Oid = Annotated[
    str, matching(r"\d+(?:\.\d+){3,127}", "expected an object identifier in digits and dots, as 1.3.6.1.4.1…")
]


class MeterSettings(Config):
    """What every meter says of itself. ``accuracy``: per cent of the reading, by its data sheet; there is no default.

    ``resolution``: its smallest step in W. ``interval``: s between two new figures; ``settle``: s until a figure shows
    a new load alone (meters average), at least an interval, and :attr:`USUAL_SETTLE` if it is not said.
    """

    USUAL_SETTLE: ClassVar[float] = 2.0

    accuracy: Annotated[float, Field(gt=0, le=50)]
    resolution: Annotated[float, Field(ge=0, le=1000)] = 0.1
    interval: Annotated[float, Field(gt=0, le=60)] = 1.0
    settle: Annotated[float, Field(ge=0, le=300)] = USUAL_SETTLE

    @model_validator(mode="before")
    @classmethod
    def _settle_for_an_interval(cls, data: Any) -> Any:
        """Without ``settle``, that of a meter with longer intervals is an interval: its figure may be their mean."""
        if isinstance(data, dict) and "settle" not in data:
            interval = data.get("interval")
            # one that is too long is its own error
            longer = isinstance(interval, int | float) and 60 >= interval > cls.USUAL_SETTLE
            return {**data, "settle": interval if longer else cls.USUAL_SETTLE}
        return data

    @model_validator(mode="after")
    def _check_settle(self) -> MeterSettings:
        if self.settle < self.interval:
            raise ValueError(
                f"'settle' is {self.settle:g} s and 'interval' {self.interval:g} s, so that a figure may be of time"
                f" before the traffic; expected 'settle: {self.interval:g}' or more, or a shorter 'interval'"
            )
        return self

    def idle_seconds(self) -> float:
        """Seconds of a reading without traffic, about; of the testbed's clock."""
        return self.settle + FIGURES * self.interval

    def trial_seconds(self, clock_speed: float) -> float:
        """Seconds of the testbed's clock that a trial lasts at least. *clock_speed*: of these per real second."""
        # beginning and each figure may take a second of real time, and one more is room
        return float(math.ceil(self.settle + FIGURES * self.interval + (FIGURES + 2) * clock_speed))


class HttpMeterSettings(MeterSettings):
    """A meter that answers with JSON: a Shelly or Tasmota plug, or any other by ``url`` and ``field``.

    ``shelly``: second generation and later (``/rpc/Switch.GetStatus``); ``shelly-1``: the first (``/status``).
    ``address``, ``channel``: of the plug. ``url``, ``field``: of ``json``, as ``data.outlets.3.power``; ``factor``: W
    for each unit of it. ``user`` and ``password_from``: where the meter asks for a login.
    """

    kind: Literal["shelly", "shelly-1", "tasmota", "json"]
    address: Host | None = None
    channel: Annotated[int, Field(ge=0, le=63)] = 0
    url: Url | None = None
    field: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    factor: Annotated[float, Field(gt=0)] = 1.0
    user: Annotated[str, Field(max_length=100)] | None = None
    password_from: Variable | None = None

    @model_validator(mode="after")
    def _check_where(self) -> HttpMeterSettings:
        if self.kind == "json" and (self.url is None or self.field is None):
            raise ValueError("'kind: json' needs 'url' and 'field', where in the answer the power is")
        if self.kind != "json" and self.address is None:
            raise ValueError(f"'kind: {self.kind}' needs 'address', of the plug")
        if (self.user is None) != (self.password_from is None):
            raise ValueError("'user' and 'password_from' belong together")
        return self


class SnmpMeterSettings(SnmpSettings, MeterSettings):
    """A power distribution unit. ``oid``: of the outlet's power, ``factor``: W for each unit of it."""

    kind: Literal["snmp"]
    oid: Oid
    factor: Annotated[float, Field(gt=0)] = 1.0
    USUAL_SETTLE: ClassVar[float] = 5.0


class ShellMeterSettings(MeterSettings):
    """A meter inside the router, read over its SSH login: ``ipmi`` (``ipmitool dcmi power reading``) or ``rapl``.

    RAPL counts the energy of the processor's packages alone, not that of the box.
    """

    kind: Literal["ipmi", "rapl"]


class CsvMeterSettings(MeterSettings):
    """A file that another program appends to: a line per figure, time (Unix seconds or ISO 8601) and W, by commas.

    ``column``: of the power, counted from 1; the time is the first. Lines that are older than the traffic do not count.
    """

    kind: Literal["csv"]
    file: Path
    column: Annotated[int, Field(ge=2, le=1000)] = 2


PowerSettings = Annotated[
    HttpMeterSettings | SnmpMeterSettings | ShellMeterSettings | CsvMeterSettings, Field(discriminator="kind")
]
