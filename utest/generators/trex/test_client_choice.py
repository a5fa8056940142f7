"""A server that refuses trex-stl-lib 0.3, as those of TRex v3 do, and a testbed file that names no client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.core.trial import Load
from lineproof.generators.base import Direction
from lineproof.generators.trex import server_facts
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof_bench.server.loop import TrexServer
from support.catalogue import CATALOGUE
from support.server_support import FakeBackend, serving
from support.trex_profile_support import HOME, NEEDED

pytestmark = pytest.mark.slow


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[TrexServer]:
    """A server of API 5.1 only."""
    monkeypatch.setattr("lineproof_bench.server.service.CORE_API", (5, 1))
    monkeypatch.delenv("TREX_HOME", raising=False)
    with serving(FakeBackend()) as found:
        yield found


def settings(server: TrexServer, client: str = "") -> TrexSettings:
    return TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=client)


def sends(generator: TrexGenerator) -> int:
    generator.prepare(CATALOGUE.profile(["64b"]), (Direction(0, 1),))
    return generator.measure(Load(1000), 0.1).directions[0].offered


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_the_client_of_trex_home_is_used(newer: TrexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREX_HOME", HOME)
    with TrexGenerator(settings(newer)) as generator:
        assert generator.versions["api"] == "5.1" and sends(generator) == 100


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_the_servers_client_is_fetched_for_each_connection(newer: TrexServer) -> None:
    asked: list[server_facts.ServerFacts] = []

    def fetch(server: server_facts.ServerFacts) -> Path:
        asked.append(server)
        return Path(HOME)

    with TrexGenerator(settings(newer), fetch=fetch) as generator:
        assert sends(generator) == 100
        generator.reconnect()
        assert sends(generator) == 100
    assert [item.api for item in asked] == [(5, 1)] * 2
