"""Parts that all tests share: fixtures, their order, ``--quick``; an unmarked test may have no process or socket."""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NoReturn
from unittest import mock

import hypothesis
import pytest

from lineproof.system.folders import runtime_folder
from support import made_runs
from support.fuzz import TIMES
from support.profile_processes import ProfileProcesses
from support.trex_profile_support import Own
from support.two_hosts import no_namespaces

SLOW = ("slow", "netns")
"""Markers of tests that ``--quick`` leaves out."""

FEW, EXAMPLES = 25, 50
"""Made-up inputs of a test that asks for no number itself: with ``--quick``, and without."""

REFUSED = (
    *("subprocess.Popen.__init__", "os.fork", "os.posix_spawn", "os.system", "socket.socket.connect"),
    *("socket.socket.bind", "zmq.Socket.connect", "zmq.Socket.bind"),
)
"""The beginnings of processes and of links to them, which a test without a mark must not come to."""


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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import the tests without a search for garbage: what they import stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


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


@pytest.fixture(autouse=True)
def _only_marked_tests_start_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        pytest.fail("a process or a socket in a test that is not marked 'slow'")

    if not is_slow(request.node):
        for place in REFUSED:
            monkeypatch.setattr(place, refuse, raising=False)
        # nothing that runs later needs these files, and a disk takes its time
        monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the runtime folder, of this test alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return runtime_folder()


@pytest.fixture(scope="module")
def profile_processes() -> Iterator[ProfileProcesses]:
    """Provide forked processes that load profiles. They end with the file: others look for processes left."""
    with contextlib.closing(ProfileProcesses()) as processes:
        yield processes


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile_processes: ProfileProcesses) -> Own:
    """Return a project with a profile in TRex's format of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TREX_HOME", raising=False)
    monkeypatch.setattr("lineproof.generators.trex.profile_loader.children", profile_processes)
    return Own(tmp_path)


@pytest.fixture(scope="module")
def as_recorded() -> Iterator[None]:
    """Take the verdicts of made runs as they are recorded."""
    with mock.patch("lineproof.evidence.rejudge.rejudge", made_runs.as_recorded):
        yield
