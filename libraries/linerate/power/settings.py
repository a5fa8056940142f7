"""The power meter of a testbed, as its file says it: the key ``power``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ..config import Config
from ..system.children import is_handed_on

_URL = re.compile(r"https?://[A-Za-z0-9_.:\[\]-]+(?::\d+)?(?:/[^\s]*)?")
_OID = re.compile(r"\d+(?:\.\d+){3,127}")
_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def _matching(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value) or value.startswith("-"):
            raise ValueError(f"expected {expected}")
        return value

    return AfterValidator(check)


Url = Annotated[str, _matching(_URL, "an address that begins with http:// or https://, without spaces")]
Oid = Annotated[str, _matching(_OID, "an object identifier in digits and dots, as 1.3.6.1.4.1…")]
Host = Annotated[str, _matching(_HOST, "a name or address of letters, digits and any of . : _ -")]


def _of_its_own(value: str) -> str:
    if is_handed_on(value):
        raise ValueError(f"'{value}' is a variable that every program gets; expected one of its own: METER_PASSWORD")
    return value


Variable = Annotated[
    str,
    _matching(_VARIABLE, "the name, in capitals, of an environment variable that holds it, not the secret"),
    AfterValidator(_of_its_own),
]


class MeterSettings(Config):
    """What every meter says of itself. ``accuracy``: per cent of the reading, by its data sheet; there is no default.

    ``resolution``: its smallest step in W. ``interval``: s between two new figures; ``settle``: s until a figure shows
    a new load alone (meters average); both have defaults for each kind.
    """

    accuracy: Annotated[float, Field(gt=0, le=50)]
    resolution: Annotated[float, Field(ge=0, le=1000)] = 0.1
    interval: Annotated[float, Field(gt=0, le=60)] = 1.0
    settle: Annotated[float, Field(ge=0, le=300)] = 2.0


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


class SnmpMeterSettings(MeterSettings):
    """A power distribution unit. ``oid``: of the outlet's power, ``factor``: W for each unit of it.

    Version 2c with the community in the variable ``community_from``, or version 3 with ``user`` and the variables of
    its passwords (SHA-256, AES-128).
    """

    kind: Literal["snmp"]
    address: Host
    port: Annotated[int, Field(ge=1, le=65535)] = 161
    oid: Oid
    factor: Annotated[float, Field(gt=0)] = 1.0
    community_from: Variable | None = None
    user: Annotated[str, Field(max_length=32)] | None = None
    authentication_from: Variable | None = None
    privacy_from: Variable | None = None
    settle: Annotated[float, Field(ge=0, le=300)] = 5.0

    @model_validator(mode="after")
    def _check_version(self) -> SnmpMeterSettings:
        if (self.community_from is None) == (self.user is None):
            raise ValueError("needs either 'community_from' (version 2c) or 'user' (version 3)")
        if self.privacy_from is not None and self.authentication_from is None:
            raise ValueError("'privacy_from' needs 'authentication_from' too")
        return self


class ShellMeterSettings(MeterSettings):
    """A meter inside the router, read over its SSH login: ``ipmi`` (``ipmitool dcmi power reading``) or ``rapl``.

    RAPL counts the energy of the processor's packages alone, not that of the box.
    """

    kind: Literal["ipmi", "rapl"]


class CsvMeterSettings(MeterSettings):
    """A file that another program appends to: a line per figure, time (Unix seconds or ISO 8601) and W, by commas.

    ``column``: of the power, counted from 1; the time is the first. The last line must be fresh.
    """

    kind: Literal["csv"]
    file: Path
    column: Annotated[int, Field(ge=2, le=1000)] = 2


PowerSettings = Annotated[
    HttpMeterSettings | SnmpMeterSettings | ShellMeterSettings | CsvMeterSettings, Field(discriminator="kind")
]
