"""SSH servers that do everything wrong: raw sockets before the authentication, asyncssh in it and after it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lineproof.system.login import Login
from lineproof.system.ssh_keys import make_key, write_known_hosts
from lineproof_bench.shells.server import asyncssh

GREETING = b"SSH-2.0-hostile\r\n"

Talk = Callable[[socket.socket], None]


def silent(link: socket.socket) -> None:
    time.sleep(30)


def closes(link: socket.socket) -> None:
    pass


def hangs_in_the_key_exchange(link: socket.socket) -> None:
    link.sendall(GREETING)
    time.sleep(30)


def sends_rubbish_for_keys(link: socket.socket) -> None:
    link.sendall(GREETING + bytes(range(256)) * 64)
    time.sleep(30)


def endless_line(link: socket.socket) -> None:
    while True:
        link.sendall(b"A" * 65536)


@contextmanager
def raw_server(talk: Talk) -> Iterator[int]:
    """Provide the port of a server that does *talk* with every connection, and then closes it."""
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = server.accept()
                threading.Thread(target=serve, args=(link,), daemon=True).start()

    def serve(link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            talk(link)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


class Guard(asyncssh.SSHServer):
    """Admits nobody, and remembers what was tried. ``methods``: what it offers."""

    methods: Sequence[str] = ()
    questions: Sequence[Any] = ()
    """Rounds of keyboard-interactive prompts, and whether each is shown; after the last one True or False."""
    closes_at = ""
    banner = ""
    admits = False

    def __init__(self) -> None:
        self.tried: list[tuple[str, str]] = []
        self._round = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._link = conn

    def begin_auth(self, username: str) -> bool:
        if self.banner:
            self._link.send_auth_banner(self.banner)
        self._may_close("begin")
        return True

    def _may_close(self, stage: str) -> None:
        if self.closes_at == stage:
            self._link.abort()

    def public_key_auth_supported(self) -> bool:
        return "publickey" in self.methods

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self.tried.append(("publickey", key.get_fingerprint()))
        self._may_close("publickey")
        return self.admits

    def password_auth_supported(self) -> bool:
        return "password" in self.methods

    def validate_password(self, username: str, password: str) -> bool:
        self.tried.append(("password", password))
        self._may_close("password")
        return self.admits

    def kbdint_auth_supported(self) -> bool:
        return "keyboard-interactive" in self.methods

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return self._next()

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> Any:
        self.tried.extend(("keyboard-interactive", response) for response in responses)
        self._may_close("keyboard-interactive")
        return self._next()

    def _next(self) -> Any:
        question = self.questions[self._round]
        self._round += 1
        return ("", "", "", question) if isinstance(question, list) else question


class HostileServer:
    """An asyncssh server in a thread. Its host key, which can be changed, is in ``known``."""

    def __init__(self, folder: Path, guard: Callable[[], asyncssh.SSHServer], **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.guards: list[Any] = []
        self._make, self._options = guard, options
        self.host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.port = 0
        self._server: Any = None
        self.start()
        self.known, self.key = folder / "known_hosts", folder / f"key{self.port}"
        make_key(self.key)
        write_known_hosts(self.known, "127.0.0.1", self.port, self.public)

    @property
    def public(self) -> str:
        return self.host_key.export_public_key().decode().strip()

    def start(self) -> None:
        """Begin to listen, at the port of before."""
        self._server = self._run(self._listen())
        self.port = self._server.get_port()

    def stop(self) -> None:
        async def close() -> None:
            self._server.close()
            for guard in self.guards:
                guard._link.abort()

        self._run(close())

    def login(self, **other: Any) -> Login:
        settings = {"port": self.port, "key": self.key, "known_hosts": self.known, **other}
        return Login(address="127.0.0.1", user="admin", **settings)

    @property
    def tried(self) -> list[tuple[str, str]]:
        return [attempt for guard in self.guards for attempt in guard.tried]

    def close(self) -> None:
        async def end() -> None:
            # asyncio would print what still answers when this process ends
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        self.stop()
        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self) -> Any:
        def made() -> Any:
            self.guards.append(self._make())
            return self.guards[-1]

        options = {"server_host_keys": [self.host_key], "gss_host": None, "encoding": None, **self._options}
        return await asyncssh.create_server(made, "127.0.0.1", self.port, **options)


class OpenHouse(Guard):
    """Admits every key: what is tested is after the login."""

    methods, admits = ("publickey",), True
