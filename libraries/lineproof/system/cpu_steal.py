"""CPU time of this machine, and how much of it the hypervisor withheld (steal)."""

from __future__ import annotations

from collections.abc import Mapping

import psutil


def cpu_times() -> Mapping[str, float]:
    """CPU seconds of all CPUs since boot, by use, for :func:`steal_percent`. Empty if they are not known."""
    try:
        times: Mapping[str, float] = psutil.cpu_times()._asdict()
    except OSError:  # a container without /proc/stat
        return {}
    return times


def steal_percent(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Steal between two readings of :func:`cpu_times`, in per cent of all CPU time.

    None: the system does not report it, or no time has passed. Guest time is part of user time and not counted twice.
    """
    if "steal" not in after or "steal" not in before:
        return None
    kinds = [name for name in after if name in before and not name.startswith("guest")]
    total = sum(after[name] - before[name] for name in kinds)
    return None if total <= 0 else 100 * max(0.0, after["steal"] - before["steal"]) / total


def steal_text(percent: float | None) -> str:
    """``1.2 %``, or ``not known``."""
    return "not known" if percent is None else f"{percent:.1f} %"
