"""The part that the product and the bench without hardware share: faults, noise, habits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from ..config import Config, explain_error, shown_key
from ..errors import ConfigError

_OtherBytes = Literal["payload", "length", "checksum", "ttl", "addresses", "mac", "cached", "lldp"]
Change = Literal[_OtherBytes, "copies", "flow", "hairpin", "late", "lost"]

FAULT_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "link flap": {"for": 0.2, "port": 0},
    "router reboot": {"for": 20.0},
    "neighbour lost": {"port": 1},
    "ssh cut": {},
    "ssh freeze": {"hold": 60.0},
    "ports stolen": {"for": None},
    "unsent frames": {"for": 3600.0, "share": 0.2},
    "stalled generator": {"for": 0.2, "port": 0},
    "duplicated frames": {"for": 3600.0, "share": 0.01},
    "reordered frames": {"for": 3600.0, "share": 0.01},
    "foreign frames": {"for": 3600.0, "frames": 1, "port": None},
    "pause frames": {"for": 3600.0, "port": None, "share": 0.2, "of": "router"},
    "one-way loss": {"for": 3600.0, "port": 0, "share": 0.01, "of": "router"},
    "changed frames": {"for": 3600.0, "what": "payload", "hold": 0.05, "spare": False}
    | dict.fromkeys(("share", "port", "size", "flow", "above")),
    "flow stats dropped": {"for": 3600.0, "shows": "nothing"},
    "counter reset": {"of": "generator", "port": None},
    "counter wrap": {"frames": 1_000_000},
    "late reply": {"hold": 8.0},
    "lost reply": {},
    "server end": {},
    "server restart": {"for": 20.0},
}
"""The kinds, and the keys of each besides ``kind``, ``start``, ``at`` and ``every``, with their defaults."""

ALLOWED_OF = {
    "one-way loss": ("router", "cable", "damaged cable"),
    "counter reset": ("generator", "router"),
    "pause frames": ("router", "generator"),
}
"""Values of ``of``, by kind."""


class InjectedFault(Config):
    """One fault, ``at`` s after the ``start``-th start of traffic from now on (0: at once).

    ``every``: again after each later start. ``for``: how many s it lasts; ``at`` and ``for`` are by the testbed's
    clock. ``hold``: real seconds, like the limits that it exceeds. ``port``: the generator's, None for both; of a
    one-way loss the sending one. ``share`` of the frames that is not sent, or arrives twice, out of order or never.
    ``what`` becomes of changed frames: those of ``size`` bytes with FCS, of flow number ``flow`` of a stream,
    while its port sends over ``above`` frames/s; ``spare``: not of latency frames; late ones come ``hold`` s of the
    testbed's clock later. ``frames`` until a 32-bit counter wraps, or that come every 2 s though nobody sent them.
    ``shows``: what flow statistics report: nothing, some (every second group), or zeros. ``of``: whose counters are
    reset; or who loses frames: the router, which counts them, or the cable before it, where nothing does, or a damaged
    cable, whose CRC errors its card counts; or who sends pause frames, where the router's keep the generator
    from sending ``share``. Every start counts: the first of a run is its check of reachability, the second the first
    sentence's warm-up, unless its frames are of a new kind: then the second is their slow traffic.
    """

    kind: str
    start: Annotated[int, Field(ge=0, le=100_000)] = 1
    at: Annotated[float, Field(ge=0, le=3600)] = 0.0
    every: bool = False
    lasts: Annotated[float | None, Field(alias="for", gt=0, le=3600)] = None
    hold: Annotated[float, Field(gt=0, le=600)] | None = None
    port: Annotated[int, Field(ge=0, le=255)] | None = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    frames: Annotated[int, Field(gt=0, lt=2**32)] | None = None
    of: Literal["generator", "router", "cable", "damaged cable"] | None = None
    shows: Literal["nothing", "some", "zeros"] | None = None
    what: Change | None = None
    size: Annotated[int, Field(ge=64, le=9216)] | None = None
    flow: Annotated[int, Field(ge=0, lt=4096)] | None = None
    above: Annotated[float, Field(ge=0)] | None = None
    spare: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "kind" not in data:
            return data
        defaults = FAULT_DEFAULTS.get(str(data["kind"]))
        if defaults is None:
            raise ValueError(f"'{data['kind']}' is no fault; expected one of {', '.join(FAULT_DEFAULTS)}")
        allowed = {"kind", "start", "at", "every"} | defaults.keys()
        known = {field.alias or name for name, field in cls.model_fields.items()}
        if unknown := data.keys() & known - allowed:
            expected = ", ".join(["start", "at", "every", *defaults])
            wrong = " or ".join(sorted(unknown))
            raise ValueError(f"a '{data['kind']}' has no key {wrong}; expected any of {expected}")
        if empty := [key for key, default in defaults.items() if default is not None and data.get(key, 0) is None]:
            raise ValueError(f"the {empty[0]} of a '{data['kind']}' is empty; expected a value, or the key left out")
        if "of" in data and data["of"] not in ALLOWED_OF[data["kind"]]:
            expected = " or ".join(ALLOWED_OF[data["kind"]])
            raise ValueError(f"a '{data['kind']}' of the {data['of']} is not known; expected {expected}")
        return {**defaults, **data}


def parse_fault(kind: str, **details: Any) -> InjectedFault:
    """Return the fault that a keyword's arguments describe. Raises ConfigError."""
    try:
        return InjectedFault.model_validate({"kind": kind, **details})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(shown_key, first["loc"]))
        raise ConfigError(f"fault '{kind}': {explain_error(first, key, InjectedFault)}") from None


