"""A TRex server that a testbed starts: over SSH by the command in its file, or in a network namespace.

It ends with the connection, or with the namespace.
"""

from __future__ import annotations

import shlex
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

from ..errors import TestbedError
from ..generators.trex.clients import ask_server
from ..system.login import Login
from ..system.network_namespace import inside, kept_within, run_in_namespace
from .process import Belongings, TestbedProcess

NAME = "trex"
"""The name of the process, in messages."""

ARGUMENTS = ("-i", "--stl", "--hdrh", "--no-scapy-server", "--no-termio", "--iom", "0")
"""Interactive, stateless, fine latency, no program that would outlive it, quiet."""

RPC_PORT, PUB_PORT = 4501, 4500
"""TCP ports of TRex's API, in a network namespace of its own."""

LIMIT = 90.0
"""Seconds until its API must answer."""

GRACE = 8.0
"""Seconds for an orderly end."""

IN_NAMESPACE = r"""
# a killed TRex leaves files there: they go with this mount namespace
mkdir -p /var/run/dpdk && mount -t tmpfs tmpfs /var/run/dpdk && cd "$1" || exit
export LD_LIBRARY_PATH="$1:$1/so/$(uname -m)"
shift
# not t-rex-64, which prepares cards and memory
exec ./_t-rex-64 "$@"
"""


def start_over_ssh(belongings: Belongings, login: Login, home: str, command: str, address: str, rpc_port: int) -> None:
    """Run *command* in the folder *home* of the host of *login*, with :data:`ARGUMENTS` after it.

    Its API must answer at *address*. Raises TestbedError.
    """
    with suppress(OSError):
        socket.create_connection((address, rpc_port), 1.0).close()
        raise TestbedError(
            f"a server answers already at {address}:{rpc_port}, where TRex is to be started; end that server, or leave"
            " 'start' out of the testbed file to use it"
        )
    argv = ("cd", shlex.quote(home), "&&", command, shlex.join(ARGUMENTS))
    answers = partial(ask_server, address, rpc_port)
    belongings.keep(TestbedProcess(NAME, argv, login=login, answers=answers, limit=LIMIT, grace=GRACE))


def start_in_namespace(belongings: Belongings, namespace: str, home: Path, config: str) -> None:
    """Start a server in software mode in *namespace*, with its API at TRex's port. Raises TestbedError."""
    path = belongings.folder / "trex_cfg.yaml"
    path.write_text(config)
    # the watchdog ends a server whose threads had to wait on a busy machine
    arguments = (*ARGUMENTS, "--software", "--no-watchdog", "--cfg", str(path))
    argv = (*inside(namespace), "/bin/sh", "-c", IN_NAMESPACE, "lineproof-trex", str(home), *arguments)
    belongings.keep(
        TestbedProcess(
            NAME,
            # alone: the namespace's holder removes the testbed's folder where its owner was killed
            kept_within("", argv),
            answers=partial(run_in_namespace, namespace, partial(ask_server, "127.0.0.1", RPC_PORT)),
            limit=LIMIT,
        )
    )
