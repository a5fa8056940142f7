"""Keys that every kind of generator has in a testbed's file: the key ``generator``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

from ..config import Config


class GeneratorSettings(Config):
    """``type``: the kind, of the entry points :data:`..kinds.GROUP`. Its other keys are the kind's own.

    ``card``: the file of ``variables/generators`` on its network card; None: chosen by what it reports of the card.
    """

    is_login: ClassVar[bool] = True

    type: str = "trex"
    card: str | None = None

    @property
    def port_count(self) -> int:
        """How many ports are cabled to the router."""
        return 2

    @property
    def claimed(self) -> tuple[str, ...]:
        """Return what no two runs may use at once, in words; none: it sees to that itself."""
        return ()

    @property
    def sends_late_frames(self) -> bool:
        """Return whether it sends all frames of a trial even if that takes longer, or stops in time."""
        return True

    def with_paths(self, absolute: Callable[[Path], Path]) -> Self:
        """The same with every path made *absolute*: those in a file start at its folder."""
        del absolute
        return self
