"""Reads a TRex server's counts of a packet group (``get_pgid_stats``), without a library.

The server's names: ``flow_stats``: ``tp``, ``rp`` frames by port; ``latency``: ``er`` errors (without zeros), ``lat``
with ``average``, ``jit``, ``total_max``, ``total_min`` and ``histogram`` {lower bound in µs: frames}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def group_counts(answer: Mapping[str, Any], group: int, tx_port: int, rx_port: int) -> dict[str, Any] | None:
    """Counts of *group*, sent by *tx_port* and received at *rx_port*; None without a report."""
    flow = (answer.get("flow_stats") or {}).get(str(group))
    delays = (answer.get("latency") or {}).get(str(group))
    if not flow or not delays:
        return None
    measured, errors = delays.get("lat") or {}, delays.get("er") or {}
    least = measured.get("total_min")
    return {
        "tx_port": tx_port,
        "rx_port": rx_port,
        "sent": _port_count(flow.get("tp"), tx_port),
        "received": _port_count(flow.get("rp"), rx_port),
        "mean": float(measured.get("average") or 0.0),
        "maximum": float(measured.get("total_max") or 0.0),
        "minimum": float(least) if least else None,
        "jitter": float(measured.get("jit") or 0.0),
        "histogram": {str(key): int(count) for key, count in (measured.get("histogram") or {}).items() if count},
        "out_of_order": int(errors.get("ooo") or 0),
        "duplicates": int(errors.get("dup") or 0),
    }


def _port_count(counts: Mapping[str, Any] | None, port: int) -> int:
    return int((counts or {}).get(str(port)) or 0)
