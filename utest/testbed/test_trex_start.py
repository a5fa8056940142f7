"""A TRex server that the testbed starts over SSH: its start, end and clean-up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex.clients import ask_server
from lineproof.platforms import read_platform
from lineproof.system.children import find_program
from lineproof.system.folders import runtime_folder
from lineproof.system.login import Login
from lineproof.testbed import sshd, trex_start
from lineproof.testbed.opening import OpenTestbed, open_testbed
from lineproof.testbed.settings import HardwareSettings, read_testbed
from support import leftovers
from support.paths import LIBRARIES, VARIABLES
from support.patience import wait_until
from support.ports import free_port, reachable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_program("sshd") is None, reason="openssh-server is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd lets a user in who has an account only"),
]

PLATFORM = read_platform(VARIABLES / "platforms", "netgate6100")
TESTBED = """\
testbed: lab
kind: hardware
generator:
  address: 127.0.0.1
  sync_port: {sync}
  async_port: {pub}
  trex_home: {home}
  client: pypi
  ssh: {login}
  start: ./t-rex-64 --cfg {config}
router: {{address: 192.0.2.20, user: admin, key: key}}
"""

FAKE_TREX = """#!{python} -P
import json, os, signal, subprocess, sys, time
import yaml

def value(name):
    return sys.argv[sys.argv.index(name) + 1]

kind = os.path.basename(os.getcwd())
for needed in ("-i", "--stl", "--hdrh", "--no-scapy-server"):
    assert needed in sys.argv, sys.argv
(config,) = yaml.safe_load(open(value("--cfg")))
with open("pid", "w") as file:
    file.write(str(os.getpid()))
print("Starting  TRex v2.87 please wait  ...", flush=True)
print("\\033[2J set driver name net_fake", flush=True)
if kind == "dies":
    print("ERROR: Could not find Linux interface nix0.", flush=True)
    sys.exit(255)
if kind == "mute":
    time.sleep(60)
