"""Random variation of a simulated testbed: ``noise:`` of a testbed file. Off by default."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from ..config import Config

Share = Annotated[float, Field(ge=0, lt=1)]


class LossBursts(Config):
    """``packets`` frames lost in a row, on average once in ``every`` s of traffic (testbed's clock)."""

    packets: Annotated[int, Field(ge=1, le=10**6)] = 500
    every: Annotated[float, Field(ge=0.001)] = 50.0


class WarmUp(Config):
    """The router is slower by the ratio ``dip`` in the first ``seconds`` of traffic after its configuration."""

    dip: Share
    seconds: Annotated[float, Field(gt=0, le=3600)]


class Noise(Config):
    """``capacity``: relative standard deviation of the router's capacity between starts of traffic.

    A plain number in the file is ``capacity``. The testbed's ``seed`` makes it repeatable.
    """

    capacity: Share = 0.0
    bursts: LossBursts | None = None
    warm_up: WarmUp | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"capacity": value} if is_number else value
