"""Notes of what runs of this user have of labgrid's, so that the next one gives back what a killed run has left.

One file for each reservation, in a folder that a reboot leaves. It names the process in charge of it; a note whose
process has ended is a leftover.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...files import write_whole
from ...json_text import parse_json
from ...system.identity import STATE_ELSEWHERE, ProcessIdentity

_LARGEST = 16 * 2**10


@dataclass(frozen=True, slots=True)
class LabNote:
    """A reservation of *owner*, ``host/user``. ``place``: "" until it is acquired; ``holder``: in charge of it."""

    coordinator: str
    owner: str
    token: str
    place: str
    holder: ProcessIdentity

    def write(self, folder: Path) -> None:
        """Raises TestbedError."""
        write_whole(self._path(folder), json.dumps(asdict(self)), STATE_ELSEWHERE, 0o600)

    def remove(self, folder: Path) -> None:
        """Harmless when repeated."""
        with contextlib.suppress(OSError):
            self._path(folder).unlink()

    def _path(self, folder: Path) -> Path:
        return folder / f"{self.token}.json"


def left_notes(folder: Path, coordinator: str) -> Iterator[LabNote]:
    """The notes about *coordinator* whose process has ended. What is no note is left alone."""
    for path in sorted(folder.glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if path.stat().st_size > _LARGEST:
                continue
            data: dict[str, Any] = parse_json(path.read_bytes(), own=True)
            holder = ProcessIdentity(**data.pop("holder"))
            note = LabNote(**{key: str(value) for key, value in data.items()}, holder=holder)
            if note.coordinator == coordinator and f"{note.token}.json" == path.name and not holder.alive:
                yield note
