"""TRex's client without a server, with one that is of no use, and with recorded answers of v3.08."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.core.trial import DRAIN
from lineproof.errors import TestbedError
from lineproof.generators.base import GeneratorPort
from lineproof.generators.streams import Stream
from lineproof.generators.trex.client import answers, pypi
from lineproof.generators.trex.client.answers import ServerEvents, peak_load, peak_load_during, plain_message
from lineproof.generators.trex.client.library import ALL_CORES, stream_data
from lineproof.generators.trex.client.running_traffic import all_placed, group_counts, wait_for_drain
from lineproof.generators.trex.client.service import CounterReading, Refusal
from lineproof.generators.trex.clients import ServerFacts, ask_server, choose_client
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings, connection_error, remedy_of
from support.hostile_trex import Answer, HostileServer, hostile_trex, refusing, result
from support.paths import DATA
from support.ports import free_port

MISMATCH = "RPC version mismatch: a newer client version is required\n(API type 'STL':  - server: '5.1', client: '4.1')"


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
def test_a_newer_server_is_named_with_the_client_it_needs(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    server.instead = {"api_sync": refusing(MISMATCH), "get_version": result('{"version": "v3.08"}')}
    facts = ask_server("127.0.0.1", server.rpc_port)
    assert (facts.takes_pypi, facts.version) == (False, "v3.08")
    for client in ("", "pypi"):
        with pytest.raises(TestbedError, match=r"v3\.08 at .* refuses .*0\.3 .*core API 4\.1.*'ssh:") as e:
            choose_client(facts, client)
        assert "\n" not in str(e.value)


@pytest.mark.slow
def test_a_server_in_another_mode_is_not_a_newer_one(server: HostileServer) -> None:
    text = "RPC configuration mismatch - server RPC configuration: 'ASTF', client RPC configuration: 'STL'"
    server.instead = {"api_sync": refusing(text), "get_version": result('{"version": "v3.08", "mode": "ASTF"}')}
    with pytest.raises(TestbedError, match=r"v3\.08 at .* mode ASTF, not in stateless.*--stl"):
        ask_server("127.0.0.1", server.rpc_port)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "published", "says"),
    [
        # the thread would send SIGTERM to this process's group; a barrier before that message would keep the connection
        ({"publish_now": result("{}")}, b"{}", "understands at port .*async_port"),
        ({"get_version": refusing("so far, so good")}, b'{"name": "trex-barrier", "type": 1, "data": {}}', "so far"),
    ],
    ids=["a message that crashes the library", "a barrier of another client"],
)
def test_what_is_published_ends_neither_the_library_nor_the_parent(
    server: HostileServer, answer: dict[str, Answer | None], published: bytes, says: str
) -> None:
    server.instead, server.published = answer, [[published]]
    with pytest.raises(TestbedError, match=says):
        TrexGenerator(TrexSettings("127.0.0.1", server.rpc_port, server.pub_port))


def test_errors_of_the_library_become_one_line() -> None:
    class Painted(Exception):
        msg = "\x1b[1mPort 0 : *** port is already\n taken by 'alice'\x1b[0m"

        def __str__(self) -> str:
            raise ValueError("as the library does")

    assert plain_message(Painted()) == "Port 0: port is already; taken by 'alice'"
    assert plain_message(KeyError("x")) == "KeyError: 'x'"


def test_events_say_which_port_was_taken_and_which_links_are_in_doubt() -> None:
    events = ServerEvents(session_id=7)
    strange = ({"port_id": 0}, {"port_id": 0, "attr": None}, {"port_id": 0, "attr": {"link": "up"}})
    for data in strange:
        events.record(8, data)
    events.record(8, {"port_id": 0, "attr": {"link": {"up": True}, "promiscuous": {"enabled": True}}})
    assert events.links_in_doubt and events.links_down == set()
    events.record(8, {"port_id": 1, "attr": {"link": {"up": False}}})
    events.record(8, {"port_id": 1, "attr": {"link": {"up": True}}})
    events.record(4, {"port_id": 1})
    events.record(5, {"port_id": 0, "who": "me", "session_id": 7, "force": True})
    events.record(99, None)
    assert (set(events.ended), events.links_down, events.refusal) == ({1}, {1}, None)
    events.record(5, {"port_id": 0, "who": "bob", "session_id": 8, "force": True})
    assert list(events.complaints) == ["port 0 was taken by 'bob'"]
    assert events.refusal is not None and events.refusal.kind == "taken"


def test_peak_load_is_the_highest_second_of_one_core_in_the_trial() -> None:
    cores = [[30.0, 40.0, 90.0, 100.0], [0.0, 50.0]]
    assert [peak_load(cores, seconds) for seconds in (0.4, 1.9, 2, 3.9, 60)] == [30, 30, 50, 90, 100]
    assert peak_load([], 5) is None and peak_load([[]], 5) is None


@pytest.mark.parametrize(
    ("loads", "ago", "load"),
    [
        # 1.2 s of work: 0.6 s of it in the last second, 0.6 s in the one before
        ([[60.0, 60.0, 0.0]], 0.4, 100),
        # constant load, before as well
        ([[24.0, 40.0, 40.0]], 0.4, 100 * (0.24 + 0.4) / 1.2),
        # work at another time does not count
        ([[0.0, 0.0, 100.0, 100.0], [5.0, 5.0, 0.0]], 0.1, 100 * 0.1 / 1.2),
    ],
)
def test_peak_load_during_a_short_time_excludes_other_times(loads: list[list[float]], ago: float, load: float) -> None:
    assert peak_load_during(loads, ago, 1.2, 1.0) == pytest.approx(load, abs=0.05)
    assert peak_load_during([], ago, 1.2, 1.0) is None


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
    monkeypatch.setattr(library, "ports", lambda ports: [{"cores": list(range(cores))}])
    monkeypatch.setattr(library, "_pins_cores", pins)
    assert [library.core_mask(port, sending) for port in sending] == masks


NEWER = ServerFacts("192.0.2.1:4501", False, "v3.08", MISMATCH)


def shipped(folder: Path) -> Path:
    """A folder that looks like a TRex installation."""
    client = folder / "automation/trex_control_plane/interactive/trex/stl/trex_stl_client.py"
    client.parent.mkdir(parents=True)
    client.touch()
    return folder


def test_a_client_folder_is_one_with_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = shipped(tmp_path / "v3.08")
    inner = home / "automation" / "trex_control_plane" / "interactive"
    assert choose_client(NEWER, str(home)) == home and choose_client(NEWER, str(inner)) == inner
    monkeypatch.setenv("TREX_HOME", str(home))
    assert choose_client(NEWER, "") == home
    with pytest.raises(TestbedError, match=r"no TRex client in '/nowhere'.*'client'"):
        choose_client(NEWER, "/nowhere")


def test_a_client_that_the_server_does_not_take_is_named() -> None:
    refusal, facts = Refusal("connect", "Version mismatch"), ServerFacts("192.0.2.1:4501", True, "v2.87")
    text = str(connection_error(refusal, 4500, facts, Path("/opt/trex")))
    assert re.search(r"v2\.87 at .* takes .*0\.3, but not the client in '/opt/trex': V.*from server'", text)


def test_the_servers_client_is_fetched_only_if_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    home, asked = shipped(tmp_path / "copy"), []

    def fetch(server: ServerFacts) -> Path:
        asked.append(server.version)
        return home

    assert choose_client(NEWER, "", fetch) == home and choose_client(NEWER, "from server", fetch) == home
    assert choose_client(ServerFacts("x:1", True), "", fetch) is None and asked == ["v3.08"] * 2
    with pytest.raises(TestbedError, match=r"'client: from server' needs a login.*'ssh: "):
        choose_client(NEWER, "from server")
    with pytest.raises(TestbedError, match=r"refuses .*0\.3.*'client: /path.* without 'client: pypi' a login"):
        choose_client(NEWER, "pypi", fetch)


def test_streams_of_a_users_file_carry_the_destination_of_their_direction() -> None:
    frame = bytes(60)
    program = {"flags": 5, "packet": {"binary": base64.b64encode(frame).decode(), "meta": ""}, "mode": {}, "vm": {}}
    item = Stream(frame.hex(), 1.0, program=json.dumps(program)).to_json()
    assert stream_data(item)["packet"] == program["packet"]
    found = stream_data({**item, "destination": "02:00:00:00:01:02"})
    assert base64.b64decode(found["packet"]["binary"]) == bytes.fromhex("020000000102") + frame[6:]
    assert found["flags"] == 3  # source and destination from the packet


RECORDED = DATA / "trex-rpc" / "official-v3.08.jsonl"


def recorded(method: str) -> list[dict[str, Any]]:
    """Every answered call of *method*, alone or in a batch, in order."""
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    calls = [call for row in rows for call in row.get("batch", [row])]
    return [call for call in calls if call.get("method") == method and "result" in call]


def test_ports_are_described_by_number_not_by_list_position() -> None:
    system = recorded("get_system_info")[0]["result"]["ports"]
    assert [item["index"] for item in system] == [1, 0]
    static = {item["index"]: item for item in system}
    for port, mac in ((0, "02:00:00:00:00:01"), (1, "02:00:00:00:01:01")):
        status = next(call for call in recorded("get_port_status") if call["params"]["port_id"] == port)["result"]
        assert answers.port_facts(status, static[port]) == {
            "mac": mac,
            "speed_bps": 10e9,
            "link_up": True,
            "driver": "net_af_packet",
            "owner": "tester",
            "pci": "",
            "description": "Unknown",
            "destination": mac[:-1] + "2",
            "measures": ["flow_stats", "latency", "rx_bytes", "tpg"],
            "numa": None,
            "cores": [0],
            "flow_control": None,
            "card_mac": mac,
            "promiscuous": False,
            "is_virtual": True,
        }


@pytest.mark.parametrize(
    ("gbps", "link_gbps", "is_slower", "text"),
    [
        (10, 10, False, "10 Gbit/s"),
        (25, 10, False, "25 Gbit/s"),
        (2.5, 10, True, "2.5 Gbit/s"),
        (0, 10, False, "a speed that its driver does not report"),
        (200, 400, False, "200 Gbit/s"),
    ],
)
def test_a_port_is_slower_than_the_platform_where_its_speed_is_known(
    gbps: float, link_gbps: float, is_slower: bool, text: str
) -> None:
    port = GeneratorPort(0, "02:00:00:00:00:01", gbps * 1e9, True, "net_box")
    assert (port.is_slower_than(link_gbps * 1e9), port.speed_text) == (is_slower, text)


def test_recorded_events_report_a_taken_port_and_the_end_of_sending() -> None:
    session = recorded("get_async_events")[0]["params"]["session_id"]
    for ours, is_taken in ((session, False), (session + 1, True)):
        events = ServerEvents(ours)
        for call in recorded("get_async_events"):
            events.record_all(call["result"])
        assert set(events.ended) == {0} and ("was taken by 'tester'" in " ".join(events.complaints)) is is_taken
        events.record_all({"data": None})


@pytest.mark.parametrize(
    ("histogram", "hdrh", "placed"),
    [
        ({"10": 12}, "", True),
        ({"0": 7, "10": 12}, "", True),
        ({"0": 2, "10": 10}, "", False),
        ({}, "", False),
        ({"0": 2, "10": 10}, "A" * 100, True),
        ({"0": 2, "10": 10}, "A" * 60, False),  # it may be empty
    ],
)
def test_received_frames_of_all_ports_are_those_of_a_histogram(
    histogram: dict[str, int], hdrh: str, placed: bool
) -> None:
    answer = {
        "flow_stats": {"7": {"tp": {"0": 15, "1": 0}, "rp": {"0": 2, "1": 10}}},
        "latency": {"7": {"lat": {"total_max": 30, "jit": 5, "histogram": histogram, "hdrh": hdrh}, "er": {"dup": 1}}},
    }
    counts = group_counts(answer, 7, 0, 1)
    assert counts is not None and group_counts(answer, 8, 0, 1) is None
    assert (counts["sent"], counts["received"], counts["elsewhere"], counts["duplicates"]) == (15, 10, 2, 1)
    assert all_placed(counts) is placed


@pytest.mark.parametrize("time", [float("inf"), float("nan"), "soon"])
def test_a_time_that_is_no_number_is_refused(time: object) -> None:
    with pytest.raises(ValueError, match=r"soon|its time is"):
        answers.moment({"ts": time})


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Failed parsing given packet for flow stat.  NIC does not support Q in Q", "started with '--software'"),
        ("Failed allocating statistic counter. Probably all are used for this rule type.", "fewer streams with flow"),
    ],
)
def test_a_refusal_that_names_no_remedy_gets_one(words: str, remedy: str) -> None:
    assert remedy in remedy_of(words) and remedy_of("port is already taken by 'bob'") == ""


Count = Callable[[float], dict[Any, Any]]
BEFORE = CounterReading(0, 0, {port: {"opackets": 7, "ipackets": 11} for port in (0, 1)})
AHEAD, BACK = (0, 1), (1, 0)


def reading(count: Count, now: float) -> CounterReading:
    """Return the counters at *now* s of both clocks."""
    totals = {
        port: {name: BEFORE.ports[port][name] + value for name, value in counts.items()}
        for port, counts in count(now).items()
    }
    return CounterReading(now, now, totals)


def wait(
    count: Count, directions: list[tuple[int, int]], speed: float = 1.0, asleep: float = 0.0
) -> tuple[CounterReading, dict[int, int], float]:
    """The final counters, frames perhaps too late and the wait; *count*: frames sent and received by a time in s.

    The last one was sent at 0, after which the client is *asleep* for so many s.
    """
    now = [asleep]

    def sleep(seconds: float) -> None:
        assert seconds >= 0
        now[0] += seconds + 1e-6

    trial = SimpleNamespace(directions=directions, clock_speed=speed)
    snapshots = [reading(count, 0.0)]
    running: Any = SimpleNamespace(before=BEFORE, trial=trial, frames={0: 99, 1: 99}, snapshots=snapshots)
    first = reading(count, asleep)
    return wait_for_drain(first, lambda: reading(count, now[0]), running, DRAIN / speed, lambda: now[0], sleep)


def counts(sent: int, received: int, back_sent: int = 0, back_received: int = 0) -> dict[Any, Any]:
    return {0: {"opackets": sent, "ipackets": back_received}, 1: {"opackets": back_sent, "ipackets": received}}


@pytest.mark.parametrize(
    ("count", "terms", "seconds"),
    [
        # none is missing
        (lambda now: counts(99, 99), {}, 0),
        (lambda now: counts(100, 100), {}, 0),
        (lambda now: counts(99, 99, 100, 103), {"directions": [AHEAD, BACK]}, 0),
        # none comes, and frames come until the end
        (lambda now: counts(100, 99), {}, 2),
        (lambda now: counts(100, 60 + int(10 * now)), {}, 2),
        # counters are updated once a second
        (lambda now: counts(100, 100 if now > 1.5 else 60), {}, 1.55),
        # extra frames of one direction do not end the wait of the other
        (lambda now: counts(100, 100 if now > 1 else 90, 100, 150), {"directions": [AHEAD, BACK]}, 1.05),
        # s of the testbed's clock
        (lambda now: counts(100, 0), {"speed": 50}, 0.04),
        # so many s after the last was sent, not after the client has noticed it
        (lambda now: counts(100, 0), {"asleep": 0.5}, 1.5),
    ],
)
def test_missing_frames_are_waited_for_until_2_s_after_the_last_was_sent(
    count: Count, terms: dict[Any, Any], seconds: float
) -> None:
    after, _, took = wait(count, **{"directions": [AHEAD], **terms})
    assert took == pytest.approx(seconds, abs=0.06 if seconds in (1.55, 1.05) else 0.01)
    assert after.ports[1]["ipackets"] == 11 + count(took + terms.get("asleep", 0.0))[1]["ipackets"]


@pytest.mark.parametrize("speed", [1.0, 50.0])
def test_frames_that_come_near_the_end_of_the_wait_are_none_that_may_be_late(speed: float) -> None:
    _, late, _ = wait(lambda now: counts(100, 99 if now * speed > 1.6 else 0), [AHEAD], speed)
    assert late == {1: 0}
