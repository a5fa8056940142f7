"""A TRex server that sends anything: one paragraph that names its address, within the limits of time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import psutil
import pytest

from lineproof.core.trial import Load
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction
from lineproof.generators.trex.client.sockets import LARGEST_ANSWER, read_answers, results
from lineproof.generators.trex.clients import HANDSHAKE_LIMIT, ask_server
from lineproof.generators.trex.driver import ClientProcess, TrexGenerator, TrexSettings
from lineproof.system import children
from support.catalogue import CATALOGUE
from support.hostile_ssh import endless_line, raw_server
from support.hostile_trex import (
    BAD_BYTES,
    BAD_VALUES,
    HostileServer,
    endless,
    hostile_trex,
    refusing,
    result,
    slow,
)

pytestmark = pytest.mark.slow

REQUEST = [{"id": 1}]

NONSENSE = ("bomb", "several frames", "no JSON", "wrong id")
"""Some of BAD_BYTES, for whoever reads an answer with the same two functions."""


def sentence(error: BaseException, where: str) -> str:
    """The text of *error*, which is for a person."""
    text = str(error)
    assert where in text and "\n" not in text and text.isprintable() and len(text) < 3000, text
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize("name", BAD_BYTES)
def test_a_bad_answer_takes_little_time_and_memory(name: str) -> None:
    answer = BAD_BYTES[name](REQUEST)
    parts = answer if isinstance(answer, list) else [answer]
    before, began = psutil.Process().memory_info().rss, time.thread_time()
    with pytest.raises(ValueError):
        results(read_answers(parts), [1])
    assert time.thread_time() - began < 1
    assert psutil.Process().memory_info().rss < before + LARGEST_ANSWER + (16 << 20)


@pytest.mark.parametrize("name", NONSENSE)
def test_the_handshake_names_the_address(name: str) -> None:
    with hostile_trex() as server:
        server.instead["*"] = BAD_BYTES[name]
        with pytest.raises(TestbedError) as caught:
            ask_server("127.0.0.1", server.rpc_port)
    assert "is not a TRex server" in sentence(caught.value, f"127.0.0.1:{server.rpc_port}")


@pytest.mark.parametrize("words", ["x" * 100_000, "a\x1b[31m\nb\0\u202e", "server: '" + "9" * 5000 + ".1'"])
def test_a_refusal_in_strange_words_is_one_line(words: str) -> None:
    with hostile_trex() as server:
        server.instead["api_sync"] = refusing(words)
        server.instead["get_version"] = result(json.dumps({"version": words}))
        found = ask_server("127.0.0.1", server.rpc_port)
    assert len(found.refusal) <= 503 and len(found.version) <= 63 and (found.refusal + found.version).isprintable()


@pytest.mark.parametrize("serve", [endless, slow, endless_line])
def test_an_answer_that_does_not_end_has_a_limit(serve: Callable[..., None]) -> None:
    began = time.monotonic()
    with raw_server(serve) as port, pytest.raises(TestbedError) as caught:
        ask_server("127.0.0.1", port)
    sentence(caught.value, f"127.0.0.1:{port}")
    assert time.monotonic() - began < 2 * HANDSHAKE_LIMIT + 10


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileServer]:
    with hostile_trex() as server:
        yield server


@pytest.fixture(scope="module")
def opened(hostile: HostileServer) -> Iterator[TrexGenerator]:
    with closing(TrexGenerator(TrexSettings("127.0.0.1", hostile.rpc_port, hostile.pub_port))) as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (Direction(0, 1),))
        generator.measure(Load(1000), 0.1)
        yield generator


def trial(generator: TrexGenerator, hostile: HostileServer) -> str:
    """Return what a trial says, "" if it is good; then the server is good again, and so is a trial."""
    said = ""
    try:
        generator.measure(Load(1000), 0.1)
    except TestbedError as error:
        said = sentence(error, f"127.0.0.1:{hostile.rpc_port}")
    finally:
        hostile.instead.clear()
        hostile.inside.clear()
        hostile.published = []
    generator.stop()
    assert generator.measure(Load(1000), 0.1).directions[0].offered == 100
    return said


@pytest.mark.parametrize("name", ["bomb", "wrong id"])
def test_a_trial_names_the_server_that_answers_nonsense(
    opened: TrexGenerator, hostile: HostileServer, name: str
) -> None:
    hostile.instead["start_traffic"] = BAD_BYTES[name]
    assert "not a TRex server's" in trial(opened, hostile)


@pytest.mark.parametrize("name", BAD_VALUES)
@pytest.mark.parametrize("method", ["get_port_status", "get_utilization", "get_global_stats", "get_port_xstats_values"])
def test_a_trial_names_the_server_whose_values_are_none(
    opened: TrexGenerator, hostile: HostileServer, name: str, method: str
) -> None:
    hostile.inside[method] = BAD_VALUES[name]
    trial(opened, hostile)


@pytest.mark.parametrize("value", ["-1", "0.5", '"5"', "null", "1e300", "18446744073709551616", "true"])
def test_a_counter_that_is_none_is_named(opened: TrexGenerator, hostile: HostileServer, value: str) -> None:
    hostile.inside["get_port_stats"] = result('{"opackets":' + value + "}")
    assert "its counter opackets of port 0 is" in trial(opened, hostile)


def test_what_is_published_until_the_last_counters_is_of_the_trial(
    opened: TrexGenerator, hostile: HostileServer
) -> None:
    hostile.published, hostile.marker = [[b'{"name":"trex-event","type":7,"data":{"port_id":1}}']], b"trex-barrier"
    outcome = opened.measure(Load(1000), 0.1)
    hostile.published, hostile.marker = [], b""
    assert {problem.detail for problem in outcome.problems} == {"port 1 reports an error"}


def test_an_answer_without_end_ends_the_process_within_its_memory() -> None:
    """In a process of its own: what is received counts against its limit."""
    code = (
        "import sys\n"
        "from lineproof.generators.trex.client import sockets as module\n"
        "module.MEMORY_LIMIT = 300 << 20\n"
        "module.limit_memory()\n"
        "pipe = module.Pipe(sys.argv[1])\n"
        "pipe.ask([{'id': 1}])\n"
        "pipe.answer(20)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with raw_server(endless) as port:
        argv = [sys.executable, "-c", code, f"tcp://127.0.0.1:{port}"]
        ran = subprocess.run(argv, env=environment, capture_output=True, timeout=60)
    assert ran.returncode != 0, ran.stderr


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("time.sleep(60)", "did not answer 'ports' within 2 s"),
        ("out.write(b'{\"id\": 1'); sys.exit(3)", "status 3"),
    ],
)
def test_a_client_process_that_does_not_answer_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, program: str, message: str
) -> None:
    file = tmp_path / "hostile_child.py"
    file.write_text(f"import sys, time\nout = sys.stdout.buffer\n{program}\n")
    monkeypatch.setattr(children, "python", lambda module, *words: (sys.executable, str(file)))
    child = ClientProcess()
    began = time.monotonic()
    with pytest.raises(TestbedError, match=message):
        child.call("ports", 2.0)
    assert time.monotonic() - began < 20
    assert child.poll() is not None
    child.close()
