"""Logins to servers that refuse, mislead, hang or flood: one paragraph within the limit, and nothing tried unasked."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import paramiko
import pytest

from lineproof.errors import TestbedError
from lineproof.system import login as logins
from lineproof.system import ssh
from lineproof.system.children import find_program
from lineproof.system.login import Login, Secrets, run_here
from lineproof.system.ssh import Connection
from lineproof.system.ssh_keys import make_key, write_known_hosts
from lineproof.system.ssh_shell import SshShell
from lineproof.testbed import sshd
from lineproof_bench.shells.server import asyncssh
from support import hostile_ssh
from support.hostile_ssh import Guard, HostileServer, raw_server
from support.patience import wait_until
from support.ports import reachable

pytestmark = pytest.mark.slow

Serve = Callable[..., HostileServer]
SECRET = "hunter2-and-more"
PASSWORD: dict[str, Any] = {"password_from": "ROUTER_PASSWORD", "key": None}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers: list[HostileServer] = []

    def start(options: dict[str, Any] | None = None, **behaviour: Any) -> HostileServer:
        guard = type("Guarded", (Guard,), behaviour)
        servers.append(HostileServer(tmp_path, guard, **(options or {})))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "CONNECT_LIMIT", 0.8)
    monkeypatch.setattr(ssh, "LOGIN_LIMIT", 2.4)


def refusal(login: Login) -> str:
    """The message of a login that fails, as both of its ways give it."""
    with pytest.raises(TestbedError) as caught:
        Connection(login, "the router").open().close()
    text = str(caught.value)
    assert "\n" not in text and text.isprintable() and len(text) < 1000
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert SECRET not in text
    return text


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, paramiko.Transport)]


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (hostile_ssh.silent, r"no answer within 0\.8 s"),
        (hostile_ssh.closes, r"reading SSH protocol banner|it closed the connection|Connection reset"),
        (hostile_ssh.hangs_in_the_key_exchange, r"no answer within 0\.8 s"),
        (hostile_ssh.sends_rubbish_for_keys, r"Invalid packet"),
        (hostile_ssh.endless_line, r"no answer within 0\.8 s"),
    ],
)
def test_a_server_that_never_comes_to_the_login_costs_no_more_than_the_limit(
    tmp_path: Path, short_limits: None, talk: hostile_ssh.Talk, reason: str
) -> None:
    with raw_server(talk) as port:
        make_key(tmp_path / "key")
        login = Login(
            address="127.0.0.1", port=port, user="admin", key=tmp_path / "key", known_hosts=tmp_path / "known_hosts"
        )
        began = time.monotonic()
        found = refusal(login)
        assert time.monotonic() - began < 20  # the limit, and a busy machine
    assert found.startswith(f"no SSH login to the router at 127.0.0.1:{port}: ")
    assert re.search(reason, found), found
    assert found.endswith("check 'address' and 'port' in the testbed file, and the SSH server there")
    wait_until(lambda: not readers())


@pytest.mark.parametrize("way", [{}, PASSWORD])
@pytest.mark.parametrize("methods", [(), ("password",), ("keyboard-interactive",), ("publickey",)])
def test_only_what_the_testbed_names_is_tried(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: dict[str, Any], methods: tuple[str, ...]
) -> None:
    """No empty password, no ``none``, no key of the user's own folder or agent; the same password never twice."""
    (tmp_path / ".ssh").mkdir()
    make_key(tmp_path / ".ssh" / "id_ed25519")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    server = serve(methods=methods, questions=([("Password: ", False)], False))
    assert "refuses the login of 'admin'" in refusal(server.login(**way))
    if way and methods in (("password",), ("keyboard-interactive",)):
        assert server.tried == [(methods[0], SECRET)]
    else:
        asked = [] if way or methods != ("publickey",) else ["publickey"]
        assert [method for method, _ in server.tried] == asked


