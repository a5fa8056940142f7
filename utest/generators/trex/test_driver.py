"""The TRex driver without a server, or with one that is of no use; its client and its requests."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from lineproof.errors import TestbedError
from lineproof.generators.streams import Stream
from lineproof.generators.trex.client import pypi, sockets
from lineproof.generators.trex.client.answers import ServerEvents, peak_load, peak_load_during, plain_message
from lineproof.generators.trex.client.library import ALL_CORES, program_data
from lineproof.generators.trex.client.service import Refusal
from lineproof.generators.trex.client.sockets import Pipe
from lineproof.generators.trex.clients import ServerFacts, ask_server, choose_client, misfit
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from support.hostile_trex import HostileServer, hostile_trex, refusing, result
from support.ports import free_port

MISMATCH = "RPC version mismatch: a newer client version is required\n(API type 'STL':  - server: '5.1', client: '4.1')"


# -- no usable server --------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with hostile_trex() as found:
        yield found


@pytest.mark.slow
def test_a_missing_server_is_reported_with_its_address_and_a_fix() -> None:
    port = free_port()
    with pytest.raises(TestbedError, match=rf"no TRex server answers at 127.0.0.1:{port}.*refused.*address") as caught:
        TrexGenerator(TrexSettings("127.0.0.1", port, port))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_newer_server_is_named_with_the_client_it_needs(server: HostileServer) -> None:
    server.instead = {"api_sync": refusing(MISMATCH), "get_version": result('{"version": "v3.08"}')}
    facts = ask_server("127.0.0.1", server.rpc_port)
    assert (facts.takes_pypi, facts.api, facts.version) == (False, (5, 1), "v3.08")
    for client in ("", "pypi"):
        with pytest.raises(TestbedError, match=r"v3\.08 at .* STL API 5\.1 and.*0\.3 .*core API 4\.1.*'ssh:") as e:
            choose_client(facts, client, environment={})
        assert "\n" not in str(e.value)


@pytest.mark.slow
def test_a_server_in_another_mode_is_not_a_newer_one(server: HostileServer) -> None:
    text = "RPC configuration mismatch - server RPC configuration: 'ASTF', client RPC configuration: 'STL'"
    server.instead = {"api_sync": refusing(text), "get_version": result('{"version": "v3.08", "mode": "ASTF"}')}
    with pytest.raises(TestbedError, match=r"v3\.08 at .* mode ASTF, not in stateless.*--stl"):
        ask_server("127.0.0.1", server.rpc_port)


@pytest.mark.slow
def test_a_message_that_crashes_the_library_does_not_kill_the_parent(server: HostileServer) -> None:
    """The thread would send SIGTERM to this process's group."""
    # a barrier before the message that crashes the thread would keep the connection
    server.instead, server.published = {"publish_now": result("{}")}, [[b"{}"]]
    with pytest.raises(TestbedError, match=rf"understands at port {server.pub_port}.*async_port"):
        TrexGenerator(TrexSettings("127.0.0.1", server.rpc_port, server.pub_port))


@pytest.mark.slow
def test_a_barrier_of_another_client_does_not_crash_the_library(server: HostileServer) -> None:
    server.instead = {"get_version": refusing("so far, so good")}
    server.published = [[b'{"name": "trex-barrier", "type": 1, "data": {}}']]
    with pytest.raises(TestbedError, match="so far, so good"):
        TrexGenerator(TrexSettings("127.0.0.1", server.rpc_port, server.pub_port))


# -- helpers -----------------------------------------------------------------------------------------------------------


def test_errors_of_the_library_become_one_line() -> None:
    class Painted(Exception):
        msg = "\x1b[1mPort 0 : *** port is already\n taken by 'alice'\x1b[0m"

        def __str__(self) -> str:
            raise ValueError("as the library does")

    assert plain_message(Painted()) == "Port 0: port is already; taken by 'alice'"
    assert plain_message(KeyError("x")) == "KeyError: 'x'"


def test_events_are_recorded_even_if_the_library_fails() -> None:
    def fails(kind: int, data: Any) -> None:
        raise KeyError("name")

    events = ServerEvents(session_id=7)
    handler = events.wrap_event_handler(fails)
    handler(4, {"port_id": 1})
    handler(5, {"port_id": 0, "who": "bob", "session_id": 8, "force": True})
    handler(5, {"port_id": 0, "who": "me", "session_id": 7, "force": True})
    handler(99, None)
    assert set(events.ended) == {1} and events.complaints == ["port 0 was taken by 'bob'"]


