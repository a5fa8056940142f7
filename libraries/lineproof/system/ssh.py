"""SSHLibrary's connections, logged in with one key or one password to machines with a known host key, and no other.

Calls that may hang are made in a worker thread, where a signal cannot interrupt them: Robot stops a run by an exception
from its signal handler in the main thread, between any two instructions. Inside paramiko that leaves a lock held, and
closing the connection never returns.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar

import paramiko
from SSHLibrary.pythonclient import PythonSSHClient

from ..errors import TestbedError
from .login import Login
from .ssh_keys import HostKeyCheck, private_key

CONNECT_LIMIT = 10.0
"""Seconds for each step of a login: the connection, the greeting and key exchange, the authentication."""

LOGIN_LIMIT = 3 * CONNECT_LIMIT
"""Seconds for the whole login, whatever the machine sends."""

LONGEST_REASON = 200
"""Characters of a machine's or a library's own words that a message repeats."""

LARGEST_OUTPUT = 16 << 20
"""Bytes that a command may write: the longest answers of a router have some 100 kB."""

LARGEST_LINE = 1 << 16
"""Bytes of a line that a program there may write."""

STATUS_LIMIT = 2.0
"""Seconds for the exit status after the output has ended, and for a word to a program that is to end."""

LOST = 255
"""The status of a program whose connection was lost, as ssh(1) has it."""

_LOG = "lineproof.paramiko"
# its own words may be anything that a machine sends, and with them tracebacks: the errors here say what is needed
logging.getLogger(_LOG).setLevel(logging.CRITICAL + 1)


class CommandUnfinished(TestbedError):
    """The command went on past a limit. The connection should be closed: its end may go on sending."""


class Connection(PythonSSHClient):  # type: ignore[misc]  # SSHLibrary has no types
    """SSHLibrary's connection to the machine of *login*; *who*: the machine, for messages.

    SSHLibrary alone trusts every host key, offers no password, an empty one or a refused one again, opens a shell after
    each login, bounds no output and reports a dropped link as status -1.
    """

    client: _Client

    def __init__(self, login: Login, who: str) -> None:
        self._to, self._who = login, who
        self._jump = None if login.jump is None else Connection(login.jump, f"the jump host of {who}")
        self._host_keys: tuple[str, str] | None = None
        super().__init__(login.address, port=login.port, timeout=CONNECT_LIMIT)

    def _get_client(self) -> _Client:
        return _Client(self._to, self._who)

    def _read_login_output(self, delay: object) -> str:
        return ""  # else a shell is opened, and some routers have one channel in all

    def open(self, limit: float = LOGIN_LIMIT) -> Self:
        """Log in within *limit* s, also after :meth:`close`. Raises TestbedError, never with a secret."""
        self.client = client = self._get_client()
        try:
            run_in_worker_thread(partial(self._log_in, client), limit, "the login")
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            # its cause may contain a secret
            raise self._refusal(error) from None
        return self

    def _refusal(self, error: Exception) -> TestbedError:
        if isinstance(error, TestbedError) and not isinstance(error, NotInTime):
            return error
        tunnel = ", and AllowTcpForwarding of the jump host's" if self._jump else ""
        problem = f"no SSH login to {self._who} at {self._to.where}: {_reason(error)}"
        remedy = f"check 'address' and 'port' in the testbed file, and the SSH server there{tunnel}"
        return TestbedError(self._to.masked(f"{problem}; {remedy}"))

    def _log_in(self, client: _Client) -> None:
        client.prepare()
        if self._jump is not None:
            self._jump.open()
        for _ in range(2):
            # the client asks no agent: this only keeps SSHLibrary from a login without a credential
            self.login(self._to.user, allow_agent=True, jumphost_connection=self._jump, keep_alive_interval=0)
            if client.is_logged_in:
                return
            # again for the question: paramiko's second try in one connection breaks the protocol, and servers hang up
            client.close()

    def close(self) -> None:
        """Log out, from the jump host too. May be repeated."""
        link = self.client.get_transport()
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            super().close()
        if link is not None:
            # a thread of paramiko's may still read from it
            with contextlib.suppress(OSError):
                link.sock.close()
        if self._jump is not None:
            self._jump.close()

    @property
    def is_open(self) -> bool:
        """Return whether it is logged in, as far as is known: only a command sees that a link broke."""
        link = self.client.get_transport()
        # a login that was given up may go on in its thread
        return link is not None and (link.is_authenticated() or not link.is_active())

    def host_keys(self) -> tuple[str, str]:
        """Return the fingerprints of the shown key, and of the machine's key of the first kind that it has.

        First in paramiko's order: whichever of its keys who logs in knows, the second one is the same. A machine that
        was asked for another one is asked for it once, by new keys for the same link (RFC 4253 section 9); where that
        breaks the link, both are the one that it has shown. Raises TestbedError if not logged in.
        """
        if self._host_keys is None:
            link = self.client.get_transport()
            if link is None:
                raise TestbedError(f"the SSH link to {self._who} is not open; log in first")
            shown = first = str(link.get_remote_server_key().fingerprint)
            order = link.get_security_options()
            if order.key_types != self.client.usual_kinds:
                order.key_types = self.client.usual_kinds
                try:
                    run_in_worker_thread(link.renegotiate_keys, CONNECT_LIMIT, "the exchange of keys")
                    first = str(link.get_remote_server_key().fingerprint)
                except (TestbedError, paramiko.SSHException, OSError, EOFError):
                    self.close()  # what follows logs in again
            self._host_keys = shown, first
        return self._host_keys

    def session(self, limit: float) -> paramiko.Channel:
        """Open a channel within *limit* s. Raises EOFError if it is not logged in, and paramiko's errors."""
        transport = self.client.get_transport()
        if transport is None:
            raise EOFError("it is not logged in")
        return transport.open_session(timeout=limit)

    def run(self, command: str, limit: float, stdin: bytes = b"") -> tuple[bytes, bytes, int]:
        """Return outputs and exit status of *command*; *stdin*: its standard input, if there is any.

        Raises CommandUnfinished after *limit* s or :data:`LARGEST_OUTPUT`, paramiko's errors, OSError and EOFError for
        a broken connection.
        """
        until = time.monotonic() + limit
        with self.session(limit) as channel:
            channel.settimeout(limit)
            channel.exec_command(command)
            if stdin:
                with contextlib.suppress(OSError):  # it may end before it has read all
                    channel.sendall(stdin)
                    channel.shutdown_write()
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
                    break
            channel.status_event.wait(max(0.0, until - time.monotonic()))
            if channel.exit_status >= 0 and ended:
                return bytes(stdout), bytes(stderr), channel.exit_status
            if not channel.closed:
                raise CommandUnfinished(f"'{command}' did not end within {limit:g} s")
            raise EOFError("its output is not complete")


