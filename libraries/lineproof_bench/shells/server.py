"""The SSH server in front of a simulated machine: one user, one public key, commands and a simple prompt."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from .machine import Machine
from .ssh_library import asyncssh

BANNER = "SIMULATED router, not a real one: its counters come from a forwarding model.\n"
PROMPT = "# "
LOGIN_LIMIT = 15.0
"""Seconds that a client may take to authenticate."""


FaultQuery = Callable[[], Mapping[str, Any]]
"""Gives the fault of a command that has come: {}, {"cut": true} or {"freeze": s}."""


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


async def listen(
    machine: Machine, user: str, authorized_key: str, host_key: asyncssh.SSHKey, query: FaultQuery
) -> asyncssh.SSHAcceptor:
    """Serve *machine* at a free port of 127.0.0.1."""
    key = asyncssh.import_public_key(authorized_key)
    return await asyncssh.create_server(
        lambda: _OneUser(user, key, lambda: _Session(machine, query)),
        "127.0.0.1",
        0,  # asyncssh's default is 22
        server_host_keys=[host_key],
        password_auth=False,
        kbdint_auth=False,
        gss_host=None,
        allow_scp=False,
        login_timeout=LOGIN_LIMIT,
        errors="replace",
    )


class _Session(asyncssh.SSHServerSession[str]):
    """A command that is answered at once, or a prompt for a person, who types one a line."""

    def __init__(self, machine: Machine, query: FaultQuery) -> None:
        self._machine, self._query, self._input = machine, query, ""
        self._command: str | None = None

    def connection_made(self, channel: asyncssh.SSHServerChannel[str]) -> None:
        self._channel = channel

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        fault = self._query()
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
