"""A place of a real labgrid coordinator: acquired, waited for, kept, and given back on every way out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.testbed.lab import holder
from lineproof.testbed.lab.place import LabPlace, return_left_places
from lineproof.testbed.lab.settings import LabSettings
from support import robot_run
from support.command_line import lineproof
from support.lab_rig import Lab, client, lab
from support.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), ["bench1", "bench2"]) as found:
        yield found


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    as_user(monkeypatch, "alice")


def as_user(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LG_USERNAME", name)
    monkeypatch.setenv("LG_HOSTNAME", "here")


def settings(rig: Lab, **keys: object) -> LabSettings:
    return LabSettings.model_validate({"coordinator": rig.address, **keys})


def notes(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state" / "lineproof" / "lab").glob("*"))


def test_it_is_acquired_and_given_back(rig: Lab, tmp_path: Path) -> None:
    place = LabPlace.acquire(settings(rig), "bench1")
    assert place.name == "bench1" and place.problems() == ()
    assert rig.holders() == {"bench1": "here/alice"} and len(notes(tmp_path)) == 1
    place.close()
    place.close()
    assert rig.holders() == {} and notes(tmp_path) == []
    assert client(rig.address, "reservations").strip() == ""
    assert [line.split(" ", 1)[1] for line in place.story] == [
        f"labgrid's place 'bench1' at {rig.address} acquired",
        "labgrid's place 'bench1' given back",
    ]


def test_who_waits_is_told_for_whom_and_gets_it_then(rig: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    first, lines = LabPlace.acquire(settings(rig), "bench1"), list[str]()
    as_user(monkeypatch, "bob")

    def say(line: str) -> None:
        lines.append(line)
        threading.Thread(target=first.close).start()

    second = LabPlace.acquire(settings(rig, wait="1 min"), "bench1", say)
    try:
        assert rig.holders() == {"bench1": "here/bob"}
        assert re.sub(r"\d+ s of at", "at", lines[0]) == (
            "waiting for testbed 'bench1', at most 1 min: labgrid's place with name=bench1 (bench1 is had by"
            " here/alice)"
        )
        assert re.fullmatch(rf"labgrid's place 'bench1' at {rig.address} acquired after \d+ s", lines[-1])
    finally:
        second.close()


def test_the_wait_has_a_limit_and_leaves_nothing(rig: Lab, tmp_path: Path) -> None:
    place = LabPlace.acquire(settings(rig), "bench1")
    for wait, words in ((0, "and 'wait' is 0"), (1, "after 1 s")):
        with pytest.raises(TestbedError, match=rf"'bench1' is not free {words}: .*had by here/alice"):
            LabPlace.acquire(settings(rig, wait=wait), "bench1")
    assert client(rig.address, "reservations").count("owner: ") == 1 == len(notes(tmp_path))
    place.close()


def test_tags_get_any_place_that_has_them(rig: Lab) -> None:
    places = [LabPlace.acquire(settings(rig, tags={"kind": "bench"}), "pool") for _ in range(2)]
    assert sorted(place.name for place in places) == ["bench1", "bench2"]
    for place in places:
        place.close()


@pytest.mark.parametrize("keys", [{"place": "bench9"}, {"tags": {"kind": "none"}}])
def test_what_no_place_is_like_is_not_waited_for(rig: Lab, keys: dict[str, object]) -> None:
    with pytest.raises(TestbedError, match=r"has no place with \w+=\w+; known: bench1, bench2"):
        LabPlace.acquire(settings(rig, wait="1 h", **keys), "lab")


def test_a_coordinator_that_is_not_there_is_named() -> None:
    with pytest.raises(TestbedError, match=r"no labgrid coordinator answers at 127\.0\.0\.1:1; is it started"):
        LabPlace.acquire(LabSettings(coordinator="127.0.0.1:1"), "bench1")


def test_without_labgrid_the_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "labgrid.py").write_text("raise ImportError('none')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "lineproof.testbed.lab.holder"],
        input=b'{"coordinator": "a:1", "owner": "a/b", "filters": {}, "folder": "/nowhere"}\n',
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert holder.MISSING.encode() in done.stdout


HOLD = (
    "import sys, time\nfrom lineproof.testbed.lab.place import *\n"
    "place = LabPlace.acquire(LabSettings(coordinator=sys.argv[1]), 'bench1')\n"
    "print(place._process.pid, flush=True)\ntime.sleep(60)\n"
)


@pytest.mark.parametrize("holder_too", [False, True])
def test_a_run_that_was_killed_has_it_given_back(rig: Lab, tmp_path: Path, holder_too: bool) -> None:
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, rig.address], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        if holder_too:
            os.kill(pid, signal.SIGKILL)
        run.kill()
    if holder_too:
        # nobody is left to do it: the next run does, or 'lineproof restore'
        assert rig.holders() == {"bench1": "here/alice"}
        assert return_left_places(settings(rig)) == ("gave back the place 'bench1', left by a run that was killed",)
    wait_until(lambda: rig.holders() == {}, limit=holder.KILLED_GRACE + 10)
    wait_until(lambda: notes(tmp_path) == [], limit=5)
    assert return_left_places(settings(rig)) == ()


def test_a_place_that_is_taken_away_is_not_used_any_more(rig: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LabPlace.acquire(settings(rig), "bench1")
    client(rig.address, "-p", "bench1", "release", "--kick", user="admin")
    wait_until(lambda: place.problems() != (), limit=10)
    assert place.problems() == ("labgrid's place 'bench1' was taken from this run: it was released now",)
    client(rig.address, "-p", "bench1", "acquire", "--allow-unmatched", user="alice")
    place.close()
    # what the same user has acquired by hand is not this run's to give back
    assert rig.holders() == {"bench1": "here/alice"}
    client(rig.address, "-p", "bench1", "release", user="alice")


def test_a_coordinator_that_dies_is_outlived_and_one_that_is_started_again_has_the_place(tmp_path: Path) -> None:
    with lab(tmp_path / "lab", ["bench1"]) as rig:
        said = list[str]()
        place = LabPlace.acquire(settings(rig), "bench1", said.append)
        rig.kill_coordinator()
        wait_until(lambda: any("no longer answers" in line for line in said), limit=15)
        assert place.problems() == ()
        assert place.news()[-1].endswith("no longer answers; the run goes on with the place 'bench1'")
        rig.start_coordinator()
        wait_until(lambda: any("answers again" in line for line in said), limit=30)
        assert rig.holders() == {"bench1": "here/alice"} and place.problems() == ()
        rig.kill_coordinator()
        place.close()
        assert "could not be given back" in place.story[-1] and "'lineproof restore'" in place.story[-1]


def test_a_coordinator_that_hangs_for_a_while_is_outlived(rig: Lab) -> None:
    said = list[str]()
    place = LabPlace.acquire(settings(rig), "bench1", said.append)
    assert rig.coordinator is not None
    rig.coordinator.send_signal(signal.SIGSTOP)
    wait_until(lambda: any("no longer answers" in line for line in said), limit=40)
    rig.coordinator.send_signal(signal.SIGCONT)
    wait_until(lambda: any("answers again" in line for line in said), limit=40)
    assert place.problems() == () and rig.holders() == {"bench1": "here/alice"}
    place.close()
    assert rig.holders() == {}


def test_restore_gives_back_what_a_killed_run_has_left(rig: Lab, tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    text = (home / "variables" / "testbeds" / "lab-example.yaml").read_text(encoding="utf-8")
    text = text.replace("testbed: lab-example", "testbed: bench1") + f'\nlab: {{coordinator: "{rig.address}"}}\n'
    (home / "variables" / "testbeds" / "bench1.yaml").write_text(text, encoding="utf-8")
    words = ("restore", "bench1", "--platform", "netgate6100", "--software", "vpp")
    variables = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"], "LG_USERNAME": "alice", "LG_HOSTNAME": "here"}
    place = LabPlace.acquire(settings(rig), "bench1")
    place._process.kill()
    place._process.wait()
    assert place.problems() == ("the process that holds labgrid's place 'bench1' ended with -9",)
    dry = lineproof(tmp_path, *words, "--dry-run", cwd=home, variables=variables)
    assert "gave back" not in dry.stdout and rig.holders() == {"bench1": "here/alice"}
    done = lineproof(tmp_path, *words, cwd=home, variables=variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "gave back the place 'bench1', left by a run that was killed"
    assert rig.holders() == {} and notes(tmp_path) == []
    place.close()
