"""What must be known of how a run came about: what it has of earlier runs, and what was chosen after these were seen.

In sentences, of the environment's extra data and the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..evidence.measurement import MeasurementRecord
from ..units import counted

BLOCKS = "blocks_changed"
"""Key of an environment's extra data: each time that a run was gone on with for another number of blocks."""

GAPS_REPEATED = "gaps_repeated"
"""Key there: each gap of an earlier run that was measured again, with its reason."""


def history_of(records: Sequence[MeasurementRecord], extra: Mapping[str, Any]) -> tuple[str, ...]:
    """The sentences about the run of *records*, whose environment has *extra*."""
    carried = Counter(record.carried_from for record in records if record.carried_from)
    return (
        *history_words(extra),
        *(
            f"{number} of {counted(len(records), 'measurement')} carried over from run {run}."
            for run, number in carried.items()
        ),
    )


def history_words(extra: Mapping[str, Any]) -> tuple[str, ...]:
    """What *extra* says of other numbers of blocks, and of gaps that were measured again."""
    gaps = Counter(str(gap.get("run")) for gap in _items(extra, GAPS_REPEATED))
    return (
        *map(_blocks_words, _items(extra, BLOCKS)),
        *(
            f"{counted(number, 'gap')} of run {run} measured again; that run has what was found wrong with them."
            for run, number in gaps.items()
        ),
    )


def _blocks_words(change: Mapping[str, Any]) -> str:
    before, now, read = (change.get(key) for key in ("from", "to", "read"))
    raised = isinstance(before, int) and isinstance(now, int) and now > before
    return (
        f"WARNING: blocks were {'raised' if raised else 'lowered'} from {before} to {now} after"
        f" {f'the first {read} were' if read != 1 else 'the first was'} read: 95 % no longer holds."
    )


def _items(extra: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    found = extra.get(key)
    return (item for item in (found if isinstance(found, list) else ()) if isinstance(item, Mapping))
