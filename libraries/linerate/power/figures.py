"""What the meters share: a power from outside, and secrets from the environment."""

from __future__ import annotations

import math
import os
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


def secret(variable: str) -> str:
    """The content of the environment *variable*. Raises TestbedError where it is missing or empty."""
    found = os.environ.get(variable, "")
    if not found:
        raise TestbedError(f"the power meter's login needs the environment variable {variable}, which is not set")
    return found
