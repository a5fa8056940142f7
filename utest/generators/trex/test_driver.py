"""The TRex driver without a server: what counts mean, and what a person reads where no usable server answers."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import zmq

from linerate.counts.trial import Fault, Load
from linerate.errors import TestbedError
from linerate.generators.base import Direction
from linerate.generators.trex.client import imp_bridge
from linerate.generators.trex.client.messages import Watch, busiest, busy_in, clean
from linerate.generators.trex.client_choice import choose, mismatch
from linerate.generators.trex.client_process import ClientProcess
from linerate.generators.trex.counts import outcome
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.generators.trex.probe import ServerFacts, ask, listens

BOTH = (Direction(0, 1), Direction(1, 0, swapped=True))
NOTHING = {"opackets": 0, "ipackets": 0, "obytes": 0, "ibytes": 0, "oerrors": 0, "ierrors": 0}
MISMATCH = "RPC version mismatch: a newer client version is required\n(API type 'STL':  - server: '5.1', client: '4.1')"


def answer(after: dict[str, dict[str, int]], **other: Any) -> dict[str, Any]:
    """A trial as the client's process reports it; ports not named stood still."""
    before = {port: {**NOTHING, "opackets": 5, "ipackets": 7} for port in ("0", "1")}
    counts = {port: {**before[port], **after.get(port, {})} for port in before}
    quiet = {
        "links": {"0": True, "1": True},
        "complaints": [],
        "finished": True,
        "elapsed": [1.01, 1.05],
        "drained": 0.02,
    }
    glob = {"m_total_queue_full": 3.0}
    return {
        "started": 1e9,
        "before": {**before, "global": glob},
        "after": {**counts, "global": other.pop("glob", glob)},
        "cpu_util": 12.5,
        "rx_cpu_util": 0.5,
        **quiet,
        **other,
    }


FULL = {"0": {"opackets": 1005, "ipackets": 987}, "1": {"opackets": 1005, "ipackets": 1007}}


def test_counts_are_differences_of_totals_per_way() -> None:
    found = outcome(answer(FULL), Load(1000), 1.0, BOTH)
    assert [(item.intended, item.offered, item.forwarded) for item in found.directions] == [
        (1000, 1000, 1000),
        (1000, 1000, 980),
    ]
    assert found.problems == () and found.readings["cpu_util"] == 12.5


@pytest.mark.parametrize(
    ("range_", "elapsed", "uncertainty"),
    [((0.97, 1.01), 1.0, 0.03), ((0.5, 0.6), 0.55, 0.05), ((1.98, 2.02), 2.0, 0.02), ((0.1, 2.0), 1.0, 1.0)],
)
def test_elapsed_tells_how_exact_it_is(range_: tuple[float, float], elapsed: float, uncertainty: float) -> None:
    # a duration that is possible is taken; one that is not stays visible: elapsed - uncertainty is surely reached
    found = outcome(answer(FULL, elapsed=list(range_)), Load(1000), 1.0, BOTH)
    assert found.elapsed == pytest.approx(elapsed)
    assert found.readings["elapsed_uncertainty"] == pytest.approx(uncertainty)


@pytest.mark.parametrize(
    ("came", "missed", "spared"),
    [
        ((900, 999), (100, 0), True),  # the worst way's loss is the generator's own, whatever one frame the other lost
        ((900, 500), (100, 0), False),  # but not where another way lost more
        ((900, 1000), (99, 0), False),
        ((1000, 1000), (1, 0), True),
    ],
)
def test_what_the_generator_missed_itself_is_not_held_against_the_router(
    came: tuple[int, int], missed: tuple[int, int], spared: bool
) -> None:
    after = {
        "0": {"opackets": 1005, "ipackets": 7 + came[1], "ierrors": missed[1]},
        "1": {"opackets": 1005, "ipackets": 7 + came[0], "ierrors": missed[0]},
    }
    found = outcome(answer(after), Load(1000), 1.0, BOTH)
    assert any(problem.fault is Fault.GENERATOR for problem in found.problems) is spared


