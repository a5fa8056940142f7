"""A router's shell over SSH: any output is text within limits; a terminal's prompts, echoes and pagers are answered."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.command_values import compiled
from lineproof.errors import TestbedError
from lineproof.system.ssh import LARGEST_OUTPUT
from lineproof.system.ssh_shell import Dialogue, SshShell, plain_text, without_echo
from lineproof_bench.shells.server import asyncssh
from support.fake_cli import FakeCli
from support.hostile_ssh import HostileServer, OpenHouse
from support.patience import wait_until

# -- single commands: real ones of this machine


async def run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the command here; ``cut`` is one at which the link breaks, ``unfinished`` ends but for its status."""
    if process.command == "cut":
        process.stdout.write(b"half of it")
        process.get_extra_info("connection").abort()
        return
    if process.command == "unfinished":
        process.stdout.write_eof()
        await asyncio.sleep(300)
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    child = await asyncio.create_subprocess_shell(str(process.command), start_new_session=True, **pipes)
    assert child.stdin and child.stdout and child.stderr
    feed = asyncio.create_task(pump(process.stdin, child.stdin))
    try:
        await asyncio.gather(pump(child.stdout, process.stdout), pump(child.stderr, process.stderr))
        process.exit(await child.wait())
    finally:
        feed.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        # else it would be closed later, after its loop
        child._transport.close()  # type: ignore[attr-defined]


async def pump(source: Any, drain: Any) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(1 << 16):
            drain.write(data)
            await drain.drain()
        if isinstance(drain, asyncio.StreamWriter):
            drain.close()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshShell]:
    server = HostileServer(tmp_path_factory.mktemp("ssh"), OpenHouse, process_factory=run)
    with closing(server), closing(SshShell(server.login())) as made:
        yield made


BYTES = "printf '\\001\\002%s\\377\\n' $(seq 1000); printf '\\377\\376' >&2; exit 4"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "is_long"),
    [
        ("cat /dev/zero", True),
        ("cat /dev/zero >&2", True),
        ("while :; do printf .; sleep 0.02; done", False),
        ("unfinished", False),
        ("sleep 300", False),
    ],
)
def test_output_without_end_is_one_sentence_within_the_limits(shell: SshShell, command: str, is_long: bool) -> None:
    shell.open()
    before, began = psutil.Process().memory_info().rss, time.monotonic()
    limit = 120.0 if is_long else 0.5  # a busy machine takes its time for 16 MB
    cause = f"wrote more than {LARGEST_OUTPUT >> 10} kB" if is_long else "did not end within 0.5 s"
    with pytest.raises(TestbedError, match=f"^'{re.escape(command)}' {cause} on the router; run it there by hand"):
        shell(command, limit)
    assert time.monotonic() - began < limit + 30
    # the server is in this process, too
    assert psutil.Process().memory_info().rss < before + 8 * LARGEST_OUTPUT
    # the next command logs in again, and any bytes are text
    found = shell(BYTES, 20)
    assert found.stdout.startswith("\\x01\\x021\ufffd\n\\x01") and found.stdout.count("\n") == 1000
    assert (found.stderr, found.status) == ("\ufffd\ufffd", 4)
    wait_until(lambda: not any(thread.name == f"worker: '{command}'" for thread in threading.enumerate()))


@pytest.mark.slow
def test_an_answer_is_whole_and_a_broken_link_is_no_short_one(shell: SshShell) -> None:
    assert shell("head -c 4194304 /dev/zero | tr '\\0' y", 30).stdout == "y" * (4 << 20)
    with pytest.raises(TestbedError, match=r"the SSH link to the router broke during 'cut'"):
        shell("cut", 20)


@pytest.mark.slow
def test_a_command_is_given_its_standard_input_and_the_end_of_it(shell: SshShell) -> None:
    text = "pass µ\n" * 4000
    assert shell("cat", 20, text).stdout == text
    assert shell("printf a", 20, text).stdout == "a"  # ends without having read it


