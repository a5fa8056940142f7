"""The environment of a run on this machine: host, Python and packages."""

from __future__ import annotations

import os
import platform
import sys
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
"""The distributions whose versions may influence a result."""


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