def test_elapsed_is_on_the_clock_of_the_bench() -> None:
    found = outcome(answer(FULL), Load(1000), 20.0, BOTH, clock_speed=20)
    assert found.elapsed == pytest.approx(20.6) and found.readings["drain"] == pytest.approx(0.4)
    assert found.readings["elapsed_uncertainty"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"after": {**FULL, "0": {**FULL["0"], "ierrors": 20}}}, Fault.GENERATOR),
        ({"after": {**FULL, "0": {**FULL["0"], "oerrors": 4}}}, Fault.GENERATOR),
        ({"after": {**FULL, "1": {"opackets": 1, "ipackets": 1007}}}, Fault.COUNTERS),
        ({"links": {"0": True, "1": False}}, Fault.LINK_DOWN),
        ({"complaints": ["port 0 reports an error"]}, Fault.GENERATOR),
        ({"finished": False}, Fault.STRETCHED),
    ],
)
def test_what_the_generator_saw_go_wrong_is_a_problem(change: dict[str, Any], fault: Fault) -> None:
    after = change.pop("after", FULL)
    found = outcome(answer(after, **change), Load(1000), 1.0, BOTH)
    assert [item.fault for item in found.problems] == [fault]


@pytest.mark.parametrize("sent", [1005, 800])
def test_a_full_queue_is_a_reading_that_others_judge(sent: int) -> None:
    after = {**FULL, "0": {**FULL["0"], "opackets": sent}}
    found = outcome(answer(after, glob={"m_total_queue_full": 50.0}), Load(1000), 1.0, BOTH)
    assert found.problems == () and found.readings["queue_full"] == 47


@pytest.mark.parametrize(
    ("errors", "acquitted"),
    [
        ({"0": 19}, False),  # of 20 frames lost on the way to port 0: one is the router's
        ({"0": 20}, True),
        ({"1": 500}, False),  # at a port that lost nothing
        ({"0": 20, "1": 3}, True),
    ],
)
def test_errors_at_the_generator_acquit_the_router_only_of_what_they_explain(
    errors: dict[str, int], acquitted: bool
) -> None:
    after = {port: {**counts, "ierrors": errors.get(port, 0)} for port, counts in FULL.items()}
    found = outcome(answer(after), Load(1000), 1.0, BOTH)
    assert found.readings["ierrors"] == sum(errors.values())
    assert [item.fault for item in found.problems] == [Fault.GENERATOR] * acquitted
    assert all("errors or missed" in item.detail and "20 at port 0" in item.detail for item in found.problems)


