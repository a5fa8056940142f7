"""Types of fields that JSON has otherwise than Python. A record is its dataclass; pydantic writes, reads and checks it.

JSON knows no number without an end: it is ``null`` there. An enumeration is the name of its member, which stays when
its words change.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic_core import CoreSchema
from pydantic_core.core_schema import (
    literal_schema,
    no_info_after_validator_function,
    plain_serializer_function_ser_schema,
)


def _null_is(figure: float) -> tuple[BeforeValidator, PlainSerializer]:
    return (
        BeforeValidator(lambda value: figure if value is None else value, json_schema_input_type=float | None),
        PlainSerializer(lambda value: value if math.isfinite(value) else None, return_type=float | None),
    )


OpenEnd = Annotated[float, *_null_is(math.inf)]
"""A number that may be infinite: ``null``."""

Figure = Annotated[float, *_null_is(math.nan)]
"""A number that may not be known: NaN, ``null``."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A count of frames or trials, of which no counter and no database holds more."""

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]

Moment = Annotated[float, Field(ge=0, lt=253_402_300_800)]
"""A Unix time in s, before the year 10000: later ones are no date."""

Names = Annotated[frozenset[str], PlainSerializer(sorted, return_type=list[str])]

T = TypeVar("T")
NotKept = Annotated[T, Field(exclude=True, max_length=0)]
"""A field that no record has: what it holds is kept elsewhere, or only looked at."""


class NamedEnum(Enum):
    """An enumeration whose members are their names in JSON."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """Return how a member is read and written."""
        names = literal_schema(list(cls.__members__))
        written = plain_serializer_function_ser_schema(lambda member: member.name, return_schema=names)
        return no_info_after_validator_function(cls.__getitem__, names, serialization=written)
