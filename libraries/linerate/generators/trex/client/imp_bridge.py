# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The one function of the module ``imp`` that trex-stl-lib 0.3 needs, for Python 3.12 and later, which have no ``imp``.

trex-stl-lib 0.3 says ``import imp`` in ``trex_stl_streams`` and calls ``imp.reload`` when it loads a profile file.
Only the client's own process installs this; no other process sees an ``imp`` that is not Python's.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import MutableMapping
from types import ModuleType


def install(modules: MutableMapping[str, ModuleType] | None = None) -> bool:
    """Put a stand-in for ``imp`` into *modules* (``sys.modules``) where Python has none; whether that was needed."""
    known = sys.modules if modules is None else modules
    if "imp" in known or importlib.util.find_spec("imp") is not None:
        return False
    bridge = ModuleType("imp", "Stand-in for the module that Python 3.12 removed: reload only.")
    bridge.reload = importlib.reload  # type: ignore[attr-defined]
    known["imp"] = bridge
    return True
