"""Network namespaces as root: what is shown inside of one, and that nothing is left of one, whichever process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.system import children, network_namespace
from lineproof.system.network_namespace import Namespace, configure, inside, kept_within
from support import leftovers
from support.patience import wait_until
from support.robot_run import processes_of

OWNER = """
import sys, time
from pathlib import Path
from lineproof.system import children, network_namespace
from lineproof.system.network_namespace import inside
from lineproof.testbed.netns import build_topology
network_namespace.LIMIT = 60.0
folder = Path(sys.argv[1])
topology = build_topology(folder=folder)
script = "trap 'rm $0; exit' TERM; sleep 300 & setsid sleep 300 & touch $0; while :; do sleep 0.1; done"
for index, path in enumerate(topology.namespaces):
    children.Child((*inside(path, bound=True), "sh", "-c", script, f"{folder.parent}/ready{index}"))
print(*topology.namespaces, flush=True)
time.sleep(300)
"""
"""Has a topology; in each namespace a program with two of TWO, which removes a file when it is asked to end."""

TWO = ["sleep", "300"]


@contextlib.contextmanager
def owner(folder: Path) -> Iterator[list[str]]:
    """Start an owner whose folder is *folder*/run, which is killed at last; yield the paths of its namespaces."""
    (folder / "run").mkdir()
    with leftovers.owner(OWNER, folder / "run", XDG_RUNTIME_DIR=str(folder)) as (process, paths):
        wait_until(lambda: all((folder / f"ready{index}").exists() for index in (0, 1)), "the programs")
        yield paths.split()
        process.kill()
    wait_until(lambda: processes_of(folder) == [], lambda: processes_of(folder))


def bound_to(path: str) -> list[psutil.Process]:
    """Return the processes that have to end with the namespace *path*, its holder first."""
    holder, found = int(Path(path).parents[1].readlink().name), []
    space = Path(f"/proc/{holder}/ns/pid").readlink()
    # with the words of its command, as one that ends meanwhile has none to ask for later
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(OSError):
            found += [process] if Path(f"/proc/{process.pid}/ns/pid").readlink() == space else []
    return sorted(found, key=lambda process: process.pid != holder)


@pytest.mark.netns
def test_a_killed_owner_leaves_no_process_no_namespace_and_no_folder(tmp_path: Path) -> None:
    with owner(tmp_path) as paths:
        pass
    assert list(tmp_path.iterdir()) == [] and not any(os.access(path, os.F_OK) for path in paths)


@pytest.mark.netns
@pytest.mark.parametrize("outer", [False, True])
def test_a_killed_holder_leaves_no_program_and_no_interface(tmp_path: Path, outer: bool) -> None:
    with owner(tmp_path) as (generator, router):
        wait_until(lambda: [each.info["cmdline"] for each in bound_to(generator)].count(TWO) == 2, "the programs")
        bound = bound_to(generator)
        (bound[0].parent() if outer else bound[0]).kill()
        assert psutil.wait_procs(bound, 60)[1] == [] and not os.access(generator, os.F_OK)
        shown = (*inside(router), "ls", "/sys/class/net")
        wait_until(lambda: subprocess.run(shown, capture_output=True, check=True).stdout == b"lo\n", "no cable")


@pytest.mark.netns
def test_the_end_of_input_ends_a_program_and_all_that_runs_in_its_namespace() -> None:
    """Commands of sessions outlive their SSH server in the same way."""
    with closing(Namespace()) as namespace:
        outlives = (*inside(namespace.path), "sh", "-c", "setsid sleep 300 & echo; wait")
        kept = children.Child(kept_within(namespace.path, outlives), stderr=children.DEVNULL)
        child = subprocess.Popen((*inside(namespace.path), "sh", "-c", "echo; exec sleep 300"), stdout=subprocess.PIPE)
        assert kept.line(10) == b"" and child.stdout and child.stdout.read(1) == b"\n"
        assert kept.end(10) and child.wait(10) == -signal.SIGKILL
        wait_until(lambda: not os.access(namespace.path, os.F_OK))


@pytest.mark.netns
def test_a_command_sees_the_namespaces_interfaces_and_the_machines_processes() -> None:
    with closing(Namespace()) as namespace:
        configure(namespace.path, "link add eth1 type veth peer name eth2")
        argv = (*inside(namespace.path), "ls", "/sys/class/net", f"/proc/{os.getpid()}/stat")
        shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    assert shown == [f"/proc/{os.getpid()}/stat", "/sys/class/net:", "eth1", "eth2", "lo"]


@pytest.mark.netns
def test_another_user_learns_in_one_sentence_which_rights_are_missing() -> None:
    reading, writing = os.pipe()
    if not (process := os.fork()):
        os.setuid(65534)
        try:
            Namespace()
        except TestbedError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as told:
        assert "Operation not permitted); it needs root" in told.read()
    assert os.waitpid(process, 0)[1] == 0


@pytest.mark.slow
def test_a_namespace_that_is_not_made_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stuck = tmp_path / "unshare"
    stuck.write_text("#!/bin/sh\nexec sleep 300\n")
    stuck.chmod(0o700)
    monkeypatch.setattr(children, "find_program", lambda name: str(stuck))
    monkeypatch.setattr(network_namespace, "LIMIT", 0.2)
    with pytest.raises(TestbedError, match=r"nothing happened within 0\.2 s"):
        Namespace()
