"""A server far away: how long frames were sent is known by its own clock, and a trial ends when they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from statistics import median

import pytest

from lineproof.core.trial import Load, Tolerance, read_trial
from lineproof.generators.base import Direction
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from support.catalogue import CATALOGUE
from support.far_server import far
from support.server_support import FakeBackend, serving
from support.trex_profile_support import CLIENTS

pytestmark = pytest.mark.slow
BOTH = (Direction(0, 1), Direction(1, 0, swapped=True))


@pytest.fixture(params=CLIENTS)
def generator(request: pytest.FixtureRequest) -> Iterator[TrexGenerator]:
    with serving(FakeBackend()) as server, far(server.rpc_port, server.pub_port) as (sync_port, async_port):
        settings = TrexSettings("127.0.0.1", sync_port, async_port, client=request.param)
        with contextlib.closing(TrexGenerator(settings)) as found:
            found.prepare(CATALOGUE.profile(["64b"]), BOTH)
            yield found


def test_the_time_of_sending_is_known_to_a_few_ms_behind_40_ms(generator: TrexGenerator) -> None:
    trials = [read_trial(1, generator.measure(Load(5000), 0.5), Tolerance()) for _ in range(5)]
    assert all(row.lost == 0 and row.unsent <= 1 for trial in trials for row in trial.outcome.directions)
    assert all(trial.is_clean and trial.seconds.low <= 0.5 <= trial.seconds.high for trial in trials)
    assert median(trial.seconds.high for trial in trials) < 0.51


def test_the_distance_is_measured(generator: TrexGenerator) -> None:
    assert 0.04 <= median(generator.round_trips()) < 0.2
