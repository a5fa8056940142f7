"""The environment of a run on this machine: host, Python and packages."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import time
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import psutil

from .. import __version__
from ..session.plan import Plan
from ..system import children
from .records import EnvironmentRecord

GIT_LIMIT = 5.0
"""Seconds for each question to git."""


def environment_record(plan: Plan, run: str, **fields: Any) -> EnvironmentRecord:
    """Return that of a run of *plan* which begins now and here. *fields*: all others."""
    return EnvironmentRecord(
        run=run,
        testbed=plan.testbed.testbed,
        platform=plan.platform.platform,
        software=plan.software_name,
        started=time.time(),
        host=host_facts(),
        packages=package_versions(),
        code=code_identity(),
        goal=plan.goal,
        **fields,
    )


def code_identity(folder: Path = Path(__file__).parents[1]) -> dict[str, Any]:
    """Which Lineproof this is: ``version``, and of a git checkout the ``commit`` and whether it is ``dirty``.

    ``dirty``: tracked files differ from the commit. Both are ``unknown`` where the code is in no checkout, or git does
    not answer. *folder*: that of the package.
    """
    found = {"version": __version__, "commit": "unknown", "dirty": "unknown"}
    # installed into an environment inside another project's checkout, the code is not that project's
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return found
    described = _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    if described is None:
        return found
    return {**found, "commit": described.removesuffix("-dirty"), "dirty": described.endswith("-dirty")}


def _git(folder: Path, *words: str) -> str | None:
    """The output of git in *folder*; None if it failed."""
    try:
        # a repository's own settings may name a program to run: this one is not needed
        result = children.run(["git", "-C", str(folder), "-c", "core.fsmonitor=false", *words], GIT_LIMIT)
    except (OSError, children.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def host_facts() -> dict[str, Any]:
    """This machine: name, operating system, kernel, CPU, number of CPUs, load, memory in bytes, Python.

    ``load``: how many programs wanted a CPU in the minute before.
    """
    system, cpu = platform.system(), platform.machine()
    with contextlib.suppress(OSError):  # of a small container
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    with contextlib.suppress(OSError):
        named = re.search(r"^model name\s*: (.+)", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        cpu = named[1] if named else cpu
    return {
        "name": platform.node(),
        "system": system,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
    }


def package_versions() -> dict[str, str]:
    """Versions of Lineproof and of the packages that it requires; none where it is not installed."""
    with contextlib.suppress(PackageNotFoundError):
        required = [words for words in requires("lineproof") or () if "extra ==" not in words]
        names = ("lineproof", *sorted(re.split(r"[^\w.-]", words)[0] for words in required))
        return {name: version(name) for name in names}
    return {}
