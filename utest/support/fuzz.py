"""How many made-up inputs the tests try."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("LINEPROOF_FUZZ", "1"))
"""So many times the few that every run tries: ``LINEPROOF_FUZZ=50 pytest utest/…``."""