def test_without_a_password_there_is_not_even_a_connection(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTER_PASSWORD", raising=False)
    server = serve(methods=("password", "keyboard-interactive"), admits=True)
    assert "the password for the router from 'ROUTER_PASSWORD', and that" in refusal(server.login(**PASSWORD))
    assert server.guards == []


@pytest.mark.parametrize("methods", [("password",), ("keyboard-interactive",)])
def test_a_password_logs_in_by_either_method(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, methods: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", "pä$$ wörd")
    server = serve(methods=methods, questions=([("Password: ", False)], [], True), admits=True)
    Connection(server.login(**PASSWORD), "the router").open().close()


@pytest.mark.parametrize(
    ("questions", "tried", "asked"),
    [
        (([("Password: ", False)], [("One-time code: ", False)], True), 1, "One-time code:"),
        (([("Password: ", False)], [("Password: ", False)], True), 1, "Password:"),
        (([("Password: ", False), ("Code: ", False)], True), 0, "Password:"),
        (([("Your \x1b[31mpassword\u202e, to be seen: ", True)], True), 0, r"Your \x1b[31mpassword\u202e, to be seen:"),
    ],
)
def test_the_password_answers_one_question_that_hides_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, questions: Any, tried: int, asked: str
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    server = serve(methods=("keyboard-interactive",), questions=questions)
    assert f"asks for more than that: '{asked}'; fix" in refusal(server.login(**PASSWORD))
    assert server.tried == [("keyboard-interactive", SECRET)] * tried


@pytest.mark.parametrize("stage", ["begin", "publickey", "password", "keyboard-interactive"])
def test_a_server_that_hangs_up_in_the_login_is_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    methods = ("publickey", "password") if stage == "begin" else (stage,)
    server = serve(methods=methods, closes_at=stage, questions=([("Password: ", False)], True))
    found = refusal(server.login(**({} if "publickey" in methods else PASSWORD)))
    assert "no SSH login to the router at 127.0.0.1:" in found
    assert re.search("it closed the connection|Connection reset by peer|Broken pipe", found)


def test_nothing_of_the_servers_words_or_the_password_reaches_a_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(0)
    logging.getLogger("paramiko").setLevel(0)
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    banner = f"\x1b]0;owned\x07\u202e your password is {SECRET}\r\n" * 100
    questions = ([(f"not {SECRET}? ", True)], True)
    for methods in (("password",), ("keyboard-interactive",), ()):
        server = serve(methods=methods, questions=questions, banner=banner, options={"server_version": "owned"})
        refusal(server.login(**PASSWORD))
    out, err = capfd.readouterr()
    logged = "".join(record.getMessage() for record in caplog.records if not record.name.startswith("asyncssh"))
    for text in (logged, out, err):
        assert SECRET not in text and "owned" not in text and "Traceback" not in text


class TestHostKey:
    def test_an_unknown_one_is_shown_with_the_line_to_add(self, serve: Serve) -> None:
        server = serve(methods=("publickey",), admits=True)
        server.known.unlink()
        said, _, added = refusal(server.login()).rpartition("add this line to the file: ")
        assert f"is not in '{server.known}': ssh-ed25519 SHA256:" in said and server.tried == []
        server.known.write_text(f"{added}\n")
        Connection(server.login(), "the router").open().close()

    def test_a_changed_one_ends_the_suite_in_words(self, serve: Serve) -> None:
        server = serve(methods=("publickey",), admits=True)
        shell = SshShell(server.login())
        shell.open()
        server.stop()
        server.host_key = asyncssh.generate_private_key("ssh-ed25519")
        server.start()
        for problem in ("the SSH link to the router broke", "shows another host key than"):
            with pytest.raises(TestbedError, match=problem):
                shell("true", 20)
        shell.close()

    @pytest.mark.skipif(find_program("sshd") is None or os.geteuid() != 0, reason="needs openssh-server, and root")
    def test_openssh_shows_the_first_one_for_the_same_link(self, tmp_path: Path) -> None:
        argv, login = sshd.prepare(tmp_path, "none")
        other = asyncssh.generate_private_key("ssh-rsa")
        other.write_private_key(tmp_path / "host_rsa")
        (tmp_path / "host_rsa").chmod(0o600)
        first = asyncssh.read_private_key(tmp_path / "host_ed25519").get_fingerprint()
        write_known_hosts(login.known_hosts, login.address, login.port, other.export_public_key().decode())
        with subprocess.Popen([*argv, "-o", f"HostKey={tmp_path / 'host_rsa'}"], stderr=subprocess.DEVNULL) as server:
            try:
                wait_until(lambda: reachable(login.port))
                with closing(Connection(login, "the router").open()) as connection:
                    assert connection.host_keys() == (other.get_fingerprint(), first)
                    assert connection.run("", 20)[2] and connection.is_open
            finally:
                server.kill()

    def test_a_machine_that_makes_no_new_keys_is_known_by_the_one_it_has_shown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(paramiko.Transport, "renegotiate_keys", paramiko.Transport.stop_thread)

        async def answer(process: Any) -> None:
            process.stdout.write(b"done")
            process.exit(0)

        other, server = asyncssh.generate_private_key("ssh-rsa"), HostileServer(tmp_path, hostile_ssh.OpenHouse)
        server.stop()
        server._options |= {"server_host_keys": [server.host_key, other], "process_factory": answer}
        server.start()
        write_known_hosts(server.known, "127.0.0.1", server.port, other.export_public_key().decode())
        shell = SshShell(server.login())
        shell.open()
        assert set(shell.connection.host_keys()) == {other.get_fingerprint()}
        assert shell("", 20).stdout == "done"
        shell.close()
        server.close()


class Forwards(Guard):
    """A jump host. ``asked``: where to."""

    methods, admits, forwards = ("publickey",), True, True

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        super().connection_made(conn)
        self.asked: list[tuple[str, int]] = []

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        self.asked.append((dest_host, dest_port))
        return self.forwards


class TestJumpHost:
    @pytest.fixture
    def jump(self, tmp_path: Path) -> Iterator[HostileServer]:
        (tmp_path / "jump").mkdir()
        server = HostileServer(tmp_path / "jump", Forwards)
        yield server
        server.close()

    def test_the_router_is_reached_through_it_with_a_key_of_each(self, serve: Serve, jump: HostileServer) -> None:
        server = serve(methods=("publickey",), admits=True)
        before = len(readers())
        Connection(server.login(jump=jump.login()), "the router").open().close()
        assert [guard.asked for guard in jump.guards] == [[("127.0.0.1", server.port)]]
        assert [way for way, _ in server.tried + jump.tried] == ["publickey", "publickey"]
        wait_until(lambda: len(readers()) <= before)

    def test_what_fails_is_said_of_the_machine_where_it_fails(self, serve: Serve, jump: HostileServer) -> None:
        server = serve(methods=("publickey",), admits=True)
        unknown = jump.login(known_hosts=server.known)
        assert "the host key of the jump host of the router at 127.0.0.1" in refusal(server.login(jump=unknown))
        assert server.tried == []
        lost = server.login(port=1, jump=jump.login())
        found = refusal(lost)
        assert f"no SSH login to the router at 127.0.0.1:1 through 127.0.0.1:{jump.port}: " in found
        Forwards.forwards = False
        try:
            found = refusal(server.login(jump=jump.login()))
        finally:
            Forwards.forwards = True
        assert f"through 127.0.0.1:{jump.port}: " in found and "AllowTcpForwarding" in found
        server.known.write_text("")
        through = f"the host key of the router at 127.0.0.1:{server.port} through 127.0.0.1:{jump.port}"
        assert through in refusal(server.login(jump=jump.login()))


# -- commands of a testbed's file on this machine: their limits, and their secrets


SECRETS = Secrets({"PDU_COMMUNITY": "c0mmunity"})
NAMES = ("PDU_COMMUNITY",)


def test_a_command_gets_the_secrets_that_it_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", "hunter22")
    command = 'test "$PDU_COMMUNITY" = c0mmunity && echo "${OTHER_PASSWORD-unset}"; pwd'
    assert run_here(command, NAMES, SECRETS, "the meter") == "unset\n/\n"


def test_a_secret_that_a_command_prints_is_masked() -> None:
    assert run_here('echo "a $PDU_COMMUNITY"', NAMES, SECRETS, "the meter") == "a ***\n"
    with pytest.raises(TestbedError, match=r"^the meter: its command failed with status 3: no \*\*\* here$"):
        run_here('echo "no $PDU_COMMUNITY here" >&2; exit 3', NAMES, SECRETS, "the meter")


@pytest.mark.parametrize("command", ["sleep 60", "sleep 60 & wait", "sleep 60 >&- 2>&-"])
def test_a_command_without_an_end_is_ended_with_all_that_it_started(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(logins, "COMMAND_LIMIT", 0.3)
    began = time.monotonic()
    with pytest.raises(TestbedError, match=r"its command did not end within 0\.3 s"):
        run_here(f"(sleep 2; touch {tmp_path}/late) >/dev/null 2>&1 & {command}", (), SECRETS, "the meter")
    assert time.monotonic() - began < 2
    time.sleep(2.2)
    assert not (tmp_path / "late").exists()
