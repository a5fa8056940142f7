"""A TRex server that the testbed starts, here and over SSH: its start, end and clean-up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex.server_facts import ask_server
from lineproof.platforms import Platform, Software
from lineproof.system.children import environment, find_program
from lineproof.system.identity import runtime_folder
from lineproof.testbed import sshd
from lineproof.testbed.files import read_testbed
from lineproof.testbed.hardware import server_order
from lineproof.testbed.opening import OpenTestbed, open_testbed
from lineproof.testbed.settings import HardwareSettings
from lineproof.testbed.trex.server import start_server
from lineproof.testbed.trex.wrapper import trex_arguments
from lineproof_bench.shells.ssh_library import asyncssh
from support import leftovers
from support.paths import LIBRARIES, SUPPORT, VARIABLES
from support.patience import wait_until
from support.ports import free_port, reachable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="TRex runs on Linux only"),
    pytest.mark.skipif(os.geteuid() != 0, reason="TRex must run as root"),
]

PLATFORM = Platform(
    platform="box",
    description="a box",
    port_speed="10 Gbps",
    software={"vpp": Software(shell="vpp", version="any", interfaces=("left", "right"))},
)
TESTBED = """\
testbed: lab
kind: hardware
generator:
  address: 127.0.0.1
  sync_port: {sync}
  async_port: {pub}
  trex_home: {home}
  client: pypi
  {more}
  start: {{{start}extra: [--cfg, {config}], limit: {limit}, stop: 2}}
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
with open("seen.json", "w") as seen:
    json.dump({{"pid": os.getpid(), "cfg": value("--cfg")}}, seen)
print("Starting  TRex v2.87 please wait  ...", flush=True)
print("\\033[2J set driver name net_fake", flush=True)
if kind == "dies":
    print("ERROR: Could not find Linux interface nix0.", flush=True)
    sys.exit(255)
if kind == "mute":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
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


def install(home: Path) -> None:
    """Make a folder that looks like a TRex installation."""
    home.mkdir()
    program = home / "t-rex-64"
    platform = str(VARIABLES / "platforms" / "netgate6100.yaml")
    program.write_text(FAKE_TREX.format(python=sys.executable, platform=platform, libraries=str(LIBRARIES)))
    program.chmod(0o755)


Lab = Callable[..., HardwareSettings]


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "rt"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield runtime_folder()
    assert {path.suffix for path in (folder / "lineproof").iterdir() if path.name != "logs"} <= {".in-use"}
    wait_until(lambda: left(tmp_path) == [], lambda: left(tmp_path))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    def read(kind: str = "good", limit: float = 30, start: str = "host: local, ", more: str = "force: false") -> Any:
        home = tmp_path / kind
        if not home.exists() and kind != "missing":
            install(home)
        sync, pub, config = free_port(), free_port(), tmp_path / "trex_cfg.yaml"
        config.write_text(f"- {{zmq_rpc_port: {sync}, zmq_pub_port: {pub}}}\n")
        text = TESTBED.format(sync=sync, pub=pub, config=config, home=home, limit=limit, start=start, more=more)
        (tmp_path / "lab.yaml").write_text(text)
        return read_testbed(tmp_path, "lab")

    return read


def opened(settings: HardwareSettings, folder: Path) -> OpenTestbed:
    return open_testbed(settings, PLATFORM, "vpp", platform_file=folder / "box.yaml")


def seen(home: str | Path | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(str(home)) / "seen.json").read_text())
    return found


