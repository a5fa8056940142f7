"""SSH logins with one key or one password, to machines with a known host key: nothing else is ever tried."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import paramiko
from paramiko.auth_strategy import AuthStrategy

from ..errors import TestbedError
from .known_hosts import HostKeyCheck
from .login import Login
from .private_key import load_key, parse_key
from .worker_thread import NotInTime, run_in_worker_thread

CONNECT_LIMIT = 10.0
"""Seconds for each step of a login: the connection, the greeting and key exchange, the authentication."""

LOGIN_LIMIT = 3 * CONNECT_LIMIT
"""Seconds for the whole login, whatever the machine sends."""

LONGEST_REASON = 200
"""Characters of a machine's or a library's own words that a message repeats."""

_LOG = "lineproof.paramiko"


def connect(login: Login, who: str, limit: float = LOGIN_LIMIT) -> paramiko.SSHClient:
    """A logged-in connection to *who*, within *limit* s.

    Raises TestbedError, which never contains a secret.
    """
    # its own words may be anything that a machine sends, and with them tracebacks: the errors here say what is needed
    logging.getLogger(_LOG).setLevel(logging.CRITICAL + 1)
    client = _Client()
    client.set_log_channel(_LOG)
    try:
        run_in_worker_thread(partial(_connect, client, login, who), limit, "the login")
    except BaseException as error:
        stage = _stage(client)
        _close(client)
        if not isinstance(error, Exception):
            raise
        raise _as_error(error, stage, login, who) from None  # its cause may contain a secret
    return client


class _Refused(Exception):
    """The machine wants another login than the testbed file has. Its text is the rest of a sentence about it."""


class _OnlyInteractive(Exception):
    """The machine takes a password as the answer to a question only."""


class _Client(paramiko.SSHClient):
    """A connection that may go through one to a jump host, which ends with it."""

    _jump: paramiko.SSHClient | None = None

    def way_to(self, login: Login, who: str) -> paramiko.Channel | None:
        """A channel to the machine of *login* through its jump host; None: it is reached directly.

        Raises TestbedError naming the jump host.
        """
        if login.jump is None:
            return None
        self._jump = connect(login.jump, f"the jump host of {who}")
        link = self._jump.get_transport()
        try:
            if link is None:
                raise EOFError
            return link.open_channel("direct-tcpip", (login.host, login.port), ("127.0.0.1", 0), timeout=CONNECT_LIMIT)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise TestbedError(
                f"the jump host of {who} at {login.jump.where} does not connect to {login.host}:{login.port}"
                f" ({_reason(error)}); check 'address' and 'port', and AllowTcpForwarding of the jump host's SSH server"
            ) from None

    def close(self) -> None:
        """End it, and the connection to the jump host."""
        super().close()
        if self._jump is not None:
            self._jump.close()


class _OneWay(AuthStrategy):
    """Logs in with the login's key or password. Nothing else is tried: not ``none``, other keys or an empty answer."""

    def __init__(self, login: Login, key: paramiko.PKey | None, password: bytes | None) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self._login, self._key, self._password = login, key, password
        self._interactive = self._answered = False
        self._question = ""

    def get_sources(self) -> NoReturn:
        """Not used: a strategy that goes on from one source to the next is what must not be."""
        raise NotImplementedError

    def authenticate(self, transport: paramiko.Transport) -> Any:
        """Raises paramiko's exceptions, _Refused and _OnlyInteractive."""
        user = self._login.user
        try:
            if self._key is not None:
                more: Sequence[str] = transport.auth_publickey(user, self._key)
            elif self._interactive:
                more = transport.auth_interactive(user, self._answer)
            else:
                # paramiko passes bytes on as they are
                more = transport.auth_password(user, self._password, fallback=False)  # type: ignore[arg-type]  # bytes
        except paramiko.BadAuthenticationType as error:
            if self._key is None and not self._interactive and "keyboard-interactive" in error.allowed_types:
                self._interactive = True
                raise _OnlyInteractive from None
            raise _Refused(
                f"refuses the login of '{user}' with {self._way} and offers only: {_words(error.allowed_types)}"
            ) from None
        except paramiko.SSHException:
            if self._question:
                raise _Refused(f"asks for more than the password of '{user}': '{self._question}'") from None
            raise
        if more or not transport.is_authenticated():
            raise _Refused(f"wants {_words(more)} of '{user}' besides {self._way}")

    @property
    def _way(self) -> str:
        return "a password" if self._key is None else "a key"

    def _answer(self, title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[Any]:
        """The password, to one question that hides its answer; every other question ends the login."""
        if not prompts:
            return []
        question, shown = prompts[0]
        if self._answered or shown or len(prompts) > 1:
            self._question = " ".join(question.split())[:LONGEST_REASON] or "?"
            raise paramiko.SSHException("another question")
        self._answered = True
        return [self._password]


def _connect(client: _Client, login: Login, who: str) -> None:
    machine = f"{who} at {login.where}"
    check = HostKeyCheck(login, machine)
    way = _OneWay(login, _key(login, who), _secret(login, login.password_from, "password", who))

    def transport(sock: socket.socket | paramiko.Channel, **options: Any) -> paramiko.Transport:
        if isinstance(sock, socket.socket):
            # a command is a few small packets; without this each waits for an acknowledgement
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made = paramiko.Transport(sock, **options)
        known_first = made.get_security_options()
        known_first.key_types = check.in_order(known_first.key_types)
        return made

    client.set_missing_host_key_policy(check)
    for _ in range(2):
        # again for the question: paramiko's second try in one connection breaks the protocol, and servers hang up
        with contextlib.suppress(_OnlyInteractive):
            client.connect(
                login.host,
                login.port,
                login.user,
                timeout=CONNECT_LIMIT,
                banner_timeout=CONNECT_LIMIT,
                auth_timeout=CONNECT_LIMIT,
                channel_timeout=CONNECT_LIMIT,
                transport_factory=transport,  # type: ignore[arg-type]  # a function does as well
                auth_strategy=way,
                sock=client.way_to(login, who),
            )
            return
        _close(client)


def _key(login: Login, who: str) -> paramiko.PKey | None:
    """The key of *login*, if it has one. Raises TestbedError."""
    name = login.key_from or f"{login.key_path}"
    passphrase = None
    if login.passphrase_from:
        passphrase = partial(login.secrets.read, login.passphrase_from, f"passphrase of '{name}'", who)
    if login.key_from:
        return parse_key(login.secrets.read(login.key_from, "key", who), name, passphrase)
    return load_key(login.key_path, passphrase) if login.key_path is not None and not login.password_from else None


def _secret(login: Login, name: str | None, what: str, who: str) -> bytes | None:
    return os.fsencode(login.secrets.read(name, what, who)) if name else None


def _close(client: paramiko.SSHClient) -> None:
    """End the connection, also where a thread of paramiko's still reads from it."""
    link = client.get_transport()
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        client.close()
    if link is not None:
        with contextlib.suppress(OSError):
            link.sock.close()


def _stage(client: paramiko.SSHClient) -> str:
    """How far the login came, for messages."""
    link = client.get_transport()
    if link is None:
        return ""
    if not link.remote_version:
        return " (before it greeted as an SSH server does)"
    return " (in the authentication)" if link.initial_kex_done else " (in the key exchange)"


def _as_error(error: Exception, stage: str, login: Login, who: str) -> TestbedError:
    """Why there is no connection to *who*, and what to do about it."""
    machine = f"{who} at {login.where}"
    if isinstance(error, TestbedError) and not isinstance(error, NotInTime):
        return error
    keys = "'user', 'key' or 'password_from' in the testbed file"
    if isinstance(error, _Refused):
        return TestbedError(login.masked(f"{machine} {error}; fix {keys}, or the settings of its SSH server"))
    text = _reason(error)
    if isinstance(error, paramiko.AuthenticationException) and text == "Authentication failed":
        if login.password_from:
            credential = f"the password in '{login.password_from}'; fix that variable, or"
        else:
            credential = f"the key '{login.key_path}'; put the key's public half into its authorized_keys, or correct"
        return TestbedError(
            f"{machine} refuses the login of '{login.user}' with {credential} 'user' and 'key' in the testbed file"
        )
    return TestbedError(
        login.masked(
            f"no SSH login to {machine}: {text}{stage}; check 'address' and 'port' in the testbed"
            " file, and the SSH server there"
        )
    )


def _reason(error: Exception) -> str:
    """The reason of *error* in words, without paramiko's ``[Errno None]``."""
    if isinstance(error, NotInTime):
        return f"it took longer than {LOGIN_LIMIT:g} s"
    inner = error.errors.values() if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError) else (error,)
    causes = {str(getattr(each, "strerror", None) or each) for each in inner}
    text = ", ".join(sorted(causes)).removeprefix("[Errno None] ").rstrip(".")
    if text in ("No existing session", "Authentication timeout"):
        return f"no answer within {CONNECT_LIMIT:g} s"
    closed = isinstance(error, EOFError) or text.endswith(("saw EOF", "Negotiation failed"))
    return "it closed the connection" if closed else " ".join(text[:LONGEST_REASON].split()) or type(error).__name__


def _words(methods: Sequence[str]) -> str:
    return (", ".join(methods) or "nothing")[:LONGEST_REASON]


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
