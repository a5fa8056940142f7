"""The SSH server in front of a simulated machine: one user, one public key, commands and a simple prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from lineproof.errors import TestbedError

from .machine import Machine
from .ssh_library import asyncssh

BANNER = "SIMULATED router, not a real one: its counters come from a forwarding model.\n"
LOGIN_LIMIT = 15.0
"""Seconds that a client may take to authenticate."""


FaultQuery = Callable[[], Mapping[str, Any]]
"""Gives the fault of a command that has come: {}, {"cut": true} or {"freeze": s}."""


class _OneUser(asyncssh.SSHServer):
    """Admits one user by one key; every other method is refused."""

    def __init__(self, user: str, key: asyncssh.SSHKey) -> None:
        self._user, self._key = user, key

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._user and key.public_data == self._key.public_data

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False


async def listen(
    machine: Machine,
    host: str,
    port: int,
    user: str,
    authorized_key: str,
    host_key: asyncssh.SSHKey,
    query: FaultQuery = dict,
) -> asyncssh.SSHAcceptor:
    """Serve *machine* at *host*:*port* (0: a free one). Raises TestbedError for a taken port or an invalid key."""
    try:
        key = asyncssh.import_public_key(authorized_key)
    except asyncssh.KeyImportError as error:
        raise TestbedError(
            f"the authorized key of the simulated router is not an OpenSSH public key: {error}"
        ) from None
    try:
        return await asyncssh.create_server(
            lambda: _OneUser(user, key),
            host,
            port,
            server_host_keys=[host_key],
            process_factory=lambda process: _serve(machine, process, query),
            password_auth=False,
            kbdint_auth=False,
            gss_host=None,
            allow_scp=False,
            login_timeout=LOGIN_LIMIT,
            errors="replace",
        )
    except OSError as error:
        raise TestbedError(
            f"the simulated router cannot listen at {host}:{port}: {error.strerror or error};"
            " name another port in the testbed's file, or 0 for a free one"
        ) from None


async def _serve(machine: Machine, process: asyncssh.SSHServerProcess[str], query: FaultQuery) -> None:
    try:
        found = query()
        if found.get("cut"):
            process.get_extra_info("connection").abort()
            return
        if seconds := found.get("freeze"):
            await asyncio.sleep(float(seconds))
        if process.command is None:
            status = await _prompt(machine, process)
        else:
            # a command that names its standard input is given one, and its end
            is_fed = process.command.split()[-1:] in (["-"], ["/dev/stdin"])
            status = _execute(machine, process, process.command, await process.stdin.read() if is_fed else "")
        process.exit(status)
    except (asyncssh.ConnectionLost, asyncssh.ChannelOpenError, BrokenPipeError, ConnectionError):
        process.close()


def _execute(machine: Machine, process: asyncssh.SSHServerProcess[str], text: str, stdin: str = "") -> int:
    output = machine.run(text, stdin)
    process.stdout.write(output.stdout)
    process.stderr.write(output.stderr)
    return output.status


async def _prompt(machine: Machine, process: asyncssh.SSHServerProcess[str]) -> int:
    """A prompt, with VPP's own inside ``vppctl``."""
    process.stdout.write(BANNER)
    status, inside = 0, False
    while True:
        process.stdout.write("vpp# " if inside else machine.software.prompt)
        text = await _next_line(process)
        if text is None:
            return status
        words = text.split()
        if words[:1] in (["exit"], ["quit"], ["logout"]):
            if not inside:
                return int(words[1]) if len(words) > 1 and words[1].isdigit() else status
            inside = False
        elif words == ["vppctl"] and "vppctl" in machine.software.commands:
            inside = True
        elif words:
            status = _execute(machine, process, f"vppctl {text}" if inside else text)


async def _next_line(process: asyncssh.SSHServerProcess[str]) -> str | None:
    """The next line, or None at the end of input."""
    while True:
        try:
            text: Any = await process.stdin.readline()
        except asyncssh.TerminalSizeChanged:
            continue
        except (asyncssh.BreakReceived, asyncssh.SignalReceived):
            return ""
        return str(text) if text else None
