"""A real OpenSSH server for the ``netns`` testbed, on loopback, its sessions in the router's namespace.

Keys and configuration are made new for every run in a folder of mode 0700. The machine's own SSH server is neither
read nor changed.
"""

from __future__ import annotations

import os
import pwd
import shlex
import socket
from pathlib import Path

from ..files import write_whole
from ..system.folders import ELSEWHERE
from ..system.login import Login
from ..system.network_namespace import inside, kept_within, program
from ..system.ssh_keys import make_key, write_known_hosts
from .process import Belongings, TestbedProcess

HOST = "127.0.0.1"

PID_FILE = "pid"
"""The file that sshd writes once it listens. A connection without a login is one that OpenSSH ≥ 9.8 punishes."""


def start(belongings: Belongings, namespace: str, name: str = "ssh") -> Login:
    """Start a server with sessions in *namespace* and files in the folder *name*. Raises TestbedError."""
    folder = belongings.folder / name
    argv, login = prepare(folder, namespace)
    listens = (folder / PID_FILE).stat
    belongings.keep(TestbedProcess("sshd", kept_within(namespace, argv), answers=listens))
    return login


def prepare(folder: Path, namespace: str) -> tuple[tuple[str, ...], Login]:
    """Write keys and configuration to *folder*, for sessions inside *namespace*. Raises TestbedError.

    Returns the command that runs the server in the foreground, its log on standard error, and the login.
    """
    server, user = program("sshd"), pwd.getpwuid(os.geteuid()).pw_name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    port = free_port()
    key, known_hosts = folder / "client_ed25519", folder / "known_hosts"
    write_whole(folder / "authorized_keys", make_key(key) + "\n", ELSEWHERE, 0o600)
    write_known_hosts(known_hosts, HOST, port, make_key(folder / "host_ed25519"))
    # every session runs the client's command, given to a shell in the namespace as one argument
    enter = f"exec {shlex.join(inside(namespace))} /bin/sh"
    session = f'#!/bin/sh\nif [ -n "$SSH_ORIGINAL_COMMAND" ]; then\n  {enter} -c "$SSH_ORIGINAL_COMMAND"\nfi\n{enter}\n'
    write_whole(folder / "session", session, ELSEWHERE, 0o700)
    # sshd needs it on Debian and its derivatives; a machine that never ran sshd lacks it
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    config = folder / "sshd_config"
    write_whole(config, configuration(folder, port, user, _is_locked(user)), ELSEWHERE, 0o600)
    return (server, "-D", "-e", "-f", str(config)), Login(
        address=HOST, port=port, user=user, key=key, known_hosts=known_hosts
    )


def configuration(folder: Path, port: int, user: str, pam: bool) -> str:
    """Return ``sshd_config(5)``: one user, by key, sessions only. *pam*: for a locked account."""
    quoted = {name: f'"{folder / name}"' for name in ("host_ed25519", "authorized_keys", "session", PID_FILE)}
    lines = (
        f"ListenAddress {HOST}:{port}",
        "AddressFamily inet",
        f"HostKey {quoted['host_ed25519']}",
        f"PidFile {quoted[PID_FILE]}",
        f"AuthorizedKeysFile {quoted['authorized_keys']}",
        f"AllowUsers {user}",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        f"UsePAM {'yes' if pam else 'no'}",
        # a parent folder may be writable for others, like /tmp; this folder is not
        "StrictModes no",
        f"ForceCommand {quoted['session']}",
        # with this bash takes itself for a shell within a shell and does not read ~/.bashrc, which may change the
        # session or wait for input
        "SetEnv SHLVL=1",
        "AllowTcpForwarding no",
        "AllowAgentForwarding no",
        "LoginGraceTime 20",
        "LogLevel ERROR",
    )
    return "\n".join(lines) + "\n"


def free_port() -> int:
    """Return a TCP port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_locked(user: str) -> bool:
    """Return whether the account's password is locked: sshd accepts such a user only with PAM."""
    try:
        entries = [line.split(":") for line in Path("/etc/shadow").read_text().splitlines()]
    except OSError:
        return False
    return any(row[0] == user and row[1].startswith("!") for row in entries if len(row) > 1)
