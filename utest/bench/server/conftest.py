"""A server on a backend that only counts, 20 times as fast as the wall's clock, and its client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.server_support import Client, FakeBackend, serving


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(speed=20)


@pytest.fixture
def client(backend: FakeBackend) -> Iterator[Client]:
    with serving(backend) as server:
        connected = Client(server)
        connected.barrier()
        yield connected
        connected.close()
