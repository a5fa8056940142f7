"""Tags a test by its verdict, so that Robot's statistics count them apart."""

from __future__ import annotations

import re
from typing import Any

VERDICT = re.compile(r"^(?:\d+\) )?(FAIL|INCONCLUSIVE):", re.MULTILINE)
"""How a failed sentence's message begins; Robot numbers several in one test."""


class VerdictTags:
    """Robot listener: adds ``verdict:fail`` and ``verdict:inconclusive`` to a failed test."""

    ROBOT_LISTENER_API_VERSION = 3

    def end_test(self, data: Any, result: Any) -> None:
        """Add the tags."""
        if result.failed:
            result.tags.add(f"verdict:{word.lower()}" for word in VERDICT.findall(result.message))