# -- no usable server --------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def replies(
    make: Callable[[dict[str, Any]], str], published: str = "{}", barriers: bool = True
) -> Iterator[tuple[int, int]]:
    """A REP socket that answers whatever *make* says and a PUB that says *published* all the time; yields their ports.

    ``{}`` is what newer servers publish. A ``publish_now`` has its barrier unless *barriers* is False.
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


def test_no_server_is_said_at_once_with_address_and_remedy() -> None:
    port = free_port()
    with pytest.raises(TestbedError, match=rf"no TRex server answers at 127.0.0.1:{port}.*refused.*address") as caught:
        TrexGenerator(TrexSettings("127.0.0.1", port, port))
    assert "\n" not in str(caught.value)


def test_a_newer_server_is_named_with_the_client_it_wants() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"result": {"version": "v3.08"}})
        return json.dumps({"error": {"code": -32000, "message": "x", "specific_err": MISMATCH}})

    with replies(make) as (rpc, _):
        server = ask("127.0.0.1", rpc)
    assert (server.takes_pypi, server.api, server.version) == (False, (5, 1), "v3.08")
    for client in ("", "pypi"):
        with pytest.raises(
            TestbedError, match=r"server v3\.08 at .* speaks STL API 5\.1 and.*0\.3 .*core API 4\.1.*'ssh:"
        ) as e:
            choose(server, client, environment={})
        assert "\n" not in str(e.value)


def test_a_server_of_another_mode_is_told_from_a_newer_one() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"result": {"version": "v3.08", "mode": "ASTF"}})
        text = "RPC configuration mismatch - server RPC configuration: 'ASTF', client RPC configuration: 'STL'"
        return json.dumps({"error": {"code": -32000, "message": "x", "specific_err": text}})

    with (
        replies(make) as (rpc, _),
        pytest.raises(TestbedError, match=r"v3\.08 at .* mode ASTF, not in stateless.*--stl"),
    ):
        ask("127.0.0.1", rpc)


def test_a_server_of_this_api_is_accepted() -> None:
    seen = []

    def make(request: dict[str, Any]) -> str:
        seen.append(request)
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"api_vers": [{"type": "core", "api_h": "abcdefgh"}]}})

    with replies(make) as (rpc, _):
        server = ask("127.0.0.1", rpc)
    assert server.takes_pypi and choose(server, "") is None
    assert seen[0]["method"] == "api_sync" and seen[0]["params"]["api_vers"][0]["major"] == 4


def test_something_else_that_answers_is_not_called_a_server() -> None:
    with replies(lambda _: "hello") as (rpc, _), pytest.raises(TestbedError, match="not a TRex server"):
        ask("127.0.0.1", rpc)


@pytest.mark.slow
def test_a_message_that_crashes_the_library_hurts_nobody() -> None:
    # its thread would send SIGTERM to this process's group
    def make(request: dict[str, Any]) -> str:
        result = {"api_vers": [{"type": "core", "api_h": "abcdefgh"}]} if request["method"] == "api_sync" else {}
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})

    # no barrier: it could come before the message that crashes the thread, and the connection would go on
    with (
        replies(make, barriers=False) as (rpc, events),
        pytest.raises(TestbedError, match=rf"understands at port {events}.*async_port"),
    ):
        TrexGenerator(TrexSettings("127.0.0.1", rpc, events))


@pytest.mark.slow
def test_a_barrier_of_another_client_does_not_crash_the_library() -> None:
    def make(request: dict[str, Any]) -> str:
        if request["method"] == "get_version":
            return json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "so far, so good"}})
        result = {"api_vers": [{"type": "core", "api_h": "abcdefgh"}]} if request["method"] == "api_sync" else {}
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})

    stranger = json.dumps({"name": "trex-barrier", "type": 1, "data": {}})
    with replies(make, stranger) as ports, pytest.raises(TestbedError, match="so far, so good"):
        TrexGenerator(TrexSettings("127.0.0.1", *ports))


def test_a_closed_port_for_events_is_named() -> None:
    with pytest.raises(TestbedError, match="its port for events"):
        listens("127.0.0.1", free_port())


# -- small things ------------------------------------------------------------------------------------------------------


def test_the_stand_in_for_imp_reloads_and_is_only_put_where_none_is() -> None:
    modules: dict[str, ModuleType] = {"imp": ModuleType("imp")}
    assert imp_bridge.install(modules) is False


def test_errors_of_the_library_become_one_plain_line() -> None:
    class Painted(Exception):
        msg = "\x1b[1mPort 0 : *** port is already\n taken by 'alice'\x1b[0m"

        def __str__(self) -> str:
            raise ValueError("as the library does")

    assert clean(Painted()) == "Port 0: port is already; taken by 'alice'"
    assert clean(KeyError("x")) == "KeyError: 'x'"


def test_events_are_noted_even_where_the_library_fails_on_them() -> None:
    def fails(kind: int, data: Any) -> None:
        raise KeyError("name")

    watch = Watch(session_id=7)
    handler = watch.wrap(fails)
    handler(4, {"port_id": 1})
    handler(5, {"port_id": 0, "who": "bob", "session_id": 8, "force": True})
    handler(5, {"port_id": 0, "who": "me", "session_id": 7, "force": True})
    handler(99, None)
    assert set(watch.done) == {1} and watch.complaints == ["port 0 was taken by 'bob'"]


def test_a_link_that_was_down_for_a_moment_is_remembered_and_links_are_asked_for_in_doubt() -> None:
    watch = Watch(session_id=7)
    handler = watch.wrap(lambda kind, data: None)
    assert not watch.doubtful
    handler(8, {"port_id": 0, "attr": {"link": {"up": True}, "promiscuous": {"enabled": True}}})
    assert watch.doubtful and watch.down == set()
    handler(8, {"port_id": 1, "attr": {"link": {"up": False}}})
    handler(8, {"port_id": 1, "attr": {"link": {"up": True}}})
    for strange in ({"port_id": 0}, {"port_id": 0, "attr": None}, {"port_id": 0, "attr": {"link": "up"}}):
        handler(8, strange)
    assert watch.down == {1} and watch.complaints == []
    watch.clear()
    assert watch.down == set() and not watch.doubtful


def test_the_load_is_the_busiest_second_of_one_core_within_the_trial() -> None:
    cores = [[30.0, 40.0, 90.0, 100.0], [0.0, 50.0]]
    assert busiest(cores, 0.4) == busiest(cores, 1.9) == 30
    assert busiest(cores, 2) == 50 and busiest(cores, 3.9) == 90 and busiest(cores, 60) == 100
    assert busiest([], 5) == 0


def test_a_short_time_is_told_from_what_was_before_and_after_it() -> None:
    # 1.2 s of work, over 0.4 s ago: 0.6 s of it in the last second, 0.6 s in the one before
    assert busy_in([[60.0, 60.0, 0.0]], 0.4, 1.2, 1.0) == pytest.approx(100)
    # as busy all the time, before as well
    assert busy_in([[24.0, 40.0, 40.0]], 0.4, 1.2, 1.0) == pytest.approx(100 * (0.24 + 0.4) / 1.2, abs=0.05)
    # another time's work is not this one's
    assert busy_in([[0.0, 0.0, 100.0, 100.0], [5.0, 5.0, 0.0]], 0.1, 1.2, 1.0) == pytest.approx(
        100 * 0.1 / 1.2, abs=0.05
    )
    assert busy_in([], 0.1, 1.0, 1.0) == 0


@pytest.mark.slow
def test_the_client_ends_when_its_parent_lets_go_and_answers_nonsense_with_a_sentence() -> None:
    process = ClientProcess()
    try:
        with pytest.raises(TestbedError, match="no command 'dance'"):
            process.call("dance", 30)
        with pytest.raises(TestbedError, match="not connected"):
            process.call("trial", 30, {"rates": {}, "directions": [], "duration": 1})
    finally:
        process.close()
    assert not process.alive


@pytest.mark.slow
def test_a_client_that_dies_is_a_sentence_with_its_last_words() -> None:
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


def test_a_folder_is_an_installation_or_its_client_and_fits_the_server(tmp_path: Path) -> None:
    home = shipped(tmp_path / "v3.08", 5, 1)
    inner = home / "automation" / "trex_control_plane" / "interactive"
    assert choose(NEWER, str(home)) == home and choose(NEWER, str(inner)) == inner
    assert choose(NEWER, "", environment={"TREX_HOME": str(home)}) == home
    with pytest.raises(TestbedError, match=r"v3\.08.*speaks STL API 5\.1.*client in '.*' speaks API 5\.2; expected"):
        choose(NEWER, str(shipped(tmp_path / "newer", 5, 2)))
    with pytest.raises(TestbedError, match=r"no TRex client in '/nowhere'.*'client'"):
        choose(NEWER, "/nowhere")


def test_a_handshake_that_is_refused_names_both_sides_and_the_remedy(tmp_path: Path) -> None:
    home = shipped(tmp_path / "v3.08", 5, 1)
    text = str(
        mismatch(ServerFacts("x:1", True, version="v2.87"), home, "Version mismatch: your client version is too new")
    )
    assert re.search(
        r"server v2\.87 at x:1 takes .*0\.3, but refuses the client in '.*' \(API 5\.1\): V.*from server'", text
    )


def test_the_servers_own_client_is_fetched_only_where_it_is_wanted(tmp_path: Path) -> None:
    home, asked = shipped(tmp_path / "copy", 5, 1), []

    def fetch(server: ServerFacts) -> Path:
        asked.append(server.version)
        return home

    assert choose(NEWER, "", fetch, {}) == home and choose(NEWER, "from server", fetch) == home
    assert choose(ServerFacts("x:1", True), "", fetch) is None and asked == ["v3.08"] * 2
    with pytest.raises(TestbedError, match=r"'client: from server' needs a login.*'ssh: "):
        choose(NEWER, "from server")
    with pytest.raises(TestbedError, match=r"speaks STL API 5\.1.*'client: pypi'.*'client: from server', or nothing"):
        choose(NEWER, "pypi", fetch)
