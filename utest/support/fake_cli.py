"""A router's command line in a terminal, as an SSH server: prompt, echo, pager, control sequences, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lineproof_bench.shells.server import asyncssh
from support.hostile_ssh import HostileServer, OpenHouse

Answer = str | Callable[[str], str]

INTERFACE = """\
{name} is up, line protocol is up
  Input queue: 0/75/0/0 (size/max/drops/flushes); Total output drops: {drops}
     {rx} packets input, {rx_bytes} bytes, 0 no buffer
     0 input errors, 0 CRC
     {tx} packets output, {tx_bytes} bytes, 0 underruns
     0 output errors, 0 collisions
"""
VERSION = """\
Cisco IOS Software, made up, Version 15.2(4)E8, RELEASE SOFTWARE
Router uptime is 2 weeks, 3 days, 4 hours, 5 minutes
"""
ANSWERS: Mapping[str, Answer] = {
    "show version": VERSION,
    "show processes cpu": "CPU utilization for five seconds: 12%/3%; one minute: 9%; five minutes: 8%",
    "show ip arp": (
        "Internet  100.65.1.2  -   0200.0000.0001  ARPA   GigabitEthernet0/1\n"
        "Internet  100.65.2.2  -   0200.0000.0002  ARPA   GigabitEthernet0/2"
    ),
}


PAGE = 3


class FakeCli:
    """An IOS-like router. *answers*: output by command, added to its own; ``typed``: all lines that it got.

    It pages after PAGE lines, until 'terminal length 0', and shows nothing between 'configure terminal' and 'end'.
    """

    def __init__(self, folder: Path, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = {**ANSWERS, **(answers or {})}
        self.typed: list[str] = []
        self.pages = self.logins = 0
        self._server = HostileServer(folder, OpenHouse, process_factory=self._serve, line_editor=False)

    @property
    def login(self) -> Any:
        return self._server.login()

    def close(self) -> None:
        self._server.close()

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        # SSHLibrary opens nothing here; an exec request is answered as a box with a terminal only does
        if process.command is not None:
            process.stderr.write(b"Line has invalid autocommand\r\n")
            process.exit(1)
            return
        page, mode, write = PAGE, "", process.stdout.write
        self.logins += 1
        write(b"\x1b]0;router\x07\r\n*** Router# is not for you ***\r\n")
        try:
            while True:
                write(f"\x1b[1mRouter{mode}#\x1b[0m ".encode())
                line = await self._line(process)
                self.typed.append(line)
                if line == "terminal length 0":
                    page = 0
                elif line in ("configure terminal", "end"):
                    mode = "(config)" if line != "end" else ""
                else:
                    await self._show(process, self._answered(f"{mode}{line}"), page)
        except (asyncssh.Error, OSError, EOFError):
            pass

    def _answered(self, line: str) -> str:
        starts = (start for start in self.answers if line == start or (start.endswith(" ") and line.startswith(start)))
        answer = self.answers.get(next(starts, ""))
        if answer is None:
            return "         ^\n% Invalid input detected at '^' marker.\n"
        return answer(line) if callable(answer) else answer

    async def _line(self, process: asyncssh.SSHServerProcess[bytes]) -> str:
        typed = b""
        while not typed.endswith((b"\r", b"\n")):
            byte = await process.stdin.read(1)
            if not byte:
                raise EOFError
            typed += byte
            process.stdout.write(b"\r\n" if byte in b"\r\n" else byte)
        return typed.decode().strip()

    async def _show(self, process: asyncssh.SSHServerProcess[bytes], text: str, page: int) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            process.stdout.write(f"{line}\r\n".encode())
            if page and number % page == 0:
                process.stdout.write(b" --More-- ")
                self.pages += 1
                await process.stdin.read(1)
                process.stdout.write(b"\b" * 10 + b" " * 10 + b"\b" * 10)
            await asyncio.sleep(0)


def counters(line: str, rx: int = 1000, tx: int = 990, drops: int = 10) -> str:
    """Return the answer to ``show interfaces NAME``."""
    name = line.split()[-1]
    return INTERFACE.format(name=name, rx=rx, tx=tx, drops=drops, rx_bytes=rx * 60, tx_bytes=tx * 60)
