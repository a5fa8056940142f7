# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""A clock for the TRex clients that nobody sets: they measure their time limits with ``time.time()``."""

from __future__ import annotations

import sys
import time
from types import ModuleType


def use_steady_clock(package: str) -> None:
    """Let ``time.time()`` in the imported modules of *package* go on evenly, also where this machine's clock is set.

    Otherwise a clock that is set 3 s ahead makes TRex's clients take their connection for lost.
    """
    steady = ModuleType("time", "The module time, whose time() is the monotonic clock from now on.")
    vars(steady).update(vars(time))
    ahead = time.time() - time.monotonic()
    vars(steady)["time"] = lambda: time.monotonic() + ahead
    for name, module in list(sys.modules.items()):
        if (name == package or name.startswith(f"{package}.")) and getattr(module, "time", None) is time:
            vars(module)["time"] = steady
