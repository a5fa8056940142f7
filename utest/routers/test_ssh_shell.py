"""The router's shell over SSH: what waiting costs, and what a command that does not end leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lineproof.errors import TestbedError
from lineproof.routers.ssh_shell import SshShell
from lineproof_bench.shells.ssh_library import asyncssh
from support.hostile_ssh import answered

pytestmark = pytest.mark.slow


async def answer(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """``sleep SECONDS``, then ``done`` on both outputs and status 3; ``print HEX``: these bytes."""
    if process.command and process.command.startswith("print "):
        process.stdout.write(bytes.fromhex(process.command.split()[1]))
        process.exit(0)
        return
    await asyncio.sleep(float((process.command or "sleep 300").split()[1]))
    process.stdout.write(b"done")
    process.stderr.write(b"done")
    process.exit(3)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshShell]:
    with answered(tmp_path_factory.mktemp("ssh"), answer) as found:
        yield found


def test_waiting_for_a_command_takes_no_core(shell: SshShell) -> None:
    """A software generator on the same machine, or a neighbour, would lose that core."""
    shell.open()
    began, used = time.monotonic(), time.process_time()
    found = shell("sleep 1", 20)
    assert (found.stdout, found.stderr, found.status) == ("done", "done", 3)
    assert time.process_time() - used < 0.25 * (time.monotonic() - began)


def test_a_command_that_does_not_end_leaves_no_thread_and_the_next_one_works(shell: SshShell) -> None:
    with pytest.raises(TestbedError, match=r"'sleep 300' did not end within 0\.3 s on the router"):
        shell("sleep 300", 0.3)
    until = time.monotonic() + 20
    while any("sleep 300" in thread.name for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any("sleep 300" in thread.name for thread in threading.enumerate())
    assert shell("sleep 0", 20).status == 3


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"eth0 \xc2\xb5s\r\n\tup", "eth0 µs\n\tup"),
        (b"\x1b[31mdown\x1b[0m", "down"),
        (b"\x1b]0;title\x07\xe2\x80\xae\x00", r"\x1b]0;title\x07\u202e\x00"),
        (b"caf\xe9 \xff\xfe", "caf\ufffd \ufffd\ufffd"),
        (b"Password: hunter2-x, not hunter2-xy", "Password: ***, not hunter2-xy"),
    ],
)
def test_output_of_any_bytes_is_shown(
    shell: SshShell, monkeypatch: pytest.MonkeyPatch, printed: bytes, shown: str
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", "hunter2-x")
    monkeypatch.setattr(shell, "_login", replace(shell._login, passphrase_from="ROUTER_PASSWORD"))
    assert shell(f"print {printed.hex()} # µ", 20).stdout == shown
