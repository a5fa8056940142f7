"""Limits of the answer of a profile in TRex's format: types, sizes, numbers. It is a program of the user's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from ...config import Config
from ...errors import ConfigError

MAX_STREAMS = 4096
"""Most streams of one direction."""

LONGEST_TEXT = 16384
"""Characters; the longest frame in base64 has 12 320."""

DEEPEST = 12
"""Levels of lists and objects within a stream."""

GREATEST = 2**64
"""Above every number of a stream: the field engine's have up to 64 bits."""


def _checked(value: Any, *path: str) -> Any:
    """*value*, at *path* of a stream, if JSON can hold it and a message may show it. Raises ValueError."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT or not value.isprintable():
            raise _unexpected(path, f"a text of up to {LONGEST_TEXT} printable characters")
    elif isinstance(value, int | float):
        if not (abs(value) < GREATEST and math.isfinite(value)):
            raise _unexpected(path, "a finite number of 64 bits")
    elif isinstance(value, dict | list):
        if len(path) == DEEPEST:
            raise _unexpected(path[:3], f"at most {DEEPEST} levels")
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and not isinstance(_checked(key, *path), str):
                raise _unexpected(path, "keys that are texts")
            _checked(item, *path, str(key))
    elif value is not None:
        raise _unexpected(path, "a value that JSON has")
    return value


def _unexpected(path: tuple[str, ...], expected: str) -> ValueError:
    return ValueError(f"'{'.'.join(path)}': expected {expected}" if path else f"expected {expected}")


class _Part(Config):
    model_config = ConfigDict(extra="allow")


class _Instruction(_Part):
    type: str
    name: str = ""
    size: int = Field(1, ge=1, le=8)
    pkt_offset: int = Field(0, ge=0, le=LONGEST_TEXT)
    pkt_cast_size: int = Field(1, ge=1, le=8)
    next_var: str | None = None
    value_list: list[int] | None = None
    min_value: int | None = None
    max_value: int | None = None
    init_value: int | None = None
    step: int | None = None
    add_value: int | None = None
    ip_min: int | None = None
    ip_max: int | None = None
    port_min: int | None = None
    port_max: int | None = None


class _Machine(_Part):
    instructions: list[_Instruction] = Field([])


class _Rate(_Part):
    type: str
    value: float


class _Mode(_Part):
    type: str
    rate: _Rate
    total_pkts: int | None = None
    pkts_per_burst: int | None = None
    count: int | None = None
    ibg: float | None = None


class _Packet(_Part):
    binary: str


class _Stream(_Part):
    packet: _Packet
    mode: _Mode
    vm: _Machine
    flow_stats: dict[str, Any]
    flags: int
    isg: float
    action_count: int | None = None
    name: str | int | None = None
    next: str | int | None = None


_AnyStream = Annotated[_Stream, BeforeValidator(_checked)]


class ProfileProblem(_Part):
    """An error that the process of a profile answers; *kind* ``install``: of the libraries, not of the profile."""

    kind: Literal["install", "file"]
    message: Annotated[str, BeforeValidator(lambda text: _plain(text))]
    line: int | None = Field(None, ge=1, lt=10**7)


class _Direction(_Part):
    streams: list[_AnyStream] = Field([], max_length=MAX_STREAMS)
    error: ProfileProblem | None = None


class _Answer(_Part):
    client: Annotated[str, BeforeValidator(_checked)] = ""
    directions: tuple[_Direction, _Direction]


def read_error(data: object, path: Path) -> ProfileProblem:
    """The error in an answer. Raises ConfigError if it is none."""
    try:
        return ProfileProblem.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"answers an error that is none ({_reason(error)})", path) from None


def check_answer(answer: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError if *answer*, of the profile *path*, is not two directions of streams."""
    directions = answer.get("directions")
    if isinstance(directions, list):
        for direction in directions:
            streams = direction.get("streams") if isinstance(direction, dict) else None
            if isinstance(streams, list) and len(streams) > MAX_STREAMS:
                raise ConfigError(f"has {len(streams)} streams; expected at most {MAX_STREAMS}", path)
    try:
        _Answer.model_validate(answer)
    except (ValidationError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        if len(where) >= 4 and where[2] == "streams":
            what = f"stream {int(where[3]) + 1} is not a stream that TRex accepts"
        else:
            what = "answers something that is no streams"
        raise ConfigError(f"{what} ({_reason(error)})", path) from None


def _plain(text: Any) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(str(text).split()))[:1000]


def _reason(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "too many levels"
    first = error.errors()[0]
    # from the key within the stream on: directions, number, streams, number
    key = ".".join(str(part) for part in (first["loc"][4:] if len(first["loc"]) >= 4 else first["loc"]))
    if first["type"] == "missing":
        return f"'{key}' is missing"
    return _plain((f"'{key}': " if key else "") + first["msg"].removeprefix("Value error, "))