def test_a_short_link_loss_is_recorded_and_links_are_checked_after_changes() -> None:
    events = ServerEvents(session_id=7)
    handler = events.wrap_event_handler(lambda kind, data: None)
    assert not events.links_in_doubt
    handler(8, {"port_id": 0, "attr": {"link": {"up": True}, "promiscuous": {"enabled": True}}})
    assert events.links_in_doubt and events.links_down == set()
    handler(8, {"port_id": 1, "attr": {"link": {"up": False}}})
    handler(8, {"port_id": 1, "attr": {"link": {"up": True}}})
    for strange in ({"port_id": 0}, {"port_id": 0, "attr": None}, {"port_id": 0, "attr": {"link": "up"}}):
        handler(8, strange)
    assert events.links_down == {1} and events.complaints == []
    events.clear()
    assert events.links_down == set() and not events.links_in_doubt


def test_peak_load_is_the_highest_second_of_one_core_in_the_trial() -> None:
    cores = [[30.0, 40.0, 90.0, 100.0], [0.0, 50.0]]
    assert peak_load(cores, 0.4) == peak_load(cores, 1.9) == 30
    assert peak_load(cores, 2) == 50 and peak_load(cores, 3.9) == 90 and peak_load(cores, 60) == 100
    assert peak_load([], 5) is None and peak_load([[]], 5) is None


def test_peak_load_during_a_short_time_excludes_other_times() -> None:
    # 1.2 s of work, over 0.4 s ago: 0.6 s of it in the last second, 0.6 s in the one before
    assert peak_load_during([[60.0, 60.0, 0.0]], 0.4, 1.2, 1.0) == pytest.approx(100)
    # constant load, before as well
    assert peak_load_during([[24.0, 40.0, 40.0]], 0.4, 1.2, 1.0) == pytest.approx(100 * (0.24 + 0.4) / 1.2, abs=0.05)
    # work at another time does not count
    assert peak_load_during([[0.0, 0.0, 100.0, 100.0], [5.0, 5.0, 0.0]], 0.1, 1.2, 1.0) == pytest.approx(
        100 * 0.1 / 1.2, abs=0.05
    )
    assert peak_load_during([], 0.1, 1.0, 1.0) is None


EVEN, ODD = 0x5555555555555555, 0xAAAAAAAAAAAAAAAA


