"""The shells: a real SSH client gets in by its key, checks the host's, and reads the model's counters."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import paramiko
import pytest

from lineproof_bench.bench import EmbeddedBench
from lineproof_bench.shells.ssh_library import asyncssh
from lineproof_bench.ssh import listening
from support.fake_router import FakeModel, router_state
from support.paths import LIBRARIES

pytestmark = pytest.mark.slow
Start = Callable[..., dict[str, Any]]


@pytest.fixture
def key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


@pytest.fixture
def start(key: asyncssh.SSHKey) -> Iterator[Start]:
    """Serves the shells of a fake router in a thread's loop; returns their facts."""
    with contextlib.ExitStack() as stack:

        def begin(model: FakeModel, software: str = "vpp") -> dict[str, Any]:
            specification = {
                "software": software,
                "host": "127.0.0.1",
                "port": 0,
                "user": "lineproof",
                "authorized_key": key.export_public_key().decode().strip(),
                "sudo": True,
            }
            loop, facts, ending = asyncio.new_event_loop(), queue.SimpleQueue[dict[str, Any]](), asyncio.Event()

            async def serve() -> None:
                async with listening(specification, cast(EmbeddedBench, SimpleNamespace(router=model))) as found:
                    facts.put(found)
                    await ending.wait()

            thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(loop.call_soon_threadsafe, ending.set)
            return facts.get(timeout=10)

        yield begin


def connect(ready: dict[str, Any], key: asyncssh.SSHKey, host_key: str, user: str = "lineproof") -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    name = f"[127.0.0.1]:{ready['ssh_port']}"
    known = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {host_key}")
    assert known is not None
    assert known.key is not None
    client.get_host_keys().add(name, known.key.get_name(), known.key)
    private = paramiko.Ed25519Key.from_private_key(io.StringIO(key.export_private_key().decode()))
    try:
        client.connect(
            "127.0.0.1", ready["ssh_port"], user, pkey=private, timeout=10, allow_agent=False, look_for_keys=False
        )
    except BaseException:
        client.close()
        raise
    return client


def test_wrong_keys_and_users_are_refused(start: Start, key: asyncssh.SSHKey) -> None:
    ready = start(FakeModel(router_state()))
    other = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(paramiko.BadHostKeyException):
        connect(ready, key, other.export_public_key().decode().strip())
    with pytest.raises(paramiko.AuthenticationException):
        connect(ready, other, ready["host_key"])
    with pytest.raises(paramiko.AuthenticationException):
        connect(ready, key, ready["host_key"], user="root")
    with paramiko.Transport(("127.0.0.1", ready["ssh_port"])) as transport:
        transport.connect()
        with pytest.raises(paramiko.BadAuthenticationType, match="publickey"):
            transport.auth_password("lineproof", "secret", fallback=False)


def test_a_person_finds_a_prompt_and_vpp_inside(start: Start, key: asyncssh.SSHKey) -> None:
    ready = start(FakeModel(router_state()))
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


def test_to_begin_it_starts_no_other_program() -> None:
    """asyncssh looks for libraries by ``ldconfig``, ``gcc`` and ``ld`` where it is imported as it is."""
    code = (
        "import sys; started = []\n"
        "sys.addaudithook(lambda event, args: event == 'subprocess.Popen' and started.append(args[1]))\n"
        "import ctypes.util; search = ctypes.util.find_library\n"
        "import lineproof_bench.ssh\n"
        "assert not started, started\n"
        "assert ctypes.util.find_library is search"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIBRARIES)}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True, timeout=60)
