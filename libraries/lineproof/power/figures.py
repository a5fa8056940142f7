"""What the meters share: a power from outside."""

from __future__ import annotations

import math
from typing import Any

from ..errors import TestbedError
from .meter import MOST_WATTS


def power(value: Any, text: str) -> float:
    """*value* as W. Raises TestbedError that names the meter (*text*) where it is none."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0 <= found <= MOST_WATTS:
        raise TestbedError(f"the meter {text}: reports {str(value)[:40]!r}, expected a power in W")
    return found
