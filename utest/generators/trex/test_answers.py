"""What a TRex server v3.08 answered, as its own client's session was recorded, made plain."""

import json
from typing import Any

import pytest

from linerate.generators.trex.client import answers
from linerate.generators.trex.client.messages import Watch
from linerate.generators.trex.client.packet_groups import group_counts
from support.paths import DATA

RECORDED = DATA / "trex-rpc" / "official-v3.08.jsonl"


def recorded(method: str) -> list[dict[str, Any]]:
    """Every call of *method* that was answered, alone or among others, in order."""
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    calls = [call for row in rows for call in row.get("batch", [row])]
    return [call for call in calls if call.get("method") == method and "result" in call]


def test_ports_are_described_by_number_not_by_place() -> None:
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
        }
        assert answers.destination(status) == "known"


@pytest.mark.parametrize(
    ("ether", "ipv4", "found"),
    [
        ("configured", "none", "known"),
        ("unconfigured", "none", "none"),
        ("unconfigured", "unresolved", "unresolved"),
        ("configured", "resolved", "known"),
    ],
)
def test_a_port_tells_whether_it_knows_where_its_frames_go(ether: str, ipv4: str, found: str) -> None:
    assert answers.destination({"attr": {"layer_cfg": {"ether": {"state": ether}, "ipv4": {"state": ipv4}}}}) == found
    assert answers.destination({"attr": {}}) == "known"


def test_counters_are_flat_and_name_the_port() -> None:
    whole = recorded("get_global_stats")[-1]["result"]
    ports = {port: recorded("get_port_stats")[-2 + port]["result"] for port in (0, 1)}
    found = answers.counters(whole, ports)
    assert found["m_total_queue_full"] == whole["m_total_queue_full"]
    for port, counts in ports.items():
        for name in ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors"):
            assert found[f"{name}-{port}"] == counts[name]


def test_cores_tell_of_each_second() -> None:
    (*_, core), (*_, later) = (item["result"]["cpu"] for item in recorded("get_utilization"))
    told = [{**each, "history": each["history"][:6]} for each in (core, later)]  # the recording leaves out the rest
    assert answers.core_loads({"cpu": told}) == [[55, 0, 0, 0, 0, 0], [2, 7, 52, 55, 0, 0]]
    assert answers.core_loads({}) == [] and answers.core_loads({"cpu": [{}]}) == [[]]


def test_events_tell_who_took_a_port_and_when_sending_was_over() -> None:
    session = recorded("get_async_events")[0]["params"]["session_id"]
    for ours, complaints in ((session, 0), (session + 1, 1)):
        watch = Watch(ours)
        hear, done = watch.wrap(lambda kind, data: None), set()
        for call in recorded("get_async_events"):
            for kind, data in answers.events(call["result"]):
                hear(kind, data)
            done |= set(watch.done)
        assert done == {0} and bool(watch.complaints) == bool(complaints)
        assert all("was taken by 'tester'" in item for item in watch.complaints)


def test_a_server_that_says_nothing_has_no_events() -> None:
    assert list(answers.events({"data": []})) == list(answers.events({"data": None})) == []
    assert list(answers.events({"data": [{"name": "trex-event", "type": 4, "data": None}]})) == [(4, {})]


def test_latency_is_read_from_what_the_server_says_of_a_group() -> None:
    said = [call["result"] for call in recorded("get_pgid_stats")]
    assert said and all(group_counts(item, 77, 0, 1) is None for item in said)
