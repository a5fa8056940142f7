"""The TRex driver without a server: errors if no usable server answers."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zmq

from lineproof.errors import TestbedError
from lineproof.generators.trex.client import pypi
from lineproof.generators.trex.client.messages import ServerEvents, peak_load, peak_load_during, plain_message
from lineproof.generators.trex.client_choice import choose_client, handshake_error
from lineproof.generators.trex.client_process import ClientProcess
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.server_facts import ServerFacts, ask_server, check_events_port
from support.ports import free_port

MISMATCH = "RPC version mismatch: a newer client version is required\n(API type 'STL':  - server: '5.1', client: '4.1')"


# -- no usable server --------------------------------------------------------------------------------------------------


@contextmanager
def replies(
    make: Callable[[dict[str, Any]], str], published: str = "{}", barriers: bool = True
) -> Iterator[tuple[int, int]]:
    """A REP socket that answers with *make* and a PUB that repeats *published*; yields their ports.

    ``{}`` is what newer servers publish. A ``publish_now`` gets its barrier unless *barriers* is False.
    """
    context, end = zmq.Context(), threading.Event()
    rpc, events = context.socket(zmq.REP), context.socket(zmq.PUB)
    ports = rpc.bind_to_random_port("tcp://127.0.0.1"), events.bind_to_random_port("tcp://127.0.0.1")

    def serve() -> None:
        while not end.is_set():
            events.send_string(published)
            if rpc.poll(2):
                request = json.loads(rpc.recv())
                if request["method"] == "publish_now" and barriers:
                    events.send_json({"name": "trex-barrier", "type": request["params"]["key"], "data": {}})
                rpc.send_string(make(request))
        rpc.close(0)
        events.close(0)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield ports
    finally:
        end.set()
        thread.join()
        context.term()


def old_server(request: dict[str, Any]) -> str:
    """Return the answer of a server of core API 4.1, which trex-stl-lib 0.3 speaks."""
    result = {"api_vers": [{"type": "core", "api_h": "abcdefgh"}]} if request["method"] == "api_sync" else {}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})


@pytest.mark.slow
def test_a_missing_server_is_reported_with_its_address_and_a_fix() -> None:
    port = free_port()
    with pytest.raises(TestbedError, match=rf"no TRex server answers at 127.0.0.1:{port}.*refused.*address") as caught:
        TrexGenerator(TrexSettings("127.0.0.1", port, port))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_newer_server_is_named_with_the_client_it_needs() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"result": {"version": "v3.08"}})
        return json.dumps({"error": {"code": -32000, "message": "x", "specific_err": MISMATCH}})

    with replies(make) as (rpc, _):
        server = ask_server("127.0.0.1", rpc)
    assert (server.takes_pypi, server.api, server.version) == (False, (5, 1), "v3.08")
    for client in ("", "pypi"):
        with pytest.raises(
            TestbedError, match=r"server v3\.08 at .* speaks STL API 5\.1 and.*0\.3 .*core API 4\.1.*'ssh:"
        ) as e:
            choose_client(server, client, environment={})
        assert "\n" not in str(e.value)


@pytest.mark.slow
def test_a_server_in_another_mode_is_not_a_newer_one() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"result": {"version": "v3.08", "mode": "ASTF"}})
        text = "RPC configuration mismatch - server RPC configuration: 'ASTF', client RPC configuration: 'STL'"
        return json.dumps({"error": {"code": -32000, "message": "x", "specific_err": text}})

    with (
        replies(make) as (rpc, _),
        pytest.raises(TestbedError, match=r"v3\.08 at .* mode ASTF, not in stateless.*--stl"),
    ):
        ask_server("127.0.0.1", rpc)


@pytest.mark.slow
def test_a_server_of_the_pypi_api_is_accepted() -> None:
    seen = []

    def make(request: dict[str, Any]) -> str:
        seen.append(request)
        return old_server(request)

    with replies(make) as (rpc, _):
        server = ask_server("127.0.0.1", rpc)
    assert server.takes_pypi and choose_client(server, "") is None
    assert seen[0]["method"] == "api_sync" and seen[0]["params"]["api_vers"][0]["major"] == 4


@pytest.mark.slow
def test_another_program_at_the_port_is_not_a_server() -> None:
    with replies(lambda _: "hello") as (rpc, _), pytest.raises(TestbedError, match="not a TRex server"):
        ask_server("127.0.0.1", rpc)


@pytest.mark.slow
def test_a_message_that_crashes_the_library_does_not_kill_the_parent() -> None:
    # its thread would send SIGTERM to this process's group
    # without barriers: one before the message that crashes the thread would keep the connection
    with (
        replies(old_server, barriers=False) as (rpc, events),
        pytest.raises(TestbedError, match=rf"understands at port {events}.*async_port"),
    ):
        TrexGenerator(TrexSettings("127.0.0.1", rpc, events))


@pytest.mark.slow
def test_a_barrier_of_another_client_does_not_crash_the_library() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "so far, so good"}})
        return old_server(request)

    barrier = json.dumps({"name": "trex-barrier", "type": 1, "data": {}})
    with replies(make, barrier) as ports, pytest.raises(TestbedError, match="so far, so good"):
        TrexGenerator(TrexSettings("127.0.0.1", *ports))


@pytest.mark.slow
def test_a_closed_port_for_events_is_named() -> None:
    with pytest.raises(TestbedError, match="its port for events"):
        check_events_port("127.0.0.1", free_port())


# -- helpers -----------------------------------------------------------------------------------------------------------


def test_the_imp_bridge_is_not_installed_over_an_existing_imp() -> None:
    modules: dict[str, ModuleType] = {"imp": ModuleType("imp")}
    assert pypi.install_imp(modules) is False


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


@pytest.mark.slow
def test_the_client_refuses_traffic_without_a_connection_and_ends_when_closed() -> None:
    process = ClientProcess()
    try:
        with pytest.raises(TestbedError, match="not connected"):
            process.call("trial", 30, {"rates": {}, "directions": [], "duration": 1})
    finally:
        process.close()
    assert not process.alive


@pytest.mark.slow
def test_a_killed_client_is_an_error() -> None:
    process = ClientProcess()
    process.kill()
    with pytest.raises(TestbedError, match="the TRex client's process ended"):
        process.call("ports", 5)
    process.close()


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
    text = str(
        handshake_error(
            ServerFacts("x:1", True, version="v2.87"), home, "Version mismatch: your client version is too new"
        )
    )
    assert re.search(
        r"server v2\.87 at x:1 takes .*0\.3, but refuses the client in '.*' \(API 5\.1\): V.*from server'", text
    )


def test_the_servers_client_is_fetched_only_if_needed(tmp_path: Path) -> None:
    home, asked = shipped(tmp_path / "copy", 5, 1), []

    def fetch(server: ServerFacts) -> Path:
        asked.append(server.version)
        return home

    assert choose_client(NEWER, "", fetch, {}) == home and choose_client(NEWER, "from server", fetch) == home
    assert choose_client(ServerFacts("x:1", True), "", fetch) is None and asked == ["v3.08"] * 2
    with pytest.raises(TestbedError, match=r"'client: from server' needs a login.*'ssh: "):
        choose_client(NEWER, "from server")
    with pytest.raises(TestbedError, match=r"speaks STL API 5\.1.*'client: pypi'.*'client: from server', or nothing"):
        choose_client(NEWER, "pypi", fetch)
