"""Reading answers of a TRex server, recorded ones of v3.08 too: ports, counts, the last frames."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lineproof.generators.base import GeneratorPort
from lineproof.generators.trex.client import answers
from lineproof.generators.trex.client.answers import ServerEvents
from lineproof.generators.trex.client.running_traffic import (
    COUNTS,
    all_placed,
    counted_since,
    group_counts,
    wait_for_drain,
)
from lineproof.generators.trex.driver import remedy_of
from support.paths import DATA

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
        assert answers.destination_state(status) == "known"


@pytest.mark.parametrize(
    ("gbps", "supported", "known"),
    [
        (10.0, [], 10.0),
        (25.0, [10000, 25000], 25.0),
        (100.0, [10000, 25000, 100000], 100.0),
        (200.0, [100000, 200000], 200.0),
        # DPDK's "unknown", cut to the highest speed that TRex has (up to v3.02, since v3.03, and not cut)
        (100.0, [], 0.0),
        (200.0, [], 0.0),
        (200.0, [1000, 10000], 0.0),
        (4294967.295, [], 0.0),
        (0.0, [], 0.0),
    ],
)
def test_a_speed_that_the_driver_does_not_know_is_not_taken_for_one(
    gbps: float, supported: list[int], known: float
) -> None:
    status = {"attr": {"speed": gbps, "link": {"up": True}}}
    assert answers.port_facts(status, {"supp_speeds": supported})["speed_bps"] == known * 1e9


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


@pytest.mark.parametrize(
    ("ether", "ipv4", "found"),
    [
        ("configured", "none", "known"),
        ("unconfigured", "none", "none"),
        ("unconfigured", "unresolved", "unresolved"),
        ("configured", "resolved", "known"),
    ],
)
def test_the_destination_state_of_a_port_is_read(ether: str, ipv4: str, found: str) -> None:
    layers = {"ether": {"state": ether}, "ipv4": {"state": ipv4}}
    assert answers.destination_state({"attr": {"layer_cfg": layers}}) == found
    assert answers.destination_state({"attr": {}}) == "known"


def test_core_loads_are_read_per_second() -> None:
    (*_, core), (*_, later) = (item["result"]["cpu"] for item in recorded("get_utilization"))
    cores = [{**each, "history": each["history"][:6]} for each in (core, later)]  # the recording has no more
    assert answers.core_loads({"cpu": cores}) == [[55, 0, 0, 0, 0, 0], [2, 7, 52, 55, 0, 0]]
    assert answers.core_loads({}) == [] and answers.core_loads({"cpu": [{}]}) == [[]]


def test_events_report_a_taken_port_and_the_end_of_sending() -> None:
    session = recorded("get_async_events")[0]["params"]["session_id"]
    for ours, complaints in ((session, 0), (session + 1, 1)):
        events = ServerEvents(ours)
        hear, done = events.wrap_event_handler(lambda kind, data: None), set()
        for call in recorded("get_async_events"):
            for kind, data in answers.events(call["result"]):
                hear(kind, data)
            done |= set(events.ended)
        assert done == {0} and bool(events.complaints) == bool(complaints)
        assert all("was taken by 'tester'" in item for item in events.complaints)


def test_an_answer_without_data_has_no_events() -> None:
    assert list(answers.events({"data": []})) == list(answers.events({"data": None})) == []
    assert list(answers.events({"data": [{"name": "trex-event", "type": 4, "data": None}]})) == [(4, {})]


def test_a_group_without_latency_has_no_counts() -> None:
    stats = [call["result"] for call in recorded("get_pgid_stats")]
    assert stats and all(group_counts(item, 77, 0, 1) is None for item in stats)


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
    found = group_counts(answer, 7, 0, 1)
    assert found is not None
    assert (found["sent"], found["received"], found["elsewhere"], found["duplicates"]) == (15, 10, 2, 1)
    assert "jitter" not in found and all_placed(found) is placed


@pytest.mark.parametrize("time", [float("inf"), float("nan"), "soon"])
def test_a_time_that_is_no_number_is_refused(time: object) -> None:
    with pytest.raises(ValueError, match=r"soon|its time is"):
        answers.moment({"ts": time})


def test_counts_of_a_trial_are_those_since_the_one_before() -> None:
    def counted(*ports: int, frames: int) -> list[dict[str, int]]:
        return [{"tx_port": port, "rx_port": 1 - port, **dict.fromkeys(COUNTS, frames)} for port in ports]

    assert counted_since([], counted(0, 1, frames=5)) == counted(0, 1, frames=5)
    assert counted_since(counted(0, 1, frames=5), counted(0, 1, frames=7)) == counted(0, 1, frames=2)
    # a direction without a report; counts that fall
    assert counted_since(counted(0, frames=5), counted(0, 1, frames=7)) == []
    assert counted_since(counted(0, 1, frames=5), counted(0, 1, frames=4)) == []


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Failed parsing given packet for flow stat.  NIC does not support Q in Q", "started with '--software'"),
        ("Failed allocating statistic counter. Probably all are used for this rule type.", "fewer streams with flow"),
    ],
)
def test_a_refusal_that_names_no_remedy_gets_one(words: str, remedy: str) -> None:
    assert remedy in remedy_of(words) and remedy_of("port is already taken by 'bob'") == ""


# -- how long a trial waits for frames in transit


Count = Callable[[float], dict[Any, Any]]
BEFORE: dict[Any, Any] = {port: {"opackets": 7, "ipackets": 11} for port in (0, 1)}
AHEAD, BACK = (0, 1), (1, 0)


def wait(
    count: Count, directions: list[tuple[int, int]], drain: float = 2.0, speed: float = 1.0
) -> tuple[dict[Any, Any], float]:
    """The final counters and the wait in wall s; *count*: frames sent and received by a time in wall s."""
    now = [0.0]

    def read() -> dict[Any, Any]:
        return {
            port: {name: BEFORE[port][name] + value for name, value in counts.items()}
            for port, counts in count(now[0]).items()
        }

    def sleep(seconds: float) -> None:
        assert seconds >= 0
        now[0] += seconds + 1e-6

    after, took = wait_for_drain(read(), read, BEFORE, directions, {0: 99, 1: 99}, drain, speed, lambda: now[0], sleep)
    return dict(after), took


def counts(sent: int, received: int, back_sent: int = 0, back_received: int = 0) -> dict[Any, Any]:
    return {0: {"opackets": sent, "ipackets": back_received}, 1: {"opackets": back_sent, "ipackets": received}}


def test_a_short_wait_if_too_few_frames_were_sent_and_none_is_missing() -> None:
    assert 0.1 <= wait(lambda _: counts(80, 80), [AHEAD])[1] < 0.2
    # lagging counters
    after, took = wait(lambda now: counts(*((100, 100) if now > 0.05 else (80, 80))), [AHEAD])
    assert after[0]["opackets"] == 107 and took < 0.1


@pytest.mark.parametrize(
    ("count", "terms", "seconds"),
    [
        # none is missing
        (lambda now: counts(99, 99), {}, 0),
        (lambda now: counts(100, 100), {}, 0),
        (lambda now: counts(99, 99, 100, 103), {"directions": [AHEAD, BACK]}, 0),
        # no frame has come for a while
        (lambda now: counts(100, 99), {}, 1.6),
        # frames come, at most for the whole drain
        (lambda now: counts(100, 60 + int(10 * now)), {}, 2),
        # counters are updated once a second
        (lambda now: counts(100, 100 if now > 1.5 else 60), {}, 1.55),
        # extra frames of one direction do not end the wait of the other
        (lambda now: counts(100, 100 if now > 1 else 90, 100, 150), {"directions": [AHEAD, BACK]}, 1.05),
        # the testbed's clock, with a minimum
        (lambda now: counts(100, 0), {"speed": 4}, 0.4),
        (lambda now: counts(100, 0), {"speed": 1000}, 0.1),
        (lambda now: counts(100, 0), {"drain": 0}, 0.1),
    ],
)
def test_missing_frames_are_waited_for_while_they_come(count: Count, terms: dict[Any, Any], seconds: float) -> None:
    after, took = wait(count, **{"directions": [AHEAD], **terms})
    assert took == pytest.approx(seconds, abs=0.06 if seconds in (1.55, 1.05) else 0.01)
    assert after[1]["ipackets"] == 11 + count(took)[1]["ipackets"]
