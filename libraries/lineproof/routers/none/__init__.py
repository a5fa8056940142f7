"""A router that is not logged in to: it is judged from outside, by the generator's counts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...core.router_facts import RouterFacts
from ...core.under_load import UnderLoad
from ...errors import TestbedError
from ..base import Result
from ..described import Router
from ..description import RouterDescription

WHY_UNREAD = "the router is a black box (shell: none), whose own counts are not read"


class BlackBox(Router):
    """A router of which nothing is known but what comes back from it; a plan that configures one is refused.

    So frames of each new kind are sent slowly first, as to any router.
    """

    def __init__(self, interfaces: tuple[str, ...] = ()) -> None:
        super().__init__(no_shell, RouterDescription.model_validate({"shell": "none"}), interfaces)

    def identify(self) -> Mapping[str, str]:
        """Return that it was not asked."""
        return {"software": "not asked: a black box (shell: none)"}

    def facts(self) -> RouterFacts:
        """Return that nothing is known."""
        return RouterFacts()

    def under_load(self, wait: Callable[[], None]) -> UnderLoad:
        """Wait, and return that nothing is known."""
        wait()
        return UnderLoad()


def no_shell(command: str, limit: float) -> Result:
    """In place of its shell. Raises TestbedError."""
    raise TestbedError(
        f"'{command[:80]}' cannot be run: {WHY_UNREAD}; expected a platform whose software has a 'shell'"
    )
