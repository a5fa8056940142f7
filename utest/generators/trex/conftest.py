"""Both of TRex's clients, and a generator with each on a server whose backend only counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lineproof.generators.trex.driver import TrexGenerator
from support.server_support import FakeBackend
from support.trex_profile_support import CLIENTS, sending


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """Every test that names it runs with both clients."""
    return str(request.param)


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def sender(client: str, backend: FakeBackend) -> Iterator[TrexGenerator]:
    with sending(backend, client) as generator:
        yield generator
