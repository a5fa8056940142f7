"""Leases: a testbed writes down what it holds, so that the next start can clean up after one that was killed.

A lease is a JSON file in :func:`runtime_folder`. It names the process in charge, the processes it started, and the
namespaces and folders it made. It is written before anything is made and removed after everything is removed. A
process is named by its id *and* its start time, because ids are used again. Commands in a lease are not trusted: only
deletions of namespaces and links with our prefix are run, only folders directly in the runtime folder are removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from ..errors import TestbedError
from ..files import not_written, write_whole
from ..json_text import parse_json
from ..system import children
from ..system.descendants import environment_variable
from ..system.file_lock import is_at, lock_within
from ..system.identity import ELSEWHERE, ProcessIdentity, identify, runtime_folder

COMMAND_LIMIT = 10.0
"""Seconds that one teardown command may take."""

LOCK_LIMIT = 60.0
"""Seconds to wait for another process that cleans up."""

LEASE_VARIABLE = "LINEPROOF_BENCH"
"""Environment variable that every process of a testbed inherits: the path of its lease."""

IN_USE = ".in-use"
"""Ending of the locks in the runtime folder that say who has a testbed of hardware (:mod:`.in_use`)."""

_SUFFIX, _LEFT = ".lease", "left by a testbed that was killed"
_HALF_WRITTEN = re.compile(r"\.([0-9]{1,10})-[0-9a-f]{12}\.part")
"""What the process of this number writes with :func:`..files.write_whole`: here, a file with claimed ports."""

_WITHOUT_LEASE = re.compile(r"[0-9a-f]{6}(\.new)?")
_PERMITTED = (
    re.compile(r"(?:(?:/usr)?/s?bin/)?ip netns (?:del|delete) (?P<netns>lr-[A-Za-z0-9-]{1,40})"),
    re.compile(r"(?:(?:/usr)?/s?bin/)?ip link (?:del|delete) (?:dev )?lr[A-Za-z0-9-]{1,13}"),
)


@dataclass(frozen=True, slots=True)
class Lease:
    """What one testbed holds. ``holder`` is the process that will release it."""

    path: Path
    holder: ProcessIdentity
    processes: tuple[ProcessIdentity, ...] = ()
    teardown: tuple[tuple[str, ...], ...] = ()
    folders: tuple[str, ...] = ()

    def write(self) -> None:
        """Replace the file atomically; only its owner can read it. Raises TestbedError."""
        data = {key: value for key, value in asdict(self).items() if key != "path"}
        write_whole(self.path, json.dumps(data), ELSEWHERE, 0o600, self.path.with_suffix(".new"))

    @property
    def folder(self) -> Path:
        """The testbed's own folder: keys, logs."""
        return self.path.with_suffix("")

    @classmethod
    def read(cls, path: Path) -> Lease:
        """Raises ValueError, KeyError or TypeError if the file is no lease, OSError if it cannot be read."""
        data: dict[str, Any] = parse_json(path.read_bytes(), own=True)
        return cls(
            path,
            ProcessIdentity(**data["holder"]),
            tuple(ProcessIdentity(**row) for row in data["processes"]),
            tuple(tuple(str(word) for word in row) for row in data["teardown"]),
            tuple(str(folder) for folder in data["folders"]),
        )


def create_lease(runtime: Path | None = None) -> Lease:
    """A lease for a new testbed, held by this process, with an empty folder (mode 0700)."""
    runtime = runtime or runtime_folder()
    with _lock(runtime):
        while (path := runtime / (secrets.token_hex(3) + _SUFFIX)).exists():
            pass
        lease = Lease(path, identify(os.getpid()))
        lease = replace(lease, folders=(str(lease.folder),))
        lease.write()
        try:
            lease.folder.mkdir(mode=0o700)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise not_written(lease.folder, error, ELSEWHERE) from error
    return lease


def clear_leftovers(runtime: Path | None = None) -> list[str]:
    """Release what testbeds hold whose keeper has ended; returns a sentence for each thing done.

    A lock keeps two processes from doing this at once. Raises TestbedError if the runtime folder is not ours.
    """
    runtime = runtime or runtime_folder()
    done: list[str] = []
    with _lock(runtime):
        for path in sorted(runtime.glob("*" + _SUFFIX)):
            try:
                lease = Lease.read(path)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError):
                done.append(f"removed {path}, which was no lease that can be read")
                remove_folder(path.with_suffix(""), runtime)
                path.unlink(missing_ok=True)
                continue
            if not lease.holder.alive:
                done += _release(lease, runtime)
        for path in sorted(runtime.iterdir()):
            # a lease that was half written, and a folder whose lease went before it
            if _WITHOUT_LEASE.fullmatch(path.name) and not path.with_suffix(_SUFFIX).exists():
                remove_folder(path, runtime)
                done.append(f"removed {path}, {_LEFT}")
            elif path.suffix == IN_USE:
                _remove_unlocked(path)
            elif (half := _HALF_WRITTEN.fullmatch(path.name)) and not psutil.pid_exists(int(half[1])):
                path.unlink(missing_ok=True)
                done.append(f"removed {path}, {_LEFT}")
    return done


