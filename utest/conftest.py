"""Parts that all tests share: fixtures, their order, ``--quick``; an unmarked test may have no process or socket."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
import zmq

from lineproof.system.identity import runtime_folder
from lineproof.testbed import namespaces
from support.fuzz import TIMES
from support.profile_processes import ProfileProcesses
from support.trex_profile_support import Own

SLOW = ("slow", "netns")
"""Markers of tests that ``--quick`` leaves out."""

FEW, EXAMPLES = 25, 100
"""Made-up inputs of a test that asks for no number itself: with ``--quick``, and without."""

PROCESSES = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
FAMILIES = {socket.AF_INET, socket.AF_INET6, socket.AF_UNIX}


class Unmarked(AssertionError):
    """A test that is not marked ``slow`` started a process or opened a socket."""


class Watch:
    """Refuses processes and sockets while a test runs. What was refused fails it, even where the error is caught."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.active = False

    def install(self) -> None:
        """For the rest of this process: audit hooks stay."""
        sys.addaudithook(self._audit)
        make = zmq.Context.socket

        def checked(*args: Any, **options: Any) -> Any:
            if self.active:
                self._refuse("a ZeroMQ socket")
            return make(*args, **options)

        zmq.Context.socket = checked  # type: ignore[method-assign]

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event in PROCESSES:
            self._refuse(f"a process ({event})")
        # a pair of sockets leads nowhere: asyncio wakes its own loop with one
        if event == "socket.__new__" and args[1] in FAMILIES and sys._getframe(2).f_code.co_name != "socketpair":
            self._refuse("a socket")

    def _refuse(self, what: str) -> NoReturn:
        self.refused.append(what)
        raise Unmarked(f"{what} in a test that is not marked 'slow'")


WATCH = Watch()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests without processes and sockets")


def pytest_configure(config: pytest.Config) -> None:
    # a busy machine is no defect: nothing is judged by the time that it takes
    hypothesis.settings.register_profile(
        "lineproof",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        max_examples=(FEW if config.getoption("--quick") else EXAMPLES) * TIMES,
    )
    hypothesis.settings.load_profile("lineproof")
    # started with nohup or as a job of a script, this process ignores Ctrl-C, and its children would too
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    WATCH.install()


def is_slow(item: pytest.Item) -> bool:
    """Return whether the test may start processes and open sockets."""
    return any(item.get_closest_marker(name) for name in SLOW)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files that take long first, so that the workers of xdist end together; with ``--quick`` no slow test."""
    slow = {item for item in items if is_slow(item)}
    if config.getoption("--quick"):
        config.hook.pytest_deselected(items=[item for item in items if item in slow])
        items[:] = [item for item in items if item not in slow]
    files = {item.path for item in slow}
    # the tests of a file stay together, and in their order
    items.sort(key=lambda item: (item.path not in files, item.path.parent.name != "suites"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test between network namespaces is skipped where there can be none, before any fixture makes one."""
    if item.get_closest_marker("netns") and (reason := no_namespaces()):
        pytest.skip(reason)


@cache
def no_namespaces() -> str | None:
    """Why there can be none here. Tries it, once."""
    return namespaces.reason_against()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    WATCH.active = not is_slow(item)
    try:
        return (yield)
    finally:
        WATCH.active = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    WATCH.active = False  # what several tests share ends with the last of them, whichever it is


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    WATCH.refused.clear()
    result = yield
    if WATCH.refused:
        raise Unmarked(f"{', '.join(WATCH.refused)} in a test that is not marked 'slow'")
    return result


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime folder, of this test alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return runtime_folder()


@pytest.fixture(scope="module")
def profile_processes() -> Iterator[ProfileProcesses]:
    """Where processes that load profiles are forked. It ends with the file: others look for processes that are left."""
    with contextlib.closing(ProfileProcesses()) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile_processes: ProfileProcesses) -> Own:
    """A project with a profile in TRex's format of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lineproof.generators.trex.profile_loader.children", profile_processes)
    return Own(tmp_path)
