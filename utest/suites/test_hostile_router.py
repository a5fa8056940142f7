"""A whole run against a router that says what it likes: nothing of it acts, and the password stays where it belongs."""

from __future__ import annotations

import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lineproof_bench.shells.server import asyncssh
from support import robot_run
from support.hostile_ssh import Guard, HostileServer
from support.served_bench import served

pytestmark = pytest.mark.slow

SECRET = "correct-horse-7"
OTHER = "not-for-anybody-8"
RAW = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066\x00\x85\ud800"


class Echoes(Guard):
    """Takes the password, and repeats it."""

    methods = ("password",)
    admits = True
    banner = f"{RAW[:-1]} {SECRET}\r\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project whose router is the bench's, behind a server that adds hostile words to all it answers."""
    (tmp_path / "bench").mkdir()
    with served(tmp_path / "bench") as bench:
        home, router = bench.project(tmp_path), bench.router

        async def answer(process: asyncssh.SSHServerProcess[bytes]) -> None:
            words = f"{RAW} {SECRET}\r\n".encode(errors="surrogatepass") + b"\xff\xfe\n"
            if process.command and "hostile" in process.command:
                process.stdout.write(words)
                process.stderr.write(words)
                process.exit(0 if "fine" in process.command else 3)
                return
            keys = {"client_keys": [str(router.key)], "known_hosts": str(router.known_hosts)}
            async with asyncssh.connect(router.address, router.port, username=router.user, **keys) as link:
                result = await link.run(process.command, encoding=None)
            process.stdout.write(result.stdout if isinstance(result.stdout, bytes) else b"")
            process.stderr.write(words)
            process.exit(result.exit_status or 0)

        with closing(HostileServer(tmp_path, Echoes, process_factory=answer)) as server:
            file = home / "variables" / "testbeds" / "lab.yaml"
            login = f"port: {server.port}, user: admin, password_from: LAB_LOGIN, known_hosts: {server.known}"
            router_line = f"router: {{address: 127.0.0.1, {login}}}"
            file.write_text(re.sub(r"^router: .*$", router_line, file.read_text(), flags=re.MULTILINE))
            yield home


def test_nothing_hostile_and_no_secret_is_left_anywhere(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_LOGIN", SECRET)
    for name in ("LAB_PHRASE", "ANOTHER_TOKEN"):
        monkeypatch.setenv(name, OTHER)
    suite = robot_run.write_suite(
        tmp_path,
        "${text} =    Run On Router    hostile and fine",
        "Log    ${text}",
        "Run Keyword And Ignore Error    Run On Router    hostile",
        "64b unidirectional >= 1 kpps",
        "Run On Router    hostile",
    )
    options = ("-v", f"PROJECT:{project}", "-v", "TESTBED:lab", "-v", "GOAL:quick", "--loglevel", "TRACE")
    more = ("--listener", f"allure_robotframework:{tmp_path / 'out' / 'allure'}", "--xunit", "xunit.xml")
    done = robot_run.run(tmp_path, suite, *options, *more, "--debugfile", "debug.txt")
    assert r"\u202egnp.exe\u2066\x85" in done.message and "owned" not in done.message, done.console
    assert "'hostile' ended with status 3" in done.message and "***" in done.message

    files = [path for folder in ("out", "results") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert {"output.xml", "log.html", "xunit.xml", "debug.txt", "trials.jsonl"} <= {path.name for path in files}
    for path in files:
        data = path.read_bytes()
        assert SECRET.encode() not in data and OTHER.encode() not in data, path
        if path.suffix in (".json", ".jsonl"):
            shown = [json.loads(line) for line in (data.splitlines() if path.suffix == ".jsonl" else [data])]
            text = json.dumps(shown, ensure_ascii=False).replace("\\\\", "")
            assert "\\u001b" not in text and "\\u0007" not in text, path
        elif path.suffix not in (".html", ".xml", ".txt"):
            continue
        else:
            text = data.decode()
        if path.suffix == ".xml":
            ET.fromstring(text)
        hostile = {character for character in RAW if not character.isascii() or unicodedata.category(character) == "Cc"}
        assert not hostile & set(text), path
    assert SECRET not in done.console and not set(RAW) & set(done.console) & {"\x1b", "\x07", "\u202e"}
