"""One command over SSH, whose output has limits of size and time: whoever answers may write for ever."""

from __future__ import annotations

import select
import time

import paramiko

from ..errors import TestbedError

LARGEST_OUTPUT = 16 << 20
"""Bytes that a command may write: the longest answers of a router have some 100 kB."""


class CommandUnfinished(TestbedError):
    """The command went on past a limit. The connection should be closed: its end may go on sending."""


def run_ssh_command(client: paramiko.SSHClient, command: str, limit: float) -> tuple[bytes, bytes, int]:
    """Both outputs and the exit status of *command*; -1: the connection broke.

    Raises CommandUnfinished after *limit* s or :data:`LARGEST_OUTPUT`, paramiko's errors and OSError for a broken
    connection.
    """
    until = time.monotonic() + limit
    transport = client.get_transport()
    if transport is None:
        return b"", b"", -1
    channel = transport.open_session(timeout=limit)
    try:
        channel.settimeout(limit)
        channel.exec_command(command)
        stdout, stderr = bytearray(), bytearray()
        while True:
            # asked first: what came before the end is read after it
            ended = channel.eof_received or channel.closed
            if channel.recv_ready():
                stdout += channel.recv(1 << 16)
            elif channel.recv_stderr_ready():
                stderr += channel.recv_stderr(1 << 16)
            elif ended:
                break
            else:
                select.select([channel], [], [], max(0.0, until - time.monotonic()))
            if len(stdout) + len(stderr) > LARGEST_OUTPUT:
                raise CommandUnfinished(f"'{command}' wrote more than {LARGEST_OUTPUT >> 10} kB")
            if time.monotonic() > until:
                raise CommandUnfinished(f"'{command}' did not end within {limit:g} s")
        channel.status_event.wait(max(0.0, until - time.monotonic()))
        if not channel.closed and not channel.exit_status_ready():
            raise CommandUnfinished(f"'{command}' did not end within {limit:g} s")
        return bytes(stdout), bytes(stderr), channel.exit_status
    finally:
        channel.close()