@pytest.mark.slow
def test_waiting_for_a_command_takes_no_core(shell: SshShell) -> None:
    """A software generator on the same machine, or a neighbour, would lose that core."""
    shell.open()
    began, used = time.monotonic(), time.process_time()
    found = shell("sleep 1; echo done; echo done >&2; exit 3", 20)
    assert (found.stdout, found.stderr, found.status) == ("done\n", "done\n", 3)
    assert time.process_time() - used < 0.25 * (time.monotonic() - began)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (r"\033]0;title\007\342\200\256\001", r"\u202e\x01"),
        (r"caf\351 \377\376", "caf\ufffd \ufffd\ufffd"),
        ("Password: hunter2-x, not hunter2-xy", "Password: ***, not hunter2-xy"),
    ],
)
def test_output_of_any_bytes_is_shown(
    shell: SshShell, monkeypatch: pytest.MonkeyPatch, printed: str, shown: str
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", "hunter2-x")
    monkeypatch.setattr(shell, "_login", shell._login.model_copy(update={"passphrase_from": "ROUTER_PASSWORD"}))
    assert shell(f"printf '{printed}' # µ", 20).stdout == shown


# -- a terminal: prompt, echo, pager, control sequences, and servers that never come to an end


PROMPT = r"[\w.-]+(?:\([\w-]+\))?[>#]"
PAGED = Dialogue(prompt=PROMPT, prompts=("Router>",), pager=r"\s*--More--\s*", pagers=("--More--",))


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[FakeCli]:
    found = FakeCli(tmp_path, {"show many": "\n".join(f"row {number}" for number in range(10)), "silent": "\n"})
    yield found
    found.close()


@pytest.mark.slow
def test_a_command_is_typed_at_the_prompt(cli: FakeCli) -> None:
    with closing(SshShell(cli.login, PAGED.model_copy(update={"first": ("terminal length 0",)}))) as shell:
        for _ in range(2):
            found = shell("show many", 10)
            assert found.stdout.split("\n")[:-1] == [f"row {number}" for number in range(10)]
            assert found.status == 0
        assert cli.pages == 0
        assert shell("reload now", 10).stdout.splitlines()[-1] == "% Invalid input detected at '^' marker."
        with pytest.raises(TestbedError, match="more than one line"):
            shell("show many\nreload", 10)
    assert cli.typed == ["terminal length 0", "show many", "show many", "reload now"]


@pytest.mark.slow
def test_a_pager_is_answered_and_leaves_nothing(cli: FakeCli) -> None:
    with closing(SshShell(cli.login, PAGED)) as shell:
        assert shell("show many", 10).stdout.split("\n")[:-1] == [f"row {number}" for number in range(10)]
    assert cli.pages == 3


Talk = Callable[["asyncssh.SSHServerProcess[bytes]"], "asyncio.Future[None]"]


async def silent(process: asyncssh.SSHServerProcess[bytes]) -> None:
    await asyncio.sleep(60)


async def endless_line(process: asyncssh.SSHServerProcess[bytes]) -> None:
    while True:
        process.stdout.write(b"\x1b[31m\b" * 8192)
        await process.stdout.drain()


async def pages_for_ever(process: asyncssh.SSHServerProcess[bytes]) -> None:
    while True:
        process.stdout.write(b"row\r\n --More-- ")
        await process.stdin.read(1)
        process.stdout.write(b"\r")


async def drips(process: asyncssh.SSHServerProcess[bytes]) -> None:
    while True:
        process.stdout.write(b"Router#")
        await asyncio.sleep(0.02)


async def closes(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stdout.write(b"Router")
    process.exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("talk", [silent, endless_line, pages_for_ever, drips, closes])
def test_a_terminal_without_an_end_is_one_sentence_within_the_limits(tmp_path: Path, talk: Talk) -> None:
    async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
        with contextlib.suppress(asyncssh.Error, OSError):
            await talk(process)

    began = time.monotonic()
    server = HostileServer(tmp_path, OpenHouse, process_factory=serve, line_editor=False)
    with closing(server), closing(SshShell(server.login(), PAGED)) as shell, pytest.raises(TestbedError) as caught:
        shell("show version", 1.0)
    assert time.monotonic() - began < 10
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


async def asks(process: asyncssh.SSHServerProcess[bytes]) -> None:
    for ask in (b"Router#", b"It is written to the device.\r\nContinue? [Y/N]: ", b"Saved.\r\nRouter#", b""):
        process.stdout.write(ask)
        while ask and (byte := await process.stdin.read(1)) != b"\n":
            process.stdout.write(byte)
        process.stdout.write(b"\r\n")


@pytest.mark.slow
def test_a_question_is_a_prompt_whose_answer_is_the_next_command(tmp_path: Path) -> None:
    server = HostileServer(tmp_path, OpenHouse, process_factory=asks, line_editor=False)
    dialogue = Dialogue(prompt=r"\w+#|.*\[Y/N\]:", prompts=("Router#",))
    with closing(server), closing(SshShell(server.login(), dialogue)) as shell:
        assert shell("save x", 10).stdout == "It is written to the device.\n"
        assert shell("y", 10).stdout == "Saved.\n"
        shell.close()
        shell._dialogue = dialogue.model_copy(update={"prompt": r"\w+#"})
        with pytest.raises(TestbedError, match=r"is 'Continue\? \[Y/N\]:'; if that is a question, let 'prompt'"):
            shell("save x", 1.0)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a\r\nb", "a\nb"),
        ("a\r\r\nb", "a\nb"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1b(B\x1b=", "red text"),
        (" --More-- \b\b\b\b\b\b\b\b\b\b          \b\b\b\b\b\b\b\b\b\brow", "row"),
        ("---(more)---\r            \rrow", "row"),
        ("shwo\b\b\b\bshow", "show"),
        ("\b\bx\0", "x"),
        ("[admin@r] > \r[admin@r] > /system\r\nuptime", "[admin@r] > /system\nuptime"),
    ],
)
def test_text_is_what_a_terminal_shows(written: str, shown: str) -> None:
    assert plain_text(written) == shown


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("a \r\n\b\x1b[0m];\x07P\x00é"), max_size=400))
def test_no_bytes_leave_control_sequences(written: str) -> None:
    shown = plain_text(written)
    assert "\r" not in shown and "\b" not in shown and "\x07" not in shown


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("show x\nrow\n", "row\n"),
        ("%LINK-3: up\nRouter#show x\nrow\n", "row\n"),
        ("%LINK-3: up\nshow x\nrow\n", "row\n"),
        ("Router# show x \nrow\n", "row\n"),
        ("row\nrow\n", "row\nrow\n"),
        # it does not echo, and names the command in its answer
        ("% Unknown command: show x\n", "% Unknown command: show x\n"),
        ("row\n% this router cannot show x\nrow\n", "row\n% this router cannot show x\nrow\n"),
        ("show x\n% Unknown command: show x\n", "% Unknown command: show x\n"),
    ],
)
def test_the_echo_is_left_out_and_what_a_log_wrote_before_it(text: str, rest: str) -> None:
    assert without_echo(text, "show x", compiled("Router#")) == rest
