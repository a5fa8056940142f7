"""A place of a real labgrid coordinator: waited for, acquired, watched, and given back on every way out."""

from __future__ import annotations

import contextlib
import http.server
import importlib.util
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.testbed.lab import LabPlace, LabSettings, PowerCycleSettings
from support.lab_rig import Lab, client, lab
from support.leftovers import owner
from support.patience import wait_until

pytestmark = pytest.mark.slow

HAD = {"bench1": "here/alice"}


@pytest.fixture(scope="module")
def outlet() -> Iterator[tuple[int, list[str]]]:
    """The port of a switch of power for labgrid's ``model: rest``, and what it is told."""
    told: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], told
        server.shutdown()


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory, outlet: tuple[int, list[str]]) -> Iterator[Lab]:
    power = f"{{model: rest, host: 'http://127.0.0.1:{outlet[0]}/{{index}}', index: 1}}"
    with lab(tmp_path_factory.mktemp("lab"), ["bench1", "bench2"], f"bench2:\n  NetworkPowerPort: {power}\n") as made:
        yield made


@pytest.fixture(autouse=True)
def _alice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_USERNAME", "alice")
    monkeypatch.setenv("LG_HOSTNAME", "here")


def settings(rig: Lab, **keys: object) -> LabSettings:
    return LabSettings.model_validate({"coordinator": rig.address, **keys})


def test_who_waits_is_told_for_whom_and_gets_it_then(rig: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    first, lines = LabPlace(settings(rig), "bench1"), list[str]()
    monkeypatch.setenv("LG_USERNAME", "bob")

    def say(line: str) -> None:
        lines.append(line)
        threading.Thread(target=first.close).start()

    with contextlib.closing(LabPlace(settings(rig, wait="1 min"), "bench1", say)):
        assert rig.holders() == {"bench1": "here/bob"} and "bench1 is had by here/alice" in lines[0]


def test_the_wait_has_a_limit_and_leaves_nothing(rig: Lab) -> None:
    with contextlib.closing(LabPlace(settings(rig), "bench1")):
        for wait, words in ((0, "and 'wait' is 0"), (1, "after 1 s")):
            with pytest.raises(TestbedError, match=rf"'bench1' is not free {words}: .*had by here/alice"):
                LabPlace(settings(rig, wait=wait), "bench1")
        assert client(rig.address, "reservations").strip() == ""


@pytest.mark.parametrize("keys", [{"place": "bench9"}, {"tags": {"kind": "none"}}])
def test_what_no_place_is_like_is_not_waited_for(rig: Lab, keys: dict[str, object]) -> None:
    with pytest.raises(TestbedError, match=r"has no place with \w+=\w+; known: bench1, bench2"):
        LabPlace(settings(rig, wait="1 h", **keys), "lab")


def test_a_lab_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TestbedError, match=r"no labgrid coordinator answers at 127\.0\.0\.1:1"):
        LabPlace(LabSettings(coordinator="127.0.0.1:1"), "bench1")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(TestbedError, match=r"labgrid is not installed here; expected: pip install .*\[lab\]"):
        LabPlace(LabSettings(coordinator="127.0.0.1:1"), "bench1")


HAS_IT = (
    "import sys, time, contextlib\nfrom lineproof.testbed.lab import *\n"
    "with contextlib.closing(LabPlace(LabSettings(coordinator=sys.argv[1]), 'bench1')):\n"
    "    print('has it', flush=True)\n    time.sleep(60)\n"
)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_has_it_no_more(rig: Lab, ending: signal.Signals) -> None:
    with owner(HAS_IT, rig.address, LG_USERNAME="alice", LG_HOSTNAME="here") as (run, said):
        assert said == "has it" and rig.holders() == HAD
        # as a terminal does it: the whole group hears it
        os.killpg(run.pid, ending)
    wait_until(lambda: rig.holders() == {}, limit=20)


def test_a_place_that_is_taken_away_is_not_used_any_more(rig: Lab) -> None:
    with contextlib.closing(LabPlace(settings(rig), "bench1")) as place:
        client(rig.address, "-p", "bench1", "release", "--kick", user="admin")
        wait_until(lambda: place.problems() != (), limit=10)
        assert place.problems() == ("labgrid's place 'bench1' was taken from this run: it was released now",)
        client(rig.address, "-p", "bench1", "acquire", "--allow-unmatched", user="alice")
    # what the same user has acquired by hand is not this run's to give back
    assert rig.holders() == HAD
    client(rig.address, "-p", "bench1", "release", user="alice")


def test_a_run_goes_on_without_its_coordinator(tmp_path: Path) -> None:
    said = list[str]()
    with (
        lab(tmp_path / "lab", ["bench1"]) as rig,
        contextlib.closing(LabPlace(settings(rig), "bench1", said.append)) as place,
    ):
        assert rig.coordinator is not None
        rig.coordinator.kill()
        wait_until(lambda: place.problems() == () and "no longer answers" in said[-1], limit=40)
        # started again it has forgotten who had what, and nothing is left to give back
        rig.start_coordinator()
        place.close()
        assert place.problems() == () and rig.holders() == {}


def test_its_power_is_switched_by_labgrids_client(rig: Lab, outlet: tuple[int, list[str]]) -> None:
    wait_until(lambda: "bench2/NetworkPowerPort" in client(rig.address, "resources"))
    with contextlib.closing(LabPlace(settings(rig), "bench2")) as place:
        done = place.power_cycle(PowerCycleSettings(off=0.1))
        assert re.fullmatch(r"the power of labgrid's place 'bench2' was switched off for 0\.1 s and on again", done)
        assert outlet[1] == ["0", "1"]
        with pytest.raises(TestbedError, match=r"could not be switched: .*look with 'labgrid-client -p bench2 show'"):
            place.power_cycle(PowerCycleSettings(resource="other"))
