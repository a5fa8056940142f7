"""Several profiles at one port: each with its streams, its state and its end, on the modelled router."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.server.loop import TrexServer
from support.model_bench import HandClock, configuration, platform, traffic
from support.server_support import Client, stream

pytestmark = pytest.mark.slow

FRAME = traffic("64b 1-flow", 1.0)[0].frame


@contextlib.contextmanager
def modelled(clock: HandClock) -> Iterator[Client]:
    """A client of a server on a configured Netgate 6100 with this clock."""
    backend = ModelBackend(platform(), "vpp", clock)
    backend.configure(configuration(backend))
    server = TrexServer(backend, clock.now)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    client = Client(server)
    try:
        yield client
    finally:
        client.close()
        server.stop()
        thread.join(3)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def client(clock: HandClock) -> Iterator[Client]:
    with modelled(clock) as found:
        found.acquire(0)
        found.barrier()
        yield found


def added(client: Client, profile: str, number: int = 1, **more: Any) -> None:
    answer = client.on(0, "add_stream", profile_id=profile, stream_id=number, stream=stream(1.0, FRAME, **more))
    assert answer == {}


def states(client: Client) -> dict[str, str]:
    found = client.call("get_port_status", port_id=0, profile_id="*", block=False)
    assert found["profile_count"] == len(found["state_profile"])
    return dict(found["state_profile"])


def ended(client: Client, clock: HandClock) -> tuple[int, int]:
    """Frames sent by port 0 and received by port 1 when nothing is sent any more."""
    for _ in range(1000):
        if client.call("get_port_status", port_id=0)["state"] != "TX":
            break
        clock.time += 0.1
        time.sleep(0.005)  # the server has to see it, now or later
    clock.time += 1
    stats = [client.call("get_port_stats", port_id=port) for port in (0, 1)]
    return stats[0]["opackets"], stats[1]["ipackets"]


def test_each_profile_has_its_own_streams(client: Client) -> None:
    added(client, "_")
    added(client, "a")
    added(client, "a", 2)
    found = client.call("get_all_streams", port_id=0, profile_id="*")["profiles"]
    assert {name: set(rows) for name, rows in found.items()} == {"_": {"1"}, "a": {"1", "2"}}
    assert client.call("get_stream_list", port_id=0, profile_id="a") == [1, 2]
    assert client.call("get_profile_list", port_id=0) == ["_", "a"]
    assert states(client) == {"_": "STREAMS", "a": "STREAMS"}
    assert client.on(0, "remove_stream", profile_id="a", stream_id=1) == {}
    assert client.on(0, "remove_all_streams", profile_id="a") == {}
    assert states(client) == {"_": "STREAMS"}
    assert client.on(0, "remove_all_streams", profile_id="gone") == {}
    answer = client.on(0, "start_traffic", profile_id="gone", mul={"type": "pps", "value": 1, "op": "abs"}, duration=1)
    assert answer["specific_err"] == "profile_id gone does not exists"
    assert "code" in client.on(0, "add_stream", profile_id="*", stream_id=9, stream=stream())


def test_each_profile_has_its_own_duration_and_end_event(client: Client, clock: HandClock) -> None:
    for name in ("a", "b"):
        added(client, name)
    client.start(0, 1000.0, duration=4, profile_id="a")
    clock.time += 1
    client.start(0, 2000.0, duration=2, profile_id="b")
    assert states(client) == {"_": "IDLE", "a": "TX", "b": "TX"}
    sent, received = ended(client, clock)
    assert sent == received == 8000
    events = [row for row in client.barrier() if row["name"] == "trex-event" and row["type"] in (4, 14)]
    assert [(row["type"], row["data"].get("profile_id")) for row in events] == [(14, "b"), (14, "a"), (4, None)]
    assert states(client) == {"_": "IDLE", "a": "STREAMS", "b": "STREAMS"}


def test_a_burst_beside_another_profile_is_whole(client: Client, clock: HandClock) -> None:
    added(client, "_")
    burst = stream(1000.0, FRAME, kind="single_burst")
    burst["mode"]["total_pkts"] = 3000
    client.on(0, "add_stream", profile_id="burst", stream_id=1, stream=burst)
    client.start(0, 1.0, kind="raw", duration=-1, profile_id="burst")
    clock.time += 1
    client.start(0, 500.0, duration=1)
    assert ended(client, clock)[0] == 3500


def test_profiles_are_stopped_paused_and_updated_one_by_one(client: Client, clock: HandClock) -> None:
    def rate() -> float:
        before: int = client.call("get_port_stats", port_id=0)["opackets"]
        clock.time += 2
        now: int = client.call("get_port_stats", port_id=0)["opackets"]
        return (now - before) / 2

    for name, pps in (("a", 1000.0), ("b", 10_000.0)):
        added(client, name)
        client.start(0, pps, duration=-1, profile_id=name)
    assert rate() == pytest.approx(11_000, abs=1)
    assert client.on(0, "pause_traffic", profile_id="b") == {}
    assert states(client) == {"_": "IDLE", "a": "TX", "b": "PAUSE"}
    assert rate() == pytest.approx(1000, abs=1)
    client.on(0, "update_traffic", profile_id="a", mul={"type": "pps", "value": 2000, "op": "abs"}, force=False)
    assert rate() == pytest.approx(2000, abs=1)
    assert client.on(0, "resume_traffic", profile_id="b") == {}
    assert rate() == pytest.approx(12_000, abs=1)
    assert client.on(0, "stop_traffic", profile_id="a") == {}
    assert rate() == pytest.approx(10_000, abs=1)
    assert client.on(0, "stop_traffic", profile_id="*") == {}
    assert rate() == 0
    assert states(client) == {"_": "IDLE", "a": "STREAMS", "b": "STREAMS"}


def test_a_profile_whose_streams_all_pause_has_not_ended(client: Client, clock: HandClock) -> None:
    added(client, "_")
    client.start(0, 1000.0, duration=-1)
    for _ in range(2):
        assert client.on(0, "pause_streams", stream_ids=[1]) == {}
        before = client.call("get_port_stats", port_id=0)["opackets"]
        clock.time += 1
        assert client.call("get_port_stats", port_id=0)["opackets"] == before
        assert states(client) == {"_": "TX"}
        assert client.on(0, "resume_streams", stream_ids=[1]) == {}
        clock.time += 1
        assert client.call("get_port_stats", port_id=0)["opackets"] > before
    client.on(0, "pause_streams", stream_ids=[1])
    client.on(0, "pause_traffic")
    client.on(0, "resume_traffic")
    clock.time += 1
    assert client.call("get_port_stats", port_id=0)["opackets"] > before
    assert client.on(0, "stop_traffic") == {}
