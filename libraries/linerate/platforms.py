"""Platforms: router hardware and the software it may run. ``variables/platforms/*.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from .config import Config, did_you_mean, load_config
from .errors import ConfigError
from .project import Folder, listed
from .units import parse_link_speed
from .visible import shortened


class Software(Config):
    """One software of a platform. ``interfaces``: in the order of the generator's ports.

    ``shell``: its commands; ``none``: a black box that is judged from outside. ``workers``: cores that forward.
    """

    shell: Literal["vpp", "linux", "freebsd", "none"]
    version: str
    interfaces: Annotated[tuple[str, ...], Field(min_length=2)]
    workers: Annotated[int, Field(ge=1)] | None = None
    rx_queues: Annotated[int, Field(ge=1)] | None = None
    about: str = ""


class Platform(Config):
    """Router hardware. ``port_speed``: of the ports under test. ``model``: physical parameters of the simulation."""

    platform: str
    description: str
    port_speed: str
    watts: Annotated[float, Field(gt=0)] | None = None
    software: Annotated[Mapping[str, Software], Field(min_length=1)]
    model: Mapping[str, Any] = {}

    @field_validator("port_speed", mode="before")
    @classmethod
    def _check_speed(cls, value: object) -> object:
        if isinstance(value, str | int | float):  # a number lacks its unit
            parse_link_speed(str(value))
        return value

    @property
    def link_bps(self) -> float:
        """Link speed in bit/s."""
        return parse_link_speed(self.port_speed)


def read_platform(folder: Folder, name: str) -> Platform:
    """The platform *name* of *folder*. Raises ConfigError."""
    path = named_file(folder, name, "platform")
    found = load_config(path, Platform)
    if found.platform != name:
        raise ConfigError(
            f"says 'platform: {shortened(found.platform)}'; in a file of this name expected '{name}'", path
        )
    return found


def named_file(folder: Folder, name: str, kind: str) -> Path:
    """``folder/name.yaml``. Raises ConfigError that lists the *kind*s there."""
    known = [path.stem for path in listed(folder, "*.yaml")]
    if name not in known:
        hint = did_you_mean(name.removesuffix(".yaml").removesuffix(".yml"), known)
        if other := [path.name for path in listed(folder, "*.yml") if path.stem == name.removesuffix(".yml")]:
            hint = f"there is {shortened(other[0])}; its name must end in .yaml; "
        shown = ", ".join(map(shortened, known)) or "none"
        raise ConfigError(f"no {kind} '{shortened(name)}' here; {hint}known: {shown}", str(folder))
    return folder / f"{name}.yaml"
