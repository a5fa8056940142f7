"""Leases: leftovers of a killed testbed are removed, and nothing else, whatever a lease file holds."""

import json
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.system.identity import ProcessIdentity, cache_folder, identify, runtime_folder, state_folder
from lineproof.testbed import leases
from lineproof.testbed.leases import Lease


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def ended() -> ProcessIdentity:
    """A process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identify(child.pid)
    child.communicate(b"\n")
    return identity


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What would have been run."""
    seen: list[tuple[str, ...]] = []
    monkeypatch.setattr(leases, "run_command", lambda argv, *_: seen.append(argv) or "")
    monkeypatch.setattr(leases, "_end_processes_in", lambda netns: [])
    return seen


def abandoned(runtime: Path, holder: ProcessIdentity, **more: Any) -> Lease:
    lease = replace(leases.create_lease(runtime), holder=holder, **more)
    lease.write()
    return lease


@pytest.mark.slow
def test_a_process_is_known_by_more_than_its_id(ended: ProcessIdentity) -> None:
    me = identify(os.getpid())
    assert me.alive
    assert not replace(me, start="1").alive
    assert not replace(me, where="another boot").alive
    assert not ended.alive


def test_a_process_of_another_pid_namespace_is_left_alone() -> None:
    me = identify(os.getpid())
    assert replace(me, start="1", where=me.where.split()[0] + " pid:[1]").alive


def test_a_new_lease_is_private_and_kept(runtime: Path) -> None:
    lease = leases.create_lease(runtime)
    assert stat.S_IMODE(lease.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(lease.folder.stat().st_mode) == 0o700
    assert Lease.read(lease.path) == lease
    assert leases.clear_leftovers(runtime) == []
    assert lease.path.exists()
    assert leases.release(lease.path)
    assert leases.release(lease.path) == []
    assert [path.name for path in runtime.iterdir()] == ["lock"]


@pytest.mark.slow
def test_leftovers_of_a_killed_testbed_are_removed(
    runtime: Path, ended: ProcessIdentity, commands: list[tuple[str, ...]]
) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        names = (("ip", "netns", "del", "lr-1a2b3c-router"), ("/usr/sbin/ip", "link", "delete", "lr1a2b3cg0"))
        lease = abandoned(runtime, ended, processes=(identify(child.pid),), teardown=names)
        done = leases.clear_leftovers(runtime)
        assert len(done) == 4
        assert not lease.processes[0].alive
        assert tuple(commands) == names
        assert not lease.folder.exists()
        assert not lease.path.exists()
        assert leases.clear_leftovers(runtime) == []
    finally:
        child.kill()
        child.wait()


@pytest.mark.slow
def test_a_process_id_used_again_is_not_killed(runtime: Path, ended: ProcessIdentity) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        abandoned(runtime, ended, processes=(replace(identify(child.pid), start="1"),))
        leases.clear_leftovers(runtime)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        ("rm", "-rf", "/"),
        ("ip", "netns", "del", "customer"),
        ("ip", "netns", "del", "lr-x", "&&", "reboot"),
        ("ip", "netns", "exec", "lr-x", "reboot"),
        ("ip", "link", "del", "eth0"),
        ("ip netns del lr-x",),
        ("ip", "netns", "del", "lr-x\n"),
        ("/tmp/evil/ip", "netns", "del", "lr-x"),
        (),
    ],
)
def test_no_other_command_of_a_lease_is_run(
    runtime: Path, ended: ProcessIdentity, commands: list[tuple[str, ...]], argv: tuple[str, ...]
) -> None:
    abandoned(runtime, ended, teardown=(argv,))
    assert any("did not run" in line for line in leases.clear_leftovers(runtime))
    assert commands == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(argv=st.lists(st.text(max_size=12), max_size=6))
def test_no_made_up_command_is_run(argv: list[str]) -> None:
    assert not leases.permitted_teardown(tuple(argv)) or argv[0].endswith("ip")


