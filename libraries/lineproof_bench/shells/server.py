"""The SSH server in front of a simulated router: one user, one public key, commands and a simple prompt.

asyncssh looks for ``liboqs`` and ``libnettle``, which the simulated router can do without, by
:func:`ctypes.util.find_library`: that runs ``ldconfig``, ``gcc`` and ``ld`` up to six times, longer than all else that
this process needs to begin. Certificates (X.509), for which it imports 15 ms more, log nobody in here.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes.util
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ..faults.model import FaultyModel
from . import freebsd, linux, vpp
from .machine import Machine, StudyCommands

_search = ctypes.util.find_library
ctypes.util.find_library = lambda name: None
sys.modules["asyncssh.crypto.x509"] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
try:
    import asyncssh
finally:
    ctypes.util.find_library = _search

__all__ = ["asyncssh", "listening"]

BANNER = "SIMULATED router, not a real one: its counters come from a forwarding model.\n"
PROMPT = "# "
Router = Callable[[], FaultyModel]
"""The present router: a server that starts again begins a new one."""


@asynccontextmanager
async def listening(specification: Mapping[str, Any], router: Router) -> AsyncIterator[dict[str, Any]]:
    """Serve the shell of *router* at a free port of 127.0.0.1; yield ``ssh_port`` and ``host_key``, which is new.

    ``shells`` of *specification*: ``user`` and ``authorized_key`` (OpenSSH) that may log in. ``setups``: what a study's
    commands make of the router.
    """
    state, login = router().state(), specification["shells"]
    names = [interface.name for interface in state.interfaces]
    commands, memory = {
        "vpp": (vpp.software, linux.first_memory(())),
        "linux": (linux.software, linux.first_memory(names)),
        "freebsd": (freebsd.software, freebsd.first_memory(names)),
    }[state.software]
    own = commands()
    machine = Machine(own, router, memory, StudyCommands(specification.get("setups") or (), own).run)
    key, authorized = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.import_public_key(login["authorized_key"])
    async with await asyncssh.create_server(
        lambda: _OneUser(login["user"], authorized, lambda: _Session(machine, router)),
        "127.0.0.1",
        0,  # asyncssh's default is 22
        server_host_keys=[key],
        password_auth=False,
        kbdint_auth=False,
        gss_host=None,
        allow_scp=False,
        login_timeout=15.0,
        errors="replace",
    ) as acceptor:
        yield {"ssh_port": acceptor.get_port(), "host_key": " ".join(key.export_public_key().decode().split()[:2])}


class _OneUser(asyncssh.SSHServer):
    """Admits one user by one key; every other method is refused."""

    def __init__(self, user: str, key: asyncssh.SSHKey, session: Callable[[], _Session]) -> None:
        self._user, self._key, self._session = user, key, session

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._user and key.public_data == self._key.public_data

    def session_requested(self) -> _Session:
        return self._session()


class _Session(asyncssh.SSHServerSession[str]):
    """A command that is answered at once, or a prompt for a person, who types one a line."""

    def __init__(self, machine: Machine, router: Router) -> None:
        self._machine, self._router, self._input = machine, router, ""
        self._command: str | None = None

    def connection_made(self, channel: asyncssh.SSHServerChannel[str]) -> None:
        self._channel = channel

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        fault = self._router().ssh_fault()
        if fault.get("cut"):
            self._channel.get_extra_info("connection").abort()
        elif seconds := fault.get("freeze"):
            asyncio.get_running_loop().call_later(float(seconds), self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        if self._command is None:
            self._channel.write(BANNER + PROMPT)
        elif not self._is_fed:
            self._channel.exit(self._answer(self._command))

    @property
    def _is_fed(self) -> bool:
        """A command that names its standard input is given one, and its end."""
        return (self._command or "").split()[-1:] in (["-"], ["/dev/stdin"])

    def data_received(self, data: str, datatype: object) -> None:
        self._input += data
        while self._command is None and "\n" in self._input:
            text, _, self._input = self._input.partition("\n")
            if text.strip() == "exit":
                return self._channel.exit(0)
            self._answer(text)
            self._channel.write(PROMPT)

    def eof_received(self) -> bool:
        if self._command is None or self._is_fed:
            self._channel.exit(self._answer(self._command or "", self._input))
        return True

    def _answer(self, text: str, stdin: str = "") -> int:
        output = self._machine.run(text, stdin)
        with contextlib.suppress(BrokenPipeError):  # the client has gone
            self._channel.write(output.stdout)
            self._channel.write_stderr(output.stderr)
        return output.status
