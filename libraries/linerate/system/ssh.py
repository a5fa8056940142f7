"""SSH logins with one key or one password, to machines with a known host key: nothing else is ever tried."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import paramiko
from paramiko.auth_strategy import AuthStrategy

from ..errors import TestbedError
from .known_hosts import HostKeyCheck
from .private_key import load_key
from .worker_thread import NotInTime, run_in_worker_thread

CONNECT_LIMIT = 10.0
"""Seconds for each step of a login: the connection, the greeting and key exchange, the authentication."""

LOGIN_LIMIT = 3 * CONNECT_LIMIT
"""Seconds for the whole login, whatever the machine sends."""

LONGEST_REASON = 200
"""Characters of a machine's or a library's own words that a message repeats."""

SHORTEST_MASKED = 4
"""Characters of a password that is masked; a shorter one, or one of digits, would be found in too much else."""

_LOG = "linerate.paramiko"


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, by the key ``key_path`` or the password in the environment variable ``password_from``.

    The machine's host key must be in the file ``known_hosts_path``. A key with a passphrase: the passphrase is in the
    environment variable ``passphrase_from``, or ssh-agent holds the key.
    """

    host: str
    port: int
    user: str
    key_path: Path | None
    known_hosts_path: Path
    password_from: str | None = None
    passphrase_from: str | None = None

    @property
    def where(self) -> str:
        """``host:port``, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return tuple(name for name in (self.password_from, self.passphrase_from) if name)

    def environment(self) -> dict[str, str]:
        """The variables that a process needs to log in: those of the secrets, and the way to ssh-agent."""
        names = (*self.secret_names, "SSH_AUTH_SOCK")
        return {name: os.environ[name] for name in names if name in os.environ}

    def masked(self, text: str) -> str:
        """*text* with ``***`` in place of this login's secrets, which a machine may have echoed."""
        for name in self.secret_names:
            secret = os.environ.get(name, "")
            if len(secret) >= SHORTEST_MASKED and not secret.isdecimal() and secret in text:
                text = re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", "***", text)
        return text


def connect(login: Login, who: str, limit: float = LOGIN_LIMIT) -> paramiko.SSHClient:
    """A logged-in connection to *who*, within *limit* s.

    Raises TestbedError, which never contains a secret.
    """
    # its own words may be anything that a machine sends, and with them tracebacks: the errors here say what is needed
    logging.getLogger(_LOG).setLevel(logging.CRITICAL + 1)
    client = paramiko.SSHClient()
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


def read_secret(name: str, what: str, who: str) -> bytes:
    """The secret *what* for *who* from the environment variable *name*. Raises TestbedError if it is unset or empty."""
    secret = os.environ.get(name)
    if not secret:
        raise TestbedError(
            f"the testbed takes the {what} for {who} from the environment variable '{name}', which is"
            f" {'not set' if secret is None else 'empty'}; set it: read -rs {name}; export {name}"
        )
    return os.fsencode(secret)


class _Refused(Exception):
    """The machine wants another login than the testbed file has. Its text is the rest of a sentence about it."""


class _OnlyInteractive(Exception):
    """The machine takes a password as the answer to a question only."""


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
                more = transport.auth_password(user, self._password, fallback=False)  # type: ignore[arg-type]
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


def _connect(client: paramiko.SSHClient, login: Login, who: str) -> None:
    machine = f"{who} at {login.where}"
    check = HostKeyCheck(login.known_hosts_path, login.host, login.port, machine)
    password = read_secret(login.password_from, "password", who) if login.password_from else None
    key = None
    if password is None and login.key_path is not None:
        name, what = login.passphrase_from, f"passphrase of '{login.key_path}'"
        key = load_key(login.key_path, partial(read_secret, name, what, who) if name else None)

    def transport(sock: socket.socket, **options: Any) -> paramiko.Transport:
        # a command is a few small packets; without this each waits for an acknowledgement
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made = paramiko.Transport(sock, **options)
        known_first = made.get_security_options()
        known_first.key_types = check.in_order(known_first.key_types)
        return made

    client.set_missing_host_key_policy(check)
    way = _OneWay(login, key, password)
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
            )
            return
        _close(client)


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
