"""A keeper's plan: the commands and processes of one testbed, sent as one JSON line.

Processes start in order. A string ``${name.fact}`` in a later process's argv or specification stands for a fact of an
earlier process's ready line. Alone it keeps its type (a port stays a number), within text it becomes text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..json_text import parse_json

Facts = Mapping[str, Mapping[str, Any]]
"""Process name -> the facts of its ready line."""

_REFERENCE = re.compile(r"\$\{([\w-]+)\.(\w+)\}")


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process that lives as long as the testbed.

    ``spec``: the JSON object written to its standard input, which then stays open; its end asks the process to end.
    None: no input, and SIGTERM asks it to end. ``ready``: ``"json"``, the first line of its standard output is
    ``{"ready": true, …}``; or (host, port), it is ready once a connection there succeeds. ``limit``: s until then.
    ``env``: what it gets besides :func:`..children.environment`, as it is: passwords, which may look like a reference.
    ``log``: the file for its standard error. ``grace``: s for its orderly end; 0: it shares the keeper's limit.
    """

    name: str
    argv: tuple[str, ...]
    log: str
    spec: Mapping[str, Any] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    ready: Literal["json"] | tuple[str, int] = "json"
    limit: float = 15.0
    grace: float = 0.0


@dataclass(frozen=True, slots=True)
class KeeperPlan:
    """A whole testbed: ``setup`` runs before the processes, ``teardown`` after them, then ``folders`` are removed.

    ``lease``: the testbed's lease file; the keeper rewrites it and removes it last.
    """

    lease: str
    setup: tuple[tuple[str, ...], ...] = ()
    processes: tuple[ProcessPlan, ...] = ()
    teardown: tuple[tuple[str, ...], ...] = ()
    folders: tuple[str, ...] = ()

    def to_json(self) -> str:
        """One line, without the newline."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> KeeperPlan:
        """The inverse of :meth:`to_json`. Raises ValueError, KeyError or TypeError on anything else."""
        data = parse_json(text, own=True)
        return cls(
            lease=data["lease"],
            setup=_commands(data.get("setup", ())),
            processes=tuple(_process(row) for row in data.get("processes", ())),
            teardown=_commands(data.get("teardown", ())),
            folders=tuple(data.get("folders", ())),
        )


def resolve(value: Any, facts: Facts) -> Any:
    """*value* with every ``${name.fact}`` replaced. Raises KeyError with the first reference to an unknown fact."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        return _fact(whole, facts) if whole else _REFERENCE.sub(lambda found: str(_fact(found, facts)), value)
    if isinstance(value, Mapping):
        return {key: resolve(item, facts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, facts) for item in value]
    return value


def _fact(found: re.Match[str], facts: Facts) -> Any:
    try:
        return facts[found[1]][found[2]]
    except KeyError:
        raise KeyError(found[0]) from None


def _commands(rows: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(str(word) for word in row) for row in rows)


def _process(row: Mapping[str, Any]) -> ProcessPlan:
    ready = row.get("ready", "json")
    ready = "json" if ready == "json" else (str(ready[0]), int(ready[1]))
    return ProcessPlan(**{**row, "argv": tuple(row["argv"]), "ready": ready})
