"""A shell on an embedded bench's router, for ``serve``. Suites use SSHLibrary (``libraries/RouterShell.py``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import paramiko

from ..errors import BenchError
from ..routers.base import Result, Shell
from ..testbed.facts import RouterEndpoint

CONNECT_LIMIT = 10.0
"""Seconds for each step of logging in."""


@contextmanager
def ssh_shell(router: RouterEndpoint) -> Iterator[Shell]:
    """Log in with the bench's own key, its host key checked. Raises BenchError."""
    client = paramiko.SSHClient()
    client.load_host_keys(str(router.known_hosts_path))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())

    def run(command: str, limit: float) -> Result:
        began = time.monotonic()
        try:
            _, out, err = client.exec_command(command, timeout=limit)
            text, complaint = out.read().decode(), err.read().decode()
            status = out.channel.recv_exit_status()
        except (paramiko.SSHException, OSError) as error:
            raise BenchError(f"'{command}' on the router: {error}") from error
        return Result(text, complaint, status, time.monotonic() - began)

    try:
        client.connect(
            router.host,
            router.port,
            router.user,
            key_filename=str(router.key_path),
            allow_agent=False,
            look_for_keys=False,
            timeout=CONNECT_LIMIT,
            banner_timeout=CONNECT_LIMIT,
            auth_timeout=CONNECT_LIMIT,
        )
        yield run
    except (paramiko.SSHException, OSError) as error:
        raise BenchError(f"the router's shell at {router.host}:{router.port} cannot be reached: {error}") from error
    finally:
        client.close()
