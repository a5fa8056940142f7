"""The extensions: built-in ones from one list, others by the entry points of installed distributions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from ..errors import BREAKDOWN_ERRORS, ConfigError
from .quantity import Quantity

T = TypeVar("T")

QUANTITIES = "lineproof.quantities"
"""The group of entry points of quantities: each is an object of a subclass of :class:`.quantity.Quantity`."""

SAMPLERS = "lineproof.samplers"
"""The group of entry points of what reads more of a router under load: ``session.explaining.Sampler``."""

PROCEDURES = "lineproof.procedures"
"""The group of entry points of procedures: each is an object of a subclass of ``procedures.procedure.Procedure``."""

BUILT_IN = {
    PROCEDURES: (
        "procedures.search:SEARCH",
        "procedures.latency:LATENCY_UNDER_LOAD",
        "procedures.ramp:RAMP",
        "procedures.rfc2544:THROUGHPUT",
        "procedures.rfc2544:LATENCY",
        "procedures.rfc2544:FRAME_LOSS",
        "procedures.rfc2544.overload:BACK_TO_BACK",
        "procedures.rfc2544.overload:RECOVERY",
        "procedures.rfc2544.overload:RESET",
        "procedures.send:SENDING",
    ),
    SAMPLERS: ("stacks:STACKS",),
    QUANTITIES: (
        "quantities.loss:THROUGHPUT",
        "quantities.loss:LOSS",
        "quantities.forwards:FORWARDING_RATE",
        "quantities.cycles:CYCLES",
        "quantities.cycles:GATHERING",
        "quantities.energy:ENERGY",
        "quantities.latency:LATENCY",
        "quantities.latency:DELAY_VARIATION",
        "quantities.recovers:RECOVERY",
        "quantities.reorders:REORDERING",
    ),
}
"""By group: objects of this package, as in an entry point."""


_installed: Callable[[], Any] = cache(entry_points)
"""Returns the entry points of all distributions, which takes 5 to 40 ms; a run asks for three groups."""


@cache
def built_in_quantities() -> Mapping[str, Quantity]:
    """Return the quantities of this distribution by name."""
    return {quantity.name: quantity for quantity in _built_in(QUANTITIES, Quantity)}


@cache
def quantities() -> Mapping[str, Quantity]:
    """Return every quantity by its name. A look at all distributions takes 40 ms.

    Raises ConfigError naming a distribution whose quantity cannot be loaded.
    """
    return {**{quantity.name: quantity for quantity in _others(QUANTITIES, Quantity)}, **built_in_quantities()}


def extensions(group: str, kind: type[T]) -> list[T]:
    """Return all extensions of *group*, objects of *kind*. Raises ConfigError as :func:`quantities`."""
    return [*_built_in(group, kind), *_others(group, kind)]


def is_installed(quantity: str) -> bool:
    """Return whether there is a quantity of that name."""
    return quantity in built_in_quantities() or quantity in quantities()


def _built_in(group: str, kind: type) -> list[Any]:
    named = [EntryPoint(value, f"lineproof.{value}", group) for value in BUILT_IN[group]]
    return [load(entry, kind, kind.__name__.lower()) for entry in named]


def _others(group: str, kind: type) -> list[Any]:
    return [load(entry, kind, kind.__name__.lower()) for entry in _installed().select(group=group)]


def load(entry: EntryPoint, kind: type, noun: str) -> Any:
    """Return the extension *entry*, an object of *kind* that people call a *noun*.

    Raises ConfigError naming the distribution that has to be put right.
    """
    where = f"the {noun} '{entry.name}' ({entry.value}"
    where += f" of {entry.dist.name})" if entry.dist is not None else ")"
    try:
        loaded = entry.load()
    except (*BREAKDOWN_ERRORS, ImportError, NameError, SyntaxError) as error:
        raise ConfigError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}; reinstall or remove it"
        ) from None
    if not isinstance(loaded, kind):
        raise ConfigError(f"{where} is no {kind.__name__} of {kind.__module__}; its distribution must be fixed")
    return loaded