@pytest.mark.parametrize(
    ("pins", "cores", "sending", "masks"),
    [
        (False, 4, (0, 1), [ALL_CORES, ALL_CORES]),
        (True, 4, (0, 1), [EVEN, ODD]),
        (True, 4, (2, 3), [EVEN, ODD]),
        (True, 4, (0, 2), [ALL_CORES, ALL_CORES]),  # nobody else sends from their pairs
        (True, 4, (1,), [ALL_CORES]),
        (True, 1, (0, 1), [ALL_CORES, ALL_CORES]),  # one core cannot be shared out
        (True, 0, (0, 1), [ALL_CORES, ALL_CORES]),  # not reported
    ],
)
def test_streams_are_split_among_all_cores_of_a_pair_or_each_port_has_its_own(
    pins: bool, cores: int, sending: tuple[int, ...], masks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pypi.PypiLibrary()
    monkeypatch.setattr(library, "port_facts", lambda port: {"cores": list(range(cores))})
    library.pins_cores = pins
    assert [library.core_mask(port, sending) for port in sending] == masks


# -- which client ------------------------------------------------------------------------------------------------------

NEWER = ServerFacts("192.0.2.1:4501", False, (5, 1), "v3.08")


def shipped(folder: Path, major: int, minor: int) -> Path:
    """A folder that looks like a TRex installation."""
    client = folder / "automation/trex_control_plane/interactive/trex/stl/trex_stl_client.py"
    client.parent.mkdir(parents=True)
    client.write_text(f"        api_ver = {{'name': 'STL', 'major': {major}, 'minor': {minor}}}\n")
    return folder


def test_a_client_folder_must_fit_the_server(tmp_path: Path) -> None:
    home = shipped(tmp_path / "v3.08", 5, 1)
    inner = home / "automation" / "trex_control_plane" / "interactive"
    assert choose_client(NEWER, str(home)) == home and choose_client(NEWER, str(inner)) == inner
    assert choose_client(NEWER, "", environment={"TREX_HOME": str(home)}) == home
    with pytest.raises(TestbedError, match=r"v3\.08.*speaks STL API 5\.1.*client in '.*' speaks API 5\.2; expected"):
        choose_client(NEWER, str(shipped(tmp_path / "newer", 5, 2)))
    with pytest.raises(TestbedError, match=r"no TRex client in '/nowhere'.*'client'"):
        choose_client(NEWER, "/nowhere")


def test_a_refused_handshake_names_server_client_and_fix(tmp_path: Path) -> None:
    home = shipped(tmp_path / "v3.08", 5, 1)
    text = str(misfit(ServerFacts("x:1", True, version="v2.87"), home, "Version mismatch"))
    assert re.search(r"v2\.87 at x:1 takes .*0\.3, but .* speaks API 5\.1: V.*from server'", text)


def test_the_servers_client_is_fetched_only_if_needed(tmp_path: Path) -> None:
    home, asked = shipped(tmp_path / "copy", 5, 1), []

    def fetch(server: ServerFacts) -> Path:
        asked.append(server.version)
        return home

    assert choose_client(NEWER, "", fetch, {}) == home and choose_client(NEWER, "from server", fetch) == home
    assert choose_client(ServerFacts("x:1", True), "", fetch) is None and asked == ["v3.08"] * 2
    with pytest.raises(TestbedError, match=r"'client: from server' needs a login.*'ssh: "):
        choose_client(NEWER, "from server")
    with pytest.raises(TestbedError, match=r"speaks STL API 5\.1.*'client: /path.* without 'client: pypi' a login"):
        choose_client(NEWER, "pypi", fetch)


# -- requests of which several are under way at once: answers in order, and what no TRex server answers


@pytest.fixture
def replies() -> Iterator[zmq.Socket[bytes]]:
    """A REP socket, as a real TRex has."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind("tcp://127.0.0.1:*")
        yield socket


@pytest.fixture
def pipe(replies: zmq.Socket[bytes]) -> Iterator[Pipe]:
    found = Pipe(replies.getsockopt_string(zmq.LAST_ENDPOINT))
    yield found
    found.close()


def ping(number: int) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "method": "ping", "id": number}]


def answer(server: zmq.Socket[bytes], **content: Any) -> None:
    (call,) = json.loads(server.recv())
    server.send(json.dumps([{"jsonrpc": "2.0", "id": call["id"], **content}]).encode())


@pytest.mark.slow
def test_answers_come_in_the_order_of_the_requests(replies: zmq.Socket[bytes], pipe: Pipe) -> None:
    for number in range(3):
        pipe.ask(ping(number))
    assert pipe.under_way == 3 and pipe.answer(0) is None
    for number in range(3):
        answer(replies, result={"ts": number})
    come = [pipe.answer(5) for _ in range(3)]
    assert [found and found.results for found in come] == [[{"ts": 0}], [{"ts": 1}], [{"ts": 2}]]
    assert pipe.under_way == 0 and come == sorted(come, key=lambda found: found.asked if found else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"error": {"code": -32600, "message": "no"}}, Refusal),
        ({"id": 7, "result": {}}, ValueError),
        ({"neither": 0}, ValueError),
    ],
)
def test_what_is_no_result_of_the_request_is_refused(
    replies: zmq.Socket[bytes], pipe: Pipe, content: dict[str, Any], error: type[Exception]
) -> None:
    pipe.ask(ping(1))
    answer(replies, **content)
    with pytest.raises(error):
        pipe.answer(5)


@pytest.mark.slow
def test_a_silent_server_is_lost(monkeypatch: pytest.MonkeyPatch, pipe: Pipe) -> None:
    monkeypatch.setattr(sockets, "REPLY_LIMIT", 0.01)
    pipe.ask(ping(1))
    with pytest.raises(Refusal) as caught:
        while True:
            pipe.answer(0.02)
    assert caught.value.kind == "lost"


def test_streams_of_a_users_file_carry_the_destination_of_their_direction() -> None:
    frame = bytes(60)
    program = {"flags": 5, "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""}, "mode": {}, "vm": {}}
    item = Stream(frame.hex(), 1.0, program=json.dumps(program)).to_json()
    assert program_data(item)["packet"] == program["packet"]
    found = program_data({**item, "destination": "02:00:00:00:01:02"})
    assert base64.b64decode(found["packet"]["binary"]) == bytes.fromhex("020000000102") + frame[6:]
    assert found["flags"] == 3  # source and destination from the packet
