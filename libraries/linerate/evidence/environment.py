"""What took part in a run, as far as this machine can tell: host, Python, packages, CPU time withheld."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import psutil

PACKAGES = (
    "linerate",
    "robotframework",
    "robotframework-sshlibrary",
    "trex-stl-lib",
    "allure-robotframework",
    "allure-python-commons",
    "asyncssh",
    "paramiko",
    "pyzmq",
    "pydantic",
    "pyyaml",
    "numpy",
    "matplotlib",
    "psutil",
    "scapy",
    "scipy",
    "mlrsearch",
)
"""The distributions whose versions can bear on a figure."""


def host_facts() -> dict[str, Any]:
    """This machine: name, operating system, kernel, CPU, number of CPUs, memory in bytes, Python."""
    return {
        "name": platform.node(),
        "system": _system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
    }


def package_versions() -> dict[str, str]:
    """Versions of those :data:`PACKAGES` that are installed."""
    wanted = set(PACKAGES)
    found: dict[str, str] = {}
    for distribution in distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name in wanted:
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def cpu_times() -> Mapping[str, float]:
    """CPU seconds of all CPUs since boot, by use; give it to :func:`steal_percent` later."""
    times: Mapping[str, float] = psutil.cpu_times()._asdict()
    return times


def steal_percent(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """CPU time that the hypervisor withheld between two readings of :func:`cpu_times`, in per cent of all CPU time.

    None where the system does not tell, or no time has passed. Guest time is part of user time and not counted twice.
    """
    if "steal" not in after or "steal" not in before:
        return None
    kinds = [name for name in after if name in before and not name.startswith("guest")]
    total = sum(after[name] - before[name] for name in kinds)
    return None if total <= 0 else 100 * (after["steal"] - before["steal"]) / total


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
