"""Names of counts of VPP that rules know."""

from __future__ import annotations

import re

FREE_BUFFERS = "free buffers of "
"""How a pool's reading begins in :attr:`UnderLoad.condition`, before its name."""

_NO_BUFFER = re.compile(r"rx-no-buf|\S*input: (?=.*buffer).*\b(?:no|alloc\w*|out of|exhausted)\b.*", re.IGNORECASE)


def is_failed_allocation(name: str) -> bool:
    """Return whether the counter *name* is of reads that found no free buffer: events, not frames."""
    return _NO_BUFFER.fullmatch(name) is not None