class RemoteChild:
    """A *command* on the host of *login*, with what :class:`.children.Child` has of one here. *who*: the host.

    With a *log*, a file, it has a terminal, and what it writes goes there. Raises TestbedError if it cannot be started.
    """

    def __init__(self, login: Login, who: str, command: str, log: int | None = None) -> None:
        self.returncode: int | None = None
        self._asked_to_end = False
        self._masked, self._log = login.masked, log
        self._connection = Connection(login, who)
        self._reader = threading.Thread(target=self._read, args=(log,), daemon=True, name=f"output of {who}")
        try:
            self._connection.open()
            run_in_worker_thread(partial(self._begin, command), 2 * CONNECT_LIMIT, f"'{command}'")
        except BaseException:
            self._connection.close()
            raise

    def _begin(self, command: str) -> None:
        try:
            self._channel = channel = self._connection.session(CONNECT_LIMIT)
            # so that both ends notice a lost connection
            channel.get_transport().set_keepalive(5)
            channel.set_combine_stderr(True)
            if self._log is not None:
                channel.get_pty("dumb")
            channel.exec_command(command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise TestbedError(str(error) or "the connection ended") from None
        self._stdout = channel.makefile("rb")
        if self._log is not None:
            self._reader.start()

    def _read(self, log: int) -> None:
        while output := self._channel.recv(1 << 16):
            os.write(log, self._masked(output.decode(errors="replace")).encode())
        is_known = self._channel.status_event.wait(STATUS_LIMIT) and self._channel.exit_status >= 0
        if not is_known:
            os.write(log, b"\nthe SSH connection to it was lost\n")
        self.returncode = self._channel.exit_status if is_known else LOST

    def poll(self) -> int | None:
        """Return its exit status; None while its output goes on."""
        return self.returncode

    def send(self, line: str) -> None:
        """Write *line* to its input; nothing if that is closed."""
        self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, TestbedError):
            run_in_worker_thread(partial(self._channel.sendall, text.encode()), CONNECT_LIMIT, "writing to it")

    def line(self, limit: float) -> bytes:
        """Return the next line that it writes. Raises TimeoutError after *limit* s, EOFError where none can come.

        And what paramiko raises where the connection breaks.
        """
        self._channel.settimeout(limit)
        if not (line := bytes(self._stdout.readline(LARGEST_LINE))):
            raise EOFError
        return line.rstrip(b"\n")

    def ask_end(self) -> None:
        """Ask it to end: by the end of its input, or by Ctrl-C, which works whoever's it is (sudo)."""
        if self._asked_to_end:
            return
        self._asked_to_end = True
        if self._log is not None:
            self._write("\x03")
        else:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.shutdown_write()

    def end(self, limit: float) -> bool:
        """End the command in *limit* s; then the end of the connection hangs up what still runs. May be repeated."""
        if self._connection.is_open:
            self.ask_end()
            self._channel.status_event.wait(limit)
            if self._reader.is_alive():
                self._reader.join(STATUS_LIMIT)
            with contextlib.suppress(TestbedError):
                run_in_worker_thread(self._connection.close, STATUS_LIMIT, "closing the SSH link")
        return True


