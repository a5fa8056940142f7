"""The numbers of events, without a socket."""

from __future__ import annotations

from typing import Any, cast

from lineproof_bench.server import publisher
from lineproof_bench.server.publisher import Event, Publisher


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
