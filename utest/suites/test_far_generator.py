"""A TRex behind 40 ms of delay: its own clock says when real frames were sent, and sentences are decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.session.session import Session
from support import real_trex
from support.far_server import far
from support.kernel_router import run_in_router
from support.simulated_session import made_ready, owed, started

pytestmark = pytest.mark.netns

REAL = pytest.param(real_trex.WORDS, marks=pytest.mark.skipif(real_trex.REASON != "", reason=real_trex.REASON))


@contextmanager
def opened(folder: Path, words: tuple[str, str, str], jitter: float = 0.0) -> Iterator[Session]:
    """The testbed, its TRex 40 ms away."""
    with started(folder, words, goal="quick") as session:
        access = session.testbed.facts.generator
        with far(access.sync_port, access.async_port, jitter=jitter) as (sync_port, async_port):
            endpoint = replace(access, sync_port=sync_port, async_port=async_port)
            session.testbed.facts = replace(session.testbed.facts, generator=endpoint)
            yield made_ready(session)


@pytest.mark.parametrize("words", [("linux_router", "linux", "netns"), REAL])
def test_a_trex_that_is_far_away_decides_sentences(tmp_path: Path, words: tuple[str, str, str]) -> None:
    sentences = ("64b unidirectional ≥ 5 kpps", "64b bidirectional ≥ 5 kpps each way", "64b unidirectional ≥ 4 kpps")
    with opened(tmp_path, words, jitter=0.002) as session:
        rulings = {sentence: owed(session, sentence) for sentence in sentences}
        run_in_router(session, *["ip", "route", "add", "blackhole", "48.0.0.0/12"])
        bad = owed(session, "64b 256-networks unidirectional ≥ 5 kpps")
    assert [found.ruling for found in rulings.values()].count(Ruling.INCONCLUSIVE) <= 1, rulings
    assert all(found.ruling is not Ruling.FAIL for found in rulings.values()), rulings
    assert bad.ruling is Ruling.FAIL, bad.message