Seconds = Annotated[float, Field(ge=0, le=600)]


class RouterHabits(Config):
    """Seconds of the testbed's clock. All 0: links are there at once.

    ``link_delay``: from taking an interface up to its carrier at both ends of the cable (negotiation, training, FEC).
    ``link_poll``: between the router's looks at its links: what it has not seen come up it does not send to
    (VPP's dpdk plugin: 3 s, ``DPDK_LINK_POLL_INTERVAL`` in its device/dpdk.h).
    """

    link_delay: Seconds = 0.0
    link_poll: Seconds = 0.0


HabitKind = Literal[
    "gateway unknown at start", "silent gateway", "own frames only", "promiscuous off at acquire", "coarse latency"
]


class Habit(Config):
    """One habit of the generator's *port*, None: of all, and of what is cabled to it.

    ``gateway unknown at start``: the server was started before the router had addresses, and knows an IPv4 gateway
    without its MAC address. ``silent gateway``: likewise, and nobody answers when it is asked for. ``own frames only``:
    the card drops frames that are addressed to another MAC address than its own, and counts them nowhere, unless it is
    promiscuous. ``promiscuous off at acquire``: whoever acquires the port finds it not promiscuous. ``coarse latency``:
    the server was started without ``--hdrh``.
    """

    kind: HabitKind
    port: Annotated[int, Field(ge=0, le=255)] | None = None


Share = Annotated[float, Field(ge=0, lt=1)]


class LossBursts(Config):
    """``packets`` frames lost in a row, on average once in ``every`` s of traffic (testbed's clock)."""

    packets: Annotated[int, Field(ge=1, le=10**6)] = 500
    every: Annotated[float, Field(ge=0.001)] = 50.0


class WarmUp(Config):
    """The router is slower by ``dip`` in the first ``seconds`` of traffic after its configuration."""

    dip: Share
    seconds: Annotated[float, Field(gt=0, le=3600)]


class Noise(Config):
    """``capacity``: relative standard deviation of the router's capacity between starts of traffic.

    A plain number in the file is ``capacity``. The testbed's ``seed`` makes it repeatable.
    """

    capacity: Share = 0.0
    bursts: LossBursts | None = None
    warm_up: WarmUp | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"capacity": value} if is_number else value


MODEL_DRIVER = "lineproof_model"
"""Driver of the ports of a modelled generator."""

BY_A_MODEL = "SIMULATED by a forwarding model"

_MARKS = (MODEL_DRIVER, "SIMULATED")


def simulation_signs(said: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of *said* (what says it -> its words) that a simulation says, in words."""
    return tuple(f"{who}: {text}" for who, text in said.items() if any(mark in text for mark in _MARKS))
