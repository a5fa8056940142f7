"""Traffic that is being sent: single streams paused, resumed and given new rates; what a real server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.server_support import Client, FakeBackend, serving, stream

pytestmark = pytest.mark.slow

ABSOLUTE = {"type": "pps", "value": 3000.0, "op": "abs"}


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def client(backend: FakeBackend) -> Iterator[Client]:
    with serving(backend) as server:
        found = Client(server)
        yield found
        found.close()


def error(answer: Any) -> str:
    text: str = answer["specific_err"]
    return text


def sending(client: Client, duration: float = -1, **more: Any) -> None:
    """Port 0 sends two streams of 1000 and 2000 frames/s."""
    client.acquire(0)
    for number, pps in ((1, 1.0), (2, 2.0)):
        client.on(0, "add_stream", stream_id=number, stream=stream(pps, **more))
    assert "multiplier" in client.start(0, 3000.0, duration=duration)


def test_single_streams_are_paused_and_resumed(client: Client, backend: FakeBackend) -> None:
    sending(client)
    assert client.on(0, "pause_streams", profile_id="_", stream_ids=[2]) == {}
    assert client.call("get_port_status", port_id=0)["state"] == "TX"
    assert client.on(0, "resume_streams", profile_id="_", stream_ids=[2]) == {}
    assert [pps for _, pps in backend.updates] == pytest.approx([1000, 3000])


def test_single_streams_get_rates_of_their_own(client: Client, backend: FakeBackend) -> None:
    sending(client)
    assert client.on(0, "update_streams", stream_ids=[1], mul=ABSOLUTE, force=False)["multiplier"] == 1000
    assert backend.updates[-1][1] == pytest.approx(5000)
    # the port's multiplier works on what is sent
    client.on(0, "update_traffic", mul={"type": "percentage", "value": 100, "op": "add"}, force=False)
    assert backend.updates[-1][1] == pytest.approx(10_000)


def test_a_paused_port_takes_new_rates_when_it_resumes(client: Client, backend: FakeBackend) -> None:
    sending(client)
    client.on(0, "pause_traffic")
    client.on(0, "update_traffic", mul={"type": "pps", "value": 6000, "op": "abs"}, force=False)
    assert backend.updates == []
    client.on(0, "resume_traffic")
    assert [pps for _, pps in backend.updates] == pytest.approx([6000])


def test_changes_that_trex_refuses_are_refused_in_its_words(client: Client) -> None:
    sending(client)
    for word in ("pause", "resume", "update"):
        more = {"mul": ABSOLUTE, "force": False} if word == "update" else {}
        gone = client.on(0, f"{word}_streams", stream_ids=[1, 7], **more)
        assert error(gone) == f"{word}_streams: stream 7 does not exists in profile_id(_)"
        assert error(client.on(0, f"{word}_streams", stream_ids=[], **more)) == f"please specify streams to {word}"
    relative = {"type": "pps", "value": 1.0, "op": "add"}
    answer = client.on(0, "update_streams", stream_ids=[1], mul=relative, force=False)
    assert error(answer) == "Must use absolute multiplier for updating stream"
    client.on(0, "stop_traffic")
    assert "current state: 'STREAMS" in error(client.on(0, "pause_streams", stream_ids=[1]))


@pytest.mark.parametrize("method", ["pause_traffic", "pause_streams"])
def test_only_endless_traffic_can_pause(client: Client, method: str) -> None:
    sending(client, duration=10)
    assert "when duration is not enable" in error(client.on(0, method, stream_ids=[1]))
    client.on(0, "stop_traffic")
    burst = stream(1.0, kind="single_burst")
    burst["mode"]["total_pkts"] = 1_000_000
    client.on(0, "add_stream", stream_id=3, stream=burst)
    client.start(0, duration=-1)
    assert "continues mode" in error(client.on(0, method, stream_ids=[1]))


def test_unsupported_methods_are_refused_in_trexs_words(client: Client) -> None:
    client.acquire(0)
    answer = client.on(0, "push_remote", pcap_filename="/etc/none.pcap", ipg_usec=-1, speedup=1, count=1, duration=-1)
    assert "'none.pcap'" in error(answer)
    assert "software mode" in error(client.call("enable_tpg", username="alice"))
    assert error(client.call("disable_tpg", username="alice")) == "Tagged Packet Group is not enabled."
    assert client.call("get_tpg_status", username="alice")["enabled"] is False
    assert "only one" in error(client.call("get_tpg_status", username="alice", port_id=0))
    assert "at least one" in error(client.call("get_tpg_status"))
    for method in ("get_tpg_stats", "shutdown", "get_async_results", "conf_ns_batch"):
        assert client.on(0, method)["code"] == -32000


def test_captures_of_sent_frames_and_several_at_a_port(client: Client, backend: FakeBackend) -> None:
    def capture(command: str, **more: Any) -> Any:
        return client.call("capture", command=command, **more)

    first = capture("start", limit=5, mode="fixed", rx=[1], tx=[0], filter="")["capture_id"]
    second = capture("start", limit=2, mode="cyclic", rx=[1], tx=[], filter="")["capture_id"]
    sending(client, frame=bytes(range(60)))
    client.on(0, "stop_traffic")
    backend.sent[0] += 100
    rows = capture("status")
    assert [row["filter"] for row in rows] == [{"bpf": "", "rx": 2, "tx": 1}, {"bpf": "", "rx": 2, "tx": 0}]
    found = capture("fetch", capture_id=first, pkt_limit=10)["pkts"]
    assert {row["origin"] for row in found} <= {"RX", "TX"}
    assert len(found) == 5
    assert len(capture("fetch", capture_id=second, pkt_limit=10)["pkts"]) == 2
    for number in (first, second):
        assert capture("remove", capture_id=number) == {}
    assert backend.limits == [0, 0]
    only = capture("start", limit=3, mode="fixed", rx=[], tx=[0], filter="")["capture_id"]
    backend.sent[0] += 2
    assert capture("stop", capture_id=only) == {"pkt_count": 2, "endpoint": ""}
    found = capture("fetch", capture_id=only, pkt_limit=10)["pkts"]
    assert [(row["origin"], row["port"]) for row in found] == [("TX", 0), ("TX", 0)]
    for _ in range(9):
        capture("start", limit=1, mode="fixed", rx=[0], tx=[], filter="")
    assert error(capture("start", limit=1, mode="fixed", rx=[0], tx=[], filter="")) == "capture limit has reached"
