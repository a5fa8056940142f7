"""The shells' process: a real SSH client gets in by its key, checks the host's, and reads the model's counters."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from lineproof.routers import make_router
from lineproof.routers.base import Result
from lineproof_bench.shells.ssh_library import asyncssh
from support.fake_router import KINDS, SIDES, ControlServer, router_state
from support.paths import LIBRARIES

pytestmark = pytest.mark.slow
Start = Callable[..., tuple[subprocess.Popen[str], dict[str, Any]]]


@pytest.fixture
def key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@pytest.fixture
def start(key: asyncssh.SSHKey) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def begin(control: ControlServer, **more: Any) -> tuple[subprocess.Popen[str], dict[str, Any]]:
            specification = {
                "software": "vpp",
                "host": "127.0.0.1",
                "port": 0,
                "control_port": control.port,
                "control_token": control.token,
                "user": "lineproof",
                "authorized_key": key.export_public_key().decode().strip(),
                "host_key": None,
                "sudo": True,
            } | more
            child = subprocess.Popen(
                [sys.executable, "-m", "lineproof_bench.shells"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
            )
            stack.callback(child.wait, 10)
            stack.callback(child.kill)
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(specification) + "\n")
            child.stdin.flush()
            return child, json.loads(child.stdout.readline())

        yield begin


def connect(ready: dict[str, Any], key: asyncssh.SSHKey, host_key: str, user: str = "lineproof") -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    name = f"[127.0.0.1]:{ready['port']}"
    known = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {host_key}")
    assert known is not None
    assert known.key is not None
    client.get_host_keys().add(name, known.key.get_name(), known.key)
    private = paramiko.Ed25519Key.from_private_key(io.StringIO(key.export_private_key().decode()))
    try:
        client.connect(
            "127.0.0.1", ready["port"], user, pkey=private, timeout=10, allow_agent=False, look_for_keys=False
        )
    except BaseException:
        client.close()
        raise
    return client


def shell_over(client: paramiko.SSHClient) -> Callable[[str, float], Result]:
    def shell(command: str, limit: float) -> Result:
        _, stdout, stderr = client.exec_command(command, timeout=limit)
        out, err = stdout.read().decode(), stderr.read().decode()
        return Result(out, err, stdout.channel.recv_exit_status(), 0.0)

    return shell


@pytest.mark.parametrize("kind", KINDS)
def test_a_router_is_driven_over_real_ssh(kind: Any, start: Start, key: asyncssh.SSHKey) -> None:
    with ControlServer(router_state(kind)) as control:
        child, ready = start(control, software=kind)
        with connect(ready, key, ready["host_key"]) as client:
            router = make_router(kind, shell_over(client), ("eth1", "eth2"), sudo=True)
            assert "SIMULATED" in router.identify()["kernel"]
            router.configure(SIDES)
            assert control.model.state().configuration.routes == (
                ("16.0.0.0/8", "100.65.1.2"),
                ("48.0.0.0/8", "100.65.2.2"),
            )
            assert router.read().interfaces["eth1"].rx_packets == 2**40
            router.clear()
            router.restore()
            assert control.model.state().configuration.routes == ()
            assert shell_over(client)("foo", 5.0).status == 127
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(30) == 0


def test_wrong_keys_and_users_are_refused(start: Start, key: asyncssh.SSHKey) -> None:
    with ControlServer(router_state()) as control:
        child, ready = start(control)
        other = asyncssh.generate_private_key("ssh-ed25519")
        with pytest.raises(paramiko.BadHostKeyException):
            connect(ready, key, other.export_public_key().decode().strip())
        with pytest.raises(paramiko.AuthenticationException):
            connect(ready, other, ready["host_key"])
        with pytest.raises(paramiko.AuthenticationException):
            connect(ready, key, ready["host_key"], user="root")
        with paramiko.Transport(("127.0.0.1", ready["port"])) as transport:
            transport.connect()
            with pytest.raises(paramiko.BadAuthenticationType, match="publickey"):
                transport.auth_password("lineproof", "secret", fallback=False)
        child.terminate()
        assert child.wait(30) == 0


def test_a_person_finds_a_prompt_and_vpp_inside(start: Start, key: asyncssh.SSHKey) -> None:
    with ControlServer(router_state()) as control:
        _, ready = start(control)
        with connect(ready, key, ready["host_key"]) as client:
            channel = client.invoke_shell()
            channel.settimeout(10)
            channel.send(b"hostname\nvppctl\nshow version\nquit\nexit 3\n")
            text = b""
            while more := channel.recv(4096):
                text += more
            assert channel.recv_exit_status() == 3
        shown = text.decode()
        assert "SIMULATED router" in shown
        assert "dut" in shown
        assert "vpp# " in shown
        assert "vpp v22.02 built" in shown


def test_the_host_key_is_kept_when_given(start: Start, key: asyncssh.SSHKey, tmp_path: Path) -> None:
    host = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / "host").write_bytes(host.export_private_key())
    with ControlServer(router_state()) as control:
        _, ready = start(control, host_key=str(tmp_path / "host"))
        assert ready["host_key"].split()[1] == host.export_public_key().decode().split()[1]


def test_a_wrong_specification_is_one_sentence(start: Start, tmp_path: Path) -> None:
    with ControlServer(router_state()) as control:
        _, first = start(control)
        for wrong, said in (
            ({"port": first["port"]}, "cannot listen at 127.0.0.1"),
            ({"software": "ios"}, "no simulated shell for software 'ios'"),
            ({"host_key": str(tmp_path / "none")}, "cannot be read"),
            ({"authorized_key": "ssh-ed25519 nonsense"}, "not an OpenSSH public key"),
            ({"control_token": "guess"}, "token"),
        ):
            child, answer = start(control, **wrong)
            assert said in answer["error"]
            assert child.wait(30) == 1


def test_a_model_that_dies_is_reported_in_the_shell(start: Start, key: asyncssh.SSHKey) -> None:
    with ControlServer(router_state()) as control:
        _, ready = start(control)
    with connect(ready, key, ready["host_key"]) as client:
        result = shell_over(client)("vppctl show runtime", 10.0)
    assert result.status == 1
    assert "gave no answer" in result.stderr


def test_to_begin_it_starts_no_other_program() -> None:
    """asyncssh looks for libraries by ``ldconfig``, ``gcc`` and ``ld`` where it is imported as it is."""
    code = (
        "import sys; started = []\n"
        "sys.addaudithook(lambda event, args: event == 'subprocess.Popen' and started.append(args[1]))\n"
        "import ctypes.util; search = ctypes.util.find_library\n"
        "import lineproof_bench.shells.__main__\n"
        "assert not started, started\n"
        "assert ctypes.util.find_library is search"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIBRARIES)}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True, timeout=60)
