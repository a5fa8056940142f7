"""What a simulated testbed does not do the same way every time: ``noise:`` of a testbed file. Off unless it is there."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from ..config import Config

Share = Annotated[float, Field(ge=0, lt=1)]


class Bursts(Config):
    """``packets`` frames lost in a row, once in ``every`` seconds of traffic on average (the testbed's clock)."""

    packets: Annotated[int, Field(ge=1, le=10**6)] = 500
    every: Annotated[float, Field(ge=0.001)] = 50.0


class WarmUp(Config):
    """The router is slower by the share ``dip`` in its first ``seconds`` of traffic after it was configured."""

    dip: Share
    seconds: Annotated[float, Field(gt=0, le=3600)]


class Noise(Config):
    """``capacity``: relative standard deviation of the router's capacity from start to start of traffic.

    A plain number in the file is ``capacity``. All of it is drawn from the testbed's ``seed``.
    """

    capacity: Share = 0.0
    bursts: Bursts | None = None
    warm_up: WarmUp | None = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return {"capacity": value} if plain else value