class _Client(paramiko.SSHClient):
    """paramiko's client, which tries one credential only: not ``none``, other keys or an empty answer."""

    usual_kinds: Sequence[str] = ()
    """The kinds of host keys in paramiko's own order."""

    def __init__(self, login: Login, who: str) -> None:
        super().__init__()
        self.set_log_channel(_LOG)
        self._login, self._who = login, who
        self._key: paramiko.PKey | None = None
        self._password = b""
        self._is_asked = self._answered = False
        self._question = ""

    def prepare(self) -> None:
        """Read the credential and the machine's known keys. Raises TestbedError."""
        self._check = HostKeyCheck(self._login, f"{self._who} at {self._login.where}")
        self._key = private_key(self._login, self._who)
        if name := self._login.password_from:
            self._password = os.fsencode(self._login.secret(name, f"password for {self._who}"))

    @property
    def is_logged_in(self) -> bool:
        """Return whether the machine has let it in; otherwise it takes the password as an answer only."""
        link = self.get_transport()
        return link is not None and link.is_authenticated()

    def connect(self, hostname: str, port: int, username: str, *_: Any, sock: Any, **__: Any) -> None:  # type: ignore[override]
        """Connect as SSHLibrary asks, but with limits and a credential of its own.

        Raises TestbedError, and paramiko's errors but for AuthenticationException, after which SSHLibrary would try
        more.
        """
        self.set_missing_host_key_policy(self._check)
        try:
            super().connect(
                hostname,
                port,
                username,
                timeout=CONNECT_LIMIT,
                auth_timeout=CONNECT_LIMIT,
                channel_timeout=CONNECT_LIMIT,
                transport_factory=self._transport_to,  # type: ignore[arg-type]  # a function does as well
                auth_strategy=self,  # type: ignore[arg-type]  # no more than authenticate() is asked of it
                sock=sock,
            )
        except paramiko.AuthenticationException as error:
            raise paramiko.SSHException(str(error)) from None

    def _transport_to(self, sock: socket.socket | paramiko.Channel, **options: Any) -> paramiko.Transport:
        if isinstance(sock, socket.socket):
            # a command is a few small packets; without this each waits for an acknowledgement
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = paramiko.Transport(sock, **options)
        order = link.get_security_options()
        self.usual_kinds = order.key_types
        order.key_types = self._check.in_order(order.key_types)
        return link

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in, or leave it to a second connection for the password. Raises as :meth:`connect`."""
        user, reason = self._login.user, ""
        try:
            if self._key is not None:
                more = transport.auth_publickey(user, self._key)
            elif self._is_asked:
                more = transport.auth_interactive(user, self._answer)
            else:
                more = transport.auth_password(user, self._password, fallback=False)  # type: ignore[arg-type]  # bytes
            if transport.is_authenticated() and not more:
                return
            reason = f", and wants {_listed(more)} besides"
        except paramiko.BadAuthenticationType as error:
            if self._key is None and not self._is_asked and "keyboard-interactive" in error.allowed_types:
                self._is_asked = True
                return
            reason = f", and offers only: {_listed(error.allowed_types)}"
        except paramiko.SSHException as error:
            if self._question:
                reason = f", and asks for more than that: '{self._question}'"
            elif str(error) != "Authentication failed.":
                raise
        if self._key is None:
            credential, remedy = f"password in '{self._login.password_from}'", "fix that variable"
        else:
            credential = f"key '{self._login.key_from or self._login.key}'"
            remedy = "put its public half into the user's authorized_keys there"
        raise TestbedError(
            self._login.masked(
                f"{self._who} at {self._login.where} refuses the login of '{user}' with the {credential}{reason};"
                f" {remedy}, or fix the login in the testbed file, or the settings of that SSH server"
            )
        )

    def _answer(self, title: str, instructions: str, prompts: Sequence[tuple[str, bool]]) -> list[Any]:
        """Return the password for one question that hides its answer; every other question ends the login."""
        if not prompts:
            return []
        question, shown = prompts[0]
        if self._answered or shown or len(prompts) > 1:
            self._question = " ".join(question.split())[:LONGEST_REASON] or "?"
            raise paramiko.SSHException("another question")
        self._answered = True
        return [self._password]


def _reason(error: Exception) -> str:
    """Return the reason of *error* in words, without paramiko's ``[Errno None]``."""
    if isinstance(error, NotInTime):
        return f"it took longer than {LOGIN_LIMIT:g} s"
    inner = error.errors.values() if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError) else (error,)
    causes = {str(getattr(each, "strerror", None) or each) for each in inner}
    text = ", ".join(sorted(causes)).removeprefix("[Errno None] ").rstrip(".")
    if text in ("No existing session", "Authentication timeout"):
        return f"no answer within {CONNECT_LIMIT:g} s"
    closed = isinstance(error, EOFError) or text.endswith(("saw EOF", "Negotiation failed"))
    return "it closed the connection" if closed else " ".join(text[:LONGEST_REASON].split()) or type(error).__name__


def _listed(methods: Sequence[str]) -> str:
    return (", ".join(methods) or "nothing")[:LONGEST_REASON]


T = TypeVar("T")


class NotInTime(TestbedError):
    """The wait took too long."""


def run_in_worker_thread(function: Callable[[], T], limit: float, what: str) -> T:
    """Return the result of *function*, called in a worker thread, within *limit* s.

    Raises what *function* raised, or NotInTime where *what* took too long; the thread then goes on by itself.
    """
    # SimpleQueue is written in C: an exception between two Python instructions cannot leave it locked
    answers: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(),))
        except BaseException as error:
            answers.put(error)

    try:
        threading.Thread(target=work, daemon=True, name=f"worker: {what}").start()
    except RuntimeError as error:  # from Python 3.12 on, while the interpreter ends
        raise TestbedError(f"{what} cannot begin: {error}") from None
    try:
        answer = answers.get(timeout=limit)
    except Empty:
        raise NotInTime(f"{what} did not end within {limit:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer[0]
