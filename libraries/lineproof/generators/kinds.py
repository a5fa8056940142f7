"""The kinds of generators: TRex, programs that YAML files describe, and those of other distributions by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from ..config import did_you_mean, load_config
from ..core.registry import load
from ..errors import ConfigError
from ..project import Folder, listed
from ..visible import shortened
from .base import ABILITIES, Abilities
from .site import GeneratorSettings

GROUP = "lineproof.generators"
"""The group of entry points. Each is named as the ``type`` in a testbed's file, and is a :class:`GeneratorSettings`."""

Lacks = Callable[[Abilities], tuple[str, ...]]
"""Which of the abilities that something needs are not there."""

DEFAULT = "trex"
_OWN_DEFAULT = EntryPoint(DEFAULT, "lineproof.testbed.settings:TrexGeneratorSettings", GROUP)
"""The default needs no distribution's entry points: it is there too where Lineproof runs from its source."""


def known_kinds(programs: Folder) -> Mapping[str, Callable[[], type[GeneratorSettings]]]:
    """Return what loads each kind, by its name; *programs*: the folder of their files."""
    entries = {entry.name: entry for entry in entry_points(group=GROUP)} | {DEFAULT: _OWN_DEFAULT}
    kinds = {name: partial(_loaded, entry) for name, entry in entries.items()}
    return dict(sorted((kinds | {path.stem: partial(_read, path) for path in listed(programs, "*.yaml")}).items()))


def generator_kind(name: str, programs: Folder) -> type[GeneratorSettings]:
    """Return the kind *name*. Raises ConfigError, which lists those there are, or says why it cannot be loaded."""
    if name == DEFAULT:  # without a look at all distributions, which takes 40 ms
        return _loaded(_OWN_DEFAULT)
    known = known_kinds(programs)
    if name not in known:
        raise ConfigError(
            f"there is no generator of type '{shortened(name)}'; {did_you_mean(name, known)}known: {', '.join(known)}"
            f" (others are files in variables/programs, or distributions with an entry point '{GROUP}')"
        )
    return known[name]()


@cache
def _loaded(entry: EntryPoint) -> type[GeneratorSettings]:
    kind: type[GeneratorSettings] = load(entry, type, "generator type")
    if not issubclass(kind, GeneratorSettings):
        raise ConfigError(
            f"the generator type '{entry.name}' ({entry.value}) is no GeneratorSettings; it must be fixed"
        )
    return kind


def _read(path: Path) -> type[GeneratorSettings]:
    # few testbeds have such a generator, and every run would import it: 15 ms
    from .programs.description import Description
    from .programs.kind import described

    return described(load_config(path, Description))


def refusal(name: str, lacks: Lacks, programs: Folder) -> str:
    """Say why a generator of type *name* is refused: all that it lacks, and which kinds lack nothing of it."""
    able = list[str]()
    for kind, loaded in known_kinds(programs).items():
        try:
            if not lacks(loaded().abilities):
                able.append(kind)
        except ConfigError:
            continue
    *first, last = (ABILITIES[ability] for ability in lacks(generator_kind(name, programs).abilities))
    sentence = f"{', '.join(first)}, and {last}" if first else last
    return f"the generator '{name}' {sentence}; expected one that can: {' or '.join(able) or 'none that is known here'}"
