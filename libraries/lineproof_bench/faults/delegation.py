"""Methods that the faulty bench leaves to its model, once the faults that are due have begun and ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..model.injected_loss import LossyModel

P = ParamSpec("P")
R = TypeVar("R")


class Delegating(Protocol):
    """What has a model, and faults."""

    _model: LossyModel

    def _advance(self) -> None:
        """Begin and end the faults that are due."""


def of_model(method: Callable[Concatenate[LossyModel, P], R]) -> Callable[Concatenate[Any, P], R]:
    """*method* of the wrapped model, called after the faults that are due."""

    def call(self: Delegating, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._advance()
        found: R = getattr(self._model, method.__name__)(*args, **kwargs)
        return found

    return call
