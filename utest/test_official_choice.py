"""A server that refuses trex-stl-lib 0.3, as those of TRex v3 do, and a testbed file that names no client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from linerate.embedded.server.loop import Server
from linerate.errors import BenchError
from linerate.generators.base import Way
from linerate.generators.trex import probe
from linerate.generators.trex.driver import TrexGenerator, TrexSettings
from linerate.profiles import Catalogue
from linerate.trial import Load
from server_support import FakeBackend, serving

HOME = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"
CATALOGUE = Catalogue.read(Path(__file__).resolve().parent.parent / "variables" / "profiles")

pytestmark = pytest.mark.slow


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of API 5.1 only."""
    monkeypatch.setattr("linerate.embedded.server.service.CORE", (5, 1))
    monkeypatch.delenv("TREX_HOME", raising=False)
    with serving(FakeBackend()) as found:
        yield found


def settings(server: Server, client: str = "") -> TrexSettings:
    return TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client=client)


def sends(generator: TrexGenerator) -> int:
    generator.prepare(CATALOGUE.profile(["64b"]), (Way(0, 1),))
    return generator.measure(Load(1000), 0.1).directions[0].offered


@pytest.mark.parametrize("client", ["", "pypi"])
def test_without_that_client_one_sentence_says_what_to_write(newer: Server, client: str) -> None:
    with pytest.raises(
        BenchError, match=r"speaks STL API 5\.1 and wants the client it ships.*right would be"
    ) as caught:
        TrexGenerator(settings(newer, client))
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_the_installation_of_this_machine_is_used_where_it_is_named(
    newer: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREX_HOME", HOME)
    with TrexGenerator(settings(newer)) as generator:
        assert generator.versions["api"] == "5.1" and sends(generator) == 100


@pytest.mark.skipif(not HOME, reason=NEEDED)
def test_else_the_servers_own_is_fetched_and_again_for_each_connection(newer: Server) -> None:
    asked: list[probe.Server] = []

    def fetch(server: probe.Server) -> Path:
        asked.append(server)
        return Path(HOME)

    with TrexGenerator(settings(newer), fetch=fetch) as generator:
        assert sends(generator) == 100
        generator.reconnect()
        assert sends(generator) == 100
    assert [item.api for item in asked] == [(5, 1)] * 2
