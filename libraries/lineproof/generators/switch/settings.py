"""The key ``switch`` of a generator: what counts the frames between generator and router beside it."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ...command_values import GroupPattern, JsonPath
from ...config import Config, matching
from ...system.local_command import Command, Variable
from ...system.login_settings import HostSettings

SwitchPort = Annotated[
    str,
    matching("[A-Za-z0-9_./:-]{1,64}", "is no port of a switch; expected letters, digits and any of _ . / : -"),
]


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_SOME = Field(min_length=1, max_length=10)


class CountPatterns(Config):
    """Expressions whose first groups, added, are the frames that a port received and sent."""

    received: Annotated[tuple[GroupPattern, ...], BeforeValidator(_as_list), _SOME]
    sent: Annotated[tuple[GroupPattern, ...], BeforeValidator(_as_list), _SOME]


class CountPaths(Config):
    """Paths whose numbers, added, are the frames that a port received and sent; with ``{port}`` for its name."""

    received: Annotated[tuple[JsonPath, ...], BeforeValidator(_as_list), _SOME]
    sent: Annotated[tuple[JsonPath, ...], BeforeValidator(_as_list), _SOME]


class SwitchSettings(HostSettings):
    """A command that shows the counters of a port of the switch: here, or over SSH with ``address`` and ``ssh``.

    ``run``: with ``{port}`` where the port's name stands. ``secrets``: environment variables of this machine that a
    command here gets. ``pattern`` or ``json_paths``: where the counts are in what it prints. ``ports`` of the switch,
    one for each of the generator's ports, in their order: those that its cables are in.

    ``tolerance``: the ratio of a trial's frames by which the counts may differ. ``settle``: s until its counters show
    what has passed (many switches read their hardware every second or so).
    """

    run: Command
    secrets: tuple[Variable, ...] = ()
    pattern: CountPatterns | None = None
    json_paths: CountPaths | None = None
    ports: Annotated[tuple[SwitchPort, ...], Field(max_length=64)]
    tolerance: Annotated[float, Field(ge=0, le=0.1)] = 0.0001
    settle: Annotated[float, Field(ge=0, le=60)] = 2.0

    @field_validator("ports", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return [str(each) if isinstance(each, int) else each for each in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if (self.pattern is None) == (self.json_paths is None):
            raise ValueError("expected one of 'pattern' and 'json_paths', each with 'received' and 'sent'")
        if self.secrets and self.ssh is not None:
            raise ValueError("'secrets' are for a command that runs here; expected none, or no 'address'")
        return self
