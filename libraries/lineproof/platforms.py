"""Platforms: router hardware and the software it may run. ``variables/platforms/*.yaml``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from .config import Config, did_you_mean, load_config, matching, readable
from .errors import ConfigError
from .project import Folder, listed
from .units import parse_link_speed
from .visible import shortened

VARIABLE = r"(?:net|dev|hw|kern|vm)(?:[./][A-Za-z0-9_%:@-]+)+"
VARIABLE_VALUE = r"-?\d+(?: -?\d+)*"
"""A kernel variable that a run may set: of one or more numbers, and none that ends the system or names a program."""


def _number_as_text(value: object) -> object:
    return str(value) if type(value) is int else value


class Tuning(Config):
    """Settings that a run makes on the router's cards and kernel, and undoes. A missing key leaves what is there.

    For each interface: ``queues`` (combined), ``rx_ring`` and ``tx_ring`` in frames, ``offloads``. ``sysctls``: kernel
    variables of one or more numbers. Which of them a router takes is in its description.
    """

    queues: Annotated[int, Field(ge=1, le=1024)] | None = None
    rx_ring: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    tx_ring: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    offloads: Mapping[Literal["lro", "gro", "gso", "tso"], Literal["on", "off"]] = {}
    sysctls: Mapping[
        Annotated[str, Field(pattern=rf"^{VARIABLE}$")],
        Annotated[str, BeforeValidator(_number_as_text), Field(pattern=rf"^{VARIABLE_VALUE}$")],
    ] = {}


Interface = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,62}",
        "is not the name of an interface; expected letters, digits and any of _ . / : @ -, as in TenGigabit3/0/0",
    ),
]


class Software(Config):
    """One software of a platform. ``interfaces``: its names of the platform's ports, in their order.

    ``shell``: whose commands, by the name of a folder of :mod:`.routers` or of a file of the project's
    ``variables/shells``. ``workers``: cores that forward.
    """

    shell: str
    version: str
    interfaces: Annotated[tuple[Interface, ...], Field(min_length=2)]
    workers: Annotated[int, Field(ge=1)] | None = None
    rx_queues: Annotated[int, Field(ge=1)] | None = None
    about: str = ""
    tuning: Tuning = Tuning()

    @field_validator("interfaces")
    @classmethod
    def _check_interfaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if twice := [name for at, name in enumerate(value) if name in value[:at]]:
            raise ValueError(f"'{twice[0]}' is there twice; expected an interface of its own for each port")
        return value

    @property
    def is_black_box(self) -> bool:
        """Return whether nobody logs in to it, and it is judged from outside."""
        return self.shell == "none"


_LINE = Annotated[
    str,
    Field(min_length=1, max_length=1000, pattern=r"^[^\r\n]*\S[^\r\n]*$"),
    readable(shlex.split, "has a quote that is not closed; expected one more, or a backslash before it"),
]


class CommandPair(Config):
    """A command for a shell of the router, one line, and its opposite: what a study does there and undoes.

    ``stdin``: text that is written to the standard input of ``do``, which then ends.
    """

    do: _LINE
    undo: _LINE
    stdin: Annotated[str, Field(max_length=1 << 16)] = ""

    @property
    def given(self) -> str:
        """Return ``do`` with its standard input: no other pair of a study has both."""
        return f"{self.do} <<< {self.stdin!r}" if self.stdin else self.do


class RouterSetup(Config):
    """The effect of *commands* on a router. *configured*: the same in words, for the simulation's model alone."""

    commands: tuple[CommandPair, ...] = ()
    configured: Mapping[str, bool | int | float | str] = {}


LinkSpeed = Annotated[float, BeforeValidator(lambda text: parse_link_speed(str(text)))]


class Platform(Config):
    """Router hardware. ``model``: physical parameters of the simulation.

    ``ports``: the speed of each in bit/s, by the name on its case. A testbed is cabled to the first of them, in the
    order of the generator's ports, unless it names others (:meth:`cabled`).
    """

    platform: str
    description: str
    ports: Annotated[Mapping[str, LinkSpeed], Field(min_length=2)]
    watts: Annotated[float, Field(gt=0)] | None = None
    software: Annotated[Mapping[str, Software], Field(min_length=1)]
    model: Mapping[str, Any] = {}

    @field_validator("software")
    @classmethod
    def _check_software(cls, value: Mapping[str, Software], info: ValidationInfo) -> Mapping[str, Software]:
        ports = info.data.get("ports", {})
        for key, software in value.items():
            if ports and len(software.interfaces) > len(ports):
                counts = f"{len(software.interfaces)} interfaces for {len(ports)} ports"
                raise ValueError(f"'{key}' has {counts}; expected at most one for each of 'ports'")
        return value

    def cabled(self, names: Sequence[str], path: Path | None = None) -> Self:
        """Return it with only the ports *names*, in this order; with all, if there are none.

        *path*: the testbed's file. Raises ConfigError.
        """
        names = names or list(self.ports)
        if wrong := [name for name in names if name not in self.ports]:
            known = f"platform '{self.platform}' has {', '.join(self.ports)}"
            raise ConfigError(f"'cabled': no port '{shortened(wrong[0])}'; {known}", path)
        software = {}
        for key, own in self.software.items():
            named = dict(zip(self.ports, own.interfaces, strict=False))
            interfaces = tuple(named[name] for name in names if name in named)
            software[key] = own.model_copy(update={"interfaces": interfaces})
        return self.model_copy(update={"ports": {name: self.ports[name] for name in names}, "software": software})


def read_platform(folder: Folder, name: str) -> Platform:
    """Return the platform *name* of *folder*. Raises ConfigError."""
    return load_config(named_file(folder, name, "platform"), Platform, "platform")


def named_file(folder: Folder, name: str, kind: str) -> Path:
    """Return ``folder/name.yaml``. Raises ConfigError that lists the *kind*s there."""
    known = [path.stem for path in listed(folder, "*.yaml")]
    if name not in known:
        hint = did_you_mean(name.removesuffix(".yaml").removesuffix(".yml"), known)
        if other := [path.name for path in listed(folder, "*.yml") if path.stem == name.removesuffix(".yml")]:
            hint = f"there is {shortened(other[0])}; its name must end in .yaml; "
        shown = ", ".join(map(shortened, known)) or "none"
        raise ConfigError(f"no {kind} '{shortened(name)}' here; {hint}known: {shown}", str(folder))
    return folder / f"{name}.yaml"
