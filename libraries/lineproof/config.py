"""YAML files as frozen typed objects.

An error names the file, the line, the key and what is expected. Unlike YAML 1.1, ``on`` and ``off`` stay words and
``12:30:45`` stays text. A duplicate key is an error. Files of a run that somebody else hands over are read
here, too: so the bytes of a file and its values are limited; an alias counts as all that it stands for.
"""

from __future__ import annotations

import contextlib
import difflib
import ipaddress
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from .errors import ConfigError
from .files import read_text
from .units import counted
from .visible import shortened

M = TypeVar("M", bound=BaseModel)


def absolute_path(path: Path, info: ValidationInfo) -> Path:
    """Return *path* as it starts at the folder of the file that is read; ``~`` is the user's home."""
    try:
        return Path(os.path.normpath(info.context["folder"].resolve() / path.expanduser())) if info.context else path
    except RuntimeError:  # the home of a user who is not known here
        return path


FilePath = Annotated[Path, AfterValidator(absolute_path)]
"""A path in a file."""

Location = tuple[str, ...]
"""Where a value is in a file: keys, and indices of lists as text."""


class Config(BaseModel):
    """Base of every configuration object: frozen, finite; unknown keys refused."""

    # built where the first file of its kind is read: most processes import many models and read few files
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    is_login: ClassVar[bool] = False
    """True: its values may hold a secret, by mistake, so that no message shows them."""

    @model_validator(mode="before")
    @classmethod
    def _check_numbers(cls, data: Any) -> Any:
        """Refuse ``true`` and ``false`` as numbers: pydantic reads ``True``, an ``int`` of Python, as 1."""
        wrong = list[InitErrorDetails]()
        for name, value in data.items() if isinstance(data, dict) else ():
            inner: Iterable[Any] = enumerate(value) if isinstance(value, list) else getattr(value, "items", dict)()
            places = [((name,), value), *(((name, key), member) for key, member in inner)]
            if not (bools := [(place, one) for place, one in places if isinstance(one, bool)]):
                continue
            field = cls.model_fields.get(name) or next((f for f in cls.model_fields.values() if f.alias == name), None)
            kinds = _SCALARS.findall(repr(field.annotation)) if field else ["bool"]
            own = kinds[isinstance(value, dict) :]  # the first of a mapping is that of its keys
            for place, one in bools if own and "bool" not in kinds else ():
                kind = next(kind for kind in ("str", "float", "int") if kind in own)
                wrong.append({"type": f"{kind.replace('str', 'string')}_type", "loc": place, "input": one})
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return data


_SCALARS = re.compile(r"\b(str|int|float|bool)\b")


def readable(read: Callable[[str], object], problem: str) -> AfterValidator:
    """Refuse a text for which *read* raises ValueError, or returns nothing, with *problem*."""

    def check(value: str) -> str:
        with contextlib.suppress(ValueError):
            if read(value):
                return value
        raise ValueError(problem)

    return AfterValidator(check)


def matching(pattern: str, problem: str) -> AfterValidator:
    """Refuse a text that *pattern* does not match as a whole, with *problem*."""
    return readable(re.compile(pattern).fullmatch, problem)


