"""The shells: an SSH client gets in by its key alone, and a person finds a prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.system.login import Login
from lineproof.system.ssh import Connection
from lineproof.system.ssh_keys import make_key
from support.paths import LIBRARIES
from support.simulated_session import started

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Login]:
    """The login of a simulated router."""
    with started(tmp_path_factory.mktemp("router")) as session:
        yield session.testbed.facts.router


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"key_path": "another"}, "refuses the login of 'lineproof' with the key"),
        ({"user": "root"}, "refuses the login of 'root'"),
        ({"key_path": None, "password_from": "SECRET"}, "password"),
    ],
)
def test_wrong_keys_and_users_are_refused(
    router: Login, wrong: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "secret")
    if wrong.get("key_path"):
        make_key(tmp_path / "another")
        wrong = {"key_path": tmp_path / "another"}
    with pytest.raises(TestbedError, match=says):
        Connection(replace(router, **wrong), "the router").open()


def test_a_person_finds_a_prompt(router: Login) -> None:
    with closing(Connection(router, "the router").open()) as connection:
        channel = connection.client.invoke_shell()
        channel.settimeout(10)
        channel.send(b"hostname\nvppctl show version\nexit\n")
        text = b""
        while more := channel.recv(4096):
            text += more
        assert channel.recv_exit_status() == 0
    shown = text.decode()
    assert all(words in shown for words in ("SIMULATED router", "# ", "vpp v22.02 built")), shown


def test_to_begin_it_starts_no_other_program() -> None:
    """asyncssh looks for libraries by ``ldconfig``, ``gcc`` and ``ld`` where it is imported as it is."""
    code = (
        "import sys; started = []\n"
        "sys.addaudithook(lambda event, args: event == 'subprocess.Popen' and started.append(args[1]))\n"
        "import ctypes.util; search = ctypes.util.find_library\n"
        "import lineproof_bench.ssh\n"
        "assert not started, started\n"
        "assert ctypes.util.find_library is search"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIBRARIES)}
    subprocess.run([sys.executable, "-P", "-c", code], env=environment, check=True, timeout=60)
