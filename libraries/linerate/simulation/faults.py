"""What can be made to go wrong on a simulated testbed: ``faults:`` of a testbed file, or the keyword `Cause Fault`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError, model_validator

from ..config import Config
from ..errors import ConfigError

FaultKind = Literal[
    "link flap",
    "router reboot",
    "ssh cut",
    "ssh freeze",
    "ports stolen",
    "unsent frames",
    "stalled generator",
    "duplicated frames",
    "reordered frames",
    "one-way loss",
    "flow stats dropped",
    "counter reset",
    "counter wrap",
    "late reply",
    "lost reply",
    "server end",
    "server restart",
]

KEYS: Mapping[str, Mapping[str, Any]] = {
    "link flap": {"lasts": 0.2, "port": 0},
    "router reboot": {"lasts": 20.0},
    "ssh cut": {},
    "ssh freeze": {"hold": 60.0},
    "ports stolen": {"lasts": None},
    "unsent frames": {"lasts": 3600.0, "share": 0.2},
    "stalled generator": {"lasts": 0.2, "port": 0},
    "duplicated frames": {"lasts": 3600.0, "share": 0.01},
    "reordered frames": {"lasts": 3600.0, "share": 0.01},
    "one-way loss": {"lasts": 3600.0, "port": 1, "share": 0.01, "of": "router"},
    "flow stats dropped": {"lasts": 3600.0, "shows": "nothing"},
    "counter reset": {"of": "generator", "port": None},
    "counter wrap": {"frames": 1_000_000},
    "late reply": {"hold": 8.0},
    "lost reply": {},
    "server end": {},
    "server restart": {"lasts": 20.0},
}
"""The keys that each kind has beside ``kind``, ``start``, ``at`` and ``every``, and what they are unless given."""


WHOSE = {"one-way loss": ("router", "cable"), "counter reset": ("generator", "router")}
"""What ``of`` may say, by kind."""


class InjectedFault(Config):
    """One fault: ``at`` s after the ``start``-th start of traffic since it was asked for (0: at once, no start).

    ``every``: after each later start again. ``for`` s it lasts; both are seconds of the testbed's clock. ``hold``:
    seconds of the wall's, as the limits are that it runs into. ``port``: the generator's, None for both; of a
    one-way loss the one that sends what is lost. ``share`` of the frames that is not sent, comes twice, late or never.
    ``frames`` until a counter of 32 bits wraps. ``shows``: what flow statistics still tell: nothing, some of the groups
    asked for (every second), or zeros. ``of``: whose counters are reset; whose loss it is, the router's, which counts
    it, or the cable's before it, which nobody does. Starts count alike whoever causes them: a run's first is its check
    of reachability, its second the first sentence's warm-up.
    """

    model_config = ConfigDict(populate_by_name=True)

    kind: FaultKind
    start: Annotated[int, Field(ge=0, le=100_000)] = 1
    at: Annotated[float, Field(ge=0, le=3600)] = 0.0
    every: bool = False
    lasts: Annotated[float | None, Field(alias="for", gt=0, le=3600)] = None
    hold: Annotated[float, Field(gt=0, le=600)] | None = None
    port: Annotated[int, Field(ge=0, le=255)] | None = None
    share: Annotated[float, Field(gt=0, le=0.99)] | None = None
    frames: Annotated[int, Field(gt=0, lt=2**32)] | None = None
    of: Literal["generator", "router", "cable"] | None = None
    shows: Literal["nothing", "some", "zeros"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _keys_of_its_kind(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("kind") not in KEYS:
            return data
        own = KEYS[data["kind"]]
        foreign = ({"lasts", "hold", "port", "share", "frames", "of", "shows"} - own.keys()) & {
            _plain(key) for key in data
        }
        if foreign:
            right = ", ".join(["start", "at", "every", *(_written(key) for key in own)])
            raise ValueError(
                f"a '{data['kind']}' has no key {' or '.join(sorted(_written(key) for key in foreign))};"
                f" expected any of {right}"
            )
        given = {_plain(key): value for key, value in data.items()}
        if given.get("of") and given["of"] not in WHOSE[data["kind"]]:
            right = " or ".join(WHOSE[data["kind"]])
            raise ValueError(f"a '{data['kind']}' of the {given['of']} is not known; expected {right}")
        return {**own, **given}


def _plain(key: str) -> str:
    return "lasts" if key == "for" else key


def _written(key: str) -> str:
    return "for" if key == "lasts" else key


def fault_of(kind: str, **words: Any) -> InjectedFault:
    """The fault that a keyword's words describe. Raises ConfigError with a sentence."""
    if kind not in KEYS:
        raise ConfigError(f"'{kind}' is no fault; expected one of {', '.join(get_args(FaultKind))}")
    try:
        return InjectedFault.model_validate({"kind": kind, **words})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"fault '{kind}': {key + ': ' if key else ''}{said}") from None
