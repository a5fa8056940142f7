"""The numbers of events, without a socket."""

from __future__ import annotations

from typing import Any, cast

from linerate_bench.server import publisher
from linerate_bench.server.publisher import Event, Publisher


class Deaf:
    """A socket that nobody listens to."""

    def send(self, data: bytes, flags: int = 0) -> None:
        pass


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["seq"] for row in rows]


def test_numbers_are_consecutive_for_each_session_and_begin_anew_after_a_loss() -> None:
    told = Publisher(cast(Any, Deaf()))
    assert told.events_of(1) == []
    told.event(Event.STARTED, {"port_id": 0})
    assert numbers(told.events_of(1)) == [0, 1], "the profile's twin comes first"
    assert told.events_of(2) == []
    told.event(Event.RELEASED, {"port_id": 0})
    assert numbers(told.events_of(1)) == [2]
    assert numbers(told.events_of(2)) == [0]
    for _ in range(publisher.KEPT + 5):
        told.event(Event.RELEASED, {"port_id": 0})
    late = numbers(told.events_of(1))
    assert late == list(range(publisher.KEPT)), "0 tells the client that a new sequence begins"
    told.event(Event.RELEASED, {"port_id": 0})
    assert numbers(told.events_of(1)) == [publisher.KEPT]


def test_sessions_are_bounded() -> None:
    told = Publisher(cast(Any, Deaf()))
    for session in range(10 * publisher.SESSIONS):
        told.greeted()
        told.events_of(session)
    told.event(Event.RELEASED, {"port_id": 0})
    assert told.events_of(0) == [], "forgotten: it begins anew"
    assert numbers(told.events_of(10 * publisher.SESSIONS - 1)) == [0]
