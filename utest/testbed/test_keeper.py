"""The keeper and its client: a testbed is always taken down, whichever process is killed."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.system.children import environment
from lineproof.testbed import leases
from lineproof.testbed.keeper_client import KeeperClient
from lineproof.testbed.keeper_plan import KeeperPlan, ProcessPlan, resolve

OBEDIENT = """
import json, sys
spec = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True, "port": 7, "got": spec}), flush=True)
sys.stdin.read()
"""
STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(json.dumps({"ready": True}), flush=True)
time.sleep(60)
"""
RETURNING = """
import json, os, sys
spec = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True}), flush=True)
if spec["number"] < 2:
    again = {"after": 0.1, "specification": {"number": spec["number"] + 1, "port": spec.get("other")}}
    print(json.dumps({"again": again}), flush=True)
    os._exit(70)
sys.stdin.read()
"""
MUTE = "import sys; print('I am thinking', file=sys.stderr, flush=True); sys.stdin.read()"
PARENT = """
import json, subprocess, sys
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(json.dumps({"ready": True, "child": child.pid}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lease(tmp_path: Path) -> Iterator[leases.Lease]:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    yield leases.create_lease(runtime)
    assert {path.name for path in runtime.iterdir()} - {"logs"} == {"lock"}  # the logs that an error named stay


def process(lease: leases.Lease, name: str, code: str, **more: Any) -> ProcessPlan:
    fields: dict[str, Any] = {"spec": {}, "limit": 10.0, **more}
    return ProcessPlan(name, (sys.executable, "-c", code), str(lease.folder / f"{name}.log"), **fields)


def log_named_in(message: str) -> Path:
    """What a person opens who reads *message*."""
    found = re.search(r"\(all of it is in (.+?)\)", message)
    assert found
    return Path(found[1])


def plan(lease: leases.Lease, *processes: ProcessPlan, **more: tuple[tuple[str, ...], ...]) -> KeeperPlan:
    return KeeperPlan(lease=str(lease.path), processes=processes, folders=lease.folders, **more)


def soon(true: Callable[[], bool], limit: float = 30.0) -> bool:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.02)
    return true()


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_reference_keeps_its_type_alone_and_becomes_text_within_text() -> None:
    facts = {"server": {"port": 4501}}
    assert resolve({"a": "${server.port}", "b": ["at ${server.port}."]}, facts) == {"a": 4501, "b": ["at 4501."]}
    with pytest.raises(KeyError, match="nobody"):
        resolve("${nobody.port}", facts)


words = st.text(min_size=1, max_size=8)


@given(st.lists(st.lists(words, min_size=1).map(tuple)).map(tuple), words, st.sampled_from(["json", ("h", 1)]))
def test_a_plan_can_be_read_back_from_its_json(commands, name, ready) -> None:
    first = ProcessPlan(name, ("x",), "log", {"a": [1]}, {"E": "1"}, ready, 3.0)
    given_plan = KeeperPlan("lease", commands, (first,), commands, ("f",))
    line = given_plan.to_json()
    assert "\n" not in line
    assert KeeperPlan.from_json(line) == given_plan


@pytest.mark.slow
@pytest.mark.usefixtures("processes_as_users_have_them")
class TestKeeper:
    def test_later_processes_get_the_facts_of_earlier_ones(self, lease: leases.Lease) -> None:
        keeper = KeeperClient.start(
            plan(lease, process(lease, "a", OBEDIENT), process(lease, "b", OBEDIENT, spec={"to": "${a.port}"}))
        )
        try:
            assert keeper.facts["b"]["got"] == {"to": 7}
            assert keeper.deaths() == ()
            assert leases.Lease.read(lease.path).holder.pid == keeper.pid
            assert lease.path.stat().st_mode & 0o777 == 0o600
        finally:
            keeper.close()
            keeper.close()
        assert ended(keeper.pid)
        assert keeper.failures == ()

    def test_a_secret_gets_to_the_process_that_is_named_as_it_is(
        self, lease: leases.Lease, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LAB_PHRASE", "${a.port} horse")
        named = process(lease, "b", OBEDIENT, env={"LAB_PHRASE": "${a.port} horse"})
        keeper = KeeperClient.start(plan(lease, process(lease, "a", OBEDIENT), named))
        try:
            a, b = (psutil.Process(row.pid).environ() for row in leases.Lease.read(lease.path).processes)
            assert "LAB_PHRASE" not in a and b["LAB_PHRASE"] == "${a.port} horse"
            assert "LAB_PHRASE" not in psutil.Process(keeper.pid).environ()
            assert "horse" not in lease.path.read_text()
        finally:
            keeper.close()

    def test_a_process_that_asks_for_it_is_started_again(self, lease: leases.Lease) -> None:
        keeper = KeeperClient.start(plan(lease, process(lease, "a", RETURNING, spec={"number": 0})))
        try:
            assert soon(lambda: len(keeper.deaths()) == 2 and all(death.restarted for death in keeper.deaths()))
            assert "'a' ended with status 70" in str(keeper.deaths()[0])
            assert str(keeper.deaths()[0]).endswith("it was started again")
            keeper.forget_restarted()
            assert keeper.deaths() == ()
        finally:
            keeper.close()
        assert ended(keeper.pid) and keeper.failures == ()

    def test_a_process_that_cannot_be_started_again_stays_ended(self, lease: leases.Lease) -> None:
        code = RETURNING.replace("if spec", "assert spec['number'] == 0\nif spec")
        code = code.replace('print(json.dumps({"ready"', 'spec["number"] == 0 and print(json.dumps({"ready"')
        keeper = KeeperClient.start(plan(lease, process(lease, "a", code, spec={"number": 0})))
        try:
            assert soon(lambda: len(keeper.deaths()) == 2)
            keeper.forget_restarted()
            assert [death.restarted for death in keeper.deaths()] == [False, False]
        finally:
            keeper.close()
        assert ended(keeper.pid)

    def test_setup_that_fails_half_way_is_taken_down(self, lease: leases.Lease, tmp_path: Path) -> None:
        made, undone = tmp_path / "made", tmp_path / "undone"
        bad = plan(
            lease,
            setup=(("touch", str(made)), ("sh", "-c", "echo no room >&2; exit 3"), ("touch", str(tmp_path / "never"))),
            teardown=(("false",), ("touch", str(undone))),
        )
        with pytest.raises(TestbedError, match="failed with status 3: no room"):
            KeeperClient.start(bad)
        assert made.exists()
        assert undone.exists()
        assert not (tmp_path / "never").exists()

    def test_a_missing_program_is_one_sentence(self, lease: leases.Lease) -> None:
        with pytest.raises(TestbedError, match="there is no program 'no-such-program'"):
            KeeperClient.start(plan(lease, setup=(("no-such-program",),)))

    def test_a_process_that_is_never_ready_is_an_error_with_its_log(self, lease: leases.Lease) -> None:
        with pytest.raises(TestbedError, match=r"'slow' was not ready within 0.5 s; its log ends: I am thinking"):
            KeeperClient.start(plan(lease, process(lease, "a", OBEDIENT), process(lease, "slow", MUTE, limit=0.5)))

    def test_an_early_end_is_reported_with_the_log(self, lease: leases.Lease) -> None:
        code = "import sys; sys.exit('it hurts')"
        with pytest.raises(
            TestbedError, match=r"'ill' ended with status 1 before it was ready; its log ends: it hurts"
        ) as caught:
            KeeperClient.start(plan(lease, process(lease, "ill", code)))
        assert not lease.folder.exists() and log_named_in(str(caught.value)).read_text() == "it hurts\n"

    def test_the_error_of_a_process_is_passed_on(self, lease: leases.Lease) -> None:
        code = 'print(\'{"error": "port 4501 is taken"}\'); raise SystemExit(1)'
        with pytest.raises(TestbedError, match=r"^port 4501 is taken$"):
            KeeperClient.start(plan(lease, process(lease, "server", code)))

    def test_a_process_is_ready_once_it_accepts_a_connection(self, lease: leases.Lease) -> None:
        code = "import socket, time; s = socket.create_server(('127.0.0.1', {})); time.sleep(60)"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        listener = process(lease, "sshd", code.format(port), spec=None, ready=("127.0.0.1", port))
        keeper = KeeperClient.start(plan(lease, listener))
        socket.create_connection(("127.0.0.1", port), 5).close()
        keeper.close()
        assert keeper.failures == ()

    def test_deaths_are_reported(self, lease: leases.Lease) -> None:
        code = OBEDIENT.replace("sys.stdin.read()", "sys.exit('tired')")
        keeper = KeeperClient.start(plan(lease, process(lease, "a", OBEDIENT), process(lease, "b", code)))
        try:
            assert soon(lambda: len(keeper.deaths()) == 1)
            said = str(keeper.deaths()[0])
            assert said.startswith(
                "the testbed's process 'b' ended with status 1; its log ends: tired (all of it is in "
            )
        finally:
            keeper.close()
        assert log_named_in(said).read_text() == "tired\n"

    def test_processes_that_do_not_end_and_orphans_are_killed(self, lease: leases.Lease) -> None:
        keeper = KeeperClient.start(plan(lease, process(lease, "mule", STUBBORN), process(lease, "p", PARENT)))
        began = time.monotonic()
        keeper.close()
        assert time.monotonic() - began < 30  # they sleep for 60 s
        assert keeper.failures == ("'mule' had to be killed",)
        assert ended(keeper.facts["p"]["child"])

    def test_sigterm_to_the_keeper_takes_down_and_sigint_does_not(self, lease: leases.Lease) -> None:
        keeper = KeeperClient.start(plan(lease, process(lease, "p", PARENT)))
        os.kill(keeper.pid, signal.SIGINT)
        os.kill(keeper.pid, signal.SIGHUP)
        time.sleep(0.2)
        assert keeper.deaths() == ()
        os.kill(keeper.pid, signal.SIGTERM)
        assert soon(lambda: ended(keeper.facts["p"]["child"]) and not lease.path.exists())
        keeper.close()

    def test_killed_keeper_leaves_no_process_and_its_lease_is_cleared(self, lease: leases.Lease) -> None:
        keeper = KeeperClient.start(plan(lease, process(lease, "p", PARENT), process(lease, "mule", STUBBORN)))
        pids = [row.pid for row in leases.Lease.read(lease.path).processes]
        assert len(pids) == 2
        os.kill(keeper.pid, signal.SIGKILL)
        assert soon(lambda: all(ended(pid) for pid in pids))
        assert soon(lambda: [death.name for death in keeper.deaths()] == ["keeper"])
        assert not ended(keeper.facts["p"]["child"])
        assert leases.clear_leftovers(lease.path.parent)
        assert ended(keeper.facts["p"]["child"])
        assert not lease.folder.exists()
        keeper.close()

    def test_a_killed_owner_ends_the_testbed(self, lease: leases.Lease) -> None:
        text = plan(lease, process(lease, "mule", STUBBORN), process(lease, "p", PARENT)).to_json()
        code = (
            "import sys, time, json\n"
            "from lineproof.testbed.keeper_client import KeeperClient\n"
            "from lineproof.testbed.keeper_plan import KeeperPlan\n"
            "keeper = KeeperClient.start(KeeperPlan.from_json(sys.stdin.readline()))\n"
            "print(json.dumps([keeper.pid, keeper.facts['p']['child']]), flush=True)\n"
            "time.sleep(60)\n"
        )
        owner = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
        )
        assert owner.stdin
        assert owner.stdout
        with owner.stdin, owner.stdout:
            owner.stdin.write(text + "\n")
            owner.stdin.flush()
            pids = json.loads(owner.stdout.readline())
            pids += [row.pid for row in leases.Lease.read(lease.path).processes]
            owner.kill()
            owner.wait(30)
        assert soon(lambda: all(ended(pid) for pid in pids))
        assert soon(lambda: not lease.path.exists())

    def test_an_owner_killed_during_setup_ends_the_testbed(self, lease: leases.Lease) -> None:
        text = plan(lease, process(lease, "p", PARENT), process(lease, "slow", MUTE, limit=30)).to_json()
        keeper = subprocess.Popen(
            [sys.executable, "-m", "lineproof.testbed.keeper"], stdin=subprocess.PIPE, env=environment()
        )
        assert keeper.stdin
        keeper.stdin.write(text.encode() + b"\n")
        keeper.stdin.flush()
        assert soon(lambda: lease.path.exists() and len(leases.Lease.read(lease.path).processes) == 2)
        keeper.stdin.close()
        assert keeper.wait(30) == 0

    def test_two_testbeds_do_not_disturb_each_other(self, lease: leases.Lease) -> None:
        other = leases.create_lease(lease.path.parent)
        first = KeeperClient.start(plan(lease, process(lease, "a", OBEDIENT)))
        second = KeeperClient.start(plan(other, process(other, "a", OBEDIENT)))
        try:
            assert leases.clear_leftovers(lease.path.parent) == []
            first.close()
            assert second.deaths() == ()
            assert other.folder.is_dir()
        finally:
            first.close()
            second.close()

    def test_a_keeper_that_cannot_begin_is_one_error(
        self, lease: leases.Lease, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        broken = tmp_path / "python"
        broken.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
        broken.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(broken))
        with pytest.raises(TestbedError, match=r"did not answer; its log ends: broken") as caught:
            KeeperClient.start(plan(lease))
        assert log_named_in(str(caught.value)).read_text() == "broken\n"
