"""Runs a command on another host, in a terminal, as long as this process's standard input lasts.

``python -m lineproof.testbed.trex.over_ssh``. At the end of its input, or a signal, it types Ctrl-C there, which
asks the command to end in order, whoever's it is (sudo). The end of the connection hangs up what still runs. So the
command ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import shutil
import signal
import sys
import time

import paramiko
from pydantic import TypeAdapter

from ...errors import TestbedError
from ...json_text import parse_json
from ...system.login import Login
from ...system.signals import ENDING, end_with_parent
from ...system.ssh import Connection

GRACE = 8.0
"""Seconds for an orderly end."""

LONGEST_LOG = 64 << 20
"""Bytes of its output that are kept: a server that writes without end must not fill the disk."""

STATUS_LIMIT = 2.0
"""Seconds for the exit status, after the output has ended."""


def main() -> int:
    """Run the one command that standard input describes; return its exit status."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    # the handlers do nothing: one that waits for what it has interrupted would wait for ever
    signal.set_wakeup_fd(tell)
    for number in ENDING:
        signal.signal(number, lambda *_: None)
    data = parse_json(sys.stdin.buffer.readline(), own=True)
    if data["ends_with_parent"]:
        end_with_parent()
    login = TypeAdapter(Login).validate_python(data["login"])
    try:
        with contextlib.closing(Connection(login, "the TRex server's host").open()) as connection:
            return _run(connection.session(15.0), data["command"], (0, told))
    except (TestbedError, paramiko.SSHException, OSError, EOFError) as error:
        print("lineproof:", str(error) or f"{login.where} ended the connection", file=sys.stderr)
        return 1
    finally:
        if select.select([0, told], [], [], 0.0)[0]:  # else the testbed reads the log
            shutil.rmtree(data["folder"], ignore_errors=True)


def _run(channel: paramiko.Channel, command: str, ends: tuple[int, int]) -> int:
    """Run *command* until one of the descriptors *ends* can be read. Raises paramiko's errors and OSError."""
    # so that both ends notice a lost connection
    channel.get_transport().set_keepalive(5)
    channel.get_pty("dumb")
    channel.exec_command(command)
    left, until = LONGEST_LOG, math.inf
    while time.monotonic() < until:
        waited = ends if until == math.inf else ()
        ready = select.select([channel, *waited], [], [], 0.5)[0]
        if channel in ready:
            output = channel.recv(65536)
            if not output:
                break
            os.write(2, output[:left])
            left = max(0, left - len(output))
        elif ready:
            channel.sendall(b"\x03")
            until = time.monotonic() + GRACE
    channel.status_event.wait(STATUS_LIMIT)
    if channel.exit_status < 0 and until == math.inf:
        raise TestbedError("the SSH connection to TRex was lost")
    return max(0, channel.exit_status)


if __name__ == "__main__":
    sys.exit(main())
