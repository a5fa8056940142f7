"""Allure 3, the program that makes the report's page: fetched once by npm in the versions of ``allure3/``, then kept.

npm compares every package with the sums that ``package-lock.json`` has, and runs none of their scripts. Where they come
from is npm's own setting (``registry`` in ``~/.npmrc``). Afterwards no network is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path

from ..errors import TestbedError, system_words
from ..files import cache_folder
from ..system import children
from ..system.node import Node
from ..visible import shortened

LOCK = ("package.json", "package-lock.json")
FETCH_LIMIT, MAKE_LIMIT = 300.0, 180.0
"""Seconds until npm, and Allure, must be done."""

_PROGRAM = Path("node_modules/allure/cli.js")
_INSTEAD = "set XDG_CACHE_HOME to another folder that can be written"
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def allure_folder() -> Path:
    """Where this version of Allure is kept, in the user's cache. Raises TestbedError if the user has none."""
    digest = hashlib.sha256(b"\0".join(_locked(name) for name in LOCK)).hexdigest()
    return cache_folder() / f"allure3-{digest[:16]}"


def is_fetched() -> bool:
    """Whether it is there. Raises TestbedError as :func:`allure_folder`."""
    return (allure_folder() / _PROGRAM).is_file()


def fetch_allure(node: Node) -> None:
    """Fetch it with npm. Raises ConfigError without npm, TestbedError if it cannot be fetched or kept."""
    folder = allure_folder()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent, ignore_cleanup_errors=True) as name:
            fresh = Path(name, folder.name)
            fresh.mkdir()
            for file in LOCK:
                (fresh / file).write_bytes(_locked(file))
            _run_npm(node, fresh)
            with contextlib.suppress(OSError):  # another process was faster
                fresh.rename(folder)
            if not is_fetched():  # what is there is not whole
                shutil.rmtree(folder, ignore_errors=True)
                fresh.rename(folder)
    except OSError as error:
        words = system_words(error, folder, _INSTEAD)
        raise TestbedError(f"Allure, which makes the report, cannot be kept in {words}") from error


def _run_npm(node: Node, fresh: Path) -> None:
    command = node.npm_command("ci", *_OPTIONS)
    try:
        done = children.run(command, FETCH_LIMIT, env=node.npm_environment, cwd=fresh)
    except children.TimeoutExpired:
        raise TestbedError(f"npm did not fetch Allure within {FETCH_LIMIT:g} s; {_offline()}") from None
    if done.returncode or not (fresh / _PROGRAM).is_file():
        said = shortened(done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}")
        raise TestbedError(f"npm cannot fetch Allure, which makes the report: {said}; {_offline()}")


def _offline() -> str:
    return (
        "this is needed once: connect this machine to npm's registry, name another one by 'npm config set registry',"
        f" or copy the folder {allure_folder()} of a machine that has it"
    )


def run_allure(node: Node, results: Path, settings: Path, output: Path) -> None:
    """Make the report of the Allure *results* with *settings* in *output*. Raises TestbedError if that fails."""
    program = str(allure_folder() / _PROGRAM)
    words = ("generate", str(results), "--config", str(settings), "--output", str(output))
    try:
        done = children.run([str(node.program), program, *words], MAKE_LIMIT, env=node.environment, cwd=results.parent)
    except children.TimeoutExpired:
        raise TestbedError(f"Allure did not make the report within {MAKE_LIMIT:g} s") from None
    except OSError as error:
        raise TestbedError(system_words(error, node.program)) from error
    if done.returncode:
        said = shortened(done.stderr.strip() or done.stdout.strip())
        raise TestbedError(
            f"Allure could not make the report (exit status {done.returncode}): {said}; if its copy is damaged,"
            f" remove {allure_folder()}: it is fetched again"
        )


def _locked(name: str) -> bytes:
    return (files(__package__) / "allure3" / name).read_bytes()
