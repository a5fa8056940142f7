"""A run as rows of the store's tables: what every import makes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...visible import shortened, visible

LARGEST_COUNT = 2**63 - 1
"""The largest whole number of both databases."""

TrialRow = tuple[int, int, int, float, float, float, int, int, int, float | None, bool]
"""The columns of ``trials`` from ``line`` on."""


@dataclass(frozen=True)
class StoredRun:
    """``run``: the row of ``runs``, without ``id`` and ``imported``; ``sentences`` and ``trials``: without ``run_id``.

    Text has no control characters: PostgreSQL stores no NUL, SQLite no half characters.
    """

    run: Mapping[str, Any]
    sentences: tuple[Mapping[str, Any], ...]
    trials: tuple[TrialRow, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return what the store knows it by."""
        return str(self.run["run"])

    @property
    def rank(self) -> tuple[bool, int]:
        """Of two states of a run the one with the higher rank is the later one."""
        return bool(self.run["closed"]), int(self.run["records"])


def columns(**found: Any) -> dict[str, Any]:
    """A row: text made visible, mappings as JSON, numbers that are not finite as None."""
    return dict(_columns(found))


def _columns(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, str):
            yield name, visible(value)
        elif isinstance(value, Mapping):
            yield name, visible(json.dumps(value, ensure_ascii=True, sort_keys=True))
        elif isinstance(value, float) and not math.isfinite(value):
            yield name, None
        else:
            yield name, value


def release_of(versions: Mapping[str, str]) -> str:
    """The router's versions, in words: ``vpp 24.10, system Debian 12``. Where one changes, there is another release."""
    return ", ".join(
        f"{name.removeprefix('router.')} {versions[name]}" for name in sorted(versions) if name.startswith("router.")
    )


def release_in_short(release: str) -> str:
    """Of :func:`release_of`'s words the router's own version; where it reports none, their beginning."""
    own = [part.removeprefix("version ") for part in release.split(", ") if part.startswith("version ")]
    return own[0] if own else shortened(release, 60)


def new_in_release(before: str, after: str) -> str:
    """Of the words of *after* those that *before* has not; where it has all of them, all."""
    known = before.split(", ")
    return ", ".join(part for part in after.split(", ") if part not in known) or after
