"""The text of a meter as a power."""

from __future__ import annotations

import math

from ..errors import TestbedError
from .meter import MOST_WATTS


def power(value: str, text: str, factor: float = 1.0) -> float:
    """Return *value* times *factor* in W. Raises TestbedError that names the meter (*text*) where it is no power."""
    try:
        watts = factor * float(value)
    except ValueError:
        watts = math.nan
    if not 0 <= watts <= MOST_WATTS:
        raise TestbedError(f"the meter {text}: reports '{value[:40]}', expected a power in W")
    return watts
