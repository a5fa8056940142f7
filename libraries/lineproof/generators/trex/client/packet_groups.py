"""Reads a TRex server's counts of a packet group (``get_pgid_stats``), without a library.

The server's names: ``flow_stats``: ``tp``, ``rp`` frames by port; ``latency``: ``er`` errors (without zeros), ``lat``
with ``average``, ``total_max``, ``total_min`` and ``histogram`` {lower bound in µs: frames}. What the histogram leaves
out is in :mod:`lineproof.core.latency`. ``jit`` is not read: it follows the last frames of a trial only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UPDATE_PERIOD = 0.6
"""Seconds after which TRex has certainly counted what it received before: ``total_max``, and whether the bucket 0 is
there, follow every 0.5 s of its main loop (``publish_async_data``)."""


def group_counts(answer: Mapping[str, Any], group: int, tx_port: int, rx_port: int) -> dict[str, Any] | None:
    """Counts of *group*, sent by *tx_port* and received at *rx_port*; None without a report."""
    flow = (answer.get("flow_stats") or {}).get(str(group))
    delays = (answer.get("latency") or {}).get(str(group))
    if not flow or not delays:
        return None
    measured, errors = delays.get("lat") or {}, delays.get("er") or {}
    least = measured.get("total_min")
    received = {int(port): int(frames or 0) for port, frames in (flow.get("rp") or {}).items()}
    return {
        "tx_port": tx_port,
        "rx_port": rx_port,
        "sent": int((flow.get("tp") or {}).get(str(tx_port)) or 0),
        "received": received.get(rx_port, 0),
        "mean": float(measured.get("average") or 0.0),
        "maximum": float(measured.get("total_max") or 0.0),
        "minimum": float(least) if least else None,
        "histogram": {str(key): int(count) for key, count in (measured.get("histogram") or {}).items() if count},
        "out_of_order": int(errors.get("ooo") or 0),
        "duplicates": int(errors.get("dup") or 0),
        "elsewhere": sum(frames for port, frames in received.items() if port != rx_port),
    }


def all_placed(found: Mapping[str, Any]) -> bool:
    """Return whether the histogram has every received frame of :func:`group_counts` in a bucket of 10 µs or more."""
    placed = sum(frames for key, frames in found["histogram"].items() if key != "0")
    return bool(placed == found["received"] + found["elsewhere"])
