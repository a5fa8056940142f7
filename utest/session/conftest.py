"""A session that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lineproof.session.session import Session
from support import simulated_session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with simulated_session.opened(tmp_path_factory.mktemp("run")) as found:
        yield found