specification = {{
    "backend": "model", "platform_file": {platform!r}, "software": "vpp", "seed": 1, "clock_speed": 20,
    "bypass": True, "host": "127.0.0.1", "rpc_port": config["zmq_rpc_port"], "pub_port": config["zmq_pub_port"],
}}
server = subprocess.Popen(
    [sys.executable, "-P", "-m", "lineproof_bench"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    env={{**os.environ, "PYTHONPATH": {libraries!r}}},
)

def end(*_):
    if kind != "deaf":
        print(" *** TRex is shutting down - cause: 'received signal SIGINT'", flush=True)
        server.kill()
        os._exit(255)

signal.signal(signal.SIGINT, end)
server.stdin.write(json.dumps(specification).encode() + b"\\n")
server.stdin.flush()
print("zmq publisher at: tcp://*:", config["zmq_pub_port"], server.stdout.readline().decode(), flush=True)
server.wait()
"""
"""A ``t-rex-64`` that takes TRex's arguments and runs the embedded server.

The name of its folder says how it fails: ``good``, ``dies`` (before it serves), ``mute`` (its API never answers),
``deaf`` (SIGINT does not end it).
"""


Lab = Callable[..., HardwareSettings]


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "rt"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield
    leftovers.await_end(runtime_folder())
    wait_until(lambda: left(tmp_path) == [], lambda: left(tmp_path))


def left(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and Path(process.cwd()).is_relative_to(folder):
                found.append(" ".join(process.cmdline())[-200:])
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[tuple[Login, psutil.Process]]:
    """A machine's SSH server: the login there, and the process that has its sessions."""
    argv, login = sshd.prepare(tmp_path / "ssh", "none")
    (tmp_path / "ssh" / "session").write_text('#!/bin/sh\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, cwd="/") as process:
        wait_until(lambda: reachable(login.port))
        yield login, psutil.Process(process.pid)
        process.kill()


@pytest.fixture
def lab(tmp_path: Path, sessions: tuple[Login, psutil.Process]) -> Lab:
    def read(kind: str = "good") -> HardwareSettings:
        home, config, (login, _) = tmp_path / kind, tmp_path / "trex_cfg.yaml", sessions
        if kind != "missing":
            home.mkdir()
            platform = str(VARIABLES / "platforms" / "netgate6100.yaml")
            text = FAKE_TREX.format(python=sys.executable, platform=platform, libraries=str(LIBRARIES))
            (home / "t-rex-64").write_text(text)
            (home / "t-rex-64").chmod(0o755)
        sync, pub = free_port(), free_port()
        config.write_text(f"- {{zmq_rpc_port: {sync}, zmq_pub_port: {pub}}}\n")
        keys = login.model_dump(mode="json", include={"user", "port", "key", "known_hosts"})
        written = TESTBED.format(sync=sync, pub=pub, config=config, home=home, login=json.dumps(keys))
        (tmp_path / "lab.yaml").write_text(written)
        settings = read_testbed(tmp_path, "lab")
        assert isinstance(settings, HardwareSettings)
        return settings

    return read


def opened(settings: HardwareSettings, folder: Path) -> OpenTestbed:
    return open_testbed(settings, PLATFORM, "vpp", platform_file=folder / "box.yaml")


def server_pid(folder: Path, kind: str = "good") -> int:
    return int((folder / kind / "pid").read_text())


def test_the_server_answers_and_ends(lab: Lab, tmp_path: Path) -> None:
    settings = lab()
    with opened(settings, tmp_path) as testbed:
        assert settings.trex is not None and ask_server("127.0.0.1", settings.trex.sync_port).takes_pypi
        assert testbed.problems() == ()
        with pytest.raises(TestbedError, match="a server answers already"):
            opened(settings, tmp_path)
    assert testbed.failures == ()
    assert "TRex v2.87" in testbed.logs["trex"]
    assert not psutil.pid_exists(server_pid(tmp_path))


def test_a_server_that_ctrl_c_does_not_end_ends_with_the_connection(lab: Lab, tmp_path: Path) -> None:
    with opened(lab("deaf"), tmp_path):
        pid = server_pid(tmp_path, "deaf")
    wait_until(lambda: not psutil.pid_exists(pid), limit=20)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("dies", r"'trex' ended with status 255 .*Could not find Linux interface nix0\."),
        ("mute", r"'trex' was not ready within 8 s \(no TRex server answers at 127\.0\.0\.1:\d+.*driver name net_fake"),
        ("missing", r"cd: .*missing"),
    ],
)
def test_a_server_that_is_never_ready_is_an_error(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, says: str
) -> None:
    monkeypatch.setattr(trex_start, "LIMIT", 8.0 if kind == "mute" else 30.0)
    with pytest.raises(TestbedError, match=says) as error:
        opened(lab(kind), tmp_path)
    assert "\n" not in str(error.value) and "\x1b" not in str(error.value)


def test_a_lost_connection_ends_the_server(lab: Lab, sessions: tuple[Login, psutil.Process], tmp_path: Path) -> None:
    with opened(lab(), tmp_path) as testbed:
        pid = server_pid(tmp_path)
        for session in sessions[1].children():
            session.kill()
        wait_until(lambda: testbed.problems() != ())
        assert testbed.problems()[0].endswith("the SSH connection to it was lost")
        wait_until(lambda: not psutil.pid_exists(pid), limit=20)


def test_the_server_ends_when_its_owner_is_killed(lab: Lab, tmp_path: Path) -> None:
    lab()
    program = (
        "import sys, time; from pathlib import Path; from lineproof.testbed.settings import read_testbed;"
        " import testbed.test_trex_start as t; folder = Path(sys.argv[1]);"
        "\nwith t.opened(read_testbed(folder, 'lab'), folder): print('open', flush=True); time.sleep(60)"
    )
    with leftovers.owner(program, tmp_path) as (owner, said):
        assert said == "open"
        pid = server_pid(tmp_path)
        owner.kill()
    wait_until(lambda: not psutil.pid_exists(pid), limit=20)
    leftovers.await_end(runtime_folder())
