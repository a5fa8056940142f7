"""States of ports, and the moments at which they begin and end; owners: generators/trex/test_chain.py."""

from __future__ import annotations

import time
from typing import Any

import pytest
import zmq

from lineproof_bench.server import transmission
from support.server_support import MACS, Client, FakeBackend, stream

pytestmark = pytest.mark.slow


def error(answer: Any) -> str:
    text: str = answer["specific_err"]
    return text


def prepared(client: Client, *ports: int) -> None:
    for port in ports:
        client.acquire(port)
        assert client.on(port, "add_stream", stream_id=1, stream=stream()) == {}


def kinds(messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [
        (message["type"], message["data"]["port_id"])
        for message in messages
        if message["name"] == "trex-event" and message["type"] < 10
    ]


def test_states(client: Client) -> None:
    def state() -> str:
        shown: str = client.call("get_port_status", port_id=0)["state"]
        return shown

    client.acquire(0)
    assert state() == "IDLE"
    assert "current state: 'IDLE" in error(client.start(0))
    client.on(0, "add_stream", stream_id=1, stream=stream())
    assert state() == "STREAMS"
    assert "already exists" in error(client.on(0, "add_stream", stream_id=1, stream=stream()))
    client.start(0, duration=-1)
    assert state() == "TX"
    assert "current state: 'TX" in error(client.start(0))
    assert "current state: 'TX" in error(client.on(0, "remove_all_streams"))
    assert client.on(0, "pause_traffic") == {}
    assert state() == "PAUSE"
    assert client.on(0, "resume_traffic") == {}
    assert client.on(0, "stop_traffic") == {}
    assert client.on(0, "stop_traffic") == {}, "stopping an idle port is harmless"
    assert client.on(0, "remove_all_streams") == {}
    assert state() == "IDLE"
    assert kinds(client.barrier()) == [(5, 0), (0, 0), (2, 0), (3, 0), (1, 0)]


@pytest.mark.parametrize(
    ("session", "durations", "starts"),
    [
        (1, (1, None), [([0], 1)]),  # begins by itself
        (1, (1, 1), [([0, 1], 1)]),
        (2, (5, 5), [([0], 5), ([1], 5)]),
        (1, (5, 6), [([0], 5), ([1], 6)]),
    ],
)
def test_a_start_waits_a_moment_for_one_of_its_session_and_duration(
    client: Client,
    backend: FakeBackend,
    session: int,
    durations: tuple[float | None, ...],
    starts: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transmission, "JOIN_WAIT", 1.0)  # on a busy machine two calls are far apart
    prepared(client, 0)
    client.acquire(1, session=session)
    client.on(1, "add_stream", stream_id=1, stream=stream())
    begun = [port for port, duration in enumerate(durations) if duration and client.start(port, duration=duration)]
    client.published(10, f'"type":4,"data":{{"port_id":{begun[-1]}}}')
    assert [(sorted(traffic), duration) for traffic, duration in backend.starts] == starts


def test_stop_before_a_waiting_start_sends_nothing(client: Client, backend: FakeBackend) -> None:
    prepared(client, 0, 1)
    client.start(0)
    client.on(0, "stop_traffic")
    time.sleep(0.1)
    assert client.call("get_port_stats", port_id=0)["opackets"] == 0
    assert not backend.starts


@pytest.mark.parametrize(("isg", "duration", "sent"), [(1e9, -1, 0), (3e7, 2, 0), (1e3, 2, 1), (2e7, 60, None)])
def test_a_stream_that_is_not_due_before_the_end_is_not_sent_and_one_that_begins_late_refused(
    client: Client, backend: FakeBackend, isg: float, duration: float, sent: int | None
) -> None:
    client.acquire(0)
    client.on(0, "add_stream", stream_id=1, stream=stream(isg=isg))
    if sent is None:
        assert "begin late" in error(client.start(0, duration=duration))
        return
    client.start(0, duration=duration)
    ((traffic, _),) = backend.starts
    assert len(traffic[0]) == sent


def test_a_backend_that_cannot_start(client: Client, backend: FakeBackend) -> None:
    prepared(client, 0, 1)
    backend.fails = True
    client.start(0)
    assert "the cable is cut" in error(client.start(1))
    assert (4, 0) in kinds(client.barrier())
    client.start(0)
    ends = kinds(client.published(10, '"type":4,"data":{"port_id":0}'))
    assert ends[-2:] == [(7, 0), (4, 0)]
    assert client.call("get_port_status", port_id=0)["state"] == "STREAMS"


def test_newer_clients_get_all_events_since_they_connected(client: Client) -> None:
    """They ask for the first time when 0.5 s were quiet: by then a short trial may be over."""
    client.acquire(0)
    client.call("api_sync_v2", name="STL", major=5, minor=1)
    client.on(0, "release")
    events = client.call("get_async_events", session_id=10, user="sub")["data"]
    assert [(event["seq"], event["type"]) for event in events] == [(0, 6)]
    assert client.call("get_async_events", session_id=11, user="sub")["data"] == [], "another's hello"


def test_a_repeated_barrier_leaves_newer_clients_the_time_to_ask(client: Client) -> None:
    client.call("api_sync_v2", name="STL", major=5, minor=1)
    for _ in range(3):
        assert client.call("publish_now", key=4, baseline=False) == {}
    heard = client.published(0.3)
    # one of the connection's own may come late on a busy machine
    barriers = [message["type"] for message in heard if message["name"] == "trex-barrier"]
    assert [kind for kind in barriers if kind == 4] == [4]


def test_addresses(client: Client, backend: FakeBackend) -> None:
    def ether() -> dict[str, Any]:
        layers: dict[str, Any] = client.call("get_port_status", port_id=0)["attr"]["layer_cfg"]
        return layers

    prepared(client, 0)
    assert ether()["ipv4"] == {"src": "100.65.1.2", "dst": "100.65.1.1", "state": "resolved"}
    client.on(0, "set_l3", src_addr="1.1.1.1", dst_addr="1.1.1.2")
    assert ether()["ipv4"]["state"] == "unresolved"
    assert "dest MAC is invalid" in error(client.start(0))
    client.on(0, "set_l2", dst_mac="02:00:00:00:00:77")
    assert ether()["ether"] == {"src": MACS[0], "dst": "02:00:00:00:00:77", "state": "configured"}
    client.start(0)
    assert backend.starts[-1][0][0][0].frame[:6] == bytes.fromhex("020000000077")
    assert "not an IPv4 address" in error(client.on(0, "set_l3", src_addr="x", dst_addr="1.1.1.2"))
    assert "not a MAC" in error(client.on(0, "set_l2", dst_mac="02"))


def capture(client: Client, command: str, **more: Any) -> Any:
    return client.call("capture", command=command, **{"mode": "fixed", "tx": [], "filter": ""} | more)


def test_several_captures_look_at_a_port(client: Client, backend: FakeBackend) -> None:
    first = capture(client, "start", limit=5, rx=[1])["capture_id"]
    second = capture(client, "start", limit=2, mode="cyclic", rx=[1])["capture_id"]
    # a full one keeps its frames, a cyclic one goes on
    assert [(row["id"], row["count"]) for row in capture(client, "status")] == [(first, 5), (second, 2)]
    for number in (first, second):
        assert capture(client, "remove", capture_id=number) == {}
    assert backend.limits == [0, 0]
    for _ in range(10):
        capture(client, "start", limit=1, rx=[0])
    assert error(capture(client, "start", limit=1, rx=[0])) == "capture limit has reached"


def test_pauses_are_long_enough_for_newer_clients(client: Client) -> None:
    client.call("api_sync_v2", name="STL", major=5, minor=1)
    client.barrier()
    assert client.published(10, '"trex-global"')
    client.call("get_async_events", session_id=9)
    begin = time.monotonic()
    assert client.published(10, '"trex-global"')
    assert time.monotonic() - begin > 0.5, "they ask for events only after 0.5 s without a message"


def test_a_late_subscriber_gets_its_own_barrier_and_no_others(client: Client) -> None:
    def subscriber() -> zmq.Socket[bytes]:
        socket = client.context.socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(client.sub.getsockopt_string(zmq.LAST_ENDPOINT))
        return socket

    client.barrier()
    client.call("api_sync", api_vers=[{"type": "core", "major": 4, "minor": 1}])
    stranger = subscriber()
    heard = b""
    while stranger.poll(250):
        heard += stranger.recv()
    assert b"trex-barrier" not in heard
    client.call("publish_now", key=77)
    late = subscriber()
    assert late.poll(2000)
    assert b'"trex-barrier","type":77' in late.recv()
