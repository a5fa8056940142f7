"""The numbers that the embedded server reports without being asked: of its events, and of the generator's CPU."""

from __future__ import annotations

import ipaddress
from typing import Any, cast

import pytest

from lineproof.generators.trex.next_hops import Question, link_local
from lineproof_bench.backend import Utilisation
from lineproof_bench.server import publisher
from lineproof_bench.server.packet_push import reply_to
from lineproof_bench.server.publisher import Event, Publisher
from lineproof_bench.server.statistics import Statistics
from support.server_support import MACS, PEERS, FakeBackend


class Busy(FakeBackend):
    """As busy as is said."""

    percent = 0.0

    def utilisation(self) -> Utilisation:
        return Utilisation(self.percent, 3.0)


def reported(statistics: Statistics) -> list[int]:
    (core,) = statistics.utilisation()["cpu"]
    found: list[int] = core["history"]
    return found


def test_cpu_load_of_each_second_is_reported() -> None:
    backend, clock = Busy(), [0.0]
    statistics = Statistics(backend, lambda: clock[0])
    for moment, percent in ((0.5, 99.0), (1.0, 40.0), (1.9, 99.0), (2.0, 60.0)):
        clock[0], backend.percent = moment, percent
        statistics.sample_cpu()
    assert reported(statistics) == [60, 40] + [0] * 18


def test_the_smooth_load_follows_the_raw_one_by_a_quarter_each_second() -> None:
    backend, clock = Busy(), [0.0]
    statistics = Statistics(backend, lambda: clock[0])
    backend.percent = 80.0
    for second in (1, 2):
        clock[0] = second
        statistics.sample_cpu()
    found = statistics.overall()
    assert (found["m_cpu_util_raw"], found["m_cpu_util"], found["m_rx_cpu_util"]) == (80.0, 35.0, 3.0)
    assert statistics.port(0)["m_cpu_util"] == 35.0


class Deaf:
    """A socket without listeners."""

    def send(self, data: bytes, flags: int = 0) -> None:
        pass


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["seq"] for row in rows]


def test_event_numbers_are_consecutive_per_session_and_restart_after_a_loss() -> None:
    source = Publisher(cast(Any, Deaf()))
    assert source.events_of(1) == []
    source.event(Event.STARTED, {"port_id": 0})
    assert numbers(source.events_of(1)) == [0, 1], "the profile's event comes first"
    assert source.events_of(2) == []
    source.event(Event.RELEASED, {"port_id": 0})
    assert numbers(source.events_of(1)) == [2]
    assert numbers(source.events_of(2)) == [0]
    for _ in range(publisher.MOST_KEPT + 5):
        source.event(Event.RELEASED, {"port_id": 0})
    late = numbers(source.events_of(1))
    assert late == list(range(publisher.MOST_KEPT)), "0 tells the client that a new sequence begins"
    source.event(Event.RELEASED, {"port_id": 0})
    assert numbers(source.events_of(1)) == [publisher.MOST_KEPT]


def test_sessions_are_bounded() -> None:
    source = Publisher(cast(Any, Deaf()))
    for session in range(10 * publisher.MOST_SESSIONS):
        source.api5_arrival()
        source.events_of(session)
    source.event(Event.RELEASED, {"port_id": 0})
    assert source.events_of(0) == [], "forgotten: its numbers begin again"
    assert numbers(source.events_of(10 * publisher.MOST_SESSIONS - 1)) == [0]


# -- a router behind the embedded server answers for its own addresses; habits: generators/trex/test_addresses.py


ROUTER6 = "2001:db8::1"


def owns(address: str) -> bool:
    return address in ("100.65.1.1", ROUTER6)


@pytest.mark.parametrize("tags", [(), (7,), (7, 8)])
@pytest.mark.parametrize("address", ["100.65.1.1", ROUTER6])
def test_a_router_answers_whoever_asks_for_its_address(address: str, tags: tuple[int, ...]) -> None:
    question = Question(0, MACS[0], "100.65.1.2", address, tags)
    reply = reply_to(question.frame, PEERS[0], owns)
    assert reply is not None and question.answer(reply) == PEERS[0]


def test_a_router_answers_for_its_link_local_address_and_for_no_others() -> None:
    own = str(ipaddress.IPv6Address(link_local(bytes.fromhex(PEERS[0].replace(":", "")))))
    question = Question(0, MACS[0], "100.65.1.2", own)
    reply = reply_to(question.frame, PEERS[0], owns)
    assert reply is not None and question.answer(reply) == PEERS[0]
    for other in ("100.65.1.9", "2001:db8::9", "fe80::9"):
        assert reply_to(Question(0, MACS[0], "100.65.1.2", other).frame, PEERS[0], owns) is None