def left(folder: Path) -> list[str]:
    """Processes of servers that ran in *folder*."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and Path(process.cwd()).is_relative_to(folder):
                found.append(" ".join(process.cmdline())[-200:])
        except (psutil.Error, OSError):
            continue
    return found


class TestLocalServer:
    def test_the_server_answers_and_ends(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab()
        with opened(settings, tmp_path) as testbed:
            found = seen(settings.trex.trex_home)
            assert ask_server("127.0.0.1", settings.trex.sync_port).takes_pypi
            assert testbed.problems() == ()
        assert testbed.failures == ()
        assert "TRex v2.87" in testbed.logs["trex"]
        assert not psutil.pid_exists(found["pid"])

    def test_a_configuration_that_is_written_for_it_goes_with_the_server(self, lab: Lab, tmp_path: Path) -> None:
        generator = lab(start="host: local, ").trex
        assert generator is not None
        text = f"- {{zmq_rpc_port: {generator.sync_port}, zmq_pub_port: {generator.async_port}}}\n"
        order = replace(server_order(generator), arguments=trex_arguments(None), config=text)
        server = start_server(order)
        wait_until(lambda: reachable(order.rpc_port))
        config = Path(seen(generator.trex_home)["cfg"])
        assert config.read_text() == text
        assert server.stop(20)
        assert not config.parent.exists()

    def test_a_server_that_does_not_end_is_killed(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab("deaf")
        with opened(settings, tmp_path):
            pid = seen(settings.trex.trex_home)["pid"]
        wait_until(lambda: not psutil.pid_exists(pid), limit=20)

    @pytest.mark.parametrize(
        ("kind", "limit", "says"),
        [
            ("dies", 20, r"ended with status 255 .*Could not find Linux interface nix0\."),
            ("mute", 2, r"its API did not answer at 127\.0\.0\.1:\d+ within 2 s"),
            ("missing", 20, r"status 90 .*there is no folder '.*missing' here"),
        ],
    )
    def test_a_server_that_is_never_ready_is_an_error(
        self, lab: Lab, tmp_path: Path, kind: str, limit: float, says: str
    ) -> None:
        began = time.monotonic()
        with pytest.raises(TestbedError, match=says) as error:
            opened(lab(kind, limit), tmp_path)
        assert "\n" not in str(error.value) and "\x1b" not in str(error.value)
        assert time.monotonic() - began < 60

    def test_a_folder_without_trex_is_an_error(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab()
        (tmp_path / "good" / "t-rex-64").unlink()
        with pytest.raises(TestbedError, match="the program t-rex-64 is missing"):
            opened(settings, tmp_path)

    @pytest.mark.parametrize("lets", [True, False])
    def test_sudo(self, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lets: bool) -> None:
        sudo = tmp_path / "bin" / "sudo"
        sudo.parent.mkdir()
        does = 'exec "$@"' if lets else 'echo "sudo: a password is required" >&2; exit 1'
        sudo.write_text(f'#!/bin/sh\n[ "$1 $2" = "-n --" ] || exit 9\nshift 2\n{does}\n')
        sudo.chmod(0o755)
        monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")
        settings = lab(start="host: local, sudo: true, ")
        if lets:
            with opened(settings, tmp_path) as testbed:
                assert testbed.problems() == ()
            return
        with pytest.raises(TestbedError, match=r"ended with status 1 .*sudo: a password is required"):
            opened(settings, tmp_path)

    def test_a_server_that_runs_already_is_an_error(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab()
        with opened(settings, tmp_path), pytest.raises(TestbedError, match="a server answers already"):
            opened(settings, tmp_path)

    def test_a_server_that_ends_is_a_problem_and_stays_away(self, lab: Lab, tmp_path: Path) -> None:
        settings = lab()
        with opened(settings, tmp_path) as testbed:
            os.kill(seen(settings.trex.trex_home)["pid"], signal.SIGKILL)
            wait_until(lambda: testbed.problems() != ())
            (problem,) = testbed.problems()
            assert problem.startswith("the testbed's process 'trex' ended with status 137; its log ends: ")
            assert "TRex was ended by signal 9" in problem

    @pytest.mark.parametrize("victim", ["owner", "holder"])
    def test_the_server_ends_when_a_process_above_it_is_killed(self, lab: Lab, tmp_path: Path, victim: str) -> None:
        settings = lab()
        program = (
            "import sys, time; from pathlib import Path; from lineproof.testbed.files import read_testbed;"
            " sys.path.insert(0, sys.argv[2]); import testbed.trex.test_server as t; folder = Path(sys.argv[1]);"
            "\nwith t.opened(read_testbed(folder, 'lab'), folder): print('open', flush=True); time.sleep(60)"
        )
        argv = [sys.executable, "-c", program, str(tmp_path), str(SUPPORT.parent)]
        owner = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(), cwd="/"
        )
        try:
            assert owner.stdout is not None and owner.stdout.readline() == "open\n"
            pid = seen(settings.trex.trex_home)["pid"]
            (holder,) = psutil.Process(owner.pid).children()
            (owner if victim == "owner" else holder).kill()
            wait_until(lambda: not psutil.pid_exists(pid), limit=20)
            owner.send_signal(signal.SIGINT)  # where the holder was killed, it closes the testbed itself
            owner.wait(30)
        finally:
            owner.kill()
            owner.wait(30)
            if owner.stdout is not None:
                owner.stdout.close()
        assert leftovers.left(runtime_folder(), [holder]) == []


async def _pass_on(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while output := await source.read(4096):
            target.write(output)
    if isinstance(target, asyncio.StreamWriter):
        target.close()


class Host:
    """A machine with an SSH server that runs what it is told; a command's input ends with its connection."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user.write_private_key(str(folder / "id"))
        (folder / "id").chmod(0o600)
        (folder / "authorized").write_bytes(user.export_public_key())
        self._server = self._run(self._serve(host, folder))
        self.port = self._server.sockets[0].getsockname()[1]
        line = host.export_public_key().decode()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {line}")
        self._open: list[Any] = []

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _serve(self, host: asyncssh.SSHKey, folder: Path) -> Any:
        async def run(process: Any) -> None:
            self._open.append(process)
            pipe = asyncio.subprocess.PIPE
            child = await asyncio.create_subprocess_shell(
                process.command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT, start_new_session=True
            )
            assert child.stdin is not None and child.stdout is not None
            heard = asyncio.create_task(_pass_on(process.stdin, child.stdin))
            await _pass_on(child.stdout, process.stdout)
            process.exit(await child.wait())
            heard.cancel()
            self._open.remove(process)

        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host],
            authorized_client_keys=str(folder / "authorized"),
            process_factory=run,
            encoding=None,
        )

    def cut(self) -> None:
        """Every connection is lost."""
        for process in self._open:
            self._loop.call_soon_threadsafe(process.channel.get_connection().abort)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    found = Host(tmp_path)
    yield found
    found.close()