Ipv4Address = Annotated[str, readable(ipaddress.IPv4Address, "is not an IPv4 address; expected for example 16.0.0.1")]
MacAddress = Annotated[
    str, matching(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", "is not a MAC address; expected for example 02:00:00:00:00:01")
]


_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's loader with libyaml's parser, ten times as fast as its own; that where libyaml is not there."""


class _Loader(_FastLoader):  # type: ignore[misc]
    """A loader without YAML 1.1's implicit types; duplicate keys are refused."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self.name = str(path)

    def problem(self, message: str, node: yaml.Node) -> ConfigError:
        """Return an error at the line of *node*."""
        return ConfigError(message, self.name, node.start_mark.line + 1)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if isinstance(value, str) and (control := _CONTROL.search(value)):
            raise self.problem(f"text with the control character U+{ord(control[0]):04X}; remove it", node)
        return value

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a number; int or float, by the tag that the resolver gave it."""
        value = self.construct_scalar(node)
        try:
            return int(value) if node.tag.endswith(":int") else float(value)
        except ValueError:
            raise self.problem(f"'{shortened(value, 60)}' is no number; put text in quotes", node) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Any, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str | int | float | bool):
                raise ConfigError("a key must be a word or a number", self.name, line)
            if name in seen:
                shown = shown_key(name)
                raise ConfigError(f"duplicate key '{shown}', first on line {seen[name]}; keep one", self.name, line)
            seen[name] = line
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


_MOST_VALUES = 100_000
_MOST_BYTES = 256 << 10

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(":null")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false|yes|no)$", re.I), list("tTfFyYnN"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)
for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def load_config(path: Path, model: type[M], named: str = "") -> M:
    """Read the YAML file *path* as a *model*; *named*: the key with the file's name, if any. Raises ConfigError."""
    data, lines = read_yaml(path)
    return validate_config(data, model, path, lines, named)


def read_yaml(path: Path) -> tuple[Any, dict[Location, int]]:
    """Return the plain data of a YAML file, and the line of each key. Raises ConfigError."""
    return parse_yaml(read_text(path, _MOST_BYTES), path)


def parse_yaml(text: str, path: Path) -> tuple[Any, dict[Location, int]]:
    """Return the plain data of *text*, the YAML file *path*'s content, and the line of each key. Raises ConfigError."""
    try:
        loader = _Loader(text, path)
        node = _compose(text, path, loader)
        if node is None:
            raise ConfigError("is empty", path)
        if _value_count(node, {}) > _MOST_VALUES:
            raise ConfigError(f"has more than {_MOST_VALUES} values, aliases counted; shorten it", path)
        return loader.construct_document(node), _line_numbers(node)
    except RecursionError:
        reason = "has values too deep in each other, or an alias (*…) within what it stands for"
        raise ConfigError(reason, path) from None
    except yaml.MarkedYAMLError as error:
        problem, mark = _yaml_words(error)
        raise ConfigError(f"not YAML: {problem}", path, mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        code, line = ord(text[error.position]), text.count("\n", 0, error.position) + 1
        raise ConfigError(f"has the control character U+{code:04X}; remove it", path, line) from None


def _compose(text: str, path: Path, loader: _Loader) -> yaml.Node | None:
    """Return the nodes of *text*, which *loader* reads. Raises ConfigError for a tag, and PyYAML's errors."""
    try:
        for event in yaml.parse(text, _FastLoader) if "!" in text else ():
            if getattr(event, "tag", None) is not None:  # not shown: a password may begin with '!'
                mark: Any = event.start_mark
                raise ConfigError("a tag ('!…'); remove it, or put text in quotes", path, mark.line + 1)
        node: yaml.Node | None = loader.get_single_node()
    except yaml.YAMLError:
        yaml.compose(text, yaml.SafeLoader)  # PyYAML's own parser raises it in better words
        raise
    return node


def _value_count(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values in *node*; *known*: by id, of those that are counted."""
    if id(node) not in known:
        inner = node.value if isinstance(node, yaml.CollectionNode) else ()
        pairs = (node_of_pair for pair in inner for node_of_pair in (pair if isinstance(pair, tuple) else (pair,)))
        known[id(node)] = 1 + sum(_value_count(node_of_pair, known) for node_of_pair in pairs)
    return known[id(node)]


_UNCLOSED = "a '{0}' that is not closed with '{1}'"
_YAML_WORDS = (
    (r"found character '\\t'", "a tab; YAML wants spaces", False),
    (r"quoted scalar.*unexpected end", "a quote that opens here is not closed", True),
    (r"flow sequence, expected", _UNCLOSED.format("[", "]"), True),
    (r"flow mapping, expected", _UNCLOSED.format("{", "}"), True),
    (r"but found '\]'", "a ']' without its '['", False),
    (r"but found '\}'", "a '}' without its '{'", False),
    (r"<block end>, but found '<(block|alias|anchor)", "its indentation does not fit the lines above", False),
    (r"<block end>, but found '[-?]'", "a list ('- …') and keys ('name: …') do not mix; check the indentation", False),
    (r"<block end>, but found '<scalar>'", "text after a closing quote; put all of it in one pair of quotes", False),
    (
        r"mapping values are not allowed",
        "a ':' where none may stand; put text with ': ' in quotes, or indent the line as its neighbours",
        False,
    ),
    (r"sequence entries are not allowed", "a list ('- …') begins on a line of its own", False),
    (
        r"could not find expected ':'",
        "a key without ': ' after it; put a space after the ':', as in 'key: value'",
        True,
    ),
    (r"cannot start any token|undefined alias", "text that begins with a special character; put it in quotes", False),
    (
        r"unknown escape character|invalid Unicode character escape",
        "an unknown escape (\\…) in double quotes; use single quotes",
        False,
    ),
)
"""PyYAML's words -> ours, and whether their place is where the thing began."""


def _yaml_words(error: yaml.MarkedYAMLError) -> tuple[str, yaml.Mark | None]:
    """Return what is wrong, in plain words, and where."""
    said = ", ".join(filter(None, (error.context, error.problem)))
    for pattern, text, at_start in _YAML_WORDS:
        if re.search(pattern, said):
            return text, (at_start and error.context_mark) or error.problem_mark
    # names of aliases and tags are not shown: they may be a password that begins with '*' or '!'
    return shortened(re.sub(r"'[^'<]{2,}'", "'…'", said)), error.problem_mark or error.context_mark


def validate_config(data: Any, model: type[M], path: Path, lines: Mapping[Location, int], named: str = "") -> M:
    """Return *data* as a *model*, *named* as of :func:`load_config`; *lines* as from :func:`read_yaml`."""
    if not isinstance(data, dict):
        raise ConfigError(f"must be a mapping with the keys {', '.join(model.model_fields)}", path, 1)
    try:
        validated = model.model_validate(data, context={"folder": path.parent})
    except ValidationError as error:
        raise ConfigError.first_of(_problems(error, model, path, lines)) from None
    if named and (said := getattr(validated, named)) != path.stem:
        problem = f"says '{named}: {shortened(said)}'; in a file of this name expected '{path.stem}'"
        raise ConfigError(problem, path, lines.get((named,)))
    return validated


def _problems(
    error: ValidationError, model: type[BaseModel], path: Path, lines: Mapping[Location, int]
) -> Iterator[ConfigError]:
    """Yield one problem for each place that *error* names, the unknown keys first."""
    # a misspelt required key is both unknown and missing: it is told as unknown
    errors = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    holders = {problem["loc"][:-1] for problem in errors if problem["type"] == "extra_forbidden"}
    told = set[str]()
    for problem in errors:
        key = _key(lines, problem)
        if key not in told and not (problem["type"] == "missing" and problem["loc"][:-1] in holders):
            told.add(key)
            yield ConfigError(explain_error(problem, key, model), path, _line(lines, problem))


def _place(lines: Mapping[Location, int], parts: Iterable[int | str]) -> Location:
    """Return *parts* without those that are no key or index of the file, but a union's tag."""
    place: Location = ()
    for part in parts:
        place = (*place, str(part)) if (*place, str(part)) in lines else place
    return place


def located(path: Path, lines: Mapping[Location, int], key: Location, problem: str) -> ConfigError:
    """Return *problem* of the value of *key* as an error of the file *path*; *lines* as from :func:`read_yaml`."""
    place = _place(lines, key) or key
    return ConfigError(f"'{shortened('.'.join(map(shown_key, place)))}': {problem}", path, lines.get(place))


def _key(lines: Mapping[Location, int], error: Any) -> str:
    """Return the key that *error* is about, with those that it is in; without *lines* with unions' tags."""
    parts = error["loc"]
    if lines:
        own = parts[-1:] if error["type"] == "missing" or parts[-1:] == ("[key]",) else ()
        parts = (*_place(lines, parts[: len(parts) - len(own)]), *own)
    return shortened(".".join(map(shown_key, parts)))


def shown_key(key: object) -> str:
    """Return *key* for a message up to its first ':', behind which a value, maybe a secret, stands without a space."""
    name, colon, _ = str(key).partition(":")
    return f"{shortened(name)}{colon and ':…'}"


def _line(lines: Mapping[Location, int], error: Any) -> int:
    """Return the line of *error*; of one about several keys of a mapping, of the key that the message names first."""
    place = _place(lines, error["loc"])
    if isinstance(error["input"], dict):
        for word in re.findall(r"\w+", error["msg"]):
            if (*place, word) in lines:
                return lines[*place, word]
    return lines.get(place, 1)


def _line_numbers(node: yaml.Node, parent: Location = ()) -> dict[Location, int]:
    numbers: dict[Location, int] = {}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            location = (*parent, key.value)
            numbers[location] = key.start_mark.line + 1
            numbers |= _line_numbers(value, location)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            location = (*parent, str(index))
            numbers[location] = value.start_mark.line + 1
            numbers |= _line_numbers(value, location)
    return numbers


def explain_error(error: Any, key: str, model: type[BaseModel]) -> str:
    """Return what is wrong with the value of *key* in a *model*, the value, and what is expected."""
    location = error["loc"]
    if error["type"] == "extra_forbidden":
        known = list(_models(model, location[:-1])[0][-1].model_fields)
        hint = did_you_mean(str(location[-1]), known) or f"known here: {', '.join(known)}"
        return f"unknown key '{key}'; {hint}".rstrip()
    if error["type"] in ("missing", "union_tag_not_found"):
        return f"the key '{key if error['type'] == 'missing' else f'{key}.kind'}' is missing"
    value = error["input"]
    # a mapping is not shown: it may be long, and a login may be in it
    way, choice = _models(model, location)
    secret = any(issubclass(part, Config) and part.is_login for part in (*way, *choice))
    hidden = secret or value is None or isinstance(value, dict | list | tuple)
    message = value_problem(error, hidden)
    inner = way[-1]
    # not of a choice between several, whose keys are not known yet
    if inner.__name__ == error.get("ctx", {}).get("class_name"):
        fields = inner.model_fields
        first = next((name for name, field in fields.items() if field.is_required()), next(iter(fields)))
        message = f"expected keys below it, as '{first}: value'; known here: {', '.join(fields)}"
    # the repr of a text would double the backslashes of an expression
    shown = f"'{shortened(value)}'" if isinstance(value, str) else shortened(str(value).lower())
    return f"'{key}': {message}{'' if hidden else f' (got {shown})'}" if key else message


_EXPECTED = {
    "bool": "true or false",
    **dict.fromkeys(("dataclass", "dict", "mapping", "model"), "keys below it, as 'name: value'"),
    "datetime": "a date and time, as 2027-03-31T09:30:00Z",
    "finite": "a finite number",
    "float": "a number",
    "greater_than": "more than {gt:.15g}",
    "greater_than_equal": "at least {ge:.15g}",
    "int": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "invalid": "text as key; put it in quotes",
    "less_than": "less than {lt:.15g}",
    "less_than_equal": "at most {le:.15g}",
    "literal": "{expected}",
    "path": "a path",
    "pattern": "a regular expression",
    "string": "text",
    "string_pattern_mismatch": "text that the expression '{pattern}' finds",
    "unexpected": "another key; this one is not known here",
}
"""Pydantic's types of errors, or their first words, and what is expected."""


def value_problem(error: Any, hidden: bool = False) -> str:
    """Return what is wrong with the value of *error*, as ``expected at least 1``. *hidden*: it must not be shown."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        return shortened(error["msg"].removeprefix("Value error, "), 600)
    if value is None:
        return "is empty; expected a value"
    if kind == "union_tag_invalid":
        tags, tag = re.findall(r"'(.*?)'", context["expected_tags"]), str(context["tag"])
        shown = "" if hidden else f" '{shortened(tag)}'"
        return f"unknown kind{shown}; {did_you_mean(tag, tags)}known: {', '.join(tags)}"
    if limit := {"short": "min_length", "long": "max_length"}.get(kind.rpartition("_")[2]):
        noun = "character" if kind.startswith("string") else "value"
        instead = f", not {context['actual_length']}" if context.get("actual_length") is not None else ""
        return f"expected at {'least' if limit == 'min_length' else 'most'} {counted(context[limit], noun)}{instead}"
    if kind in ("list_type", "tuple_type"):
        return f"expected a list, as [{'…, …' if hidden else shortened(value)}]"
    # another distribution's model may have a type of error that none of ours has
    known = _EXPECTED.get(kind) or _EXPECTED.get(kind.partition("_")[0])
    quotes = "; put it in quotes" if kind == "string_type" and isinstance(value, bool | int | float) else ""
    return shortened(f"expected {known.format_map(context)}{quotes}" if known else error["msg"], 600)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return ``did you mean 'x'? `` if one of *known* is like *word*, else ""."""
    near = [ending for ending in known if len(ending) > 3 and word.endswith(ending)]
    near += [longer for longer in known if len(word) > 1 and longer.startswith(word)]
    near = near or difflib.get_close_matches(word[:100], known, 1)
    return f"did you mean '{near[0]}'? " if near else ""


def _models(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[list[type[BaseModel]], list[type[BaseModel]]]:
    """Return the models on the way to *location*, from *model* on, and those that may be there: of a union, several."""
    way, choice = [model], [model]
    for part in location:
        field = way[-1].model_fields.get(str(part)) if len(choice) == 1 else None
        if field is not None:
            choice = _models_in(field.annotation) or choice
        elif len(choice) > 1:  # the tag or name that chooses a member of a union, after the index in a list
            tagged = [each for each in choice if str(part) in _tags(each)]
            choice = tagged or choice
        # else a mapping's key or a list's index: stay at this model
        if len(choice) == 1 and choice[0] is not way[-1]:
            way.append(choice[0])
    return way, choice


def _tags(model: type[BaseModel]) -> tuple[str, ...]:
    kind = model.model_fields.get("kind")
    return (model.__name__, *(() if kind is None else get_args(kind.annotation)))


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in getattr(annotation, "__args__", ()) for model in _models_in(argument)]
