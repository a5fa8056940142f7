"""YAML files as frozen typed objects.

An error names the file, the line, the key and what is expected. Unlike YAML 1.1, ``on``/``off``/``yes``/``no`` stay
words and ``12:30:45`` stays text. A duplicate key is an error.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from .errors import ConfigError

M = TypeVar("M", bound=BaseModel)
Location = tuple[int | str, ...]


class Config(BaseModel):
    """Base of every configuration object: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _checked_ipv4(value: str) -> str:
    return str(ipaddress.IPv4Address(value))


def _checked_mac(value: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", value):
        raise ValueError("is not a MAC address; expected for example 02:00:00:00:00:01")
    return value


Ipv4Address = Annotated[str, AfterValidator(_checked_ipv4)]
MacAddress = Annotated[str, AfterValidator(_checked_mac)]


class _Loader(yaml.SafeLoader):
    """SafeLoader without YAML 1.1's implicit types, and with duplicate keys refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Any, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str | int | float | bool):
                raise ConfigError("a key must be a word or a number", self.name, line)
            if name in seen:
                raise ConfigError(f"duplicate key '{name}', first on line {seen[name]}; keep one", self.name, line)
            seen[name] = line
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":int", ":float", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9]\d*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?$"),
    list("-+.0123456789"),
)


def load_config(path: Path, model: type[M]) -> M:
    """The YAML file *path* as a *model*. Raises ConfigError."""
    data, lines = read_yaml(path)
    return validate_config(data, model, path, lines)


def read_yaml(path: Path) -> tuple[Any, dict[Location, int]]:
    """The plain data of a YAML file, and the line of each key. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", path) from None
    try:
        loader = _Loader(text)
        loader.name = str(path)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("is empty", path)
        return loader.construct_document(node), _line_numbers(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(f"not YAML: {error.problem}", path, mark.line + 1 if mark else None) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"not YAML: {error}", path) from None


def validate_config(data: Any, model: type[M], path: Path, lines: dict[Location, int]) -> M:
    """*data* as a *model*; *lines* as from :func:`read_yaml`."""
    if not isinstance(data, dict):
        raise ConfigError(f"must be a mapping with the keys {', '.join(model.model_fields)}", path, 1)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        # a misspelt required key is both unknown and missing: report it as unknown
        first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
        location = first["loc"]
        line = next((lines[location[:n]] for n in range(len(location), 0, -1) if location[:n] in lines), 1)
        more = f" ({error.error_count() - 1} more after this one)" if error.error_count() > 1 else ""
        raise ConfigError(_explain_error(first, location, model) + more, path, line) from None


def _line_numbers(node: yaml.Node, parent: Location = ()) -> dict[Location, int]:
    found: dict[Location, int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            location = (*parent, key.value)
            found[location] = key.start_mark.line + 1
            found |= _line_numbers(value, location)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            found[(*parent, index)] = value.start_mark.line + 1
            found |= _line_numbers(value, (*parent, index))
    return found


def _explain_error(error: Any, location: Location, model: type[BaseModel]) -> str:
    key = ".".join(str(part) for part in location)
    if error["type"] == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, 1)
        hint = f"did you mean '{near[0]}'?" if near else f"known here: {', '.join(known)}" if known else ""
        return f"unknown key '{key}'; {hint}".rstrip("; ")
    if error["type"] == "missing":
        return f"the key '{key}' is missing"
    message = error["msg"].removeprefix("Value error, ")
    return f"'{key}': {message} (got {error['input']!r})" if key else message


def _known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """The keys of the model at *location*; empty where the path to it is not through plain models."""
    current: Any = model
    for part in location:
        if not (isinstance(current, type) and issubclass(current, BaseModel)):
            return []
        field = current.model_fields.get(str(part))
        if field is None:
            # not a field but a mapping's key, a list's index or a union's tag: stay at this model
            continue
        current = _model_in(field.annotation)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
