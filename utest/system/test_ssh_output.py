"""Any output of a router over SSH is text, within limits of size, time and memory."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.system.ssh import LARGEST_OUTPUT
from lineproof.system.ssh_shell import SshShell
from lineproof_bench.shells.server import asyncssh
from support.hostile_ssh import answered
from support.patience import wait_until

pytestmark = pytest.mark.slow


async def answer(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """A command is the name of a way to write, then an argument. SSHLibrary also opens a shell when it logs in."""
    word, _, argument = str(process.command or "silent").partition(" ")
    try:
        if word == "print":
            process.stdout.write(bytes.fromhex(argument.split()[0]))
            process.exit(0)
        elif word == "sleep":
            await asyncio.sleep(float(argument))
            process.stdout.write(b"done")
            process.stderr.write(b"done")
            process.exit(3)
        elif word in ("gigabytes", "errors"):
            out = process.stdout if word == "gigabytes" else process.stderr
            while True:
                out.write(b"x" * (1 << 20))
                await out.drain()
        elif word == "drip":
            while True:
                process.stdout.write(b".")
                await asyncio.sleep(0.02)
        elif word == "bytes":
            process.stdout.write(bytes(range(256)) * 10)
            process.stderr.write(b"\xff\xfe" * 10)
            process.exit(4)
        elif word == "repeat":
            process.stdout.write(await process.stdin.read())
            process.exit(0)
        elif word == "large":
            process.stdout.write(b"y" * (4 << 20))
            process.exit(0)
        elif word == "unfinished":
            process.stdout.write(b"z")
            process.stdout.write_eof()
            await asyncio.sleep(300)
        elif word == "cut":
            process.stdout.write(b"half of it")
            process.get_extra_info("connection").abort()
        else:
            await asyncio.sleep(300)
    except (asyncssh.Error, OSError):
        pass


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshShell]:
    with answered(tmp_path_factory.mktemp("ssh"), answer) as found:
        yield found


@pytest.mark.parametrize("word", ["gigabytes", "errors", "drip", "unfinished", "silent"])
def test_output_without_end_is_one_sentence_within_the_limits(shell: SshShell, word: str) -> None:
    shell.open()
    before, began = psutil.Process().memory_info().rss, time.monotonic()
    limit = 20.0 if word in ("gigabytes", "errors") else 0.5
    with pytest.raises(TestbedError) as caught:
        shell(word, limit)
    text = str(caught.value)
    cause = rf"(wrote more than {LARGEST_OUTPUT >> 10} kB|did not end within [\d.]+ s)"
    assert re.fullmatch(f"'{word}' {cause} on the router; run it there by hand to see why", text)
    assert ("wrote" in text) == (word in ("gigabytes", "errors"))
    assert time.monotonic() - began < limit + 10
    # the server is in this process, too
    assert psutil.Process().memory_info().rss < before + 8 * LARGEST_OUTPUT
    # the next command logs in again, and any bytes are text
    found = shell("bytes", 20)
    assert found.stdout.startswith(r"\x01\x02\x03") and found.stdout.count("A") == 10
    assert (found.stderr, found.status) == ("\ufffd" * 20, 4)
    wait_until(lambda: not any(thread.name == f"worker: '{word}'" for thread in threading.enumerate()))


def test_a_long_answer_is_whole(shell: SshShell) -> None:
    assert shell("large", 30).stdout == "y" * (4 << 20)


def test_a_command_is_given_its_standard_input_and_the_end_of_it(shell: SshShell) -> None:
    text = "pass µ\n" * 4000
    assert shell("repeat", 20, text).stdout == text
    assert shell("print 61", 20, text).stdout == "a"  # ends without having read it


def test_a_broken_link_is_no_short_answer(shell: SshShell) -> None:
    with pytest.raises(TestbedError, match=r"the SSH link to the router broke during 'cut'"):
        shell("cut", 20)


def test_waiting_for_a_command_takes_no_core(shell: SshShell) -> None:
    """A software generator on the same machine, or a neighbour, would lose that core."""
    shell.open()
    began, used = time.monotonic(), time.process_time()
    found = shell("sleep 1", 20)
    assert (found.stdout, found.stderr, found.status) == ("done", "done", 3)
    assert time.process_time() - used < 0.25 * (time.monotonic() - began)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"eth0 \xc2\xb5s\r\n\tup", "eth0 µs\n\tup"),
        (b"\x1b[31mdown\x1b[0m", "down"),
        (b"\x1b]0;title\x07\xe2\x80\xae\x01", r"\u202e\x01"),
        (b"caf\xe9 \xff\xfe", "caf\ufffd \ufffd\ufffd"),
        (b"Password: hunter2-x, not hunter2-xy", "Password: ***, not hunter2-xy"),
    ],
)
def test_output_of_any_bytes_is_shown(
    shell: SshShell, monkeypatch: pytest.MonkeyPatch, printed: bytes, shown: str
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", "hunter2-x")
    monkeypatch.setattr(shell, "_login", shell._login.model_copy(update={"passphrase_from": "ROUTER_PASSWORD"}))
    assert shell(f"print {printed.hex()} # µ", 20).stdout == shown