def _remove_unlocked(path: Path) -> None:
    """Remove the lock *path* of a process that was killed; it holds nothing any more."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if lock_within(descriptor) and is_at(path, descriptor):
                path.unlink()
        finally:
            os.close(descriptor)


def release(path: Path) -> list[str]:
    """Release what the lease *path* names; its holder must be this process or have ended.

    Returns a sentence for each thing done; none if there is no lease any more.
    """
    if not path.exists():
        return []
    with _lock(path.parent):
        try:
            return _release(Lease.read(path), path.parent)
        except FileNotFoundError:
            return []


def _release(lease: Lease, runtime: Path) -> list[str]:
    done = []
    for process in lease.processes:
        if process.alive and kill_tree(process.pid):
            done.append(f"ended process {process.pid}, {_LEFT}")
    # descendants of those, which no lease names
    others = [
        found for found in psutil.process_iter() if environment_variable(found, LEASE_VARIABLE) == str(lease.path)
    ]
    done += [f"ended process {found.pid}, {_LEFT}" for found in others if kill_tree(found.pid)]
    for argv in lease.teardown:
        line = " ".join(argv)
        found = permitted_teardown(argv)
        if found is None:
            done.append(f"did not run '{line}' of {lease.path.name}: not a clean-up command of Lineproof's")
            continue
        if "netns" in found.groupdict():
            done += _end_processes_in(found["netns"])
        if not run_command(argv):
            done.append(f"ran '{line}', {_LEFT}")
    for folder in lease.folders:
        if remove_folder(Path(folder), runtime):
            done.append(f"removed {folder}, {_LEFT}")
    for path in runtime.glob("*" + IN_USE):
        _remove_unlocked(path)
    lease.path.with_suffix(".new").unlink(missing_ok=True)
    lease.path.unlink(missing_ok=True)
    return done


def permitted_teardown(argv: tuple[str, ...]) -> re.Match[str] | None:
    """The match if *argv* may be run from a lease: it deletes a namespace or link of ours."""
    if any(" " in word for word in argv):
        return None
    return next((found for pattern in _PERMITTED if (found := pattern.fullmatch(" ".join(argv)))), None)


def run_command(argv: tuple[str, ...]) -> str:
    """Run *argv* for at most COMMAND_LIMIT s; returns "" or a sentence saying how it failed."""
    line = " ".join(argv)
    try:
        result = children.run(argv, COMMAND_LIMIT)
    except FileNotFoundError:
        return f"'{line}' cannot run: there is no program '{argv[0]}' here; install it"
    except OSError as error:
        return f"'{line}' cannot run: {error.strerror}"
    except children.TimeoutExpired:
        return f"'{line}' did not end within {COMMAND_LIMIT:g} s"
    if result.returncode == 0:
        return ""
    reason = (result.stderr or result.stdout).strip().replace("\n", "; ")
    return f"'{line}' failed with status {result.returncode}: {reason or 'it gave no reason'}"


def kill_tree(pid: int) -> bool:
    """SIGTERM, then after 0.5 s SIGKILL, to *pid* and all its descendants. False if there is no such process."""
    try:
        top = psutil.Process(pid)
        processes = [top, *top.children(recursive=True)]
    except psutil.Error:
        return False
    end_all(processes, 0.5)
    return True


def end_all(processes: list[psutil.Process], grace: float) -> list[psutil.Process]:
    """SIGTERM to all, then SIGKILL to those still alive after *grace* s; returns these."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, left = psutil.wait_procs(processes, grace)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, 1.0)
    return list(left)


def remove_folder(folder: Path, runtime: Path) -> bool:
    """Remove *folder* if it is directly within *runtime*. True if it was there."""
    # resolve the parent only: a link in our folder must not lead the removal elsewhere
    if folder.parent.resolve() != runtime.resolve() or folder.name in ("", ".", "..") or not os.path.lexists(folder):
        return False
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _end_processes_in(netns: str) -> list[str]:
    """End what still runs in a network namespace: without its name it would go on unseen."""
    with contextlib.suppress(OSError, children.TimeoutExpired):
        found = children.run(["ip", "netns", "pids", netns], COMMAND_LIMIT)
        pids = [int(word) for word in found.stdout.split() if word.isdigit() and int(word) != os.getpid()]
        return [f"ended process {pid} in {netns}, {_LEFT}" for pid in pids if kill_tree(pid)]
    return []


@contextlib.contextmanager
def _lock(runtime: Path) -> Iterator[None]:
    try:
        descriptor = os.open(runtime / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise not_written(runtime / "lock", error, ELSEWHERE) from error
    try:
        if not lock_within(descriptor, LOCK_LIMIT):
            raise TestbedError(
                f"{runtime / 'lock'} has been held for {LOCK_LIMIT:g} s by another process, which clears up a"
                " testbed there or hangs; see who holds it with 'fuser', end that process and start again"
            )
        yield
    finally:
        os.close(descriptor)