@pytest.mark.slow
def test_only_folders_of_the_runtime_folder_are_removed(runtime: Path, ended: ProcessIdentity, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    link = runtime / "link"
    link.symlink_to(precious)
    folders = (str(precious), str(runtime / ".." / "precious"), str(link), str(runtime), str(runtime / "."), "/")
    abandoned(runtime, ended, folders=folders)
    leases.clear_leftovers(runtime)
    assert (precious / "file").exists()
    assert runtime.is_dir()
    assert not link.is_symlink()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"holder": {}}', json.dumps({"holder": 1, "processes": []})])
def test_a_lease_that_cannot_be_read_is_removed(runtime: Path, text: str) -> None:
    (runtime / "abc.lease").write_text(text)
    (runtime / "abc").mkdir()
    assert len(leases.clear_leftovers(runtime)) == 1
    assert [path.name for path in runtime.iterdir()] == ["lock"]


@pytest.mark.slow
def test_only_one_process_cleans_up_at_a_time(runtime: Path, ended: ProcessIdentity) -> None:
    for _ in range(5):
        abandoned(runtime, ended)
    done: list[str] = []
    threads = [threading.Thread(target=lambda: done.extend(leases.clear_leftovers(runtime))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(done) == len(set(done)) == 5


class TestRuntimeFolder:
    def test_made_private(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        folder = runtime_folder()
        assert folder == tmp_path / "lineproof"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o755)
        assert stat.S_IMODE(runtime_folder().stat().st_mode) == 0o700

    def test_one_that_others_could_write_in_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        runtime_folder().chmod(0o777)
        with pytest.raises(TestbedError, match="may be written by others"):
            runtime_folder()

    def test_a_link_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "lineproof").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(TestbedError, match="must be a folder"):
            runtime_folder()

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
    def test_a_folder_of_another_user_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        (tmp_path / "lineproof").mkdir()
        os.chown(tmp_path / "lineproof", 12345, -1)
        with pytest.raises(TestbedError, match="belongs to user 12345"):
            runtime_folder()

    def test_without_the_variable_it_is_below_tmp(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        assert runtime_folder() == Path(f"/tmp/lineproof-{os.getuid()}")

    @pytest.mark.parametrize("mode", [0o770, 0o707])
    def test_a_folder_above_it_that_others_may_write_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
    ) -> None:
        for variable in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(variable, str(tmp_path))
        tmp_path.chmod(mode)
        assert runtime_folder() == Path(f"/tmp/lineproof-{os.getuid()}")
        for folder in (lambda: state_folder("routers"), cache_folder):
            with pytest.raises(TestbedError, match="others may replace"):
                folder()
        tmp_path.chmod(0o1777)
        assert cache_folder() == tmp_path / "lineproof"


@pytest.mark.slow
def test_whatever_a_kill_left_half_made_goes_at_the_next_start(runtime: Path, ended: ProcessIdentity) -> None:
    open_one, killed = leases.create_lease(runtime), abandoned(runtime, ended)
    for lease in (open_one, killed):
        lease.path.with_suffix(".new").write_text("{")  # killed while it was written
    (runtime / "abcdef.new").write_text("")
    (runtime / f".{2**22 + 1}-ba9876543210.part").write_text("{")
    being_written = runtime / f".{os.getpid()}-ba9876543210.part"
    being_written.write_text("{")
    (runtime / "012345").mkdir()
    (runtime / "012345" / "server.log").write_text("")
    others = ["somebody's", "notes.new"]
    for name in others:
        (runtime / name).write_text("")
    done = leases.clear_leftovers(runtime)
    assert len([line for line in done if "abcdef.new" in line or "012345" in line or "ba98" in line]) == 3
    names = {path.name for path in runtime.iterdir()}
    assert names == {
        "lock",
        *others,
        being_written.name,
        *(open_one.path.with_suffix(end).name for end in ("", ".lease", ".new")),
    }
