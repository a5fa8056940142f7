"""Connections of a session: ports that another user has are waited for, a login that comes too late is ended."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.telemetry import Side
from lineproof.errors import TestbedError
from lineproof.generators.base import PortsTaken
from lineproof.routers.journal import ChangeJournal
from lineproof.session import generator, session
from lineproof.session.generator import GeneratorConnection
from lineproof.session.router import RouterConnection
from lineproof.session.session import Session
from lineproof.testbed.lab import LabSettings, PowerCycleSettings
from lineproof.testbed.settings import HardwareSettings
from support.simulated_router import CHANGE, ROUTER, occasion

TAKEN = PortsTaken("a port of the TRex server at a:4501 is taken: port 0 is owned by 'alice'")


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "PORTS_POLL", 0.01)
    monkeypatch.setattr(generator, "AFTER_OTHERS", 0.01)
    monkeypatch.setattr(session, "POLL", 0.01)


def free(wait: float, *answers: object) -> tuple[Any, list[str]]:
    """Return what comes of connecting to a generator that gives *answers* in turn, and what is said."""
    settings = {"testbed": "lab", "kind": "hardware", "generator": {"address": "a"}, "wait_for_testbed": wait}
    lines, left = list[str](), list(answers)

    def connect(_: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    plan: Any = SimpleNamespace(testbed=HardwareSettings.model_validate(settings))
    testbed: Any = SimpleNamespace(say=lines.append)
    return GeneratorConnection(plan, testbed)._free_generator(connect), lines


def test_they_are_claimed_once_they_are_free() -> None:
    waiting = f"waiting for testbed 'lab', at most 10 s: {TAKEN}"
    assert free(10, TAKEN, TAKEN, "a generator") == ("a generator", [waiting])
    assert free(10, "a generator") == ("a generator", [])


@pytest.mark.parametrize("wait", [0, 0.05])
def test_the_error_is_that_of_the_ports_without_time_or_after_it(wait: float) -> None:
    with pytest.raises(PortsTaken, match="owned by 'alice'"):
        free(wait, TAKEN)


SIDES = (
    Side("eth1", "10.0.0.1/24", "10.0.0.2", "", "16.0.0.0/8"),
    Side("eth2", "10.0.0.10/24", "1.1.1.1", "", "48.0.0.0/8"),
)


def connection(driver: Any = None, restarted: bool = False, keys: tuple[str, ...] = ()) -> RouterConnection:
    """The router of a testbed of hardware, known by *keys*; connected to *driver*, if there is one."""
    settings = {"testbed": "lab", "kind": "hardware", "generator": {"address": "a"}, "prepare": "configure"}
    testbed = HardwareSettings.model_validate(settings)
    plan: Any = SimpleNamespace(
        link_wait=1, testbed=testbed, software=SimpleNamespace(shell="linux", is_black_box=False), command_file=None
    )
    login = SimpleNamespace(where=ROUTER, host_keys=keys)
    opened: Any = SimpleNamespace(facts=SimpleNamespace(router=login, sides=SIDES, simulated=False), runs=True)
    watch: Any = driver and SimpleNamespace(router=driver, restarted=restarted)
    nothing: Any = None
    return RouterConnection(plan, opened, nothing, nothing, watch)


@pytest.mark.parametrize(
    ("end", "restarted", "said"),
    [
        ("", False, []),
        ("not undone: 'x'", False, ["when the router was restored: not undone: 'x'"]),
        (TestbedError("it is gone"), False, ["when the router was restored: it is gone"]),
        (TestbedError("it is gone"), True, ["when the router was restored: it had restarted, and it is gone"]),
    ],
)
def test_what_the_end_of_a_run_finds_on_the_router_is_kept_once(end: object, restarted: bool, said: list[str]) -> None:
    # a Mock raises what is an exception
    driver = Mock(settings=lambda: None, restore=Mock(side_effect=[end, end]))
    router = connection(driver, restarted)
    with pytest.raises(TestbedError) if isinstance(end, Exception) and not restarted else nullcontext():
        router.restore()
    router.restore()
    assert router.afterwards == said


@pytest.mark.parametrize("left", ["SHA256:first", "SHA256:known", "SHA256:another router's", ""])
def test_changes_are_found_by_a_host_key_that_only_the_router_itself_shows(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if left:
        with closing(ChangeJournal.claim(occasion(), left)) as journal:
            journal.add(CHANGE)
    logins, keys = list[int](), ("SHA256:known", "SHA256:first")
    ssh = SimpleNamespace(is_open=True, host_keys=lambda: keys)
    shell = SimpleNamespace(open=lambda: logins.append(1), connection=ssh)
    monkeypatch.setattr("lineproof.session.router.SshShell", lambda login, dialogue: shell)
    found = [each.changes for each in connection(keys=keys[:1]).leftovers()]
    assert found == ([(CHANGE,)] if left in keys else [])
    assert len(logins) == (left != "")


@pytest.mark.parametrize("end", ["restore", "log_in"])
def test_a_login_that_comes_too_late_is_ended(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = list[int]()

    def late() -> None:
        raise TestbedError("the SSH login to the router did not end within 30 s")

    shell = SimpleNamespace(open=late, close=lambda: ended.append(1))
    monkeypatch.setattr("lineproof.session.router.SshShell", lambda login, dialogue: shell)
    router = connection()
    with pytest.raises(TestbedError):
        router.connect()
    with nullcontext() if end == "restore" else pytest.raises(TestbedError):
        getattr(router, end)()
    assert ended == [1]


HANGS = "no answer"
POWER = PowerCycleSettings(boot=0.05)


class Rig(SimpleNamespace):
    """A session whose router is silent for the reasons *readings* in turn; then it answers. ``done``: what was done."""

    def __init__(self, *readings: str, power: PowerCycleSettings | None = POWER, **odd: Any) -> None:
        left, self.done, self.refused, self.revived = list(readings), list[str](), odd.get("refused", ""), ""
        watch = SimpleNamespace(silence=lambda: left.pop(0) if left else "", configured=lambda: self.do("configured"))
        lab = SimpleNamespace(power_cycle=lambda _: self.do("cycled") or "power switched")
        self.plan = SimpleNamespace(testbed=SimpleNamespace(lab=LabSettings(coordinator="a:1", power=power)))
        self.testbed = SimpleNamespace(lab=odd.get("lab", lab), problems=lambda: odd.get("problems", ()))
        self.router = SimpleNamespace(watch=watch, connected=True, is_black_box=False)
        self.router.configure = lambda links_moved: self.do("configure")
        self.traffic = SimpleNamespace(forget=lambda: self.do("forgot"), check_reachability=lambda: self.do("checked"))

    def do(self, step: str) -> None:
        self.done.append(step)
        if step == self.refused:
            raise TestbedError(f"not {step}")

    def is_revived(self, ruling: Ruling = Ruling.INCONCLUSIVE) -> bool:
        of_session: Any = self
        verdict: Any = SimpleNamespace(ruling=ruling)
        return Session.revive(of_session, verdict)


@pytest.mark.parametrize(
    ("rig", "ruling"),
    [
        (Rig(), Ruling.INCONCLUSIVE),
        (Rig(HANGS), Ruling.PASS),
        (Rig(HANGS), Ruling.FAIL),
        (Rig(HANGS, power=None), Ruling.INCONCLUSIVE),
        (Rig(HANGS, lab=None), Ruling.INCONCLUSIVE),
        (Rig(HANGS, problems=("labgrid's place 'x' was taken",)), Ruling.INCONCLUSIVE),
    ],
)
def test_what_answers_is_proven_or_must_not_be_switched_is_left_alone(rig: Rig, ruling: Ruling) -> None:
    assert not rig.is_revived(ruling) and rig.done == [] and rig.revived == ""


ALL = ["cycled", "configure", "configured", "forgot", "checked"]


@pytest.mark.parametrize(
    ("rig", "done", "words"),
    [
        (Rig(*[HANGS] * 3, power=PowerCycleSettings(boot=60)), ALL, "; it answered again after "),
        (Rig(HANGS, refused="cycled"), ALL[:1], ", and then: not cycled"),
        (Rig(*[HANGS] * 100), ALL[:1], ", and then: it did not answer within 0.05 s of that: no answer"),
        (Rig(HANGS, refused="checked"), ALL, ", and then: not checked"),
    ],
)
def test_one_that_hangs_is_revived_and_configured_again(rig: Rig, done: list[str], words: str) -> None:
    assert rig.is_revived() is ("and then" not in words) and rig.done == done
    assert rig.revived.startswith("the router did not answer (no answer)") and words in rig.revived
