"""The extensions: built-in ones from one list, others by the entry points of installed distributions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import BREAKDOWN_ERRORS, ConfigError
from .quantity import Quantity

QUANTITIES = "lineproof.quantities"
"""The group of entry points of quantities: each is an object of a subclass of :class:`.quantity.Quantity`."""

BUILT_IN = {
    QUANTITIES: (
        "loss:THROUGHPUT",
        "loss:LOSS",
        "forwards:FORWARDING_RATE",
        "cycles:CYCLES",
        "cycles:GATHERING",
        "energy:ENERGY",
        "latency:LATENCY",
        "latency:DELAY_VARIATION",
        "recovers:RECOVERY",
        "reorders:REORDERING",
    )
}
"""By group: the objects of the package of the group's name, as in an entry point."""


@cache
def built_in_quantities() -> Mapping[str, Quantity]:
    """Return the quantities of this distribution by name."""
    found = [_load(EntryPoint(value, f"{QUANTITIES}.{value}", QUANTITIES)) for value in BUILT_IN[QUANTITIES]]
    return {quantity.name: quantity for quantity in found}


@cache
def quantities() -> Mapping[str, Quantity]:
    """Return every quantity by its name. A look at all distributions takes 40 ms.

    Raises ConfigError naming a distribution whose quantity cannot be loaded.
    """
    others = [_load(entry) for entry in entry_points(group=QUANTITIES)]
    return {**{quantity.name: quantity for quantity in others}, **built_in_quantities()}


def is_installed(quantity: str) -> bool:
    """Return whether there is a quantity of that name."""
    return quantity in built_in_quantities() or quantity in quantities()


def _load(entry: EntryPoint) -> Quantity:
    found: Quantity = load(entry, Quantity, "quantity")
    return found


def load(entry: EntryPoint, kind: type, noun: str) -> Any:
    """Return the extension *entry*, an object of *kind* that people call a *noun*.

    Raises ConfigError naming the distribution that has to be put right.
    """
    where = f"the {noun} '{entry.name}' ({entry.value}"
    where += f" of {entry.dist.name})" if entry.dist is not None else ")"
    try:
        found = entry.load()
    except (*BREAKDOWN_ERRORS, ImportError, NameError, SyntaxError) as error:
        raise ConfigError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}; reinstall or remove it"
        ) from None
    if not isinstance(found, kind):
        raise ConfigError(f"{where} is no {kind.__name__} of {kind.__module__}; its distribution must be fixed")
    return found
