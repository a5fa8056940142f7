"""Leads from TCP ports of this machine to those of a server in a network namespace.

``python -m lineproof.testbed.trex.relay``: as long as its standard input lasts, on loopback at both ends.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from functools import partial

from ...errors import TestbedError
from ...json_text import parse_json
from ...system.network_namespace import run_in_namespace
from ...system.signals import end_with_parent

HOST = "127.0.0.1"

CONNECT_LIMIT = 2.0
"""Seconds to connect within the namespace."""


def main() -> int:
    """Relay between the ports that standard input names; say which those of this machine are."""
    data = parse_json(sys.stdin.buffer.readline(), own=True)
    if data["ends_with_parent"]:
        end_with_parent()
    try:
        listeners = [socket.create_server((HOST, port)) for port in data["ports"]]
    except OSError as error:
        print(json.dumps({"error": f"no port for TRex's API can be had: {error.strerror}"}), flush=True)
        return 1
    for listener, target in zip(listeners, data["targets"], strict=True):
        threading.Thread(target=_accept, args=(listener, data["namespace"], target), daemon=True).start()
    rpc, pub = (listener.getsockname()[1] for listener in listeners)
    print(json.dumps({"ready": True, "rpc_port": rpc, "pub_port": pub}), flush=True)
    sys.stdin.buffer.read()
    return 0


def _accept(listener: socket.socket, namespace: str, target: int) -> None:
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_serve, args=(client, namespace, target), daemon=True).start()


def _serve(client: socket.socket, namespace: str, target: int) -> None:
    """Copy both ways until one end is closed; where nobody listens the client sees its connection end."""
    with client, contextlib.suppress(OSError, TestbedError):
        connect = partial(socket.create_connection, (HOST, target), CONNECT_LIMIT)
        with run_in_namespace(namespace, connect) as server:
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_copy, args=(server, client), daemon=True)
            back.start()
            _copy(client, server)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    # one end closes both
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    sys.exit(main())
