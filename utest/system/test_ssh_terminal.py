"""Command lines that want a terminal: prompt, echo, pager, control sequences, and servers that never come to an end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.command_values import compiled
from lineproof.errors import TestbedError
from lineproof.system.ssh_shell import Dialogue, SshShell, plain_text, without_echo
from lineproof_bench.shells.server import asyncssh
from support.fake_cli import FakeCli
from support.hostile_ssh import HostileServer, OpenHouse

PAGED = Dialogue(prompt=r"[\w.-]+(?:\([\w-]+\))?[>#]", prompts=("Router>",), pager=r"\s*--More--\s*")
IOS = PAGED.model_copy(update={"first": ("terminal length 0",)})


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[FakeCli]:
    found = FakeCli(tmp_path, {"show many": "\n".join(f"row {number}" for number in range(10)), "silent": "\n"})
    yield found
    found.close()


@pytest.fixture
def shell(cli: FakeCli) -> Iterator[SshShell]:
    found = SshShell(cli.login, IOS)
    yield found
    found.close()


@pytest.mark.slow
def test_a_command_is_typed_at_the_prompt(cli: FakeCli, shell: SshShell) -> None:
    for _ in range(2):
        found = shell("show many", 10)
        assert found.stdout.split("\n")[:-1] == [f"row {number}" for number in range(10)]
        assert found.status == 0
    assert cli.typed == ["terminal length 0", "show many", "show many"]
    assert cli.pages == 0
    assert shell("reload now", 10).stdout.splitlines()[-1] == "% Invalid input detected at '^' marker."


@pytest.mark.slow
def test_a_pager_is_answered_and_leaves_nothing(cli: FakeCli) -> None:
    shell = SshShell(cli.login, PAGED)
    try:
        assert shell("show many", 10).stdout.split("\n")[:-1] == [f"row {number}" for number in range(10)]
    finally:
        shell.close()
    assert cli.pages == 3


@pytest.mark.slow
def test_a_command_of_two_lines_is_not_typed(cli: FakeCli, shell: SshShell) -> None:
    with pytest.raises(TestbedError, match="more than one line"):
        shell("show many\nreload", 10)
    assert "reload" not in cli.typed


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

    server = HostileServer(tmp_path, OpenHouse, process_factory=serve, line_editor=False)
    shell, began = SshShell(server.login(), PAGED), time.monotonic()
    try:
        with pytest.raises(TestbedError) as caught:
            shell("show version", 1.0)
        assert time.monotonic() - began < 10
        assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)
    finally:
        shell.close()
        server.close()


async def asks(process: asyncssh.SSHServerProcess[bytes]) -> None:
    for ask in (b"Router#", b"It is written to the device.\r\nContinue? [Y/N]: ", b"Saved.\r\nRouter#", b""):
        process.stdout.write(ask)
        while ask and (byte := await process.stdin.read(1)) != b"\n":
            process.stdout.write(byte)
        process.stdout.write(b"\r\n")


@pytest.mark.slow
def test_a_question_is_a_prompt_whose_answer_is_the_next_command(tmp_path: Path) -> None:
    server = HostileServer(tmp_path, OpenHouse, process_factory=asks, line_editor=False)
    knows = SshShell(server.login(), Dialogue(prompt=r"[\w.-]+#|.*\[Y/N\]:", prompts=("Router#",)))
    not_so = SshShell(server.login(), Dialogue(prompt=r"[\w.-]+#", prompts=("Router#",)))
    try:
        assert knows("save x", 10).stdout == "It is written to the device.\n"
        assert knows("y", 10).stdout == "Saved.\n"
        with pytest.raises(TestbedError, match=r"is 'Continue\? \[Y/N\]:'; if that is a question, let 'prompt'"):
            not_so("save x", 1.0)
    finally:
        knows.close()
        not_so.close()
        server.close()


# -- text --------------------------------------------------------------------------------------------------------------


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


def test_long_text_takes_no_long_time() -> None:
    began = time.thread_time()
    for text in ("\x1b[" * 200_000, "\x1b]" * 200_000, "a\b" * 500_000):
        plain_text(text)
    assert time.thread_time() - began < 5
