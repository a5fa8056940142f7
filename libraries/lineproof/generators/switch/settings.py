"""The key ``switch`` of a generator: what counts the frames between generator and router beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator

from ...config import Config, matching
from ...expressions import compiled
from ...system.login_settings import HostName, LoginSettings
from ...system.snmp import SnmpSettings

SwitchPort = Annotated[
    str,
    matching("[A-Za-z0-9_./:-]{1,64}", "is no port of a switch; expected letters, digits and any of _ . / : -"),
]


class CommonSwitchSettings(Config):
    """``ports`` of the switch, one for each of the generator's ports, in their order: those that its cables are in.

    ``tolerance``: the ratio of a trial's frames by which the counts may differ. ``settle``: s until its counters show
    what has passed (many switches read their hardware every second or so).
    """

    ports: Annotated[tuple[SwitchPort, ...], Field(max_length=64)]
    tolerance: Annotated[float, Field(ge=0, le=0.1)] = 0.0001
    settle: Annotated[float, Field(ge=0, le=60)] = 2.0

    @field_validator("ports", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return [str(each) if isinstance(each, int) else each for each in value] if isinstance(value, list) else value

    def with_paths(self, absolute: Callable[[Path], Path]) -> Self:
        """With the login's files made *absolute*."""
        del absolute
        return self


class SnmpSwitchSettings(CommonSwitchSettings, SnmpSettings):
    """By SNMP, with the 64-bit counters of IF-MIB (RFC 2863). ``ports``: by ifIndex."""

    kind: Literal["snmp"]

    @field_validator("ports")
    @classmethod
    def _check_index(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(each.isdecimal() for each in value):
            raise ValueError("are ifIndex numbers with SNMP, as 'snmpwalk … ifName' shows them")
        return value


def _checked_expression(value: str) -> str:
    if compiled(value).groups < 1:
        raise ValueError("needs a group, '(…)', around the number of frames")
    return value


Expression = Annotated[str, Field(min_length=1), AfterValidator(_checked_expression)]


class ShellSwitchSettings(CommonSwitchSettings):
    """By its command line over SSH. ``command``: with ``{port}`` where the port's name stands.

    ``received``, ``sent``: expressions whose first group is the number of frames that the port received and sent.
    """

    kind: Literal["shell"]
    address: HostName
    ssh: LoginSettings
    command: Annotated[str, Field(min_length=1, max_length=300)]
    received: Expression
    sent: Expression

    def with_paths(self, absolute: Callable[[Path], Path]) -> Self:
        """With the login's files made *absolute*."""
        return self.model_copy(update={"ssh": self.ssh.with_paths(absolute)})


SwitchSettings = Annotated[SnmpSwitchSettings | ShellSwitchSettings, Field(discriminator="kind")]