class TestRemoteServer:
    def settings(self, lab: Lab, host: Host, kind: str = "good", limit: float = 30) -> HardwareSettings:
        login = f"ssh: {{user: u, key: id, known_hosts: known, port: {host.port}}}"
        return lab(kind, limit, start="", more=login)

    def test_the_server_answers_and_ends(self, lab: Lab, host: Host, tmp_path: Path) -> None:
        settings = self.settings(lab, host)
        with opened(settings, tmp_path) as testbed:
            pid = seen(settings.trex.trex_home)["pid"]
            assert ask_server("127.0.0.1", settings.trex.sync_port).takes_pypi
        assert testbed.failures == ()
        assert "TRex v2.87" in testbed.logs["trex"]
        wait_until(lambda: not psutil.pid_exists(pid), limit=20)

    def test_a_locked_key_logs_in_with_its_passphrase(
        self, lab: Lab, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = asyncssh.read_private_key(str(tmp_path / "id"))
        key.write_private_key(str(tmp_path / "id"), passphrase="${a.port} horse", rounds=50)
        login = f"ssh: {{user: u, key: id, known_hosts: known, port: {host.port}, passphrase_from: LAB_PHRASE}}"
        settings = lab(start="", more=login)
        monkeypatch.delenv("LAB_PHRASE", raising=False)
        with pytest.raises(TestbedError, match=r"passphrase of '.*id' for the TRex server's host .*'LAB_PHRASE'"):
            opened(settings, tmp_path)
        monkeypatch.setenv("LAB_PHRASE", "${a.port} horse")
        with opened(settings, tmp_path):
            assert ask_server("127.0.0.1", settings.trex.sync_port).takes_pypi

    def test_the_reason_for_a_failed_start_is_reported(self, lab: Lab, host: Host, tmp_path: Path) -> None:
        with pytest.raises(TestbedError, match=rf"at 127\.0\.0\.1:{host.port} ended with status 255 .*nix0"):
            opened(self.settings(lab, host, "dies"), tmp_path)

    def test_a_lost_connection_ends_the_server(self, lab: Lab, host: Host, tmp_path: Path) -> None:
        settings = self.settings(lab, host)
        with opened(settings, tmp_path) as testbed:
            pid = seen(settings.trex.trex_home)["pid"]
            host.cut()
            wait_until(lambda: testbed.problems() != ())
            assert "lost with the SSH connection" in testbed.problems()[0]
            wait_until(lambda: not psutil.pid_exists(pid), limit=20)

    @pytest.mark.skipif(find_program("sshd") is None, reason="openssh-server is not installed")
    @pytest.mark.parametrize("whose", ["ours", "theirs"])
    def test_openssh_ends_the_server_with_the_connection(self, lab: Lab, tmp_path: Path, whose: str) -> None:
        server = sshd.prepare(tmp_path / "ssh", "none")
        (tmp_path / "ssh" / "session").write_text('#!/bin/sh\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
        Path(sshd.PRIVILEGE_SEPARATION).mkdir(mode=0o755, exist_ok=True)
        listening = subprocess.Popen(server.argv, stderr=subprocess.DEVNULL, cwd="/")
        try:
            wait_until(lambda: reachable(server.port))
            login = f"user: {server.user}, key: {server.client_key}, known_hosts: {server.known_hosts}"
            settings = lab("good", start="", more=f"ssh: {{{login}, port: {server.port}}}")
            with opened(settings, tmp_path) as testbed:
                pid = seen(settings.trex.trex_home)["pid"]
                if whose == "theirs":
                    for session in psutil.Process(listening.pid).children():
                        session.kill()
                    wait_until(lambda: testbed.problems() != ())
                    wait_until(lambda: not psutil.pid_exists(pid), limit=20)
            wait_until(lambda: not psutil.pid_exists(seen(settings.trex.trex_home)["pid"]), limit=20)
        finally:
            listening.kill()
            listening.wait(30)

    def test_an_unknown_host_gets_no_command(self, lab: Lab, host: Host, tmp_path: Path) -> None:
        settings = self.settings(lab, host)
        (tmp_path / "known").write_text("")
        with pytest.raises(TestbedError, match=r"host key of the TRex server's host at .* is not in"):
            opened(settings, tmp_path)
        assert not (tmp_path / "good" / "seen.json").exists()
