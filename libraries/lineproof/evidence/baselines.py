"""Names for runs: a folder, a tag, or the beginning of a run id, in place of a path.

A tag is a file ``results/baselines/TAG`` with a line for each run: the SHA-256 of its manifest and the manifest's path
from ``results/``, as ``sha256sum --check`` reads them. So it is always the same run that a tag names, or none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import ConfigError
from ..files import is_folder, read_text, write_whole
from ..visible import shortened
from .run_files import MANIFEST_FILE, sha256_of

BASELINES = "baselines"
"""The folder of the tags, in the folder of results."""

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_RUN_ID = re.compile(r"(\d{8}T\d{6}Z-[0-9a-f]{6})(?:-(\d{1,6}))?")
_LINE = re.compile(rf"([0-9a-f]{{64}})  (\w[^/\n]*)/{re.escape(MANIFEST_FILE)}")


def find_one_run(name: str, beside: Path | None = None) -> Path:
    """Return the run that *name* stands for, as :func:`find_runs`. Raises ConfigError, also if there are several."""
    runs = find_runs(name, beside)
    if len(runs) != 1:
        listed = ", ".join(path.name for path in runs)
        raise ConfigError(f"'{shortened(name)}' stands for {len(runs)} runs ({listed}); expected the id of one")
    return runs[0]


def find_runs(name: str, beside: Path | None = None) -> tuple[Path, ...]:
    """Return the folders of the runs that *name* stands for; *beside*: the folder of results to look in first.

    A folder is the run in it, or, if it is a folder of results, the runs of its newest execution. Else a tag; else the
    beginning of the ids of one execution's runs. Raises ConfigError.
    """
    path = Path(name)
    if is_folder(path):
        executions = _executions(path)
        return executions[max(executions)] if executions else (path,)
    places = [place for place in (beside, Path("results")) if place is not None and is_folder(place)]
    for place in places if _TAG.fullmatch(name) else ():
        if os.path.lexists(place / BASELINES / name):
            return _tagged(place, name)
        begun = [runs for run, runs in _executions(place).items() if run.startswith(name)]
        if len(begun) > 1:
            raise ConfigError(f"{len(begun)} executions in {place} begin with '{name}'; expected more of the id")
        if begun:
            return begun[0]
        if _RUN_ID.fullmatch(name) and is_folder(place / name):
            return (place / name,)
    where = " and ".join(map(str, places)) or "results (there is none here)"
    expected = "the folder of a run, the beginning of its id, or a tag that 'lineproof gate RUN --tag NAME' gave"
    problem = f"'{shortened(name)}' is no run, no tag and no beginning of a run's id in {where}"
    raise ConfigError(f"{problem}; expected {expected}")


def tag_runs(name: str, runs: Sequence[Path]) -> Path:
    """Give the closed *runs* of one folder of results the tag *name*; an earlier one is replaced. Returns its file.

    Raises ConfigError, TestbedError.
    """
    folders = {run.resolve().parent for run in runs}
    if len(folders) != 1:
        raise ConfigError(f"the runs of tag '{name}' are in {len(folders)} folders; expected one folder of results")
    path = folders.pop() / BASELINES / check_tag(name)
    lines = [f"{sha256_of(run / MANIFEST_FILE)}  {run.resolve().name}/{MANIFEST_FILE}\n" for run in runs]
    write_whole(path, "".join(lines))
    return path


def check_tag(name: str) -> str:
    """Return *name*, if a tag can have it. Raises ConfigError."""
    if not _TAG.fullmatch(name) or _RUN_ID.fullmatch(name):
        raise ConfigError(
            f"'{shortened(name)}' cannot be a tag; expected letters, digits, dots, hyphens, as 'release-24.03'"
        )
    return name


def _executions(results: Path) -> dict[str, tuple[Path, ...]]:
    """Return run id -> the runs of that execution: ``id``, ``id-2`` and so on."""
    executions: dict[str, list[tuple[int, Path]]] = {}
    for path in results.glob("*"):
        if (match := _RUN_ID.fullmatch(path.name)) and is_folder(path):
            executions.setdefault(match[1], []).append((int(match[2] or 1), path))
    return {run: tuple(path for _, path in sorted(paths)) for run, paths in executions.items()}


def _tagged(results: Path, name: str) -> tuple[Path, ...]:
    """Return the runs of the tag *name*, if they are those that were tagged."""
    path, runs = results / BASELINES / name, []
    for number, line in enumerate(read_text(path, 64 << 10).splitlines() or [""], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError("is no line of a tag; expected a SHA-256 and RUN/manifest.json", path, number)
        run = results / match[2]
        if not is_folder(run) or sha256_of(run / MANIFEST_FILE) != match[1]:
            gone = "which was moved, altered or replaced; put the folder back as it was, or tag another run"
            raise ConfigError(f"names {run}, {gone}", path, number)
        runs.append(run)
    return tuple(runs)
