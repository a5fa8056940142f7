"""The key ``lab`` of a testbed file: the place of a labgrid coordinator that a run has to acquire first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ...config import Config, matching
from ..waiting_time import Seconds

DEFAULT_PORT = 20408
"""TCP port of a labgrid coordinator."""

_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?")


def _checked_address(value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None or not 1 <= int(found["port"] or DEFAULT_PORT) <= 65535:
        raise ValueError(f"is no address; expected HOST or HOST:PORT, as lab.example.com:{DEFAULT_PORT}")
    return f"{found['host']}:{found['port'] or DEFAULT_PORT}"


Name = Annotated[
    str,
    matching(
        "[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}", "is no name of labgrid's; expected letters, digits and any of _ . + -"
    ),
]

_TagName = Annotated[
    str, matching("[a-z][a-z0-9_]{1,99}", "is no tag of labgrid's; expected lower-case letters, digits, _")
]
_TagValue = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if isinstance(value, int) else value),
    matching("[A-Za-z0-9_.-]{1,100}", "is no value of a tag of labgrid's; expected letters, digits and any of _ . -"),
]


class PowerCycleSettings(Config):
    """How labgrid switches a router that hangs off and on.

    ``resource``: the name of the place's power resource, where it has several. ``off``: s without power. ``boot``: s
    that the router may take until it answers over SSH again.
    """

    resource: Name | None = None
    off: Seconds = 2.0
    boot: Annotated[Seconds, Field(gt=0)] = 300.0


class LabSettings(Config):
    """A place that labgrid lends.

    ``coordinator``: ``host:port``. ``place``: its name; or ``tags`` that it has. ``wait``: s until it must be free;
    0: it must be at once. ``power``: a router that hangs is switched off and on; without it that is never done.
    """

    is_login: ClassVar[bool] = True

    coordinator: Annotated[str, AfterValidator(_checked_address)]
    place: Name | None = None
    tags: Mapping[_TagName, _TagValue] = Field(default_factory=dict)
    wait: Seconds = 0.0
    power: PowerCycleSettings | None = None

    @field_validator("power", mode="before")
    @classmethod
    def _from_bool(cls, value: Any) -> Any:
        return {True: {}, False: None}[value] if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _check_one_way(self) -> LabSettings:
        if self.place is not None and self.tags:
            raise ValueError("has 'place' and 'tags'; expected one of them")
        return self

    def filters(self, testbed: str) -> dict[str, str]:
        """Return what labgrid's reservation asks for; by default the place that is named as the *testbed*."""
        return dict(self.tags) or {"name": self.place or testbed}
