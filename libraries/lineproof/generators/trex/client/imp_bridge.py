# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Replaces the module ``imp``, which Python 3.12 removed and trex-stl-lib 0.3 imports for ``imp.reload``.

Only the client's own process installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import MutableMapping
from types import ModuleType


def install(modules: MutableMapping[str, ModuleType] | None = None) -> bool:
    """Put a replacement of ``imp`` into *modules* (``sys.modules``) if Python has none; return whether it did."""
    target = sys.modules if modules is None else modules
    if "imp" in target or importlib.util.find_spec("imp") is not None:
        return False
    bridge = ModuleType("imp", "Replaces the module that Python 3.12 removed: reload only.")
    bridge.reload = importlib.reload  # type: ignore[attr-defined]  # a module has any
    target["imp"] = bridge
    return True
