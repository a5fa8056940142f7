"""The kinds of generators, found by entry point: another distribution can bring its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from ..config import did_you_mean
from ..core.registry import load
from ..errors import ConfigError
from ..visible import shortened
from .abilities import WORDS, Abilities
from .base import Generator
from .settings import GeneratorSettings
from .site import Site

GROUP = "lineproof.generators"
"""The group of entry points. Each is named as the ``type`` in a testbed's file, and is a :class:`GeneratorKind`."""

Lacks = Callable[[Abilities], tuple[str, ...]]
"""Which of the abilities that something needs are not there."""

DEFAULT = "trex"
_OWN_DEFAULT = EntryPoint(DEFAULT, "lineproof.testbed.trex.kind:TREX", GROUP)
"""The default is there too where Lineproof runs from its source, without a distribution's entry points."""


@dataclass(frozen=True, slots=True)
class GeneratorKind:
    """``settings``: the keys of ``generator`` in a testbed file; ``connect``: its factory, which claims the ports.

    ``on_netns``: its keys on a testbed of network namespaces; None: it cannot be there. ``apart``: each of its ports
    needs a network namespace of its own there.
    """

    about: str
    abilities: Abilities
    settings: type[GeneratorSettings]
    connect: Callable[[Site], Generator]
    on_netns: type[GeneratorSettings] | None = None
    apart: bool = False


def installed_kinds() -> Mapping[str, EntryPoint]:
    """The entry points by name, sorted."""
    found = {DEFAULT: _OWN_DEFAULT} | {each.name: each for each in entry_points(group=GROUP)}
    return dict(sorted(found.items()))


def generator_kind(name: str) -> GeneratorKind:
    """The kind *name*. Raises ConfigError, which lists what is installed, or says why it cannot be loaded."""
    if name == DEFAULT:  # without a look at all distributions, which takes 40 ms
        return _loaded(_OWN_DEFAULT)
    known = installed_kinds()
    if name not in known:
        near = did_you_mean(name, known)
        raise ConfigError(
            f"there is no generator of type '{shortened(name)}'; {near}installed: {', '.join(known)} (others come with"
            f" a distribution that has an entry point '{GROUP}')"
        )
    return _loaded(known[name])


@cache
def _loaded(entry: EntryPoint) -> GeneratorKind:
    kind: GeneratorKind = load(entry, GeneratorKind, "generator type")
    return kind


def kinds_with(lacks: Lacks) -> tuple[str, ...]:
    """The names of the installed kinds that lack nothing; those that cannot be loaded are left out."""
    found = []
    for name in installed_kinds():
        try:
            if not lacks(generator_kind(name).abilities):
                found.append(name)
        except ConfigError:
            continue
    return tuple(found)


def refusal(name: str, lacks: Lacks) -> str:
    """Why a generator of type *name* is refused: all that it lacks, and which types lack nothing of it."""
    *first, last = (WORDS[ability] for ability in lacks(generator_kind(name).abilities))
    words = f"{', '.join(first)}, and {last}" if first else last
    others = " or ".join(kinds_with(lacks)) or "no installed one"
    return f"the generator '{name}' {words}; expected one that can: {others}"
