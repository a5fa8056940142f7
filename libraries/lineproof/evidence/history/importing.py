"""Runs into the store: what a path holds, and as many processes as the machine has cores for it."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...system import children
from ..integrity import check_integrity
from ..run_files import ENVIRONMENT_FILE, MANIFEST_FILE, REQUIREMENTS, TRIALS
from .address import StoreAddress
from .run_reading import stored_run
from .store import Added, HistoryStore

WORTH_A_PROCESS = 8 * 2**20
"""Bytes of trials for each process: one takes about a second to start."""

_ENDING = 20.0
"""Seconds that a process gets to end after its input."""


@dataclass(frozen=True)
class Imported:
    """What became of the run at ``path``; ``refused``: why it was not taken, or ""."""

    path: str
    run: str = ""
    added: str = ""
    trials: int = 0
    simulated: bool = False
    notes: tuple[str, ...] = ()
    refused: str = ""


def find_runs(path: Path) -> list[Path]:
    """The folders of runs in *path*: itself, or those below it, in order. No link is followed.

    Raises ConfigError if there is none.
    """
    if not path.is_dir():
        raise ConfigError("is no folder; expected that of a run, as results/<run id>, or one with runs in it", path)
    found = []
    for folder, inside, files in os.walk(path):
        names = {*inside, *files}
        if {TRIALS, REQUIREMENTS} & names and {ENVIRONMENT_FILE, MANIFEST_FILE, TRIALS} & names:
            found.append(Path(folder))
            inside.clear()
        inside[:] = sorted(name for name in inside if not name.startswith("."))
    if not found:
        raise ConfigError("holds no run; expected the folder of a run, as results/<run id>, or one with runs", path)
    return sorted(found)


def import_one(store: HistoryStore, path: Path, replace: bool) -> Imported:
    """Add the run at *path*; what is wrong with it is said in the result. Raises TestbedError if the store fails."""
    try:
        with _no_collection():
            found = check_integrity(path)
            found.refuse_altered()
            if found.manifest is not None and (known := store.has(found.manifest)):
                same = Added.SAME.value  # the sums are right, so that reading it would give what is there
                return Imported(str(path), known["run"], same, simulated=bool(known["simulated"]))
            run = stored_run(found)
            added = store.add(run, replace)
    except ConfigError as error:
        return Imported(str(path), refused=str(error))
    except TestbedError:
        raise
    except BREAKDOWN_ERRORS as error:
        return Imported(str(path), refused=f"{path}: {in_words(error)}")
    return Imported(
        str(path),
        run.name,
        added.value,
        len(run.trials) if added in (Added.NEW, Added.REPLACED) else 0,
        bool(run.run["simulated"]),
        run.notes,
    )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of small objects without a cycle: looking for cycles among them takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def import_all(
    address: StoreAddress,
    paths: Sequence[Path],
    replace: bool = False,
    done: Callable[[Imported], None] = lambda _: None,
    processes: int | None = None,
) -> list[Imported]:
    """Add the runs in the folders *paths*; *done* is called after each, in the order in which they finish.

    *processes*: None: by the size of the runs and the cores of this machine. Raises TestbedError if the store fails.
    """
    count = processes or min(len(os.sched_getaffinity(0)), len(paths), 1 + _bytes(paths) // WORTH_A_PROCESS)
    store = HistoryStore.open(address, create=True)
    results: list[Imported] = []
    try:
        found = (
            (import_one(store, path, replace) for path in paths)
            if count < 2
            else _side_by_side(address, paths, replace, count)
        )
        for item in found:
            results.append(item)
            done(item)
    finally:
        store.close()
    return results


def _bytes(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += (path / TRIALS).stat().st_size
    return total


def _side_by_side(address: StoreAddress, paths: Sequence[Path], replace: bool, count: int) -> Iterator[Imported]:
    """A thread for each process, which takes the next path when it has finished one."""
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in sorted(paths, key=lambda item: -_bytes([item])):  # the largest first: they end together
        waiting.put(path)
    results: queue.SimpleQueue[Imported | Exception | None] = queue.SimpleQueue()
    # libpq's own variables hold what the user set for this database
    variables = children.environment({name: text for name, text in os.environ.items() if name.startswith("PG")})
    running = []
    try:
        for _ in range(count):
            child = children.start(
                children.python("lineproof.evidence.history.worker"),
                env=variables,
                stdin=children.PIPE,
                stdout=children.PIPE,
            )
            thread = threading.Thread(target=_feed, args=(child, address, waiting, replace, results), daemon=True)
            running.append((child, thread))
            thread.start()
        left = count
        while left:
            item = results.get()
            if item is None:
                left -= 1
            elif isinstance(item, Exception):
                raise item
            else:
                yield item
    finally:
        for child, _ in running:
            child.kill()  # finished ones have ended, and what others began is rolled back by the database
        for child, thread in running:
            thread.join(_ENDING)
            child.wait()


def _feed(
    child: children.Child[bytes],
    address: StoreAddress,
    waiting: queue.SimpleQueue[Path],
    replace: bool,
    results: queue.SimpleQueue[Imported | Exception | None],
) -> None:
    try:
        to_child, from_child = children.pipes(child)
        children.send_line(child, json.dumps(address.url))
        while True:
            try:
                path = waiting.get_nowait()
            except queue.Empty:
                break
            children.send_line(child, json.dumps([str(path.absolute()), str(path), replace]))
            line = from_child.readline()
            if not line:
                raise TestbedError(f"the process that imported {path} ended; import it again, the store has none of it")
            answer = json.loads(line)
            if "failed" in answer:
                raise TestbedError(address.masked(answer["failed"]))
            results.put(Imported(**{**answer, "notes": tuple(answer["notes"])}))
        to_child.close()
        child.wait(_ENDING)
        results.put(None)
    except (OSError, ValueError, TestbedError, children.TimeoutExpired) as error:
        results.put(error if isinstance(error, TestbedError) else TestbedError(f"an import ended: {in_words(error)}"))
